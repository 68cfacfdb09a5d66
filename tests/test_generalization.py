"""ICL, IDG and training error in the proportional limit: known numbers, laws, limits, bad input."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from iclab import Ratios
from iclab.outcomes import Errors
from iclab.theory.generalization import (
    Shift,
    best_alpha,
    best_ridge,
    critical_kappa,
    diversity_gap,
    errors,
    interpolation_peak,
)

INF = np.inf

# alpha, kappa, tau, noise, ridge, shift, field, value, tolerance; the ridgeless ones equal the closed forms of the
# theory code of lu2025asymptotic, those with ridge an independent evaluation
REFERENCE = [
    (10, 0.5, 0.5, 0.01, 0, {}, "icl", 0.8208492721492247, 1e-9),
    (10, 0.5, 0.5, 0.01, 0, {}, "idg", 0.24634336365068182, 1e-9),
    (10, 0.5, 2, 0.01, 0, {}, "icl", 0.891163862747933, 1e-9),
    (10, 0.5, 2, 0.01, 0, {}, "idg", 0.11239990342761604, 1e-9),
    (100, 0.5, 0.2, 0.01, 0, {}, "icl", 0.8201714333055187, 1e-9),
    (1, 0.5, 1.15, 0.01, 0, {}, "idg", 2.336652057674006, 1e-9),
    (3, 2, 1.5, 0.0, 0, {}, "icl", 0.8941798941798942, 1e-9),
    (3, 0.3, 0.7, 0.0, 0, {}, "idg", 0.34079113361543645, 1e-9),
    (1e8, 4, 3, 0.1, 0, {}, "icl", 0.16666668442962945, 1e-8),
    (1e7, 0.4, 3, 0.1, 0, {}, "icl", 272728.1360606602, 1e-7),
    (10, 0.5, 0.999, 0.01, 0, {}, "icl", 332.3876290590901, 1e-8),
    (2, 2.0, 1.001, 0.1, 0, {}, "idg", 411.666040404608, 1e-8),
    (10, 0.5, 1, 0.01, 1e-3, {}, "icl", 2.5600349014947312, 1e-9),
    (10, 0.5, 1, 0.01, 1e-3, {}, "train", 0.00205685499607933, 1e-9),
    (10, INF, 0.85, 0.01, 0.1, {}, "icl", 0.42786338359054243, 1e-9),
    (4, INF, 0.6, 0.2, 0, {}, "icl", 1.3846153846153848, 1e-9),
    (10, 0.5, 1.15, 0.01, 0.1, {}, "icl", 0.6525561462720731, 1e-9),
    (1, 0.25, 0.5, 0.5, 0.3, {}, "idg", 1.4344729715755167, 1e-9),
    (1, 2, 2, 0.1, 1e-3, {}, "effective_ridge", 0.0019978914722956383, 1e-9),
    (2, 0.6, 2, 0.1, 0, {"alpha": 20.0}, "icl", 0.9821115785195389, 1e-9),
    (4, 1.5, 0.6, 0.1, 0.02, {"alpha": 32.0}, "idg", 0.7401045091148015, 1e-9),
    (5, 2, 2, 0.5, 0.05, {"alpha": 5.0, "noise": 0.0}, "icl", 0.8621034456232578, 1e-9),
    (1e6, 0.3, INF, 0.1, 0, {}, "icl", 0.8000003299997843, 1e-8),
    (1e4, 1.0, INF, 0.1, 0, {}, "icl", 0.10535225366247239, 1e-9),
]

# tau, ridge, ICL at alpha = 10, kappa = 0.5, noise = 0.01, from arithmetic of 50 digits
KNOWN = [
    (2, 1e-10, 0.891163860813), (2, 1e-8, 0.891163669206), (2, 1e-6, 0.891144509765), (2, 1e-5, 0.890970440232),
    (2, 1e-2, 0.770549886987), (2, 1e-1, 0.617727525912), (2, 1, 0.665742407954), (2, 10, 0.879666502817),
    (0.5, 1e-8, 0.820849244335), (0.5, 1e-1, 0.730270449037), (0.5, 1, 0.747833008403),
    (1, 1e-8, 717.344360776), (1, 1e-4, 7.44987409437), (1, 1e-1, 0.663360350412),
    (1.05, 1e-8, 7.20644450502), (1.05, 1e-4, 5.25331061747),
    (5, 1e-8, 0.641863588704), (5, 1e-1, 0.586135631693), (5, 1, 0.650169994447),
]  # fmt: skip


@pytest.mark.parametrize("case", REFERENCE)
def test_reference_values(case: tuple) -> None:
    alpha, kappa, tau, noise, ridge, shift, field, value, tolerance = case
    found = errors(Ratios(alpha, kappa, tau, noise), ridge=ridge, shift=Shift(**shift) if shift else None)
    assert_allclose(getattr(found, field), value, rtol=tolerance)


@pytest.mark.parametrize(("tau", "ridge", "value"), KNOWN)
def test_known_answers_to_eleven_digits(tau: float, ridge: float, value: float) -> None:
    assert_allclose(errors(Ratios(10, 0.5, tau, 0.01), ridge=ridge).icl, value, rtol=1e-11)


def stieltjes(x: float, kappa: float) -> float:
    b = x + 1 - 1 / kappa
    return kappa * (np.sqrt(b * b + 4 * x / kappa) - b) / (2 * x)


def published_ridgeless(alpha: float, kappa: float, tau: float, noise: float) -> tuple[float, float]:
    """The closed forms of lu2025asymptotic in one branch for each side of τ = 1; κ = ∞ is 1e12 here."""
    x, h = (1 + noise) / alpha, 1e-6 * (1 + noise) / alpha
    if tau > 1:
        m, m2 = stieltjes(x, kappa), (stieltjes(x - h, kappa) - stieltjes(x + h, kappa)) / (2 * h)
        idg = tau / (tau - 1) * (noise + x - x * x * m)
        return noise + x - 2 * x * x * m + (1 + x) * x * x * m2 + idg / tau * (1 + x) * m, idg
    mu = x * stieltjes(x, kappa / tau)
    bracket = 1 - tau * (1 - mu) ** 2 + mu * (noise / x - 1)
    return tau * (1 + x) / (1 - tau) * bracket - 2 * tau * (1 - mu) + 1 + noise, np.nan


@pytest.mark.parametrize("tau", [0.5, 0.9, 0.999, 1.001, 1.05, 2, 20])
@pytest.mark.parametrize(("alpha", "kappa", "noise"), [(10, 0.5, 0.01), (0.7, 3, 0.3), (40, 1, 0.1)])
def test_the_error_tends_to_the_ridgeless_closed_forms_at_first_order(
    tau: float, alpha: float, kappa: float, noise: float
) -> None:
    ratios = Ratios(alpha, kappa, tau, noise)
    icl, idg = published_ridgeless(alpha, kappa, tau, noise)
    limit = errors(ratios)
    assert_allclose(limit.icl, icl, rtol=1e-8)  # M₂ of the closed form is a difference quotient here
    if tau > 1:
        assert_allclose(limit.idg, idg, rtol=1e-12)
    gaps = [abs(errors(ratios, ridge=ridge).icl / limit.icl - 1) for ridge in (1e-10, 1e-11)]
    assert gaps[0] < 2e-3  # at τ = 0.999 a ridge counts 10⁷ times
    assert_allclose(gaps[0] / gaps[1], 10, rtol=0.02)  # first order


@pytest.mark.parametrize("tau", [0.3, 0.95, 1.3, 8])
def test_many_tasks_and_many_sequences_are_the_limits(tau: float) -> None:
    x = 1.2 / 3
    endless = errors(Ratios(3, INF, tau, 0.2))
    # published κ = ∞ forms
    expected = tau / (tau - 1) * (0.2 + x / (1 + x)) if tau > 1 else (1.2 - tau * (2 - tau) / (1 + x)) / (1 - tau)
    assert_allclose(endless.icl, expected, rtol=1e-14)
    assert_allclose(endless.idg, endless.icl, rtol=1e-14)
    assert_allclose(errors(Ratios(3, 1e9, tau, 0.2)).icl, endless.icl, rtol=1e-7)  # first order in 1/κ
    for ridge in (0.0, 0.1):
        limit = errors(Ratios(3, 0.6, INF, 0.2), ridge=ridge)
        near = errors(Ratios(3, 0.6, 1e9, 0.2), ridge=ridge)
        assert_allclose([near.icl, near.idg, near.train], [limit.icl, limit.idg, limit.train], rtol=1e-7)
        assert limit.effective_ridge == ridge
        assert_allclose(limit.train, limit.idg, rtol=1e-14)


positive = st.floats(-6, 6).map(lambda power: 10.0**power)


@given(positive, positive | st.just(INF), positive | st.just(INF), st.just(0.0) | positive, st.just(0.0) | positive)
def test_errors_are_finite_and_above_their_floors(
    alpha: float, kappa: float, tau: float, noise: float, ridge: float
) -> None:
    assume(abs(tau - 1) > 1e-9 or ridge > 0)
    found = errors(Ratios(alpha, kappa, tau, noise), ridge=ridge)
    assert np.all(np.isfinite([found.icl, found.idg, found.train, found.effective_ridge]))
    assert min(found.icl, found.idg) >= noise
    assert 0 <= found.train <= found.idg
    assert found.effective_ridge >= ridge * (1 - 1e-15)


def test_no_corner_of_the_domain_is_without_an_answer() -> None:
    sizes = [1e-40, 1e-30, 1e-8, 0.5, 1, 1 + 1e-15, 3, 1e8, 1e20, 1e40, INF]
    ridges, noises = [0, 1e-40, 1e-20, 1, 1e20, 1e40, INF], [0, 1e-40, 1e-8, 1, 1e40]
    alpha, kappa, tau, ridge, noise = (a.ravel() for a in np.meshgrid(sizes, sizes, sizes, ridges, noises))
    ratios = Ratios(alpha, kappa, tau, noise)
    for found in (errors(ratios, ridge=ridge), errors(ratios, ridge=ridge, shift=Shift(3.0, 0.1, 2.0))):
        assert np.all((found.icl >= 0) & (found.idg >= 0) & (found.train >= 0) & (found.effective_ridge >= 0))
    plain = errors(ratios, ridge=ridge)
    infinite = np.isinf(plain.icl)
    assert np.all((ridge[infinite] == 0) & ((tau[infinite] == 1) | np.isinf(alpha[infinite])))
    for kind in (plain.icl, plain.idg, plain.train):  # at α = ∞ nothing finite stands in for infinity
        assert np.all(
            np.isinf(kind)
            | (kind < 1e42)
            | np.isfinite(alpha)
            | (ridge > 0)
            | (abs(tau - 1) < 1e-9)
            | (kappa == sizes[5])
        )
    assert np.all(plain.train <= plain.idg * (1 + 1e-15))
    assert not np.any(np.isnan(diversity_gap(ratios, ridge=ridge)))


@given(positive, positive, positive, positive, positive)
def test_every_answer_agrees_with_forty_digits(
    alpha: float, kappa: float, tau: float, noise: float, ridge: float
) -> None:
    found = errors(Ratios(alpha, kappa, tau, noise), ridge=ridge)
    expected = exact_errors(alpha, kappa, tau, noise, ridge)
    assert_allclose([found.icl, found.idg, found.train], expected, rtol=1e-14)


def exact_errors(
    alpha: float, kappa: float, tau: float, noise: float, ridge: float, *, digits: int = 60
) -> list[float]:
    """The formulas with differences of large terms, bisection for ξ, at 60 digits."""
    with mp.workdps(digits):
        a, k, t, rho, lam = (mp.mpf(value) for value in (alpha, kappa, tau, noise, ridge))
        x = (1 + rho) / a

        def m_and_m2(nu):
            b = nu + 1 - 1 / k
            root = mp.sqrt(b * b + 4 * nu / k)
            m = k * (root - b) / (2 * nu)
            return m, m / nu - k / (2 * nu) * ((b + 2 / k) / root - 1)

        low, high = mp.log(lam), mp.log(lam + 2 * (1 + x) * (1 + 1 / t) + mp.sqrt(lam))
        for _ in range(180 + digits // 5):
            middle = (low + high) / 2
            xi = mp.exp(middle)
            rises = t - 1 - t * lam / xi + xi * m_and_m2(x + xi)[0] < 0
            low, high = (middle, high) if rises else (low, middle)
        nu = x + xi
        m, m2 = m_and_m2(nu)
        g, q, df2 = m - xi * m2, 1 - 2 * nu * m + nu**2 * m2, 1 - 2 * xi * m + xi**2 * m2
        idg = (rho + x - 2 * x * nu * m + nu**2 * g) / (1 - df2 / t)
        icl = rho + x * q + nu**2 * m2 + idg / t * (1 + x) * g
        return [float(icl), float(idg), float((lam / xi) ** 2 * idg)]


@pytest.mark.parametrize(("alpha", "kappa", "noise"), [(10, 0.5, 0.01), (1e8, 0.5, 0.1), (2, 3, 0), (1e4, 1, 1)])
def test_interpolation_with_hardly_a_ridge_keeps_twelve_digits(alpha: float, kappa: float, noise: float) -> None:
    found = errors(Ratios(alpha, kappa, 1.0, noise), ridge=1e-15)
    assert_allclose([found.icl, found.idg, found.train], exact_errors(alpha, kappa, 1.0, noise, 1e-15), rtol=1e-12)


def test_few_tasks_at_the_edge_of_interpolation_keep_twelve_digits() -> None:
    # τ = κ < 1 and long contexts: a second edge, at the rank of the pool
    found = errors(Ratios(1e10, 0.5, 0.5, 0.1), ridge=1e-15)
    assert_allclose([found.icl, found.idg, found.train], exact_errors(1e10, 0.5, 0.5, 0.1, 1e-15), rtol=1e-12)


def test_more_tasks_can_hurt() -> None:
    kappas = np.array([1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 16, INF])
    found = errors(Ratios(1.0, kappas, 2.0, 0.1), ridge=1e-3).icl
    assert_allclose(found, [1.3457, 1.3904, 1.4514, 1.4962, 1.4678, 1.3851, 1.2541, 1.2453], atol=5e-5)


def test_new_tasks_can_be_easier_than_those_of_the_pool() -> None:
    found = errors(Ratios(98, 0.118, 0.1175, 0.86), ridge=1.8e-4)
    assert_allclose([found.icl, found.idg], [2.53, 3.75], rtol=5e-3)  # known to the digits of its parameters
    assert found.icl < found.idg


@pytest.mark.parametrize(
    ("kappa", "tau", "noise", "icl"),
    [
        (2, 0.5, 0.1, 0.73333333333333333), (0.7, 0.5, 0.1, 0.95), (0.3, 0.5, 0, 0.82), (0.5, 2, 0, 0.75),
        (4, 3, 0.1, 1 / 6), (1, 2, 0, 0), (0.5, 0.5, 0, 0.5), (0.5, 2, 0.1, INF), (1, 2, 0.1, INF),
        (0.3, 0.5, 0.1, INF), (0.5, 0.5, 0.1, INF), (0.3, INF, 0.1, 0.8), (1, INF, 0.1, 0.1), (3, INF, 0.1, 0.1),
    ],
)  # fmt: skip
def test_endless_contexts_without_ridge(kappa: float, tau: float, noise: float, icl: float) -> None:
    found = errors(Ratios(INF, kappa, tau, noise))
    assert_allclose(found.icl, icl, rtol=1e-14)
    if tau > 1:
        share = 1.0 if np.isinf(tau) else tau / (tau - 1)
        assert_allclose(found.idg, noise * share, rtol=1e-14)  # finite for every κ


def test_a_pool_task_in_a_finite_context_after_endless_ones_suffers_where_the_pool_is_blind() -> None:
    ratios = Ratios(INF, 0.5, 2, 0.1)
    assert errors(ratios, shift=Shift(alpha=10)).idg == INF
    assert errors(ratios, shift=Shift(alpha=INF)).idg == errors(ratios).idg
    assert np.isfinite(errors(ratios, ridge=1e-3, shift=Shift(alpha=10)).idg)


def test_interpolation_without_ridge_is_infinite_and_fits_its_data() -> None:
    for alpha in (0.3, 10, INF):
        found = errors(Ratios(alpha, 0.5, 1.0, 0.01))
        assert (found.icl, found.idg, found.train) == (INF, INF, 0)


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize(("alpha", "kappa", "noise"), [(10, 0.5, 0.01), (2, INF, 0.3), (0.5, 4, 0)])
def test_the_peak_has_one_height_from_both_sides(side: int, alpha: float, kappa: float, noise: float) -> None:
    peak = interpolation_peak(alpha, kappa, noise)
    near = errors(Ratios(alpha, kappa, 1 + side * 1e-7, noise))
    assert_allclose([1e-7 * near.icl, 1e-7 * near.idg], [peak.icl, peak.idg], rtol=3e-6)  # first order in τ − 1


def test_a_ridge_without_end_learns_nothing() -> None:
    found = errors(Ratios(3, 0.5, 2, 0.2), ridge=INF, shift=Shift(noise=0.4, task_scale=3.0))
    assert (found.icl, found.idg, found.train, found.effective_ridge) == (3.4, 1.4, 1.2, INF)
    near = errors(Ratios(3, 0.5, 2, 0.2), ridge=1e9)
    assert_allclose([near.icl, near.idg, near.train], 1.2, rtol=1e-8)


def test_training_error_without_ridge_is_that_of_the_fit() -> None:
    found = errors(Ratios(3, 0.5, np.array([0.4, 1.0, 2.5]), 0.2))
    assert_allclose(found.train, [0, 0, 0.36 * found.idg[2]], rtol=1e-15)


@given(positive, positive, positive, st.just(0.0) | positive, positive)
def test_a_shift_to_the_same_contexts_changes_nothing(
    alpha: float, kappa: float, tau: float, noise: float, ridge: float
) -> None:
    ratios = Ratios(alpha, kappa, tau, noise)
    here, there = errors(ratios, ridge=ridge), errors(ratios, ridge=ridge, shift=Shift(alpha, noise))
    assert_allclose([there.icl, there.idg], [here.icl, here.idg], rtol=1e-13)


def test_one_call_answers_a_grid() -> None:
    taus, kappas = np.array([0.5, 1.0, 3.0]), np.array([[0.5], [INF]])
    grid = errors(Ratios(10, kappas, taus, 0.1), ridge=0.01, shift=Shift(noise=np.array([0.0, 1.0])[:, None, None]))
    assert {np.shape(part) for part in (grid.icl, grid.idg, grid.train, grid.effective_ridge)} == {(2, 2, 3)}
    for i, noise in enumerate((0.0, 1.0)):
        for j, kappa in enumerate(kappas[:, 0]):
            for k, tau in enumerate(taus):
                one = errors(Ratios(10, kappa, tau, 0.1), ridge=0.01, shift=Shift(noise=noise))
                assert_allclose([grid.icl[i, j, k], grid.train[i, j, k]], [one.icl, one.train], rtol=1e-14)


@given(positive, positive, positive, positive, st.just(0.0) | positive)
def test_the_diversity_gap_is_the_difference(
    alpha: float, kappa: float, tau: float, noise: float, ridge: float
) -> None:
    assume(abs(tau - 1) > 1e-6 or ridge > 0)
    found = errors(Ratios(alpha, kappa, tau, noise), ridge=ridge)
    gap = diversity_gap(Ratios(alpha, kappa, tau, noise), ridge=ridge)
    assert abs(gap - (found.icl - found.idg)) <= 1e-14 * (found.icl + found.idg)


@pytest.mark.parametrize(
    ("kappa", "law"),
    [(0.3, lambda a: 0.7), (1.0, lambda a: 0.5 * np.sqrt(1.1 / a)), (3.0, lambda a: (1.1 / a) ** 2 * 3 * 5 / 8)],
)
def test_the_gap_closes_at_one_task_for_each_dimension(kappa: float, law) -> None:
    for alpha in (1e6, 1e8):
        assert_allclose(diversity_gap(Ratios(alpha, kappa, INF, 0.1)), law(alpha), rtol=3 / np.sqrt(alpha))
    assert diversity_gap(Ratios(INF, kappa, INF, 0.1)) == pytest.approx(0.7 if kappa < 1 else 0, abs=1e-15)


def test_the_gap_of_a_fresh_task_in_every_context_is_zero() -> None:
    assert diversity_gap(Ratios(3, INF, 0.7, 0.1)) == pytest.approx(0, abs=1e-200)


@pytest.mark.parametrize(("tau", "noise", "value"), [(20, 0.5, 1.3761220389035576), (0.5, 0.1, 0.6980954523404911)])
def test_known_critical_pool_sizes(tau: float, noise: float, value: float) -> None:
    assert_allclose(critical_kappa(tau, noise), value, rtol=1e-14)


@pytest.mark.parametrize(("tau", "noise"), [(20, 0.5), (0.5, 0.1), (0.5, 0.5), (1.01, 0.3), (3, 2), (0.2, 0.01)])
def test_below_the_critical_pool_size_longer_contexts_end_up_worse(tau: float, noise: float) -> None:
    kappa = critical_kappa(tau, noise)
    alphas = np.geomspace(1e-2, 1e7, 400)
    below, above = (errors(Ratios(alphas, factor * kappa, tau, noise)).icl for factor in (0.99, 1.01))
    assert np.argmin(below) < len(alphas) - 1
    assert np.all(np.diff(above[alphas > 10 * np.max([1, noise])]) < 0)


def test_critical_pool_sizes_have_their_limits() -> None:
    assert_allclose(critical_kappa(np.array([0.3, 1.0, 7.0]), 0.0), [0.3, 1, 1])
    assert critical_kappa(INF, 0.5) == pytest.approx(1, abs=1e-80)
    u = np.sqrt(1.3 / 0.3)  # τ = 1
    assert_allclose(critical_kappa(1.0, 0.3), u / (u - 1), rtol=1e-14)


@pytest.mark.parametrize(
    ("kappa", "tau", "noise", "target", "marked", "precision"),
    [
        (0.5, 0.5, 0.1, "icl", 9.603138782254538, 1e-6),
        # minima marked in figure 2 of lu2025asymptotic, on its grid of α
        (0.3, 0.5, 0.5, "idg", 6.15, 0.01), (0.5, 0.5, 0.5, "idg", 5.6, 0.01), (0.7, 0.5, 0.5, "idg", 7.4, 0.01),
        (0.2, 0.5, 0.1, "icl", 2.35, 0.03), (0.4, 0.5, 0.1, "icl", 5.5, 0.01), (0.6, 0.5, 0.1, "icl", 22.7, 0.01),
    ],
)  # fmt: skip
def test_the_best_context_length_is_where_the_paper_marks_it(
    kappa: float, tau: float, noise: float, target: str, marked: float, precision: float
) -> None:
    assert_allclose(best_alpha(kappa, tau, noise, target=target), marked, rtol=precision)


def test_above_the_critical_pool_size_no_context_is_long_enough() -> None:
    assert list(best_alpha(np.array([1.38, 2, INF]), 20, 0.5)) == [INF] * 3


def test_the_best_ridge_of_endless_tasks_is_noise_over_signal() -> None:
    # isotropic ridge regression: (1 + x)² (ρ + x/(1 + x))/τ
    alpha, tau, noise = np.array([4, 10, 0.5]), np.array([0.5, 2, 1.0]), np.array([0.1, 0.3, 0])
    x = (1 + noise) / alpha
    expected = (1 + x) ** 2 * (noise + x / (1 + x)) / tau
    for target in ("icl", "idg"):
        assert_allclose(best_ridge(Ratios(alpha, INF, tau, noise), target=target), expected, rtol=1e-7)


def test_known_best_ridges() -> None:
    ratios = Ratios(10, 2, 0.7, 0.1)
    assert_allclose(errors(ratios, ridge=best_ridge(ratios)).icl, 0.6919777842827026, rtol=1e-12)
    ratios = Ratios(10, 2, 4, 0.1)
    assert_allclose([best_ridge(ratios, target=target) for target in ("icl", "idg")], [0.036, 0.075], atol=5e-4)


@pytest.mark.parametrize("target", ["icl", "idg"])
def test_no_ridge_beats_the_best_one(target: str) -> None:
    taus = np.array([0.3, 1.0, 2.0, INF])
    ratios = Ratios(10, 0.5, taus, 0.1)
    best = getattr(errors(ratios, ridge=best_ridge(ratios, target=target)), target)
    rivals = errors(Ratios(10, 0.5, taus[:, None], 0.1), ridge=np.concatenate([[0], np.geomspace(1e-9, 1e9, 1801)]))
    assert np.all(getattr(rivals, target) >= best[:, None] * (1 - 1e-14))
    assert best_ridge(Ratios(10, INF, INF, 0.1), target=target) == 0
    assert best_ridge(Ratios(1e-30, 2, 2, 0.1), target=target) == INF


def test_the_ridge_removes_the_peak() -> None:
    ratios = Ratios(10, 0.5, np.concatenate([np.linspace(0.2, 0.9, 30), [1.0], np.linspace(1.1, 5, 30)]), 0.01)
    assert np.max(errors(ratios).icl) == INF
    assert np.all(np.diff(errors(ratios, ridge=best_ridge(ratios)).icl) < 0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"alpha": 0.0}, "alpha must be > 0; got 0.0. For infinite context length write alpha=inf"),
        ({"kappa": -1}, "kappa must be > 0; got -1.0. For a fresh task in every context write kappa=inf"),
        ({"kappa": np.array([1.0, np.nan])}, "kappa must be > 0; got nan"),
        ({"tau": -INF}, "tau must be > 0; got -inf"),
        ({"noise": -0.5}, "noise must be finite and >= 0; got -0.5"),
        ({"noise": INF}, "noise must be finite and >= 0; got inf"),
        ({"noise": "loud"}, "noise must be a number or an array of numbers; got 'loud'"),
        ({"alpha": np.ones(2), "tau": np.ones(3)}, r"fields of Ratios must broadcast together; got alpha \(2,\)"),
    ],
)
def test_impossible_ratios_are_refused_by_name(fields: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Ratios(**({"alpha": 1.0, "kappa": 1.0, "tau": 2.0, "noise": 0.1} | fields))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: errors(r, ridge=-1e-9), "ridge must be >= 0; got -1e-09"),
        (lambda r: errors(r, ridge=np.nan), "ridge must be >= 0; got nan"),
        (lambda r: errors(r, shift=Shift(alpha=0)), "shift.alpha must be > 0"),
        (lambda r: errors(r, shift=Shift(noise=-1)), "shift.noise must be finite and >= 0"),
        (lambda r: errors(r, shift=Shift(task_scale=0)), "shift.task_scale must be finite and > 0"),
        (lambda r: best_ridge(r, target="train"), "target must be one of icl, idg; got 'train'"),
        (lambda r: best_alpha(1, 2, 0.1, target="all"), "target must be one of icl, idg; got 'all'"),
        (lambda r: critical_kappa(0.0, 0.1), "tau must be > 0"),
        (lambda r: critical_kappa(2.0, np.nan), "noise must be finite and >= 0"),
        (lambda r: interpolation_peak(0, 1, 1), "alpha must be > 0"),
        (lambda r: diversity_gap(r, ridge=-1), "ridge must be >= 0"),
    ],
)
def test_impossible_questions_are_refused_by_name(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(Ratios(1.0, 1.0, 2.0, 0.1))


def test_ratios_of_numbers_can_be_compared_and_hashed() -> None:
    assert Ratios(1, "inf", 2, 0) == Ratios(1.0, INF, 2.0, 0.0)
    assert len({Ratios(1, INF, 2, 0), Ratios(1, INF, 2, 0), Ratios(2, INF, 2, 0)}) == 2


def test_errors_are_an_outcome_with_units() -> None:
    assert isinstance(errors(Ratios(1, 1, 2, 0)), Errors)
