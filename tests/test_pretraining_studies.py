"""Studies of finite pretraining: published marks, borders and peaks where they belong, refusals by name."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

from iclab import Ratios
from iclab.claims import Coverage
from iclab.problem import ContextLaw, Pool, SphereTasks
from iclab.problem.readouts import exact_error
from iclab.simulation.pretraining.scoring import scored
from iclab.studies import STUDIES
from iclab.studies.pretraining.links import leverage_mean, pool_mean
from iclab.studies.pretraining.runs import Draws, Grid
from iclab.studies.pretraining.sizes import Span, law_of
from iclab.theory.finite_size import leverage_errors, pool_errors
from iclab.theory.generalization import errors

DRAWN = ("double-descent", "context-length", "task-diversity", "ridge", "structured", "finite-size", "forecast")


def test_theory_answers_alone_and_every_claim_holds() -> None:
    study = STUDIES["non-monotone-context"]
    result = study.run()
    assert list(result.children) == ["theory"]
    assert len(result.attrs["seeds"]) == 0
    assert len(study.verdicts(result)) == len(study.claims)
    assert all(verdict.holds for verdict in study.verdicts(result))


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_drawn_runs_bear_every_claim_out(name: str) -> None:
    study = STUDIES[name]
    verdicts = study.verdicts(study.run())
    assert len(verdicts) == len(study.claims)
    for verdict in verdicts:
        assert verdict.holds, f"{verdict.meaning} {verdict.value}, {verdict.evidence}"


def test_errors_peak_where_sequences_are_as_many_as_weights() -> None:
    study = STUDIES["double-descent"]
    small = replace(study.quick, dimension=(16,), leverage_dimension=8, leverage_tau=(2.0,))
    result = study.run(small, seeds=0)
    curves, pool = result["theory/curves"].to_dataset(), result["theory/pool"].to_dataset()
    for curve in (curves.icl, curves.idg):
        late = curve.where(curve.tau > 0.5)  # with little pretraining the error is large too
        assert_allclose(curves.tau[late.argmax("tau")], 1, rtol=0.02)  # half a step of the grid
    # D(D + 1) weights in finite dimension: τ = 17/16
    assert_allclose(pool.tau[pool.icl.sel(dimension=16).argmax("tau")], 17 / 16, rtol=0.07)
    assert float(curves.train.where(curves.tau < 0.9).max()) < 1e-4  # ridge 1e-5 in place of none
    assert float(curves.train.where(curves.tau > 1.5).min()) > 1e-3


def test_best_lengths_are_those_that_the_published_figure_marks() -> None:
    result = STUDIES["context-length"].run(seeds=0)
    # the marks lie on grids of five decades in 500 points, 2 % a step
    published = {
        "known": [(0.3, 6.15), (0.5, 5.6), (0.7, 7.4)],
        "few": [(0.2, 2.35), (0.4, 5.5), (0.5, 9.62), (0.6, 22.7)],
        "many": [(0.25, 4.68), (0.75, 16.7), (1.0, 44.9), (1.1, 78.9)],
    }
    for name, marks in published.items():
        best = result[f"theory/best_{name}"].to_dataset()
        for kappa, alpha in marks:
            assert_allclose(float(best.alpha.sel(kappa=kappa)), alpha, rtol=0.02)
    for name in ("few", "many"):
        assert np.isinf(result[f"theory/best_{name}"].to_dataset().alpha[-1])


def test_a_longer_test_context_never_hurts() -> None:
    tests = STUDIES["context-length"].run(seeds=0)["theory/tests"].to_dataset()
    assert (tests.icl.diff("test_alpha") < 0).all()


def test_the_border_of_best_lengths_lies_above_the_published_line() -> None:
    study = STUDIES["non-monotone-context"]
    result = study.run(replace(study.quick, kappa=Span(0.2, 2.0, 12), noise=Span(0.01, 1.0, 5)))
    for kind in ("few", "many"):
        found, line, border = (
            result[f"theory/{name}"].to_dataset() for name in (kind, f"line_{kind}", f"critical_{kind}")
        )
        assert (border.kappa > line.kappa).all()
        assert_array_equal(np.isfinite(found.alpha.values), found.kappa.values < border.kappa.values[:, None])


def test_only_linear_attention_closes_the_gap_at_as_many_tasks_as_dimensions() -> None:
    study = STUDIES["task-diversity"]
    result = study.run(replace(study.quick, dimension=(16,), pools=1, contexts=100), seeds=0)
    lasting = result["theory/lasting"].to_dataset()
    assert_allclose(lasting.gap, np.maximum(0, 1 - lasting.kappa), atol=1e-12)
    limit, dmmse = (result[f"theory/{name}"].to_dataset().gap.squeeze() for name in ("limit", "dmmse"))
    few, many = limit.sel(kappa=0.5), limit.sel(kappa=4.0)
    assert many < 0.05 * few
    assert float(dmmse.sel(kappa=4.0)) > 0.4 * float(dmmse.sel(kappa=0.5))
    estimator, threshold = result["theory/exponential"].to_dataset(), result["theory/threshold"].to_dataset()
    enough = estimator.log_tasks >= float(threshold.log_tasks)
    assert_allclose(estimator.icl.where(enough, drop=True), float(threshold.error), rtol=1e-12)
    assert_allclose(estimator.idg.where(~enough, drop=True), study.quick.bayes_noise, rtol=1e-12)


def test_the_best_ridge_removes_the_peak() -> None:
    result = STUDIES["ridge"].run(seeds=0)
    best, curves = result["theory/best"].to_dataset(), result["theory/curves"].to_dataset()
    for name in ("icl", "idg"):
        assert (best[name].diff("tau") < 0).all()
        assert (best[name] <= curves[name] * (1 + 1e-12)).all()


def test_pools_are_drawn_once_and_for_all() -> None:
    first, again, other = (law_of(8, alpha=2, kappa=1, noise=0.1, pool=pool) for pool in (0, 0, 1))
    assert_array_equal(first.tasks.vectors, again.tasks.vectors)
    assert not np.array_equal(first.tasks.vectors, other.tasks.vectors)
    assert law_of(8, alpha=2, kappa=np.inf, noise=0.1).context_length == 16


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("non-monotone-context", {"few": 0.0}, "tau must be > 0; got 0.0"),
        ("task-diversity", {"bayes_kappa": (3.0,)}, "bayes_kappa must be among finite_kappa"),
    ],
)
def test_impossible_cases_are_refused_by_name(name: str, changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(STUDIES[name].quick, **changes)


@pytest.mark.parametrize(
    ("dimension", "each", "message"),
    [
        ((8, 0), (1, 1), "dimension must be whole numbers >= 1; got 0"),
        ((8,), (0,), "each must be whole numbers >= 1; got 0"),
        ((8, 16), (1,), "each must hold a number for each dimension; got 1 for 2"),
    ],
)
def test_draws_are_counted_for_each_dimension(dimension: tuple, each: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Draws(dimension, each)


def test_a_mean_over_pools_is_that_of_predictions_for_each() -> None:
    run = Grid.over((8,), alpha=2.0, kappa=1.0, tau=1.5, noise=0.1, ridge=0.1).runs.item()
    laws = [law_of(8, alpha=2, kappa=1, noise=0.1, pool=pool) for pool in range(3)]
    expected = np.mean([pool_errors(law, run.size.sequences, ridge=0.1).icl for law in laws])
    assert_allclose(pool_mean(run, 3).icl, expected, rtol=1e-14)
    # with as many corrections as pools the leverage prediction is the plain mean
    leverages = [leverage_errors(law, run.size.sequences, ridge=0.1).icl for law in laws]
    assert_allclose(leverage_mean(run, 3, corrected=3).icl, np.mean(leverages), rtol=1e-14)
    assert abs(leverage_mean(run, 3, corrected=1).icl / np.mean(leverages) - 1) < 0.02  # pools differ by 10 %


def test_a_readout_is_scored_on_contexts_as_its_exact_error_says() -> None:
    rng = np.random.default_rng(4)
    inputs, readout = np.diag([1.5, 1.0, 0.5]), 0.5 * rng.standard_normal((3, 4))
    for tasks in (SphereTasks(3), Pool(rng.standard_normal((5, 3)))):
        law = ContextLaw(tasks, 4, 0.2, inputs)
        drawn = [scored(readout, law, rng) for _ in range(12)]
        error = np.std(drawn, ddof=1) / np.sqrt(12)
        assert abs(np.mean(drawn) - exact_error(readout, law)) < 4 * error
        assert error < 0.05 * np.mean(drawn)


@pytest.mark.parametrize(("inside", "outcome"), [(0.96, "holds"), (0.9, "open"), (0.6, "does not hold")])
def test_coverage_counts_the_fresh_runs_of_all_seeds(inside: float, outcome: str) -> None:
    axes = {"seed": np.arange(4), "tau": [0.5, 2.0]}
    words = {f"band/{name}_covered": name for name in ("icl", "idg")}
    covered = {f"{name}_covered": (("seed", "tau"), np.full((4, 2), inside)) for name in ("icl", "idg")}
    band = xr.Dataset({**covered, "fresh": ("seed", np.full(4, 50))}, axes)
    verdict = Coverage(0.9, words).verdict(xr.DataTree.from_dict({"simulation/band": band}))
    assert verdict.outcome == outcome
    assert verdict.evidence[0][1] == f"{round(400 * inside)} of 400"


def test_more_runs_are_drawn_below_interpolation_where_that_is_asked() -> None:
    with pytest.raises(ValueError, match="below must be a whole number >= 1"):
        Draws((8,), (1,), below=0)
    grid = Grid.over((6,), alpha=2.0, kappa=1.0, tau=(0.5, 2.0), noise=0.1)
    key = jax.random.key(0)
    more, fewer = (grid.simulated(Draws((6,), (4,), below=below), key=key) for below in (2, 1))
    assert more.icl[0, 0] != fewer.icl[0, 0]
    assert more.icl[0, 1] == fewer.icl[0, 1]


def test_runs_are_drawn_from_their_seed_and_theory_is_asked_at_their_whole_sizes() -> None:
    study = STUDIES["finite-size"]
    case = replace(study.quick, tau=(1.9,), pools=1, draws=Draws((5,), (2,), route="direct"))
    result = study.run(case, seeds=2)
    sizes, limit = result["theory/sizes"].to_dataset(), result["theory/limit"].to_dataset()
    # D = 5: N = 5, K = 10 and n = 10 round(1.9 · 25/10) = 50, so that τ is 2
    assert [int(sizes[name].item()) for name in ("context_length", "tasks", "sequences")] == [5, 10, 50]
    assert_allclose(limit.icl.sel(dimension=5).item(), errors(Ratios(1.0, 2.0, 2.0, 0.1), ridge=1e-3).icl, rtol=1e-14)
    runs = result["simulation/runs"].to_dataset()
    assert np.ptp(runs.icl.values) > 0
    assert_array_equal(study.run(case, seeds=[1])["simulation/runs"].icl[0], runs.icl[1])


@pytest.mark.parametrize("sizes", [(0.0, 1.0), (2.0, 1.0), (1.0, np.inf), (np.nan, 1.0)])
def test_spans_run_from_small_to_large(sizes: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match=r"(least|most) must be finite and > 0|least below most"):
        Span(*sizes)


def test_a_panel_of_tests_has_one_pool() -> None:
    quick = STUDIES["context-length"].quick
    with pytest.raises(ValueError, match=r"tested\.kappa must be one number"):
        replace(quick, tested=replace(quick.tested, kappa=(1.0, 2.0)))
