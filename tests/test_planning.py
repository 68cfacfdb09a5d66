"""Inverse questions: each answer is checked by asking the error at it and just beside it."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from iclab import Ratios
from iclab.planning import BEST, best_split, error_of, forecast, regime, required
from iclab.planning.optimum import least_of_two
from iclab.theory.finite_size import ContextLaw, SphereTasks, pool_errors
from iclab.theory.generalization import errors

INF = np.inf


def test_known_requirements() -> None:
    # κ = τ = ∞: α = (1 + ρ)(1 − δ)/δ with δ = e − ρ
    found = required("alpha", error=0.15, kappa=INF, tau=INF, noise=0.1)
    assert_allclose(found.intervals, [(20.9, INF)], rtol=1e-12)
    found = required("kappa", error=0.25, alpha=20, tau=10, noise=0.1)
    assert_allclose(found.intervals, [(1.1996662649816752, INF)], rtol=1e-12)
    # κ = ∞, no ridge, τ > 1: τ = e/(e − ρ − x/(1 + x)), x = 0.11; below the peak the error is above 1
    found = required("tau", error=0.5, alpha=10, kappa=INF, noise=0.1)
    assert_allclose(found.intervals, [(0.5 / (0.4 - 0.11 / 1.11), INF)], rtol=1e-12)


def test_double_descent_has_two_answers() -> None:
    found = required("tau", error=0.9, alpha=10, kappa=0.5, noise=0.01)
    (first, second), (third, last) = found.intervals
    assert 0 < first < second < 1 < third < last == INF
    assert "outside the error is larger" in found.advice
    one = required("tau", error=0.9, alpha=10, kappa=0.5, noise=0.01, ridge=BEST)
    assert len(one.intervals) == 1  # the best ridge removes the peak


def test_few_tasks_can_do_where_more_do_not() -> None:
    found = required("kappa", error=1.4, alpha=1, tau=2, noise=0.1, ridge=1e-3)
    (start, few), (many, end) = found.intervals
    assert (start, end) == (0, INF)
    assert 1 / 16 < few < 1 / 8 < 0.5 < many < 1


log_ratio = st.floats(-2, 2).map(lambda power: 10.0**power)


@given(
    st.sampled_from(["alpha", "kappa", "tau"]), log_ratio, log_ratio, st.just(0.0) | st.floats(1e-30, 0.5),
    st.floats(1.01, 1.5), st.sampled_from([0.0, 1e-3, 0.3]), st.sampled_from(["icl", "idg"]),
)  # fmt: skip
def test_the_error_is_reached_at_the_answer_and_not_beside_it(
    quantity: str, first: float, second: float, noise: float, slack: float, ridge: float, target: str
) -> None:
    names = [name for name in ("alpha", "kappa", "tau") if name != quantity]
    others = dict(zip(names, (first, second), strict=True))
    floor = required(quantity, error=1e9, noise=noise, ridge=ridge, target=target, **others).floor
    assume(np.isfinite(floor))  # τ = 1 without ridge
    wanted = slack * floor + 1e-6
    found = required(quantity, error=wanted, noise=noise, ridge=ridge, target=target, **others)
    assert found.floor == floor
    assert found.intervals

    def error(size: float) -> float:
        ratios = Ratios(**{**others, quantity: size}, noise=noise)
        return float(getattr(errors(ratios, ridge=ridge), target))

    for low, high in found.intervals:
        for end, outwards in ((low, 1 - 1e-6), (high, 1 + 1e-6)):
            if 0 < end < 1e40:  # from where on sizes count as infinite
                assert error(end) <= wanted * (1 + 1e-13)
                assert error(end * outwards) > wanted
    ends = [end for interval in found.intervals for end in interval]
    assert ends == sorted(ends)
    for size in np.geomspace(1e-5, 1e8, 57):  # no size is missed, none is promised in vain
        inside = any(low <= size <= high for low, high in found.intervals)
        assert inside == (error(size) <= wanted) or abs(error(size) / wanted - 1) < 1e-9


def test_what_cannot_be_reached_comes_with_the_floor_and_what_lowers_it() -> None:
    found = required("alpha", error=0.8, kappa=0.5, tau=0.5, noise=0.1)
    assert found.intervals == ()
    assert_allclose([found.floor, found.best], [errors(Ratios(found.best, 0.5, 0.5, 0.1)).icl, 9.6031388], rtol=1e-6)
    assert "the least icl error is 1.176, at alpha = 9.603" in found.advice
    assert "0.7 (enough) with kappa = inf" in found.advice
    assert "with the best ridge" in found.advice
    assert_allclose(errors(Ratios(INF, INF, 0.5, 0.1)).icl, 0.7)
    quiet = required("tau", error=0.05, alpha=10, kappa=2, noise=0.1)
    assert "Label noise alone costs 0.1, so less of it is needed." in quiet.advice
    assert "0.1991 with kappa = inf" in quiet.advice
    assert_allclose(errors(Ratios(10, INF, INF, 0.1)).icl, 0.1991, atol=5e-5)
    loud = required("alpha", error=0.05, kappa=INF, tau=INF, noise=0.1)
    assert loud.advice.endswith("Label noise alone costs 0.1: only less noise helps.")
    hopeless = required("tau", error=0.11, alpha=INF, kappa=0.5, noise=0.1)
    assert "kappa" in hopeless.advice


@pytest.mark.parametrize("noise", [0.01, 0.1])
@pytest.mark.parametrize("kappa", [0.6, 0.7, 0.95])
def test_sequences_are_counted_at_endless_contexts(kappa: float, noise: float) -> None:
    # a ridge that tends to 0 keeps directions without tasks out: least squares on κD² weights, with E 1/r = κ/(1 − κ)
    # in the others, e = 1 − κ + ρ + ρ κ²/((1 − κ)(τ − κ))
    given = {"error": 0.55, "alpha": INF, "kappa": kappa, "noise": noise}
    spent = noise * kappa**2 / ((1 - kappa) * (0.55 - (1 - kappa) - noise))
    low, high = required("tau", **given, ridge=1e-12).intervals[-1]  # beyond the peak at τ = κ
    assert_allclose(low, kappa + spent, rtol=1e-6)
    ((best, end),) = required("tau", **given, ridge=BEST).intervals
    assert (high, end) == (INF, INF)
    assert best <= low * (1 + 1e-6)
    none = required("tau", **given)
    assert none.intervals[-1] == (INF, INF)
    assert "inf" in none.advice
    found = required("tau", error=0.5, alpha=INF, kappa=0.7, noise=0.1, ridge=BEST)
    assert_allclose(found.intervals, [(1.65, INF)], rtol=1e-12)
    assert "reached only at tau = inf" in required("tau", error=0.5, alpha=INF, kappa=0.7, noise=0.1).advice


def test_any_size_reaches_an_error_above_all() -> None:
    assert required("kappa", error=10, alpha=10, tau=3, noise=0.1, ridge=0.1).intervals == ((0.0, INF),)


@pytest.mark.parametrize(
    ("tokens", "d", "kappa", "noise", "ridge", "target"),
    [
        (100_000, 20, 2, 0.1, 0.0, "icl"),
        (100_000, 20, 2, 0.1, 0.1, "icl"),
        (2544, 9, INF, 0.0, 0.0024, "idg"),  # 62 examples of 41 contexts; dips beside it are .1 % worse
        (15375, 18, INF, 0.0425, 0.0, "icl"),
        (10389, 3, 0.0555, 0.458, BEST, "icl"),
    ],
)
def test_no_other_split_of_the_budget_is_better(
    tokens: int, d: int, kappa: float, noise: float, ridge: float | str, target: str
) -> None:
    found = best_split(tokens, dimension=d, kappa=kappa, noise=noise, ridge=ridge, target=target)
    assert found.context_length * found.sequences <= tokens
    assert_allclose(found.ratios.alpha, found.context_length / d)
    lengths = np.arange(1, min(tokens, 4000) + 1)
    rivals = error_of(Ratios(lengths / d, kappa, (tokens // lengths) / d**2, noise), ridge, target)
    assert found.error <= np.min(rivals) * (1 + 1e-12)


def test_a_pool_smaller_than_the_dimension_memorizes() -> None:
    few, many = regime(Ratios(1e6, 0.4, INF, 0.1)), regime(Ratios(1e6, 3, INF, 0.1))
    assert (few.memorizing, many.memorizing) == (True, False)
    assert_allclose([few.gap, few.lasting_gap], 0.6, rtol=1e-5)
    assert many.lasting_gap == 0
    assert_allclose(regime(Ratios(10, 2, 20, 0.5)).critical_kappa, 1.3761220389035576)


def test_a_forecast_names_its_ratios_and_has_all_three_predictions() -> None:
    found = forecast(32, context_length=320, sequences=2048, tasks=16, noise=0.01, ridge=1e-5)
    assert found.ratios == Ratios(10, 0.5, 2, 0.01)
    assert found.limit == errors(found.ratios, ridge=1e-5)
    # 1.047(7) is the mean of 80 drawn fits, each with its own pool
    assert_allclose(found.leverage.icl, 1.047, rtol=0.06)
    assert found.limit.icl < found.pool.icl < found.leverage.icl
    fresh = forecast(10, context_length=30, sequences=300, noise=0.1, ridge=0.1)
    assert fresh.ratios.kappa == INF
    assert fresh.pool == pool_errors(ContextLaw(SphereTasks(10), 30, 0.1), 300, ridge=0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: required("rho", error=1, alpha=1, kappa=1, tau=1, noise=0), "quantity must be one of alpha"),
        (lambda: required("tau", error=1, alpha=1, kappa=1, tau=1, noise=0), "tau is the unknown and must not be"),
        (lambda: required("tau", error=1, alpha=1, noise=0), "kappa must be given when tau is the unknown"),
        (lambda: required("tau", error=0, alpha=1, kappa=1, noise=0), "error must be finite and > 0; got 0.0"),
        (lambda: required("tau", error=1, alpha=-1, kappa=1, noise=0), "alpha must be > 0; got -1.0"),
        (lambda: required("tau", error=1, alpha=1, kappa=1, noise=-1), "noise must be finite and >= 0"),
        (lambda: required("tau", error=1, alpha=1, kappa=1, noise=0, ridge=-1), "ridge must be >= 0"),
        (lambda: required("tau", error=1, alpha=1, kappa=1, noise=0, ridge="large"), 'ridge must be a number'),
        (lambda: required("tau", error=1, alpha=1, kappa=1, noise=0, target="train"), "target must be one of"),
        (lambda: best_split(0, dimension=5, kappa=1, noise=0), "tokens must be a whole number >= 1; got 0"),
        (lambda: best_split(9, dimension=0, kappa=1, noise=0), "dimension must be a whole number >= 1; got 0"),
        (lambda: best_split(9, dimension=5, kappa=1, noise=0, target="x"), "target must be one of icl, idg"),
        (lambda: regime(Ratios(1, 1, 2, 0), ridge=-1), "ridge must be >= 0"),
        (lambda: forecast(5, context_length=3, sequences=9, tasks=0, noise=0), "tasks must be a whole number >= 1"),
        (lambda: forecast(5, context_length=0, sequences=9, noise=0), "context_length must be a whole number >= 1"),
    ],
)  # fmt: skip
def test_impossible_questions_are_refused_by_name(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_advice_names_a_ratio_that_lowers_the_error_a_little() -> None:
    case = {"alpha": 0.6388, "tau": 13.2575, "noise": 0.1, "target": "idg"}
    advice = required("kappa", error=0.1066, **case).advice
    assert "(enough) with tau = inf" in advice
    # it is true: a finite tau of 100 does
    assert required("kappa", error=0.1066, **case | {"tau": 100.0}).intervals


@pytest.mark.parametrize("seed", range(12))
def test_advice_is_the_least_error_that_a_dense_grid_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    alpha, kappa, tau = 10 ** rng.uniform(-1.5, 1.5, 3)
    noise, target = 10 ** rng.uniform(-2, 0.5), ("icl", "idg")[seed % 2]
    others = {"alpha": alpha, "kappa": kappa, "tau": tau}
    quantity, free, _ = rng.permutation(list(others))
    ridge = 0.0 if seed % 3 else 10 ** rng.uniform(-3, 1)

    def surface(one: np.ndarray, two: np.ndarray) -> np.ndarray:
        return error_of(Ratios(**others | {quantity: one, free: two}, noise=noise), ridge, target)

    height, second = least_of_two(surface)
    grid = np.concatenate([[1e-40], np.geomspace(1e-9, 1e12, 421), [np.inf]])
    assert height <= np.min(surface(grid, grid[:, None])) * (1 + 1e-9)
    assert_allclose(np.min(surface(grid, second)), height, rtol=1e-3)
