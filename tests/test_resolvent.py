"""Wishart moments and the effective ridge against arithmetic of 60 digits and the density itself."""

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab import Ratios
from iclab.theory.generalization import errors
from iclab.theory.pretraining.resolvent import wishart_moments

KAPPAS = [0.1, 0.5, 1 - 1e-9, 1.0, 1 + 1e-9, 2.0, 1e3, np.inf]


def exact_moments(nu: float, kappa: float) -> dict[str, mp.mpf]:
    """M from its quadratic equation, M₂ as its derivative, the rest by subtraction: no care, but 60 digits."""
    nu, k = mp.mpf(nu), mp.mpf(kappa)
    if mp.isinf(k):
        m, m2 = 1 / (1 + nu), 1 / (1 + nu) ** 2
    else:
        b = nu + 1 - 1 / k
        root = mp.sqrt(b * b + 4 * nu / k)
        m = k * (root - b) / (2 * nu)
        m2 = m / nu - k / (2 * nu) * ((b + 2 / k) / root - 1)
    return {
        "inverse": m,
        "inverse_square": m2,
        "kept": 1 - nu * m,
        "kept_square": 1 - 2 * nu * m + nu**2 * m2,
        "lost": nu * m,
        "lost_square": nu**2 * m2,
        "mixed": nu * (m - nu * m2),
    }


@pytest.mark.parametrize("kappa", KAPPAS)
def test_moments_agree_with_sixty_digits(kappa: float) -> None:
    shifts = np.geomspace(1e-15, 1e3, 37)
    ours = wishart_moments(shifts, kappa)
    with mp.workdps(60):
        for i, shift in enumerate(shifts):
            for name, value in exact_moments(shift, kappa).items():
                error = abs(mp.mpf(float(getattr(ours, name)[i])) / value - 1)
                assert error < 1e-14, (name, shift, float(error))


@pytest.mark.parametrize("kappa", [0.4, 3.0])
@pytest.mark.parametrize("shift", [1e-2, 1.5])
def test_moments_are_averages_over_the_density_of_marchenko_and_pastur(kappa: float, shift: float) -> None:
    with mp.workdps(30):
        k, nu = mp.mpf(kappa), mp.mpf(shift)
        low, high = (1 - 1 / mp.sqrt(k)) ** 2, (1 + 1 / mp.sqrt(k)) ** 2

        def mean(function):
            def density(angle):  # r runs over the support as angle runs over half a circle
                r = (low + high) / 2 + (high - low) / 2 * mp.cos(angle)
                return k * ((high - low) / 2 * mp.sin(angle)) ** 2 / (2 * mp.pi * r) * function(r)

            return mp.quad(density, [0, mp.pi / 2, mp.pi]) + max(0, 1 - k) * function(mp.mpf(0))

        expected = {
            "inverse": mean(lambda r: 1 / (r + nu)),
            "inverse_square": mean(lambda r: 1 / (r + nu) ** 2),
            "kept": mean(lambda r: r / (r + nu)),
            "kept_square": mean(lambda r: (r / (r + nu)) ** 2),
            "lost": mean(lambda r: nu / (r + nu)),
            "lost_square": mean(lambda r: (nu / (r + nu)) ** 2),
            "mixed": mean(lambda r: r * nu / (r + nu) ** 2),
        }
    ours = wishart_moments(shift, kappa)
    for name, value in expected.items():
        assert_allclose(getattr(ours, name), float(value), rtol=1e-13, err_msg=name)


def test_moments_of_a_drawn_wishart_matrix() -> None:
    d, k = 600, 300
    tasks = np.random.default_rng(0).standard_normal((k, d))
    r = np.linalg.eigvalsh(tasks.T @ tasks / k)
    ours = wishart_moments(0.3, 0.5)
    assert_allclose(np.mean(1 / (r + 0.3)), ours.inverse, rtol=5e-3)  # fluctuations of one draw are of order 1/D
    assert_allclose(np.mean(r * 0.3 / (r + 0.3) ** 2), ours.mixed, rtol=5e-3)


def exact_slack(xi: mp.mpf, alpha: float, kappa: float, tau: float, noise: float, ridge: float) -> mp.mpf:
    x = (1 + mp.mpf(noise)) / mp.mpf(alpha)
    m = exact_moments(x + xi, kappa)["inverse"]
    return 1 - (1 - xi * m) / mp.mpf(tau) - mp.mpf(ridge) / xi


@pytest.mark.parametrize("ridge", [1e-15, 1e-8, 1e-2, 10.0])
@pytest.mark.parametrize("tau", [1e-3, 0.5, 1 - 1e-9, 1.0, 1 + 1e-9, 2.0, 1e4])
@pytest.mark.parametrize(("alpha", "kappa"), [(10, 0.5), (1e9, 0.5), (0.1, 3), (50, np.inf), (1e6, 1)])
def test_the_effective_ridge_is_the_root_to_a_few_units_of_rounding(
    ridge: float, tau: float, alpha: float, kappa: float
) -> None:
    xi = errors(Ratios(alpha, kappa, tau, 0.1), ridge=ridge).effective_ridge
    with mp.workdps(60):
        below, above = (
            exact_slack(mp.mpf(float(xi)) * (1 + side * mp.mpf("4e-15")), alpha, kappa, tau, 0.1, ridge)
            for side in (-1, 1)
        )
    assert below < 0 < above


@pytest.mark.parametrize("tau", [1.2, 2.0, 9.0])
def test_a_small_ridge_acts_as_one_larger_by_a_known_factor(tau: float) -> None:
    xi = errors(Ratios(3, 0.7, tau, 0.2), ridge=1e-9).effective_ridge
    assert_allclose(xi, 1e-9 * tau / (tau - 1), rtol=1e-7)  # first order in the ridge


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 1.0), "shift must be finite and > 0; got 0.0"),
        ((np.nan, 1.0), "shift must be finite and > 0; got nan"),
        ((1.0, 0.0), "kappa must be > 0; got 0.0"),
        ((1.0, "many"), "kappa must be a number or an array of numbers; got 'many'"),
    ],
)
def test_impossible_moments_are_refused_by_name(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wishart_moments(*arguments)
