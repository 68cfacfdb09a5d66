"""Edges of the domain of theory: limits against large finite sizes, extreme sizes against 500 digits, refusals."""

from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab import Ratios
from iclab.outcomes import Errors
from iclab.theory import estimators
from iclab.theory.generalization import (
    Shift,
    best_alpha,
    best_ridge,
    critical_kappa,
    diversity_gap,
    errors,
    interpolation_peak,
    structured_errors,
)
from tests.test_generalization import exact_errors

INF = np.inf


@pytest.mark.parametrize("seed", range(40))
def test_extreme_sizes_agree_with_five_hundred_digits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    corners, spread = rng.choice([1e-40, 1e-20, 1.0, 1e20, 1e40], 5), 10 ** rng.uniform(-40, 40, 5)
    for sizes in (corners, spread):
        *ratios, ridge = map(float, sizes)
        found = errors(Ratios(*ratios), ridge=ridge)
        expected = exact_errors(*ratios, ridge, digits=500)
        # 1e-300: a training error of smaller size has lost digits to the range of float64
        assert_allclose([found.icl, found.idg, found.train], expected, rtol=1e-14, atol=1e-300, err_msg=str(sizes))


# α = ∞ without ridge in noise; share of directions with tasks, κ, τ, and how the ICL and IDG errors grow with α
GROWTH = [
    (1, 0.5, 0.5, 1 / 2, 1 / 2), (1, 0.5, 0.7, 1, 0), (1, 0.5, 2, 1, 0), (1, 0.7, 0.5, 0, 0), (1, 0.3, 0.5, 1, 0),
    (0.5, 0.6, 0.5, 1 / 2, 1 / 2), (0.5, 0.7, 0.5, 1 / 2, 1 / 2), (0.5, 1.5, 0.5, 1 / 2, 1 / 2),
    (0.5, 0.3, 0.3, 1 / 2, 1 / 2), (0.5, 0.5, 0.5, 2 / 3, 1 / 3), (0.5, 0.4, 0.45, 1, 0), (0.5, 0.5, 1.5, 1 / 2, 0),
    (0.5, 0.7, 0.6, 0, 0), (0.5, 0.7, 0.3, 0, 0), (0.5, 0.3, 0.2, 0, 0), (0.5, 1.5, 3, 0, 0),
]  # fmt: skip


@pytest.mark.parametrize(("support", "kappa", "tau", "icl", "idg"), GROWTH)
def test_what_grows_with_the_length_of_contexts_is_infinite_without_end(
    support: float, kappa: float, tau: float, icl: float, idg: float
) -> None:
    tasks = [1.0, 1.0] if support == 1 else [2.0, 0.0]

    def found(alpha: float) -> list[Errors]:
        ratios = Ratios(alpha, kappa, tau, 0.1)
        return [structured_errors(ratios, task_eigenvalues=tasks)] + ([errors(ratios)] if support == 1 else [])

    for near, far, limit in zip(found(1e14), found(1e16), found(INF), strict=True):
        for kind, power in (("icl", icl), ("idg", idg)):
            growth = np.log(getattr(far, kind) / getattr(near, kind)) / np.log(100)
            assert_allclose(growth, power, atol=1e-3)
            if power > 0:
                assert getattr(limit, kind) == INF
            else:
                assert_allclose(getattr(limit, kind), getattr(far, kind), rtol=1e-6)


@pytest.mark.parametrize(("unit", "ridge"), [(1e-35, 0.0), (1e-18, 0.03), (1e18, 0.03), (1e35, 0.0)])
@pytest.mark.parametrize("tau", [0.5, 2.0])
def test_structured_errors_hold_in_extreme_units(unit: float, ridge: float, tau: float) -> None:
    inputs, tasks = np.array([0.5, 1.0, 2.0]), np.array([1.5, 0.0, 0.3])

    def found(u: float) -> Errors:
        return structured_errors(
            Ratios(3, 0.6, tau, 0.2), task_eigenvalues=tasks / u, input_eigenvalues=inputs * u, ridge=ridge * u**2
        )

    here, there = found(1.0), found(unit)
    assert_allclose([there.icl, there.idg, there.train], [here.icl, here.idg, here.train], rtol=1e-11)


@pytest.mark.parametrize(("kappa", "noise"), [(0.5, 0.1), (1, 0.1), (2, 0.1), (0.5, 0), (1, 0), (2, 0)])
def test_the_peak_at_endless_contexts_is_that_of_long_ones(kappa: float, noise: float) -> None:
    limit, near, far = (interpolation_peak(alpha, kappa, noise) for alpha in (INF, 1e14, 1e18))
    for kind in ("icl", "idg"):
        here, there = getattr(near, kind), getattr(far, kind)
        if there > 1.5 * here:
            assert getattr(limit, kind) == INF
        elif there < here / 1.5:
            assert getattr(limit, kind) == 0
        else:
            assert_allclose(getattr(limit, kind), there, rtol=1e-6)


def test_a_ridge_keeps_what_is_small_at_endless_contexts() -> None:
    # ξ = λτ/(τ − 1) for a weak ridge, so that the training error is (1 − 1/τ)² of the error on the pool
    found = errors(Ratios(INF, 3, 2, 0.0), ridge=1e-30)
    assert_allclose(found.effective_ridge, 2e-30, rtol=1e-12)
    assert 0 < found.idg < 1e-58
    assert_allclose(found.train, found.idg / 4, rtol=1e-12)
    assert diversity_gap(Ratios(INF, 3, 2, 0.0), ridge=1e-30) > 0


def test_a_ridge_that_must_be_there_is_never_zero() -> None:
    taus = np.array([0.9, 2.0, 44668359.21509635, 1e20])
    for kappa in (0.3, 0.7):
        ratios = Ratios(INF, kappa, taus, 0.1)
        ridge = best_ridge(ratios)
        assert np.all(errors(ratios).icl == INF)
        assert np.all(ridge > 0)
        rivals = errors(Ratios(INF, kappa, taus[:, None], 0.1), ridge=np.geomspace(1e-40, 1e40, 1601)).icl
        assert np.all(errors(ratios, ridge=ridge).icl <= np.min(rivals, axis=1) * (1 + 1e-14))
    assert best_ridge(Ratios(INF, 2, 2, 0.0)) == 0  # where none is as good, none is the answer


def test_a_best_ridge_far_below_one_is_found() -> None:
    ratios = Ratios(1e35, 0.7, 1e20, 0.1)
    assert 1e-40 < best_ridge(ratios) < 1e-14
    rivals = errors(ratios, ridge=np.geomspace(1e-40, 1e40, 4001)).icl
    assert errors(ratios, ridge=best_ridge(ratios)).icl <= np.min(rivals) * (1 + 1e-14) < errors(ratios).icl / 1e6


def test_the_critical_pool_is_known_at_every_edge() -> None:
    assert critical_kappa(INF, 0) == critical_kappa(INF, 1e-40) == critical_kappa(1e40, 1e-40) == 1
    assert critical_kappa(INF, 1e40) == 1  # the limit τ → ∞ is taken at fixed noise
    assert_allclose(critical_kappa(1e18, 0.3), 1 + (0.3 / 1e18) ** (1 / 3), rtol=1e-12)  # z³ = ρ/τ


@pytest.mark.parametrize("target", ["icl", "idg"])
def test_the_best_length_at_interpolation_is_the_limit_from_both_sides(target: str) -> None:
    at = best_alpha(0.5, np.array([1 - 1e-6, 1.0, 1 + 1e-6]), 0.1, target=target)
    if target == "icl":
        assert_allclose(at[1], 1.88495, atol=5e-6)
    assert_allclose(at, at[1], rtol=1e-5)  # first order in τ − 1


def stationary_alpha(kappa: float, tau: float, noise: float, *, near: float) -> float:
    """Where the ridgeless ICL error for τ > 1 is least, from its slope at 60 digits."""
    with mp.workdps(60):
        k, t, rho = mp.mpf(kappa), mp.mpf(tau), mp.mpf(noise)

        def error(log_alpha: mp.mpf) -> mp.mpf:
            x = (1 + rho) / mp.exp(log_alpha)
            b = x + 1 - 1 / k
            root = mp.sqrt(b * b + 4 * x / k)
            m = k * (root - b) / (2 * x)
            m2 = m / x - k / (2 * x) * ((b + 2 / k) / root - 1)
            idg = t / (t - 1) * (rho + x - x * x * m)
            return rho + x - 2 * x * x * m + (1 + x) * x * x * m2 + idg / t * (1 + x) * m

        return float(mp.exp(mp.findroot(lambda u: mp.diff(error, u), mp.log(near))))


@pytest.mark.parametrize("noise", [1e-6, 0.1, 10.0, 1e3])
def test_the_best_length_is_polished_to_eight_digits(noise: float) -> None:
    found = float(best_alpha(0.5, 2, noise))
    assert_allclose(found, stationary_alpha(0.5, 2, noise, near=found), rtol=1e-8)


def test_where_contexts_save_nothing_that_shows_the_best_length_is_none() -> None:
    assert best_alpha(0.5, 2, 1e9) == best_alpha(0.5, 2, 1e12) == 0
    # in much noise the slope at α = 0 decides, (1/κ − 1) − (1 + 1/κ)/(τ − 1) here
    assert best_alpha(0.5, 3.9, 100) > 0 == best_alpha(0.5, 4.1, 100)
    assert errors(Ratios(1e-3, 0.5, 4.1, 100)).icl > errors(Ratios(1e-5, 0.5, 4.1, 100)).icl
    assert best_alpha(2, 2, 0.1) == INF
    assert best_alpha(0.5, INF, 0.1) == best_alpha(0.5, 2, 0.0) == INF  # where κ_c is a limit only


def test_estimators_hold_at_extreme_sizes() -> None:
    # 3 examples a dimension, little noise: ρ(1 + E 1/λ) and E 1/λ = 1/(α − 1)
    assert_allclose(estimators.ridge_error(3, 1e-40), 1.5e-40, rtol=1e-14)
    # long contexts: the posterior has variance ρ/α in each direction
    assert_allclose(estimators.task_threshold(1e40, 0.05), 0.5 * np.log(1e40 / 0.05), rtol=1e-14)
    # without noise the threshold grows like −½ ln ρ
    steps = np.diff(estimators.task_threshold(3, np.array([1e-40, 1e-30, 1e-20])))
    assert_allclose(steps, -5 * np.log(10), rtol=1e-12)
    sizes = np.array([1e-20, 1e-10, 1e-3, 1.0, 1e3, 1e10, 1e20])
    alpha, noise, s = np.meshgrid(sizes, [0, *sizes], [0, *sizes, INF])
    for estimator in (estimators.dmmse_errors, estimators.nearest_task_errors):
        found = estimator(alpha, noise, s)
        assert np.all(np.isfinite(found.icl) & (found.icl >= noise) & (found.idg >= noise))
    assert estimators.effective_log_tasks(INF, 10) == INF
    assert_allclose(estimators.dmmse_errors(1, 0.1, INF).icl, estimators.ridge_error(1, 0.1), rtol=1e-15)


RATIOS = Ratios(1.0, 0.5, 2.0, 0.1)
RANGE = "inf or between 1e-40 and 1e\\+40; got"
OUT_OF_RANGE: list[tuple[Callable, str]] = [
    (lambda: Ratios(1e200, 0.4, 3, 0.1), f"alpha must be {RANGE} 1e\\+200"),
    (lambda: Ratios(1, 1e-300, 3, 0.1), f"kappa must be {RANGE} 1e-300"),
    (lambda: Ratios(1, 1, np.array([1, 1e-300]), 0.1), f"tau must be {RANGE} 1e-300"),
    (lambda: Ratios(10, 0.5, 2, 1e200), "noise must be 0 or between 1e-40 and 1e\\+40; got 1e\\+200"),
    (lambda: errors(RATIOS, ridge=1e-41), "ridge must be 0 or inf or between"),
    (lambda: structured_errors(RATIOS, task_eigenvalues=[1, 1], ridge=1e99), "ridge must be 0 or inf or between"),
    (lambda: structured_errors(RATIOS, task_eigenvalues=[1e300, 1e-300]), "task_eigenvalues must be 0 or between"),
    (lambda: Shift(alpha=1e99), "shift.alpha must be inf or between"),
    (lambda: Shift(noise=1e99), "shift.noise must be 0 or between"),
    (lambda: Shift(task_scale=1e-99), "shift.task_scale must be between"),
    (lambda: critical_kappa(1e99, 0.1), "tau must be inf or between"),
    (lambda: best_alpha(1e-300, 2, 0.1), "kappa must be inf or between"),
    (lambda: interpolation_peak(1e300, 1, 1), "alpha must be inf or between"),
    (lambda: estimators.ridge_error(3, 1e-150), "noise must be 0 or between"),
    (lambda: estimators.task_threshold(1e300, 0.05), "alpha must be inf or between"),
    (lambda: estimators.dmmse_errors(1, 0.1, 1e-21), "log_tasks_per_dimension must be 0 or inf or between"),
    (lambda: estimators.nearest_task_errors(1e-21, 0.1, 1), "alpha must be inf or between 1e-20 and 1e\\+20"),
]


@pytest.mark.parametrize(("call", "message"), OUT_OF_RANGE)
def test_sizes_beyond_what_theory_holds_for_are_refused_by_name(call: Callable, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        call()
