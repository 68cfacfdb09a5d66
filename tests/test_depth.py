"""Depth: moments, laws, losses and best layers, against draws, quadrature and derivations of other kinds."""

from math import prod

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from iclab.problem import Regression
from iclab.theory import depth
from iclab.theory.depth import losses
from iclab.theory.depth.exact_moments import recurrence_of
from iclab.theory.estimators import bayes, descended
from iclab.theory.estimators.eigenvalue_law import singular_values


def test_moments_of_one_dimension_are_those_of_chi_square() -> None:
    for length in (1, 2, 7):
        known = [prod(length + 2 * j for j in range(k)) / length**k for k in range(9)]
        assert_allclose([float(one) for one in depth.wishart_moments(1, length, 8)], known, rtol=1e-15)


def test_moments_of_low_order_are_the_known_polynomials() -> None:
    for d, n in ((3, 5), (7, 2), (40, 90)):
        m = [float(one) for one in depth.wishart_moments(d, n, 3)]
        third = n**2 + d**2 + 3 * n * d + 3 * n + 3 * d + 4
        assert_allclose(m, [1, 1, (n + d + 1) / n, third / n**2], rtol=1e-15)


def test_moments_swap_with_the_sides_of_the_matrix() -> None:
    wide, high = depth.wishart_moments(4, 9, 12), depth.wishart_moments(9, 4, 12)
    assert all(4 * 9**k * a == 9 * 4**k * b for k, (a, b) in enumerate(zip(wide, high, strict=True)) if k > 0)


@pytest.mark.parametrize(("d", "n"), [(4, 8), (6, 6), (5, 3)])
def test_the_mean_spectrum_is_the_exact_density_of_eigenvalues(d: int, n: int) -> None:
    # another derivation: the density is a Pfaffian, integrated by panels
    law = singular_values(d, n)
    values, weights = np.r_[law.nodes**2 / n, 0.0], np.r_[law.weights / d, max(0.0, 1 - n / d)]
    exact = depth.spectrum(values, weights)
    for layers in (1, 3, 8, 12):
        known = depth.best_excess(exact, layers)
        assert_allclose(depth.best_excess(depth.wishart(d, n), layers), known, rtol=1e-9)  # its ten digits


def test_digits_of_the_recurrence_are_enough() -> None:
    from iclab.theory.depth import exact_moments as module

    moments = depth.wishart_moments(5, 9, 81)
    found, digits = recurrence_of(moments), module._DIGITS
    try:
        module._DIGITS = tuple(2 * one for one in digits)
        finer = recurrence_of(moments)
    finally:
        module._DIGITS = digits
    assert all(np.array_equal(a, b) for a, b in zip(found, finer, strict=True))


def drawn_error(d: int, n: int, layers: np.ndarray, noise: float, count: int, seed: int) -> tuple[float, float]:
    """Mean squared error of descent in drawn contexts, and its standard error."""
    rng = np.random.default_rng(seed)
    squares = []
    for _ in range(count // 5000):
        x, w = rng.standard_normal((5000, n + 1, d)), rng.standard_normal((5000, d)) / np.sqrt(d)
        y = np.einsum("bnd,bd->bn", x, w) + np.sqrt(noise) * rng.standard_normal((5000, n + 1))
        answer = descended(x[:, :-1], y[:, :-1], x[:, -1], preconditioner=layers[:, None, None] * np.eye(d))
        squares.append((answer - y[:, -1]) ** 2)
    found = np.concatenate(squares)
    return float(found.mean()), float(found.std() / np.sqrt(len(found)))


SIZES = [(5, 9), (4, 3), (8, 16)]


@pytest.mark.slow
@pytest.mark.parametrize(("d", "n"), SIZES)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_loss_is_that_of_many_drawn_contexts(d: int, n: int, count: int) -> None:
    layers = depth.best_layers(depth.wishart(d, n), count) * np.linspace(0.8, 1.1, count)
    mean, error = drawn_error(d, n, layers, 0.25, 200_000, seed=d + 10 * count)
    known = 0.25 + depth.excess(depth.wishart(d, n), layers, noise_ratio=0.25)
    assert abs(mean - known) < 3 * error
    assert error < 0.01 * known


def test_the_loss_is_that_of_drawn_contexts() -> None:
    layers = np.array([0.3, 0.9])
    mean, error = drawn_error(5, 9, layers, 0.25, 20_000, seed=0)
    known = 0.25 + depth.excess(depth.wishart(5, 9), layers, noise_ratio=0.25)
    assert abs(mean - known) < 3 * error
    assert error < 0.02 * known


def test_inputs_of_any_covariance_have_the_white_loss() -> None:
    rng, problem = np.random.default_rng(3), Regression((0.9, 0.4, 0.2), 7, 0.1, (1.0, 3.0, 0.5))
    layers = np.array([0.4, 0.8])
    scale, tasks = np.sqrt(problem.eigenvalues), np.sqrt(problem.task_spectrum)
    x, w = scale * rng.standard_normal((60_000, 8, 3)), tasks * rng.standard_normal((60_000, 3))
    y = np.einsum("bnd,bd->bn", x, w) + np.sqrt(0.1) * rng.standard_normal((60_000, 8))
    gammas = depth.scalar_gammas(problem, layers)
    squares = (descended(x[:, :-1], y[:, :-1], x[:, -1], preconditioner=gammas) - y[:, -1]) ** 2
    known = depth.stack_loss(problem, layers)
    assert abs(squares.mean() - known) < 3 * squares.std() / np.sqrt(len(squares))
    assert squares.std() / np.sqrt(len(squares)) < 0.012 * known


def test_one_layer_has_the_known_best_loss() -> None:
    for alpha, noise in ((0.7, 0.0), (2.0, 0.4)):
        law = depth.white_limit(alpha)
        assert_allclose(
            depth.best_excess(law, 1, noise_ratio=noise), 1 - 1 / (1 + 1 / alpha + noise / alpha), rtol=1e-14
        )


def semicircle_rule(alpha: float, nodes: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Quadrature of the Marchenko-Pastur law: x times it is a semicircle; at α = 1 a Chebyshev weight."""
    c = 1 / alpha
    if alpha == 1:
        angle = np.pi * np.arange(1, nodes + 1) / (2 * nodes + 1)
        return 4 * np.cos(angle) ** 2, 4 / (2 * nodes + 1) * np.sin(angle) ** 2
    angle = np.pi * np.arange(1, nodes + 1) / (nodes + 1)
    x = 1 + c + 2 * np.sqrt(c) * np.cos(angle)
    return x, 2 / (nodes + 1) * np.sin(angle) ** 2 / x


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0, 4.0])
def test_closed_forms_are_quadratures_to_great_depth(alpha: float) -> None:
    x, weight = semicircle_rule(alpha)
    assert_allclose(np.sum(weight), 1, rtol=1e-12)
    for count in (1, 2, 5, 16, 64):
        untied = np.prod(1 - depth.white_untied_layers(alpha, count)[:, None] * x, axis=0)
        tied = (1 - depth.white_tied_layer(alpha) * x) ** count
        assert_allclose(np.sum(weight * untied**2), depth.white_untied_excess(alpha, count), rtol=1e-12, atol=1e-12)
        assert_allclose(np.sum(weight * tied**2), depth.white_tied_excess(alpha, count), rtol=1e-12)
        growth = np.sum(weight * x**2 * (1 - depth.white_tied_layer(alpha) * x) ** (2 * count - 2))
        assert_allclose(growth, depth.white_split_rate(alpha, count), rtol=1e-12)


def test_deep_ridge_is_the_bayes_estimator() -> None:
    for alpha, noise in ((0.5, 0.3), (2.0, 0.7)):
        known = float(bayes.ridge_error(alpha, noise)) - noise
        assert_allclose(depth.white_ridge_excess(alpha, noise_ratio=noise), known, rtol=1e-10)


@pytest.mark.parametrize("noise", [0.0, 0.6])
def test_slopes_and_curvatures_are_differences_of_the_loss(noise: float) -> None:
    rule, layers, h = depth.wishart(5, 9).rule(4), np.array([0.2, 0.5, 0.5, 1.1]), 1e-5
    steps = h * np.eye(4)
    up, down = (losses.excess_of(rule, layers + sign * steps, noise=noise) for sign in (1, -1))
    assert_allclose(losses.excess_slope(rule, layers, noise=noise), (up - down) / (2 * h), atol=1e-8)
    slopes = [losses.excess_slope(rule, layers + sign * steps, noise=noise) for sign in (1, -1)]
    bends = (slopes[0] - slopes[1]) / (2 * h)
    assert_allclose(losses.excess_curvature(rule, layers, noise=noise), bends, atol=1e-7)


def test_every_minimum_without_noise_is_the_best_one() -> None:
    law, rng = depth.wishart(4, 8), np.random.default_rng(0)
    rule = law.rule(3)
    for start in rng.uniform(0.05, 2.0, (12, 3)):
        found = minimize(
            lambda g: losses.excess_of(rule, g, noise=0.0),
            start,
            jac=lambda g: losses.excess_slope(rule, g, noise=0.0),
        )
        assert_allclose(found.fun, depth.best_excess(law, 3), atol=1e-7)
        assert_allclose(np.sort(found.x), depth.best_layers(law, 3), atol=2e-3)


def test_the_residual_is_orthogonal_to_the_others() -> None:
    law = depth.wishart(6, 12)
    rule, layers = law.rule(10), depth.best_layers(law, 4)
    kept = np.prod(1 - layers[:, None] * rule.nodes, axis=0)
    assert_allclose([rule.weights @ (rule.nodes**k * kept) for k in range(1, 5)], 0, atol=1e-13)


def test_free_layers_are_met_where_their_roots_are_real() -> None:
    law = depth.white_limit(2)
    below, above = 0.9 * depth.white_critical_noise_ratio(2), 1.1 * depth.white_critical_noise_ratio(2)
    assert_allclose(
        depth.best_excess(law, 2, noise_ratio=below), depth.free_excess(law, 2, noise_ratio=below), rtol=1e-13
    )
    gap = depth.best_excess(law, 2, noise_ratio=above) - depth.free_excess(law, 2, noise_ratio=above)
    assert gap > 1e-5
    assert_allclose(np.ptp(depth.best_layers(law, 2, noise_ratio=above)), 0, atol=1e-6)


def test_roots_of_the_free_polynomial_are_those_of_least_squares() -> None:
    law, noise = depth.white_limit(4), 0.3
    rule = law.rule(12)
    x, s = rule.nodes, noise / 4
    powers = x[:, None] ** np.arange(5)
    left = np.sqrt(rule.weights * (x**2 + s * x))[:, None] * powers
    right = np.sqrt(rule.weights) * x / np.sqrt(x**2 + s * x) * np.sqrt(1.0)
    answer = np.linalg.lstsq(left, right, rcond=None)[0]
    roots = np.sort_complex(np.roots(np.r_[-answer[::-1], 1.0]))
    assert_allclose(depth.free_roots(law, 5, noise_ratio=noise), roots, rtol=1e-8)


def test_a_sample_has_a_theory_of_its_own() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((7, 9, 4))
    s = x.transpose(0, 2, 1) @ x / 9
    values = np.linalg.eigvalsh(s).ravel()
    law, layers = depth.spectrum(values, alpha=9 / 4), np.array([0.3, 0.9])
    kept = [(np.eye(4) - 0.3 * one) @ (np.eye(4) - 0.9 * one) for one in s]
    assert_allclose(depth.excess(law, layers), np.mean([np.sum(one**2) for one in kept]) / 4, rtol=1e-13)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: depth.wishart(0, 3), "dimension must be a whole number >= 1; got 0"),
        (lambda: depth.white_limit(-1.0), "alpha must be"),
        (lambda: depth.spectrum([1.0, 2.0], [1.0]), "values and weights must be two lists of one length"),
        (lambda: depth.spectrum([0.0]), "values must hold a positive one"),
        (lambda: depth.spectrum([1.0], [0.0]), "weights must hold a positive one"),
        (lambda: depth.power_law(0.0, 1.0), "exponent must be"),
        (lambda: depth.excess(depth.white_limit(2), []), "layers must hold at least one layer"),
        (lambda: depth.excess(depth.white_limit(2), [0.5], noise_ratio=-1), "noise_ratio must be"),
        (lambda: depth.excess(depth.power_law(2, 1), [0.5], noise_ratio=0.1), "noise is averaged out"),
        (lambda: depth.excess(2.0, [0.5]), "law must be a SpectralLaw"),
        (lambda: depth.best_layers(depth.white_limit(2), 0), "depth must be a whole number >= 1; got 0"),
        (
            lambda: depth.best_layers(depth.spectrum([1.0, 2.0]), 2),
            "exactly at its floor without noise, 0: one layer",
        ),
        (lambda: depth.split_rate(depth.white_limit(2), 1, noise_ratio=0.1), "depth must be at least 2 with noise"),
        (lambda: depth.critical_noise_ratio(depth.power_law(2, 1)), "law must have a finite alpha"),
        (lambda: depth.stack_problem(Regression((1.0, 0.0), 3)), "eigenvalues must be positive here"),
        (lambda: depth.stack_problem(Regression((1.0,), (3, 4))), "context_length must be one number here"),
        (lambda: recurrence_of([1, 1, 2]), "moments must be an even number"),
        (lambda: recurrence_of([1, 1, 1, 1]), "moments must be of more than 1 points"),
        (
            lambda: depth.stack_loss(Regression((2.0, 1.0), 3), [0.5], trained=Regression((1.0, 1.0), 3)),
            "eigenvalues must be a multiple of those in training",
        ),
    ],
)
def test_bad_input_is_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
