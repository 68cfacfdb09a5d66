"""Baselines of networks: direct solutions in NumPy, theory of errors, limits, known cases."""

from typing import Any

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.simulation.pretraining.baselines import (
    best_rates,
    dmmse,
    gradient_descent,
    least_squares,
    ridge,
    squared_distance,
)
from iclab.theory.estimators import discrete_weights

Array = np.ndarray
D, N = 3, 6


def contexts(count: int, noise: float, tasks: Array | None = None) -> tuple[Array, Array]:
    """Inputs N(0, I/D) and labels of contexts with tasks N(0, I), or with those given."""
    rng = np.random.default_rng(0)
    inputs, error = rng.standard_normal((count, N + 1, D)) / np.sqrt(D), rng.standard_normal((count, N + 1))
    tasks = rng.standard_normal((count, D)) if tasks is None else tasks
    return inputs, np.einsum("pnd,pd->pn", inputs, tasks) + np.sqrt(noise) * error


def test_ridge_is_the_direct_solution_after_every_number_of_examples() -> None:
    inputs, labels = contexts(5, 0.3)
    found = ridge(inputs, labels, noise=0.3)
    assert found.shape == (5, N + 1)
    for place, (x, y) in enumerate(zip(inputs, labels, strict=True)):
        for m in range(N + 1):
            task = np.linalg.solve(x[:m].T @ x[:m] + 0.3 * np.eye(D), x[:m].T @ y[:m])
            assert_allclose(found[place, m], x[m] @ task, rtol=1e-11, atol=1e-14)
    assert_allclose(ridge(inputs, labels, noise=0.3, examples_before=(N, 2)), found[:, [N, 2]], rtol=1e-12)


def test_ridge_errs_as_the_posterior_of_normal_tasks_does() -> None:
    """The answer's error is ρ + x_qᵀ (XᵀX/ρ + I)⁻¹ x_q in the mean, which shows the scale of the ridge."""
    noise, count = 0.2, 20_000
    inputs, labels = contexts(count, noise)
    missed = (ridge(inputs, labels, noise=noise, examples_before=(N,))[:, 0] - labels[:, N]) ** 2
    gram = np.einsum("pni,pnj->pij", inputs[:, :N], inputs[:, :N])
    spread = np.linalg.solve(gram / noise + np.eye(D), inputs[:, N, :, None])[..., 0]
    excess = missed - noise - np.sum(inputs[:, N] * spread, axis=1)
    assert abs(excess.mean()) < 4 * excess.std() / np.sqrt(count)
    for other in (noise / 2, noise * 2):  # which are worse on the same contexts
        worse = (ridge(inputs, labels, noise=other, examples_before=(N,))[:, 0] - labels[:, N]) ** 2 - missed
        assert worse.mean() > 2 * worse.std() / np.sqrt(count)


def test_least_squares_is_exact_without_noise_and_of_least_norm_before() -> None:
    inputs, labels = contexts(20, 0.0)
    found = least_squares(inputs, labels)
    assert_allclose(found[:, D:], labels[:, D:], atol=1e-9)  # condition of D examples
    for m in range(1, D):
        known = [x[m] @ np.linalg.pinv(x[:m]) @ y[:m] for x, y in zip(inputs, labels, strict=True)]
        assert_allclose(found[:, m], known, rtol=1e-9)
    assert_allclose(found[:, 0], 0)
    assert_allclose(ridge(inputs, labels, noise=1e-12), found, atol=1e-5)  # first order in the ridge, over λ_min
    assert_allclose(ridge(inputs, labels, noise=0.0), found)


def test_the_posterior_mean_of_one_task_is_the_task() -> None:
    inputs, labels = contexts(4, 0.5)
    task = np.array([1.0, -2.0, 0.5])
    assert_allclose(dmmse(inputs, labels, tasks=task[None], noise=0.5), inputs @ task, rtol=1e-14)


def test_dmmse_weighs_tasks_as_their_likelihood_says() -> None:
    inputs, labels = contexts(6, 0.5)
    pool = np.random.default_rng(1).standard_normal((5, D))
    found = dmmse(inputs, labels, tasks=pool, noise=0.5)
    assert_allclose(found[:, 0], inputs[:, 0] @ pool.mean(axis=0), rtol=1e-12)  # nothing seen yet
    for m in range(1, N + 1):
        weights = discrete_weights(inputs[:, :m], labels[:, :m], pool, 0.5)
        assert_allclose(found[:, m], np.einsum("pd,pk,kd->p", inputs[:, m], weights, pool), rtol=1e-11)


def test_without_noise_dmmse_is_the_nearest_task() -> None:
    pool = np.random.default_rng(1).standard_normal((5, D))
    own = pool[np.arange(10) % 5]
    inputs, labels = contexts(10, 0.0, own)
    for noise in (0.0, 1e-300, 1e-9):  # no overflow and no 0/0 on the way
        found = dmmse(inputs, labels, tasks=pool, noise=noise)
        assert_allclose(found[:, 1:], labels[:, 1:], atol=1e-12)


def test_many_tasks_are_as_good_as_all() -> None:
    """The distance of dMMSE to ridge falls like the inverse number of tasks."""
    inputs, labels = contexts(60, 0.5)
    target = ridge(inputs, labels, noise=0.5)
    pool = np.random.default_rng(1).standard_normal((32_000, D))
    few, many = (squared_distance(dmmse(inputs, labels, tasks=pool[:k], noise=0.5), target) for k in (500, 32_000))
    assert np.all(many < few / 8)  # 64 in the mean, over few contexts and one pool
    assert np.all(many < 3e-3)


def test_descent_becomes_least_squares_and_its_steps_are_those_by_hand() -> None:
    inputs, labels = contexts(8, 0.3)
    last = (N,)
    one = gradient_descent(inputs, labels, rate=2.0, examples_before=last)[:, 0]
    summary = np.einsum("pnd,pn->pd", inputs[:, :N], labels[:, :N]) / N
    assert_allclose(one, 2.0 * np.sum(summary * inputs[:, N], axis=1), rtol=1e-12)
    gram = np.einsum("pni,pnj->pij", inputs[:, :N], inputs[:, :N]) / N
    two = 2.0 * (2 * summary - 2.0 * np.einsum("pij,pj->pi", gram, summary))
    found = gradient_descent(inputs, labels, rate=2.0, steps=2, examples_before=last)[:, 0]
    assert_allclose(found, np.sum(two * inputs[:, N], axis=1), rtol=1e-12)
    target = least_squares(inputs, labels, examples_before=last)
    gaps = [
        float(squared_distance(gradient_descent(inputs, labels, rate=1.0, steps=k, examples_before=last), target)[0])
        for k in (1, 10, 100, 10_000)
    ]
    assert np.all(np.diff(gaps) < 0)
    assert gaps[-1] < 1e-12  # the least curvature of these contexts is 0.02


def test_a_preconditioner_that_inverts_the_curvature_needs_one_step() -> None:
    inputs, labels = contexts(1, 0.3)
    x = inputs[0, :N]
    matrix = np.linalg.inv(x.T @ x / N)
    found = gradient_descent(inputs, labels, rate=1.0, preconditioner=matrix, examples_before=(N,))
    assert_allclose(found, least_squares(inputs, labels, examples_before=(N,)), rtol=1e-11)
    shear = np.array([[1.0, 0.5, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]])  # rows act on what comes out
    found = gradient_descent(inputs, labels, rate=1.0, preconditioner=shear, examples_before=(N,))
    assert_allclose(found, [[inputs[0, N] @ shear @ (x.T @ labels[0, :N] / N)]], rtol=1e-12)


def test_the_best_rate_is_where_the_error_of_one_step_is_least() -> None:
    noise, count = 0.4, 40_000
    inputs, labels = contexts(count, noise)
    asked = (1, 3, N)
    rates = best_rates(D, N, noise=noise, examples_before=asked)
    assert_allclose(rates, [3 / 6.2, 9 / 8.2, 18 / 11.2])  # mD/(m + 1 + D(1 + ρ)) by hand
    answers = gradient_descent(inputs, labels, rate=rates, examples_before=asked)
    slope = (labels[:, list(asked)] - answers) * answers  # of the mean squared error in the log rate
    assert np.all(np.abs(slope.mean(axis=0)) < 4 * slope.std(axis=0) / np.sqrt(count))
    assert_allclose(best_rates(D, N, noise=noise)[[0, 1]], rates[0])


def test_distances_are_means_over_contexts_at_all_times() -> None:
    baseline = np.array([[1.0, 0.0], [2.0, 0.0]])
    assert_allclose(squared_distance(np.zeros((2, 2)), baseline), [2.5, 0])
    assert_allclose(squared_distance(np.zeros((3, 2, 2)), baseline), [[2.5, 0]] * 3)


def test_contexts_treated_in_turn_answer_as_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, labels = contexts(5, 0.3)
    pool = np.random.default_rng(1).standard_normal((4, D))
    together = dmmse(inputs, labels, tasks=pool, noise=0.1)
    monkeypatch.setattr("iclab.simulation.pretraining.baselines.CHUNK", 2)
    assert_allclose(dmmse(inputs, labels, tasks=pool, noise=0.1), together, rtol=1e-12)
    assert together.dtype == np.float64
    assert not jax.config.jax_enable_x64  # the setting outside is left alone


X, Y = np.ones((2, 4, 3)), np.ones((2, 4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ridge(X, Y[:, :3], noise=0.1), r"inputs and labels must have the shapes \(P, N\+1, D\)"),
        (lambda: ridge(X, Y * np.nan, noise=0.1), "labels must be finite numbers; got NaN"),
        (lambda: ridge(X, Y, noise=-1), "noise must be finite and >= 0; got -1"),
        (
            lambda: least_squares(X, Y, examples_before=(4,)),
            r"examples_before must hold numbers in 0 .. N = 3; got \[4\]",
        ),
        (lambda: least_squares(X, Y, examples_before=()), "examples_before must hold numbers in 0 .. N = 3; got"),
        (lambda: least_squares(X, Y, examples_before=(-1,)), "examples_before must be a whole number >= 0; got -1"),
        (lambda: dmmse(X, Y, tasks=np.ones((2, 4)), noise=0), r"tasks must have the shape \(K, 3\); got \(2, 4\)"),
        (lambda: dmmse(X, Y, tasks=np.ones((0, 3)), noise=0), "tasks must be vectors"),
        (lambda: gradient_descent(X, Y, rate=0), "rate must be finite and > 0; got 0"),
        (lambda: gradient_descent(X, Y, rate=np.ones(3)), "rate must be one number, or one for each of 4 numbers"),
        (lambda: gradient_descent(X, Y, rate=1, steps=0), "steps must be a whole number >= 1; got 0"),
        (
            lambda: gradient_descent(X, Y, rate=1, preconditioner=np.eye(2)),
            r"preconditioner must have the shape \(3, 3\)",
        ),
        (lambda: best_rates(3, 0, noise=0.1), "context_length must be a whole number >= 1; got 0"),
        (lambda: squared_distance(np.ones((2, 3)), np.ones((2, 1))), "predictions must have the shape"),
        (lambda: squared_distance(np.ones((0, 1)), np.ones((0, 1))), "predictions must have the shape"),
    ],
)
def test_impossible_questions_are_refused_by_name(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_descent_that_leaves_the_finite_numbers_stops() -> None:
    inputs, labels = contexts(1, 0.1)
    with pytest.raises(ArithmeticError, match="lower the learning rate"):
        gradient_descent(inputs, labels, rate=1e3, steps=2000)
