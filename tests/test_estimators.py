"""Bayes estimators: reference values, drawn spectra and contexts, limits of the random-energy curve."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.theory.estimators import (
    discrete_weights,
    dmmse_errors,
    effective_log_tasks,
    nearest_task_errors,
    pool_dmmse_errors,
    ridge_error,
    spectral_integrals,
    task_threshold,
)
from iclab.theory.finite_size import ContextLaw, Pool, SphereTasks

INF = np.inf


def test_known_values() -> None:
    assert_allclose(ridge_error(3, 0.05), 0.07410676291786433, rtol=1e-12)
    assert_allclose(task_threshold(3, 0.05), 1.9649104961207644, rtol=1e-12)
    found = nearest_task_errors(1, 0.02, 0.1266817076590347)
    assert_allclose(found.icl, 1.2609872168763934, rtol=1e-12)
    assert found.idg == dmmse_errors(1, 0.02, 0.1266817076590347).idg == 0.02


@pytest.mark.parametrize(("alpha", "noise"), [(3, 0.05), (0.5, 0.2), (1, 0.05)])
def test_ridge_error_and_threshold_are_those_of_drawn_inputs(alpha: float, noise: float) -> None:
    d = 800
    inputs = np.random.default_rng(0).standard_normal((round(alpha * d), d)) / np.sqrt(d)
    gram = np.linalg.eigvalsh(inputs.T @ inputs)
    assert_allclose(ridge_error(alpha, noise), noise + np.mean(noise / (noise + gram)), rtol=4e-3)
    # mutual information of a Gaussian channel: ½ log det(I + XᵀX/ρ)
    assert_allclose(task_threshold(alpha, noise), 0.5 * np.mean(np.log1p(gram / noise)), rtol=4e-3)  # one draw


@pytest.mark.parametrize("alpha", [0.4, 1.0, 3.0])
def test_integrals_over_the_spectrum_are_the_threshold_and_the_error_of_ridge_regression(alpha: float) -> None:
    found = spectral_integrals(alpha, 0.2)
    assert_allclose(found, (task_threshold(alpha, 0.2), ridge_error(alpha, 0.2)), rtol=1e-8)


@pytest.mark.parametrize("noise", [0.0, -0.1])
def test_integrals_over_the_spectrum_ask_for_noise(noise: float) -> None:
    with pytest.raises(ValueError, match="noise must be"):
        spectral_integrals(1.0, noise)


@pytest.mark.parametrize("r", [0.2, 1.0])
def test_the_random_energy_curve_is_that_of_a_drawn_posterior_at_larger_noise(r: float) -> None:
    """The posterior that assumes noise r has the divergence s: the nearest of exp(sD) tasks is a draw from it."""
    d, alpha, noise, draws = 500, 1.5, 0.1, 40
    rng = np.random.default_rng(1)
    inputs = rng.standard_normal((round(alpha * d), d)) / np.sqrt(d)
    tasks = rng.standard_normal((d, draws))
    labels = inputs @ tasks + np.sqrt(noise) * rng.standard_normal((len(inputs), draws))
    covariance = r * np.linalg.inv(inputs.T @ inputs + r * np.eye(d))
    means = covariance @ inputs.T @ labels / r
    _, log_determinant = np.linalg.slogdet(covariance)
    divergence = 0.5 * ((np.trace(covariance) - d - log_determinant) / d + np.mean(means**2))
    missed, spread = np.mean((tasks - means) ** 2), np.trace(covariance) / d
    assert divergence < task_threshold(alpha, noise)
    assert_allclose(
        nearest_task_errors(alpha, noise, divergence).icl, noise + missed + spread, rtol=0.01
    )  # forty tasks in D = 500
    # several such draws share the weight, as in a random-energy model at the temperature ratio ρ/r: Σ p² = 1 − ρ/r
    split = noise + missed + (1 - noise / r) * spread
    assert_allclose(dmmse_errors(alpha, noise, divergence).icl, split, rtol=0.01)


def test_with_more_tasks_than_the_context_tells_the_pool_is_as_good_as_all() -> None:
    threshold = task_threshold(2.0, 0.3)
    above = dmmse_errors(2.0, 0.3, threshold * np.array([1.0, 1.5, INF]))
    assert_allclose([above.icl, above.idg], ridge_error(2.0, 0.3), rtol=1e-15)
    below = dmmse_errors(2.0, 0.3, threshold * (1 - 1e-9))
    assert_allclose(below.icl, above.icl[0], rtol=1e-6)  # reached continuously
    assert below.idg == 0.3
    one = nearest_task_errors(2.0, 0.3, threshold)
    assert_allclose(one.icl, 0.3 + 2 * (above.icl[0] - 0.3), rtol=1e-12)  # a posterior draw errs twice as much
    assert one.icl == one.idg


def test_few_tasks_commit_to_a_wrong_one() -> None:
    assert dmmse_errors(2.0, 0.3, 0.0).icl == 2.3
    assert_allclose(dmmse_errors(2.0, 0.3, 1e-8).icl, 2.3, rtol=1e-3)  # like √s
    curve = dmmse_errors(2.0, 0.3, np.linspace(0, 1, 50)).icl
    assert np.all(np.diff(curve) <= 0)


def test_silent_labels_and_endless_contexts_are_limits() -> None:
    assert_allclose(ridge_error([0.3, 1.0, 2.0], 0.0), [0.7, 0, 0])
    assert_allclose(ridge_error([0.3, 2.0], 1e-12), [0.7, 0], atol=1e-11)
    assert ridge_error(INF, 0.2) == 0.2
    assert list(task_threshold([1, INF], [0, 0.2])) == [INF, INF]
    assert_allclose(task_threshold(2.0, 1e9), 1e-9, rtol=1e-8)  # α/(2ρ): what a faint signal tells
    silent, hushed = (dmmse_errors(2.0, noise, np.array([0.1, 1.0])) for noise in (0.0, 1e-12))
    assert_allclose(silent.icl, hushed.icl, rtol=1e-6)
    assert np.all(silent.idg == 0)
    assert dmmse_errors(INF, 0.1, 1.0).icl < dmmse_errors(1e3, 0.1, 1.0).icl
    assert dmmse_errors(2.0, 0.0, 500.0).icl == pytest.approx(0, abs=1e-100)


@pytest.mark.parametrize(("tasks", "alpha", "noise", "d"), [(2000, 1, 0.02, 60), (3000, 1, 0.3, 32)])
def test_the_shifted_and_the_plain_curve_enclose_a_finite_pool(tasks: int, alpha: int, noise: float, d: int) -> None:
    law = ContextLaw(Pool(np.random.default_rng(0).standard_normal((tasks, d))), alpha * d, noise)
    found = pool_dmmse_errors(law, contexts=200)
    plain, shifted = (dmmse_errors(alpha, noise, s).icl for s in (np.log(tasks) / d, effective_log_tasks(tasks, d)))
    assert plain < found.icl < shifted
    assert nearest_task_errors(alpha, noise, np.log(tasks) / d).icl > plain


def test_one_task_is_known_without_a_context() -> None:
    law = ContextLaw(Pool(np.array([[1.0, 0.0, 2.0]])), 3, 0.4)
    assert pool_dmmse_errors(law).idg == 0.4
    assert effective_log_tasks(1, 10) == 0


def test_weights_are_posterior_probabilities() -> None:
    rng = np.random.default_rng(0)
    inputs, tasks = rng.standard_normal((2, 5, 3)), rng.standard_normal((4, 3))
    labels = np.einsum("bnd,d->bn", inputs, tasks[2]) + 0.1 * rng.standard_normal((2, 5))
    likelihood = np.exp(-np.sum((labels[:, :, None] - inputs @ tasks.T) ** 2, axis=1) / (2 * 0.5))
    weights = discrete_weights(inputs, labels, tasks, 0.5)
    assert_allclose(weights, likelihood / likelihood.sum(axis=1, keepdims=True), rtol=1e-12)
    for noise in (0.0, 1e-300, 1e-9):  # no overflow and no 0/0 on the way to the nearest task
        assert_allclose(discrete_weights(inputs, labels, tasks, noise), [[0, 0, 1, 0]] * 2)


def test_without_noise_tasks_that_fit_alike_share_the_weight() -> None:
    weights = discrete_weights(np.ones((1, 2)), np.array([1.0]), np.array([[1.0, 0], [0, 1], [2, 2]]), 0.0)
    assert_allclose(weights, [0.5, 0.5, 0])


def test_the_error_of_a_small_pool_is_that_of_drawn_queries() -> None:
    """Rao-Blackwell sums against plain squared errors of drawn labels, with another stream."""
    d, n, noise = 3, 4, 0.5
    pool = np.random.default_rng(3).standard_normal((5, d))
    found = pool_dmmse_errors(ContextLaw(Pool(pool), n, noise), new=SphereTasks(d), contexts=3000)
    rng, count = np.random.default_rng(4), 30_000
    for name, tasks in (("icl", SphereTasks(d).draw(count, rng)), ("idg", pool[rng.integers(5, size=count)])):
        inputs = rng.standard_normal((count, n + 1, d)) / np.sqrt(d)
        labels = np.einsum("pnd,pd->pn", inputs, tasks) + np.sqrt(noise) * rng.standard_normal((count, n + 1))
        weights = discrete_weights(inputs[:, :-1], labels[:, :-1], pool, noise)
        squares = (labels[:, -1] - np.einsum("pd,pk,kd->p", inputs[:, -1], weights, pool)) ** 2
        standard_error = squares.std() / np.sqrt(count)
        assert abs(squares.mean() - getattr(found, name)) < 8 * standard_error  # as much again from 3000 contexts


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ridge_error(0, 0.1), "alpha must be > 0; got 0.0"),
        (lambda: ridge_error(1, -0.1), "noise must be finite and >= 0; got -0.1"),
        (lambda: task_threshold(np.nan, 0.1), "alpha must be > 0; got nan"),
        (lambda: dmmse_errors(1, 0.1, -1), "log_tasks_per_dimension must be >= 0; got -1.0"),
        (lambda: effective_log_tasks(0.5, 10), "tasks must be >= 1; got 0.5"),
        (lambda: effective_log_tasks(5, 0), "dimension must be finite and > 0; got 0.0"),
        (lambda: discrete_weights(np.ones((1, 2)), np.ones(1), np.ones((3, 2)), -1), "noise must be finite and >= 0"),
        (lambda: pool_dmmse_errors(ContextLaw(SphereTasks(3), 4)), "law.tasks must be a Pool; got SphereTasks"),
        (lambda: pool_dmmse_errors(ContextLaw(Pool(np.eye(3)), 4), contexts=0), "contexts must be a whole number"),
    ],
)
def test_impossible_questions_are_refused_by_name(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
