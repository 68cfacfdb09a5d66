"""Parts of the page: formulas as MathML, cases as commands, verdicts as sentences."""

from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from iclab import report
from iclab.claims import Verdict, answered
from iclab.commands.flags.cases import asked
from iclab.commands.flags.options import chosen_preset
from iclab.commands.run import RunOptions
from iclab.problem import Ratios, Regression
from iclab.report import tables
from iclab.studies import STUDIES
from iclab.theory import dynamics, generalization, modes, population


def tags(tex: str) -> list[str]:
    """Names and texts of the elements of a formula, without the rows around them."""
    root = ElementTree.fromstring(report.mathml(tex))
    names = [(one.tag.rpartition("}")[2], one.text or "") for one in root.iter()]
    return [name + text for name, text in names if name not in ("math", "mrow")]


@pytest.mark.parametrize(
    ("tex", "expected"),
    [
        (r"\frac{a}{2}", ["mfrac", "mia", "mn2"]),
        (r"x_i^2", ["msubsup", "mix", "mii", "mn2"]),
        (r"\sum_{d=1}^{m} \lambda_d", ["munderover", "mo∑", "mid", "mo=", "mn1", "mim", "msub", "miλ", "mid"]),
        (r"\mathrm{tr}\,\Lambda", ["mitr", "mspace", "miΛ"]),
        (r"\bar{x} - 0.5", ["mover", "mix", "mo¯", "mo−", "mn0.5"]),
        (r"\sqrt{\alpha} < 1", ["msqrt", "miα", "mo<", "mn1"]),
        (r"a_\infty", ["msub", "mia", "mi∞"]),
    ],
)
def test_formulas_become_elements_of_mathml(tex: str, expected: list[str]) -> None:
    assert tags(tex) == expected


@pytest.mark.parametrize(
    ("tex", "message"),
    [
        (r"\frac{a", "braces of a formula must match"),
        ("a}", "braces of a formula must match; got 'a}'"),
        ("a^", "must not end in a script"),
        (r"\boom", r"commands that are known; got \\boom"),
        (r"\text", "must be followed by letters in braces"),
    ],
)
def test_formulas_that_are_none_are_refused(tex: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        report.mathml(tex)


@pytest.mark.parametrize("name", list(STUDIES))
def test_formulas_of_studies_can_be_set_with_the_names_of_their_symbols(name: str) -> None:
    for formula in STUDIES[name].formulas:
        whole = "".join(map(report.mathml, formula.lines))
        for symbol, words in formula.symbols.items():
            inner = report.mathml(symbol).removeprefix(report.mathml("").removesuffix("</mrow></math>"))
            assert inner.removesuffix("</mrow></math>") in whole, symbol
            assert words


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_formula_of_plateaus_is_that_of_theory(noise: float) -> None:
    problem = Regression(eigenvalues=(0.8, 0.5, 0.1), context_length=7, noise=noise)
    eigenvalues, null = np.array(problem.eigenvalues), 1.4 + noise
    steps = eigenvalues / (1 + (1 + null / eigenvalues) / 7)
    levels = null - np.concatenate([[0], np.cumsum(steps)])
    np.testing.assert_allclose(levels, dynamics.plateaus(population.moments(problem)), rtol=1e-12)


@pytest.mark.parametrize("kappa", [0.4, 3.0])
@pytest.mark.parametrize(("tau", "ridge"), [(0.6, 0.2), (4.0, 0.01)])
def test_the_formulas_of_pretraining_are_those_of_theory(kappa: float, tau: float, ridge: float) -> None:
    alpha, rho = 2.5, 0.3
    found = generalization.errors(Ratios(alpha, kappa, tau, noise=rho), ridge=ridge)
    xi, x = float(np.asarray(found.effective_ridge)), (1 + rho) / alpha
    nu = x + xi
    a = nu + (kappa - 1) / kappa
    root = np.sqrt(a**2 + 4 * nu / kappa)
    m = 2 / (a + root)
    phi, m2 = 1 / (1 + m / kappa), m**2 / 2 * (1 + (nu + 1 + 1 / kappa) / root)
    g, shrunk = phi**2 * m2 + x * m2, x * phi**2 * m2 * (phi + nu * m / kappa)
    idg = (rho + nu**2 * phi**2 * m2 + shrunk) / (ridge / xi + xi * g / tau)
    icl = rho + shrunk + nu**2 * m2 + idg / tau * (1 + x) * g
    assert 1 - (phi * m + x * m) / tau == pytest.approx(ridge / xi, rel=1e-9)
    np.testing.assert_allclose([idg, icl], [found.idg, found.icl], rtol=1e-9)


def test_the_formulas_of_modes_are_those_of_theory() -> None:
    s, p, q, length = np.array([2.0, 0.5]), np.array([0.3, 0.2]), np.array([0.4, 0.1]), 9
    a, tasks = p * q, modes.DiagonalTasks((2.0, 0.5), length)
    loss = np.sum(s - 2 * a * s**2 + (1 + 1 / length) * a**2 * s**3)
    loss += np.sum(s * p**2) * np.sum(s**2 * q**2) / length
    np.testing.assert_allclose(loss, modes.exact_loss(tasks, p, q), rtol=1e-12)
    limit, step = length / ((length + 1) * s + 2.5), 1e-6
    np.testing.assert_allclose(limit, modes.limits(tasks), rtol=1e-12)
    later = modes.mode_law((p, q), limit, modes.time_constants(s), step)
    slopes = [(after - before) / step for after, before in zip(later, (p, q), strict=True)]
    np.testing.assert_allclose(slopes[0], s**2 * q * (1 - a / limit), rtol=1e-4)  # first order in the step
    np.testing.assert_allclose(slopes[1], s**2 * p * (1 - a / limit), rtol=1e-4)


CASES = [
    ("abrupt-drop", {}, 8),
    ("abrupt-drop", {"problem": Regression((1.0, 0.6, 0.05), context_length=20, noise=0.1), "sequences": (100,)}, 2),
    ("mode-staging", {"eigenvalues": (2.0, 1.0), "context_lengths": (8,), "batches": (3,), "rate": 1e-3}, 4),
    ("double-descent", {"alpha": (1.0, float("inf"))}, 5),
]


@pytest.mark.parametrize(("name", "changes", "seeds"), CASES)
def test_the_command_of_a_case_states_that_very_case(name: str, changes: dict[str, Any], seeds: int) -> None:
    study = STUDIES[name]
    case = replace(study.quick, **changes)
    _, _, *words = line = report.command(study, case, range(seeds)).split()
    assert line[:3] == ["iclab", "run", name]
    preset = chosen_preset(study, words[1:])
    found, options = asked(study, preset.case, words[1:], RunOptions, command="run")
    assert found == case
    assert options.seeds in (None, seeds)


def test_the_command_of_a_preset_names_it_and_no_more() -> None:
    study = STUDIES["abrupt-drop"]
    assert report.command(study, study.quick, range(8)) == "iclab run abrupt-drop"
    assert report.command(study, study.full, range(3)) == "iclab run abrupt-drop --full --seeds 3"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("2.41e-02 of 3", "0.0241 of 3"),
        ("1.5e-07", "1.5 · 10⁻⁷"),
        ("2e+03", "2000"),
        ("4.0e+12", "4.0 · 10¹²"),
        ("one", "one"),
    ],
)
def test_numbers_have_one_style(written: str, shown: str) -> None:
    assert tables.plain(written) == shown


def test_lines_do_not_break_between_a_number_and_its_sign_or_unit() -> None:
    assert tables.unbroken("at t = 65 τ (≤ 3 %, 2 seeds)").split(" ") == [
        "at",
        "t\xa0=\xa065\xa0τ",
        "(≤\xa03\xa0%,",
        "2",
        "seeds)",
    ]


def verdict(meaning: str, value: float, outcome: str, **more: Any) -> Verdict:
    return Verdict("c", meaning, "m", value, 0.1, outcome, **more)


def test_an_answer_counts_claims_and_names_the_one_that_is_closest_to_its_bound() -> None:
    held = [verdict("The flow rests.", 0.01, "holds"), verdict("N grows.", 0.09, "holds")]
    assert answered(held) == "All 2 claims hold; closest to its bound: N grows (≤ 9 %, asked ≤ 10 %)."
    assert answered(held[:1]).startswith("The claim holds; closest to its bound: the flow rests (≤ 1 %")
    least = [held[0], Verdict("c", "Often.", "m", 0.52, 0.5, "holds", at_most=False)]
    assert "often (≥ 52 %, asked ≥ 50 %)" in answered(least)


def test_an_answer_names_claims_that_fail_and_that_are_open() -> None:
    several = [
        verdict("One.", 0.01, "holds"), verdict("Two.", 0.5, "does not hold"),
        verdict("Three.", float("nan"), "open", reason="one seed"),
    ]  # fmt: skip
    assert answered(several) == (
        "1 of 3 claims holds; does not hold: two (≤ 50 %, asked ≤ 10 %); open: three (one seed)."
    )
    assert answered(3 * several[1:2]).endswith("and 1 more.")
    assert answered(2 * several) == (
        "2 of 6 claims hold; does not hold: two (≤ 50 %, asked ≤ 10 %), two (≤ 50 %, asked ≤ 10 %); "
        "2 are open: one seed."
    )
    assert "nothing is judged" in answered([])
