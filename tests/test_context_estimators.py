"""Errors of estimators after m examples at finite dimension: known integrals, drawn contexts, limits, refusals."""

from typing import Any

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.problem import Regression
from iclab.simulation.keys import key_of
from iclab.simulation.pretraining import baselines
from iclab.simulation.sequences import RegressionContexts, TwoLayer
from iclab.theory import estimators, population
from iclab.theory.estimators import one_context as context_estimators
from iclab.theory.estimators.one_context import (
    finite_ridge_error,
    least_squares_error,
    one_step_error,
    two_layer_ridge_error,
)


def test_ridge_after_one_example_is_a_known_integral() -> None:
    # D = 4: ρ + (3 + E ρ/(ρ + s/4))/4 over s ~ χ²₄, by numerical integration
    assert_allclose(finite_ridge_error(4, 1, 0.1), 0.8850665125306776, rtol=2e-4)  # of 4·10⁴ nodes, means taken out


@pytest.mark.parametrize("error", [finite_ridge_error, two_layer_ridge_error])
def test_contexts_treated_in_turn_have_the_errors_of_all_at_once(error: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for chunk in (10**7, 10**3):
        monkeypatch.setattr(context_estimators, "_CHUNK", chunk)
        found.append(error(5, 7, 0.1, contexts=500))
    assert found[0] == found[1]


def test_ridge_without_noise_or_examples_is_what_is_not_seen() -> None:
    assert finite_ridge_error(4, 1, 0.0) == 0.75
    assert finite_ridge_error(4, 0, 0.3) == 1.3
    assert finite_ridge_error(4, 9, 0.0) == 0.0


def test_ridge_tends_to_its_limit_in_many_dimensions() -> None:
    gaps = [
        finite_ridge_error(d, 2 * d, 0.1, contexts=400) / estimators.ridge_error(2.0, 0.1) - 1 for d in (8, 16, 32)
    ]
    assert_allclose(np.array(gaps) * [8, 16, 32], gaps[0] * 8, rtol=0.2)  # first order in 1/D


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
    assert_allclose(two_layer_ridge_error(1, 1, 0.0), 1.0, atol=0.02)  # of 4·10⁴ nodes


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
    # the exact side is a quadrature of as many nodes, without the noise of functions and labels
    assert abs(found.mean() - two_layer_ridge_error(3, 5, 0.1)) < 4 * found.std() / np.sqrt(40_000) + 0.005
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
