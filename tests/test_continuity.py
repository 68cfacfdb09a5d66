"""States that do not continue the ones beside them, by the overlaps of leading directions."""

import ml_dtypes
import numpy as np
import pytest

from iclab.spectra import Selection, checkpoints, observe
from iclab.spectra.observation import Curve, MatrixSeries
from iclab.spectra.observation.integrity import Finding
from iclab.spectra.observation.integrity.continuity import continuity
from tests.series import CONFIG, State, States, clean


def found(states: States, **selection) -> list[tuple[str, str, tuple[int, ...]]]:
    series = checkpoints.of_states(list(states.values()), list(states), config=CONFIG)
    findings: tuple[Finding, ...] = observe(series, selection=Selection(**selection)).integrity.findings
    kept = ("rounded copies", "foreign start", "broken continuity")
    return [(one.kind, one.severity, one.steps) for one in findings if one.kind in kept]


def foreign(state: State, seed: int = 0) -> State:
    """A state with the numbers of this one in another order: of the same norms, and of directions by chance."""
    rng = np.random.default_rng(seed)
    return {n: rng.permutation(a.reshape(-1)).reshape(a.shape) if a.ndim == 2 else a for n, a in state.items()}


@pytest.mark.parametrize("coarse", [ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("at", [0, 200, 500])
def test_the_final_state_in_another_format_is_found_where_it_does_not_belong(at: int, coarse: type) -> None:
    states = clean("steady", 2)
    states[at] = {n: a.astype(coarse).astype(np.float32) for n, a in states[800].items()}
    assert ("rounded copies", "error", (at, 800)) in found(states)


def test_states_that_come_to_rest_are_no_copies_of_the_last() -> None:
    rng = np.random.default_rng(0)
    states = clean("steady", 2)
    for index, step in enumerate(list(states)[3:]):  # from there on all are the final state up to rounding
        states[step] = {n: a * (1 + 1e-6 * rng.standard_normal(a.shape)) for n, a in states[800].items()}
        assert index < 6
    assert [one for one in found(states) if one[0] == "rounded copies"] == []


def test_a_first_state_of_another_run_is_found() -> None:
    states = clean("steady", 2)
    states[0] = foreign(states[0])
    assert found(states) == [("foreign start", "error", (0, 100))]


def test_a_small_start_that_grows_and_a_first_interval_that_is_long_are_no_other_run() -> None:
    states = clean("steady", 2)
    states[0] = {n: 0.01 * a if a.ndim == 2 else a for n, a in foreign(states[0]).items()}
    assert found(states) == []
    late = {0: foreign(clean("steady", 2)[0])} | {2000 + s: state for s, state in clean("steady", 2).items() if s}
    assert found(late) == []


def test_a_state_and_an_end_of_another_run_are_found() -> None:
    states = clean("steady", 2)
    assert found(states | {400: foreign(states[400])}) == [("broken continuity", "error", (300, 400))]
    moved = {
        step: {n: foreign(states[500])[n] + a - states[500][n] if a.ndim == 2 else a for n, a in state.items()}
        for step, state in states.items()
        if step >= 500
    }
    assert found(states | moved) == [("broken continuity", "error", (400, 500))]


def test_a_long_interval_explains_a_fall() -> None:
    states = clean("steady", 2)
    stretched = {step if step < 400 else 10 * step: state for step, state in states.items()}
    assert found(stretched | {4000: foreign(states[400])}) == []


def test_two_matrices_of_many_that_turn_are_no_other_run() -> None:
    states = clean("steady", 2)
    names = ("transformer.wte.weight", "transformer.h.0.mlp.c_fc.weight")
    at = states[400]
    turned = {name: foreign(at)[name] - at[name] for name in names}
    for step in (400, 500, 600, 700, 800):
        states[step] = states[step] | {name: turned[name] + states[step][name] for name in names}
    assert found(states) == []


@pytest.mark.parametrize("scale", [0.03, 1e-4])
def test_a_run_whose_last_states_come_close_one_after_the_other_holds_no_copy(scale: float) -> None:
    states = clean("steady", 2)
    for step, factor in ((500, 1.0), (600, 0.3), (700, 0.1)):
        last = states[800]
        states[step] = {n: a + scale * factor * (states[500][n] - a) for n, a in last.items()}
    assert found(states) == []


def test_without_overlaps_nothing_is_said() -> None:
    states = clean("steady", 2)
    assert found(states | {400: foreign(states[400])}, measures=("ranks",)) == []
    assert found({step: states[step] for step in (0, 100)}) == []


def measured(previous: list[float], final: list[float], gap: float = 0.5) -> list[tuple[str, tuple[int, ...]]]:
    """Findings on four matrices with these overlaps, of a level of .25 ± .065 by chance, at steps 0, 100, …"""
    count = len(previous)
    curves = {
        name: Curve(np.array(values), 0.25, 0.065, of_subspace=True)
        for name, values in (("overlap_with_final", final), ("overlap_with_previous", previous))
    }
    alike = MatrixSeries(
        "", 0, 0, "QK", "QK", (16, 16), "F32", curves, np.ones(count), np.full(count, gap), np.ones((count, 1)),
        ("ok",) * count, ("",) * count,
    )  # fmt: skip
    return [(one.kind, one.steps) for one in continuity(100 * np.arange(count), [alike] * 4)]


NAN, FAR = float("nan"), [0.5, 0.6, 0.7, 0.8, 1.0]


@pytest.mark.parametrize(
    ("previous", "steps"),
    [
        ([NAN, 0.97, 0.97, 0.30, 0.97], [(200, 300)]),
        ([NAN, 0.97, 0.86, 0.43, 0.97], [(200, 300)]),
        ([NAN, 0.97, 0.84, 0.30, 0.97], []),  # after an overlap that is low itself
        ([NAN, 0.97, 0.97, 0.46, 0.97], []),  # more than chance: .25 + 3 · .065 = .445
        ([NAN, 0.97, 0.97, NAN, 0.3], []),
        ([NAN, 0.97, 0.97, 0.30, 0.30], [(200, 300)]),
    ],
)
def test_a_fall_counts_from_what_to_what(previous: list[float], steps: list) -> None:
    assert measured(previous, FAR) == [("broken continuity", one) for one in steps]


@pytest.mark.parametrize(
    ("apart", "steps"),
    [
        ([0.5, 0.4, 8e-5, 0.3, 0.2, 0.0], [(200, 500)]),
        ([0.5, 0.4, 2e-4, 0.3, 0.2, 0.0], []),  # more than rounding: the bound is 1e-4 where the gap is wide
        ([0.5, 0.4, 8e-5, 2e-3, 1e-3, 0.0], []),  # later ones are nearly as near: 30 · 8e-5 = 2.4e-3
        ([0.5, 0.4, 8e-5, 3e-3, 1e-3, 0.0], [(200, 500)]),
        ([8e-5, 8e-5, 0.5, 0.4, 0.2, 0.0], [(0, 500)]),  # a stretch of copies is said once
        ([0.5, 0.4, 0.3, 0.2, 8e-5, 0.0], []),  # the last but one may have come to rest
    ],
)
def test_a_copy_is_nearer_than_rounding_and_others_are_not(apart: list[float], steps: list) -> None:
    found = measured([NAN, *[0.9] * 5], [1 - one for one in apart])
    assert found == [("rounded copies", one) for one in steps]


def test_a_narrow_gap_leaves_more_to_rounding() -> None:
    final = [0.5, 0.6, 0.999, 0.7, 0.8, 1.0]
    assert measured([NAN, *[0.9] * 5], final, gap=0.5) == []
    assert measured([NAN, *[0.9] * 5], final, gap=0.05) == [("rounded copies", (200, 500))]  # (2^-8 / .05)^2 = .006


@pytest.mark.parametrize(
    ("previous", "found"),
    [
        ([NAN, 0.30, 0.97, 0.97, 0.97], [("foreign start", (0, 100))]),
        ([NAN, 0.46, 0.97, 0.97, 0.97], []),
        ([NAN, 0.30, 0.60, 0.97, 0.97], []),  # the pace of the next interval explains it: .4 > .75 / 2
        ([NAN, 0.30, 0.65, 0.97, 0.97], [("foreign start", (0, 100))]),
    ],
)
def test_a_start_counts_from_what_to_what(previous: list[float], found: list) -> None:
    assert measured(previous, FAR) == found
