"""Which tasks to pretrain on: known optima, a grid, first-order conditions, chosen pools, and the two questions."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab import Ratios
from iclab.commands.main import main
from iclab.planning import chosen_pool, planned_spectrum, spectrum_forecast
from iclab.problem import Pretraining
from iclab.theory import generalization
from iclab.theory.generalization import best_ridge, errors, structured_errors
from tests.test_task_design import KNOWN, power_law

INF = np.inf
EXAMPLE = "spectrum --power 1 --directions 40 --kappa .25 --tau 3 --alpha 2 --noise .01"
LEVELS = [2.8571428571428568, 0.857142857142857, 0.14285714285714285, 0.14285714285714285]


def plans() -> list[dict[str, Any]]:
    return [entry for entry in KNOWN if entry["name"].startswith(("plan spectrum", "chosen pool"))]


def planned(p: dict[str, Any], pool: str) -> Any:
    white = p.get("c_test") == "white"
    given = p.get("c_test")
    new = np.ones(40) if white else np.array(given) if isinstance(given, list) else power_law(40, 1)
    ratios = Ratios(p["alpha"], float(p["kappa"]), float(p["tau"]), p["rho"])
    return planned_spectrum(ratios, test_task_eigenvalues=new, ridge=p.get("lam", "best"), pool=pool), ratios, new


@pytest.mark.parametrize("entry", plans(), ids=lambda entry: f"{entry['name'][:6]}-{entry['quantity'][:9]}")
def test_plans_are_the_known_ones(entry: dict[str, Any]) -> None:
    quantity = entry["quantity"]
    found, ratios, new = planned(entry["parameters"], "chosen" if "chosen" in entry["name"] else "drawn")
    own = structured_errors(ratios, task_eigenvalues=new, ridge=found.ridge).icl
    values = {
        "least icl": found.error,
        "c of least icl": found.task_eigenvalues,
        "share of directions trained (c > 1e-6)": found.directions,
        "planned ridge": found.ridge,
    }
    value = own if quantity.startswith("icl of c") else values[quantity]
    assert_allclose(value, entry["value"], atol=entry["tolerance"])


@pytest.mark.parametrize(("kappa", "tau", "ridge"), [(0.5, 3, 0.01), (2, INF, 0.0), (1, 1.5, 0.05), (1.5, 0.5, 0.1)])
def test_no_point_of_a_grid_is_better_than_the_plan(kappa: float, tau: float, ridge: float) -> None:
    ratios = Ratios(4, kappa, tau, 0.1)
    found = planned_spectrum(ratios, test_task_eigenvalues=LEVELS, ridge=ridge)
    middle, width, least = np.array([0.5, 0.5]), 0.5, INF
    for _ in range(8):  # zooms into the shares of trace on the first level, and of the rest on the second
        tried = []
        for one in np.clip(middle[0] + width * np.linspace(-1, 1, 9), 0, 1):
            for two in np.clip(middle[1] + width * np.linspace(-1, 1, 9), 0, 1):
                rest = 4 * (1 - one) * (1 - two) / 2
                c = [4 * one, 4 * (1 - one) * two, rest, rest]
                constant, costs = generalization.test_costs(ratios, task_eigenvalues=c, ridge=ridge)
                tried.append((constant + float(np.mean(LEVELS * costs)), one, two))
        least, *best = min(tried)
        middle, width = np.array(best), width / 3
    assert_allclose(found.error, least, atol=1e-9)
    assert found.error <= least + 1e-12


@pytest.mark.parametrize("kappa", [0.2, 1, 4, INF])
def test_a_plan_is_level_where_it_trains_and_all_starts_end_in_it(kappa: float) -> None:
    found = planned_spectrum(Ratios(2, kappa, 3, 0.1), test_task_eigenvalues=power_law(30, 1))
    assert found.unlevel < 1e-5
    assert found.disagreement < 1e-8
    assert found.error <= min(found.matched_error, found.white_error) + 1e-12
    assert_allclose(np.mean(found.task_eigenvalues), 1, rtol=1e-12)


def test_below_as_many_tasks_as_directions_few_are_trained_and_above_all_of_them_more_evenly() -> None:
    new = power_law(40, 1)
    few, many = (
        planned_spectrum(Ratios(64, kappa, INF, 0.1), test_task_eigenvalues=new, ridge=0.0).task_eigenvalues
        for kappa in (0.3, 1.5)
    )
    assert np.mean(few > 0) <= 0.4
    assert many[0] < 0.5 * new[0]
    assert many[-1] > 1.5 * new[-1]


def test_next_to_one_task_a_direction_the_plan_follows_the_square_root_law() -> None:
    new = power_law(40, 1)
    ratios = Ratios(1e6, 1.02, INF, 0.1)
    found = planned_spectrum(ratios, test_task_eigenvalues=new, ridge=0.0)
    law = np.ones(40)
    for _ in range(60):
        law = np.sqrt(1 + np.mean(1 / law) / np.mean(new / law) * new)
        law /= np.mean(law)
    assert_allclose(found.task_eigenvalues, law, rtol=0.01)
    assert_allclose(found.error - 0.1, 1.2307e-6, rtol=1e-3)
    assert_allclose(found.matched_error - 0.1, 1.4431e-6, rtol=1e-3)


def test_the_errors_compared_with_are_those_at_their_own_best_ridge() -> None:
    ratios = Ratios(2, 0.25, 3, 0.01)
    found = planned_spectrum(ratios, test_task_eigenvalues=power_law(40, 1))
    ridge = best_ridge(ratios)
    assert_allclose(found.white_error, errors(ratios, ridge=ridge).icl, rtol=1e-12)
    assert_allclose(found.white_ridge, ridge, rtol=1e-6)
    assert_allclose([found.matched_error, found.equivalent_kappa], [0.63307, 0.4838], atol=6e-6)
    wider = Ratios(2, found.equivalent_kappa, 3, 0.01)
    again = planned_spectrum(wider, test_task_eigenvalues=power_law(40, 1))
    assert_allclose(again.matched_error, found.error, rtol=1e-8)


def test_white_tests_at_a_small_ridge_have_several_optima_and_the_plan_says_so() -> None:
    found = planned_spectrum(Ratios(1, 0.5, 0.9, 0.01), test_task_eigenvalues=np.ones(24), ridge=0.01)
    assert found.disagreement > 0.1
    assert found.error > found.null_error
    free = planned_spectrum(Ratios(1, 0.5, 0.9, 0.01), test_task_eigenvalues=np.ones(24))
    assert_allclose(free.error, free.white_error, rtol=1e-9)


@pytest.mark.parametrize(("tasks", "used"), [(3, 2), (8, 8), (21, 13)])
def test_the_second_moment_of_a_chosen_pool_is_its_spectrum(tasks: int, used: int) -> None:
    c = np.append(power_law(used, 1), np.zeros(2))
    vectors = chosen_pool(tasks, task_eigenvalues=c)
    assert vectors.shape == (tasks, used + 2)
    assert_allclose(vectors.T @ vectors / tasks, np.diag(c), atol=1e-13)


def test_forecasts_of_chosen_pools_are_the_known_ones_and_tend_to_their_limit() -> None:
    found = []
    for d in (24, 96):
        size = Pretraining(d, 2 * d, 3 * d * d, d, 0.1)
        given = {"task_eigenvalues": np.ones(d), "test_task_eigenvalues": np.ones(d), "ridge": 0.01}
        found.append(spectrum_forecast(size, **given, chosen=True).error)
    assert_allclose(found, [0.794, 0.704], rtol=0.01)


@pytest.mark.slow
def test_the_forecast_of_a_large_chosen_pool_is_the_known_one() -> None:
    size, white = Pretraining(384, 768, 3 * 384**2, 384, 0.1), np.ones(384)
    found = spectrum_forecast(size, task_eigenvalues=white, test_task_eigenvalues=white, ridge=0.01, chosen=True)
    assert_allclose(found.error, 0.683, rtol=0.01)


def test_the_example_of_the_plan_says_what_is_known(capsys: pytest.CaptureFixture) -> None:
    assert main(["plan", *EXAMPLE.split()]) == 0
    said = capsys.readouterr().out
    for part in ("0.52366", "0.63307", "0.86142", "10 of 40", "κ = 0.484", "10 chosen tasks reach 0.4444"):
        assert part in said
    assert main(["plan", *EXAMPLE.split(), "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)["answer"]
    assert_allclose([numbers["error"], numbers["chosen_error"]], [0.5236629, 0.4443727], atol=1e-6)


def test_a_plan_in_counts_gives_the_error_at_that_size(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    sizes = "--dimension 12 --tasks 3 --context-length 24 --sequences 432 --noise .01"
    figure = tmp_path / "plan.pdf"
    words = f"spectrum --power 1 {sizes} --json --test-alpha 4 --test-noise .1 --figure {figure}"
    assert main(["plan", *words.split()]) == 0
    numbers = json.loads(capsys.readouterr().out)["answer"]
    runs = numbers["forecast"]
    assert runs["planned"]["error"] < runs["as the test"]["error"]
    assert numbers["error"] < runs["planned"]["error"] < numbers["error"] + 0.3
    assert figure.read_bytes().startswith(b"%PDF")
    assert main(["plan", *f"spectrum --power 1 {sizes} --pool chosen".split()]) == 0
    assert "chosen tasks may win nothing" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["npy", "csv", "safetensors"])
def test_a_pool_is_written_to_a_file_that_can_be_trained_on(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    out = tmp_path / f"tasks.{kind}"
    assert main(["plan", *f"pool --tasks 4 --spectrum 3 1 .5 --out {out}".split()]) == 0
    if kind == "npy":
        vectors = np.load(out)
    elif kind == "csv":
        vectors = np.loadtxt(out, delimiter=",")
    else:
        from safetensors.numpy import load_file

        vectors = load_file(out)["tasks"]
    assert_allclose(vectors.T @ vectors / 4, np.diag([3, 1, 0.5]), atol=1e-13)
    assert str(out.name) in capsys.readouterr().out.replace("\n", "")


SIZES = "--kappa .5 --tau 3 --alpha 2"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (f"spectrum {SIZES}", "give test_spectrum, or power with directions; got"),
        (f"spectrum {SIZES} --power 1 --test-spectrum 1 2", "power with directions; got both"),
        (f"spectrum {SIZES} --power 1", "directions must be given with power"),
        (f"spectrum {SIZES} --test-spectrum 1 -2", "must be finite and >= 0; got -2"),
        (f"spectrum {SIZES} --test-spectrum 1 nan", "test_task_eigenvalues must be finite and >= 0; got nan"),
        (f"spectrum {SIZES} --test-spectrum 0 0", "must hold a positive number; got zeros only"),
        (f"spectrum {SIZES} --power 1 --directions 1001", "directions must be at most 1000; got 1001"),
        (f"spectrum {SIZES} --power 1 --directions 9 --trace 0", "trace must be finite and > 0; got 0"),
        (f"spectrum {SIZES} --power 1 --directions 9 --ridge -1", "ridge must be finite and >= 0; got -1"),
        ("spectrum --kappa 1 --tau 1 --alpha 2 --power 1 --directions 9 --ridge 0", "positive at tau = 1"),
        ("spectrum --kappa 1 --tau 2 --alpha inf --power 1 --directions 9", "alpha must be finite"),
        (
            "spectrum --tasks 4 --dimension 8 --tau 2 --alpha 2 --test-spectrum 1 2",
            "as many directions as the dimens",
        ),
        ("spectrum --kappa .05 --tau 2 --alpha 2 --test-spectrum 1 2 --pool chosen", "at least one task"),
        ("pool --tasks 2 --spectrum 1 1 1 --out tasks.npy", "at most as many directions as tasks; got 3 for 2"),
        ("pool --tasks 2 --spectrum 1 1 --out tasks.txt", "out must end in .npy, .csv or .safetensors"),
    ],
)
def test_a_plan_that_cannot_be_made_is_refused_in_one_sentence(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["plan", *words.split()]) != 0
    assert said in capsys.readouterr().err.replace("\n", " ")
    assert not list(tmp_path.iterdir())


def test_a_given_pool_is_trained_on_as_it_is_and_reaches_its_prediction() -> None:
    jax = pytest.importorskip("jax")
    from iclab.problem import ContextLaw, orthogonal_pool
    from iclab.simulation.pretraining import fit_each
    from iclab.theory.finite_size import leverage_errors

    d = 16
    pool, size = orthogonal_pool(d, task_eigenvalues=np.ones(d)), Pretraining(d, 2 * d, 3 * d * d, d, 0.1)
    fits = fit_each(size, ridge=0.01, pool=pool, keys=jax.random.split(jax.random.key(3), 16))
    assert fits[0].tasks.vectors is pool.vectors
    drawn = np.array([fit.errors().icl for fit in fits])
    predicted = leverage_errors(ContextLaw(pool, 2 * d, 0.1), size.sequences, ridge=0.01).icl
    assert abs(np.mean(drawn) - predicted) < 0.02 * predicted + 3 * np.std(drawn, ddof=1) / 4
    with pytest.raises(
        ValueError, match=r"pool must have the shape \(8, 16\) of tasks and dimension; got \(16, 16\)"
    ):
        fit_each(
            Pretraining(d, 2 * d, 768, 8, 0.1), ridge=0.01, pool=pool, keys=jax.random.split(jax.random.key(0), 1)
        )
