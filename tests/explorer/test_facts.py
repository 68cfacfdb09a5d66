"""States that surprise, held against the library: each of their sentences is true."""

from typing import Any

import numpy as np
import pytest

from iclab import Ratios, Regression
from iclab.attention import random_merged, random_separate
from iclab.explorer.views import VIEWS, controls_of
from iclab.numerics.curves import drop_count, half_drop_time
from iclab.planning import inverse
from iclab.theory import dynamics, estimators, modes, population
from iclab.theory.generalization import best_alpha, best_ridge, errors


def state(view: str, number: int) -> dict[str, Any]:
    """The state of a surprising fact, with all its controls."""
    return {one["key"]: one["start"] for one in controls_of(view)} | dict(VIEWS[view].facts[number].state)


def law(at: dict[str, Any]) -> population.Moments:
    return population.moments(Regression(tuple(at["lambda"]), at["N"], at["rho"]))


def staircase(at: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    start = random_separate(len(at["lambda"]), at["H"], scale=at["w"], rng=np.random.default_rng(at["seed"]))
    time = np.linspace(0, at["T"], 2000)
    return time, dynamics.separate_flow(law(at), start, time).loss


def drop(at: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    start = random_merged(len(at["lambda"]), at["H"], scale=at["w"], rng=np.random.default_rng(at["seed"]))
    time = np.linspace(0, at["T"], 2000)
    return time, dynamics.reduced_merged_flow(law(at), dynamics.growing_amplitude(law(at), start), time).loss


def test_equal_eigenvalues_are_learned_in_steps() -> None:
    at = state("staircase", 0)
    loss = staircase(at)[1]
    levels = dynamics.plateaus(law(at))
    resting = [np.mean(abs(loss - level) < 0.01 * levels[0]) for level in levels]  # shares of the time
    assert min(resting[0], resting[1], resting[3]) > 0.02
    assert loss[-1] == pytest.approx(levels[-1], rel=1e-3)


def test_too_few_heads_never_take_the_last_steps() -> None:
    at = state("staircase", 1)
    levels = dynamics.plateaus(law(at))
    assert staircase(at)[1][-1] == pytest.approx(levels[2], rel=1e-3)
    assert levels[2] > 2 * levels[4]


def test_eigenvalues_far_apart_drop_once() -> None:
    assert drop_count(*drop(state("abrupt-drop", 0))) == 1


def test_a_start_ten_times_smaller_drops_alike_and_later() -> None:
    late, usual = (
        drop(state("abrupt-drop", 1)),
        drop(state("abrupt-drop", 0) | {"lambda": [0.4, 0.3, 0.2, 0.1], "T": 372.0}),
    )
    assert half_drop_time(*late) > 1.1 * half_drop_time(*usual)
    assert late[1][-1] == pytest.approx(usual[1][-1], rel=1e-3)
    assert drop_count(*late) == 1


@pytest.mark.parametrize(("number", "off"), [(0, 3.0), (1, 1.05)])
def test_the_leading_order_promises_the_last_mode_too_much(number: int, off: float) -> None:
    at = state("mode-staging", number)
    tasks, time = modes.DiagonalTasks(at["s"], at["N"]), np.linspace(0, at["T"], 50)
    exact, leading = (
        f(tasks, start=(at["w"],) * 2, time=time).strength[-1, -1] for f in (modes.exact_flow, modes.leading_order)
    )
    assert leading > off * exact


def test_five_times_the_data_err_more_at_the_peak_and_a_ridge_removes_it() -> None:
    tau = np.geomspace(0.1, 10, 101)
    peaked, smooth = (
        errors(Ratios(at["alpha"], at["kappa"], tau, at["rho"]), ridge=at["ridge"]).icl
        for at in (state("double-descent", 0), state("double-descent", 1))
    )
    assert peaked[50] > 5 * peaked[15]  # τ = 1 against τ = .2
    assert np.all(np.diff(smooth) < 0)


@pytest.mark.parametrize("number", [0, 1])
def test_longer_contexts_hurt(number: int) -> None:
    at = state("context-length", number)
    best = float(best_alpha(at["kappa"], at["tau"], at["rho"]))
    assert 0 < best < 1000
    least, longer = (
        float(errors(Ratios(alpha, at["kappa"], at["tau"], at["rho"])).icl) for alpha in (best, 100 * best)
    )
    assert longer > 1.05 * least


def test_knowing_the_pool_makes_new_tasks_harder() -> None:
    at = state("task-diversity", 0)
    s = estimators.effective_log_tasks(2.0 * at["D"], at["D"])
    known = estimators.dmmse_errors(at["alpha"], at["rho"], s).icl
    assert known > 1.2 * estimators.ridge_error(at["alpha"], at["rho"])


def test_best_ridges_of_both_targets_differ_and_remove_an_infinite_error() -> None:
    one, other = state("ridge", 0), state("ridge", 1)
    ratios = Ratios(one["alpha"], one["kappa"], one["tau"], one["rho"])
    assert abs(np.log(best_ridge(ratios) / best_ridge(ratios, target="idg"))) > 0.1
    at = Ratios(other["alpha"], other["kappa"], other["tau"], other["rho"])
    assert np.isinf(errors(at).icl)
    assert errors(at, ridge=best_ridge(at)).icl < 1


def test_eight_modes_rest_in_256_places_and_one_head_holds_one_mode() -> None:
    many, one = state("fixed-points", 0), state("fixed-points", 1)
    assert len(list(dynamics.reachable(law(many), many["H"]))) == 256
    assert max(map(len, dynamics.reachable(law(one), one["H"]))) == 1


def test_noise_switches_modes_off_that_the_leading_order_keeps() -> None:
    noisy, quiet = state("finite-context", 0), state("finite-context", 1)
    strength = [modes.exact_fixed_point(modes.DiagonalTasks(at["s"], 10, noise=at["rho"])) for at in (noisy, quiet)]
    assert np.sum(strength[0] == 0) >= 1
    assert np.all(strength[1] > 0)
    assert np.all(modes.limits(modes.DiagonalTasks(noisy["s"], 10)) > 0)


def test_a_balanced_start_learns_nothing_and_a_hair_beside_it_all() -> None:
    ends = []
    for number in (0, 1):
        at = state("phase-portrait", number)
        tasks = modes.DiagonalTasks([at["s"]], at["N"])
        limit = modes.limits(tasks)[0]
        p, q = modes.mode_law((at["p"], at["q"]), limit, modes.time_constants(tasks.eigenvalues)[0], 1000.0)
        ends.append(float(p * q / limit))
    assert ends == pytest.approx([0.0, 1.0], abs=1e-6)


def test_two_ranges_of_sequences_reach_an_error() -> None:
    at = state("plan", 0)
    found = inverse.required(
        "tau", error=at["error"], alpha=at["alpha"], kappa=at["kappa"], noise=at["rho"], ridge=0.0
    )
    assert len(found.intervals) == 2
