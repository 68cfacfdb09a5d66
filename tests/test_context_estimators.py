"""Errors of estimators after m examples at finite dimension: known integrals, drawn contexts, limits, refusals."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import erfcx

from iclab.problem import Regression
from iclab.simulation.keys import key_of
from iclab.simulation.pretraining import baselines
from iclab.simulation.sequences import RegressionContexts, TwoLayer
from iclab.theory import estimators, population
from iclab.theory.estimators.eigenvalue_law import singular_values
from iclab.theory.estimators.one_context import (
    finite_ridge_error,
    least_squares_error,
    one_step_error,
    two_layer_ridge_error,
)


def test_ridge_after_one_example_is_a_known_integral() -> None:
    # D = 4: ρ + (3 + E ρ/(ρ + s/4))/4 over s ~ χ²₄, by numerical integration
    assert_allclose(finite_ridge_error(4, 1, 0.1), 0.8850665125306776, rtol=1e-12)


@pytest.mark.parametrize("noise", [0.5, 0.01, 1e-6, 1e-12])
def test_ridge_in_one_dimension_is_an_error_function(noise: float) -> None:
    # ρ + E ρ/(ρ + x²), x ~ N(0, 1)
    expected = noise + np.sqrt(np.pi * noise / 2) * erfcx(np.sqrt(noise / 2))
    assert_allclose(finite_ridge_error(1, 1, noise), expected, rtol=1e-12)


@pytest.mark.parametrize(("size", "noise"), [(2, 0.1), (3, 0.01), (7, 1e-3)])
def test_ridge_in_two_dimensions_is_an_integral_over_two_eigenvalues(size: int, noise: float) -> None:
    # XᵀX of size × 2 normal numbers: density ∝ (x y)^((size − 3)/2) e^(−(x + y)/2) |x − y|, x = s², y = t², t < s
    point, weight = np.polynomial.legendre.leggauss(600)
    s = 8 * (point + 1)
    t = 0.5 * s[:, None] * (point + 1) ** 3 / 4  # dense near zero
    slope = 0.5 * s[:, None] * 3 * (point + 1) ** 2 / 4
    log = (size - 2) * np.log(s[:, None] * t) - 0.5 * (s[:, None] ** 2 + t**2)
    density = np.exp(log) * (s[:, None] ** 2 - t**2) * slope * np.outer(weight, weight)
    ridge = 2 * noise
    lost = ridge / (ridge + s[:, None] ** 2) + ridge / (ridge + t**2)
    expected = noise + np.sum(density * lost) / np.sum(density) / 2
    for shape in ((2, size), (size, 2)):
        unseen = max(0, shape[0] - 2)
        found = finite_ridge_error(shape[0], shape[1], noise * 2 / shape[0])  # of the same ridge Dρ
        assert_allclose((found - noise * 2 / shape[0]) * shape[0] - unseen, 2 * (expected - noise), rtol=1e-9)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 5), (7, 7), (20, 41), (100, 300), (3, 4000), (400, 400)])
def test_eigenvalues_have_their_known_moments(rows: int, columns: int) -> None:
    law, few = singular_values(rows, columns), min(rows, columns)
    moments = [law.weights @ law.nodes**power for power in (0, 2, 4)]
    assert_allclose(moments, [few, rows * columns, rows * columns * (rows + columns + 1)], rtol=1e-9)
    if abs(rows - columns) > 1:
        assert_allclose(law.weights @ law.nodes**-2.0, few / (abs(rows - columns) - 1), rtol=1e-9)


def test_ridge_without_noise_or_examples_is_what_is_not_seen() -> None:
    assert finite_ridge_error(4, 1, 0.0) == 0.75
    assert finite_ridge_error(4, 0, 0.3) == 1.3
    assert finite_ridge_error(4, 9, 0.0) == 0.0


def test_ridge_tends_to_its_limit_in_many_dimensions() -> None:
    sizes = np.array([16, 32, 64, 128])
    gaps = [finite_ridge_error(d, 2 * d, 0.1) / estimators.ridge_error(2.0, 0.1) - 1 for d in sizes.tolist()]
    assert_allclose(np.array(gaps) * sizes, gaps[-1] * 128, rtol=0.02)  # first order in 1/D


def test_least_squares_has_the_means_of_inverse_chi_squares() -> None:
    assert_allclose(least_squares_error(1, 6, 0.2), 0.2 + 0.2 / 4)  # E 1/χ²₆ = 1/4
    assert least_squares_error(3, 4, 0.1) == least_squares_error(3, 2, 0.1) == np.inf
    assert (least_squares_error(3, 3, 0.0), least_squares_error(3, 1, 0.0)) == (0.0, 1 - 1 / 3)


def test_fits_of_fewer_examples_than_entries_miss_as_drawn_ones_do() -> None:
    law = RegressionContexts(8, 3, 0.2)
    inputs, labels = drawn(law, 20_000)
    found = (baselines.least_squares(inputs, labels, examples_before=(3,))[:, 0] - labels[:, -1]) ** 2
    assert abs(found.mean() - least_squares_error(8, 3, 0.2)) < 4 * found.std() / np.sqrt(20_000)


def test_what_is_not_linear_is_fitted_like_noise() -> None:
    assert [two_layer_ridge_error(3, examples, 0.0) for examples in (2, 3, 4)] == [np.inf] * 3
    assert np.isfinite(two_layer_ridge_error(3, 3, 0.1))
    # D = 1: exact on the side of zero where the example is, E (a − b)² q² = 2 for slopes a and b on the other
    assert_allclose(two_layer_ridge_error(1, 1, 0.0), 1.0, rtol=1e-14)
    # D = 4, m = 2: ½ + ½ · ½ + (2/(8 · 4)) ((8 − 2)/(2 − 1) + 2)
    assert_allclose(two_layer_ridge_error(4, 2, 0.0), 1.25, rtol=1e-14)


@pytest.mark.parametrize(("dimension", "length"), [(4, 2), (3, 5), (1, 4), (6, 1), (2, 1)])
def test_two_layer_functions_meet_the_limit_without_noise(dimension: int, length: int) -> None:
    end = two_layer_ridge_error(dimension, length, 0.0)
    assert_allclose(two_layer_ridge_error(dimension, length, 1e-14), end, rtol=1e-6)  # of order √ρ


@pytest.mark.parametrize(
    ("dimension", "length", "noise"), [(5, 10, 0.1), (5, 3, 0.1), (4, 4, 0.3), (1, 3, 0.2), (4, 1, 0.0)]
)
def test_two_layer_functions_miss_as_drawn_inputs_do_with_the_whole_kernel(
    dimension: int, length: int, noise: float
) -> None:
    # of the answer aᵀy: k(q, q) + ρ − 2 aᵀk(X, q) + aᵀ(k(X, X) + ρ)a
    x = np.random.default_rng(7).standard_normal((60_000, length + 1, dimension)) / np.sqrt(dimension)
    norm = np.linalg.norm(x, axis=2)
    size = norm[:, :, None] * norm[:, None]
    cosine = np.clip(x @ np.swapaxes(x, 1, 2) / size, -1, 1)
    angle = np.arccos(cosine)
    k = size * (np.sin(angle) + (np.pi - angle) * cosine) / np.pi
    seen, query = x[:, :-1], x[:, -1]
    inner = seen @ np.swapaxes(seen, 1, 2) + (noise or 1e-14) * np.eye(length)
    a = np.linalg.solve(inner, seen @ query[..., None])[..., 0]
    labels = k[:, :-1, :-1] + noise * np.eye(length)
    errors = k[:, -1, -1] + noise - 2 * np.sum(a * k[:, :-1, -1], axis=1) + np.einsum("pi,pij,pj->p", a, labels, a)
    known = two_layer_ridge_error(dimension, length, noise)
    assert abs(errors.mean() - known) < 4 * errors.std() / np.sqrt(len(errors))


@pytest.mark.parametrize(("dimension", "length", "noise"), [(3, 5, 0.0), (4, 8, 0.1), (6, 2, 1.5)])
def test_one_step_reaches_what_linear_attention_does(dimension: int, length: int, noise: float) -> None:
    problem = Regression((1 / dimension,) * dimension, length, noise)
    assert_allclose(
        one_step_error(dimension, length, noise), population.best_loss(population.moments(problem)), rtol=1e-12
    )


def test_ridge_on_two_layer_functions_misses_as_drawn_ones_do() -> None:
    law = RegressionContexts(3, 5, 0.1, functions=TwoLayer(hidden=10))
    inputs, labels = drawn(law, 40_000)
    found = (baselines.ridge(inputs, labels, noise=0.1, examples_before=(5,))[:, 0] - labels[:, -1]) ** 2
    assert abs(found.mean() - two_layer_ridge_error(3, 5, 0.1)) < 4 * found.std() / np.sqrt(40_000)
    assert two_layer_ridge_error(3, 0, 0.1) == 1.1


@pytest.mark.parametrize("error", [finite_ridge_error, two_layer_ridge_error, least_squares_error, one_step_error])
def test_impossible_sizes_are_refused_by_name(error: object) -> None:
    assert callable(error)
    with pytest.raises(ValueError, match="dimension must be a whole number >= 1; got 0"):
        error(0, 3, 0.1)
    with pytest.raises(ValueError, match="context_length must be a whole number >= 0; got -1"):
        error(3, -1, 0.1)
    with pytest.raises(ValueError, match=r"noise must be finite and >= 0; got -0\.1"):
        error(3, 3, -0.1)


def drawn(law: RegressionContexts, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels of contexts of new tasks."""
    batch = jax.jit(lambda key: law.test(law.fixed(key), key, count))(key_of(5))
    inputs, labels = law.examples(batch)
    return np.asarray(inputs, dtype=float), np.asarray(labels, dtype=float)
