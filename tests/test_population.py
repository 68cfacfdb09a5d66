"""The exact loss in Γ, its gradient and its minima."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from iclab import Regression
from iclab.theory import dynamics
from iclab.theory.population import best_gamma, best_loss, gradient, loss, modes, moments, moments_from

NON_WHITE = Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31)


def random_covariances(seed: int, size: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((2, size, size))
    return tuple(factors @ factors.transpose(0, 2, 1) / size)


def test_least_loss_of_white_inputs_is_five_thirty_sixths() -> None:
    # a = 1 + (1 + 4)/31 = 36/31, least loss 1 - 1/a = 5/36
    white = Regression(eigenvalues=(0.25,) * 4, context_length=31)
    assert_allclose(best_loss(moments(white)), 5 / 36, rtol=1e-12)


def test_best_gamma_is_the_inverse_of_the_shrunk_covariance() -> None:
    # zhang2025training eq. 11: (Λ + (Λ + tr Λ)/N)^-1
    expected = 1 / (np.array(NON_WHITE.eigenvalues) * 32 / 31 + 1 / 31)
    assert_allclose(best_gamma(moments(NON_WHITE)), np.diag(expected), rtol=1e-12, atol=1e-13)
    assert_allclose(expected, [2.246376812, 2.924528302, 4.189189189, 7.380952381], atol=1e-8)


def test_population_loss_of_a_known_matrix() -> None:
    known = moments_from(np.diag([0.4, 0.3, 0.2, 0.1]), 7, task_covariance=np.eye(4) + 0.3, noise=0.2)
    gamma = np.cos(0.5 + 1.7 * np.arange(16)).reshape(4, 4)
    assert_allclose(loss(known, gamma), 1.770320106, atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_gradient_is_the_slope_of_the_loss(seed: int) -> None:
    inputs, tasks = random_covariances(seed)
    law = moments_from(inputs, (3, 9), task_covariance=tasks, noise=0.3)
    gamma, direction = np.random.default_rng(seed).standard_normal((2, 3, 3))
    step = 1e-4
    slope = (loss(law, gamma + step * direction) - loss(law, gamma - step * direction)) / (2 * step)
    assert_allclose(np.sum(gradient(law, gamma) * direction), slope, rtol=1e-8)  # exact for a quadratic


@pytest.mark.parametrize("seed", range(5))
def test_best_gamma_has_no_gradient_and_its_loss_is_the_best_loss(seed: int) -> None:
    inputs, tasks = random_covariances(seed)
    law = moments_from(inputs, 6, task_covariance=tasks, noise=0.1)
    gamma = best_gamma(law)
    assert_allclose(gradient(law, gamma), 0, atol=1e-10)
    assert_allclose(loss(law, gamma), best_loss(law), rtol=1e-10)


@pytest.mark.parametrize("rank", [1, 2])
def test_no_matrix_of_limited_rank_beats_the_best_one(rank: int) -> None:
    inputs, tasks = random_covariances(11)
    law = moments_from(inputs, 6, task_covariance=tasks, noise=0.1)
    best = best_gamma(law, rank=rank)
    assert np.linalg.matrix_rank(best) == rank
    assert_allclose(loss(law, best), best_loss(law, rank=rank), rtol=1e-12)
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((2, 2000, 3, rank))
    rivals = left @ right.transpose(0, 2, 1)
    scale = np.einsum("nij,ij->n", rivals, law.cross) / np.einsum(
        "nij,nij->n", rivals, law.second @ rivals @ law.input_covariance
    )
    assert np.min(loss(law, scale[:, None, None] * rivals)) >= best_loss(law, rank=rank) - 1e-12


def test_the_loss_is_that_of_drawn_contexts() -> None:
    inputs, tasks = random_covariances(3)
    noise, length, draws = 0.3, 5, 400_000
    law = moments_from(inputs, length, task_covariance=tasks, noise=noise)
    rng = np.random.default_rng(7)
    gamma = rng.standard_normal((3, 3))
    x = rng.standard_normal((draws, length + 1, 3)) @ np.linalg.cholesky(inputs).T
    w = rng.standard_normal((draws, 3)) @ np.linalg.cholesky(tasks).T
    y = np.einsum("pnd,pd->pn", x, w) + np.sqrt(noise) * rng.standard_normal((draws, length + 1))
    summary = np.einsum("pn,pnd->pd", y[:, :-1], x[:, :-1]) / length
    squares = (y[:, -1] - np.einsum("pi,ij,pj->p", summary, gamma, x[:, -1])) ** 2
    error = squares.std() / np.sqrt(draws)
    assert abs(squares.mean() - loss(law, gamma)) < 4 * error


@given(st.floats(-12, 12), st.floats(-12, 12))
def test_units_of_inputs_and_labels_scale_the_contributions(log_input: float, log_label: float) -> None:
    # x -> c x and y -> e y: contributions are squared labels, so they scale with e² and not with c
    inputs, tasks = random_covariances(5)
    c, e = 10.0**log_input, 10.0**log_label
    reference = modes(moments_from(inputs, 4, task_covariance=tasks, noise=0.2))
    scaled = modes(moments_from(c**2 * inputs, 4, task_covariance=(e / c) ** 2 * tasks, noise=0.2 * e**2))
    assert_allclose(scaled.contribution, e**2 * reference.contribution, rtol=1e-9)


def test_a_direction_without_inputs_is_worth_nothing_and_comes_last() -> None:
    singular = Regression(eigenvalues=(0.5, 0.5, 0.0), context_length=8)
    found = modes(moments(singular))
    assert found.contribution[2] == 0
    assert_allclose(best_gamma(moments(singular))[2], 0, atol=0)
    smaller = moments(Regression(eigenvalues=(0.5, 0.5), context_length=8))
    assert_allclose(best_loss(moments(singular)), best_loss(smaller), rtol=1e-14)


def test_without_signal_or_noise_nothing_is_worth_learning() -> None:
    silent = moments(Regression(eigenvalues=(0.5, 0.1), task_eigenvalues=(0.0, 0.0)))
    assert_allclose(modes(silent).contribution, 0, atol=0)
    assert best_loss(silent) == 0


def test_rotating_inputs_and_tasks_together_changes_no_worth() -> None:
    inputs, tasks = random_covariances(2)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    turned = moments_from(turn @ inputs @ turn.T, 9, task_covariance=turn @ tasks @ turn.T, noise=0.4)
    assert_allclose(
        modes(turned).contribution,
        modes(moments_from(inputs, 9, task_covariance=tasks, noise=0.4)).contribution,
        rtol=1e-10,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input_covariance": np.ones(3)}, "input_covariance must be a square"),
        ({"input_covariance": np.zeros((2, 2))}, "must not be zero"),
        ({"input_covariance": [[1.0, 0.5], [0.0, 1.0]]}, "must be symmetric"),
        ({"input_covariance": [[1.0, 2.0], [2.0, 1.0]]}, "positive semidefinite; got the eigenvalue -1"),
        ({"task_covariance": np.eye(3)}, "task_covariance must have the shape"),
        ({"context_lengths": 0}, "context_lengths must be whole numbers >= 1; got 0"),
        ({"context_lengths": (4, 0)}, "context_lengths must be whole numbers >= 1; got 0"),
        ({"context_lengths": 2.5}, "context_lengths must be whole numbers"),
        ({"noise": -1.0}, "noise must be finite and >= 0"),
        ({"normalization": "sum"}, "normalization must be one of length, tokens, none"),
    ],
)
def test_impossible_laws_are_refused_by_name(arguments: dict, message: str) -> None:
    defaults = {"input_covariance": np.eye(2), "context_lengths": 4}
    with pytest.raises(ValueError, match=message):
        moments_from(**(defaults | arguments))


@pytest.mark.parametrize("rank", [0, 5])
def test_a_rank_outside_the_dimension_is_refused(rank: int) -> None:
    with pytest.raises(ValueError, match=r"rank must be (between 1 and D = 4|a whole number >= 1)"):
        best_gamma(moments(NON_WHITE), rank=rank)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("noise", [0.5, 0.0])
def test_tasks_without_inputs_leave_the_noise_alone(turned: bool, noise: float) -> None:
    # w ⟂ x: labels are noise, whatever the basis, and no weights do better than 0
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((4, 4)))[0] if turned else np.eye(4)
    inputs, tasks = (turn * [1.0, 0.5, 0.0, 0.0]) @ turn.T, (turn * [0.0, 0.0, 2.0, 3.0]) @ turn.T
    law = moments_from(inputs, 8, task_covariance=tasks, noise=noise)
    assert_allclose(dynamics.plateaus(law), [noise] * 5, rtol=1e-15)
    assert not np.any(best_gamma(law))
    assert not np.any(dynamics.growth(law))
    assert list(dynamics.reachable(law, 4)) == [()]
    rng = np.random.default_rng(4)
    x = rng.standard_normal((4000, 9, 4)) * [1.0, 0.5**0.5, 0.0, 0.0]
    y = noise**0.5 * rng.standard_normal((4000, 9))  # w has no part along x
    gamma = 0.7 * np.eye(4)
    answers = np.einsum("pn,pnd,pd->p", y[:, :-1], x[:, :-1], x[:, -1] @ gamma) / 8
    squares = (answers - y[:, -1]) ** 2
    expected = loss(law, turn @ gamma @ turn.T)
    assert abs(squares.mean() - expected) <= 4 * squares.std() / 4000**0.5


def test_a_problem_whose_tasks_have_no_inputs_has_the_loss_of_its_noise() -> None:
    problem = Regression(eigenvalues=(1.0, 0.0), task_eigenvalues=(0.0, 1.0), noise=0.5)
    assert_allclose(dynamics.plateaus(moments(problem)), 0.5, rtol=1e-15)
    with pytest.raises(ValueError, match="an underflow"):
        moments_from(np.diag([1.0, 1e-200]), 5, task_covariance=np.diag([0.0, 1.0]))


def exact_least_loss(problem: Regression, normalization: str) -> float:
    """Null loss less the trace of B Λ⁻¹ Bᵀ C⁻¹, of diagonal moments, in 80 digits."""
    with mp.workdps(80):
        n = [mp.mpf(length) for length in problem.context_lengths]
        gain = {"length": [mp.mpf(1)] * len(n), "tokens": [k / (k + 1) for k in n], "none": n}[normalization]
        inputs, tasks = ([mp.mpf(one) for one in part] for part in (problem.eigenvalues, problem.task_spectrum))
        null = mp.fsum(a * b for a, b in zip(inputs, tasks, strict=True)) + mp.mpf(problem.noise)
        once, twice, own = (
            mp.fsum(term) / len(n)
            for term in (gain, [g**2 for g in gain], [g**2 / k for g, k in zip(gain, n, strict=True)])
        )
        found = null
        for x, w in zip(inputs, tasks, strict=True):
            cross = once * x * w * x
            found -= cross**2 / x / (twice * x * w * x + own * (x * w * x + null * x))
        return float(found)


@pytest.mark.parametrize("normalization", ["length", "tokens", "none"])
@pytest.mark.parametrize("lengths", [1, 31, 10**6, 10**12, 10**15, (10**12, 2 * 10**12), (5, 10**12)])
@pytest.mark.parametrize(("tasks", "noise"), [(None, 0.0), ((2.0, 0.5, 1e-6, 0.0), 0.0), (None, 1e-9)])
def test_the_least_loss_is_exact_in_contexts_of_any_length(normalization, lengths, tasks, noise) -> None:
    problem = Regression(
        eigenvalues=(0.4, 0.3, 0.2, 1e-5), context_length=lengths, task_eigenvalues=tasks, noise=noise
    )
    law = moments_from(
        np.diag(problem.eigenvalues), problem.context_lengths,
        task_covariance=np.diag(problem.task_spectrum), noise=noise, normalization=normalization,
    )  # fmt: skip
    exact = exact_least_loss(problem, normalization)
    assert abs(best_loss(law) / exact - 1) < 1e-12
    assert abs(dynamics.plateaus(law)[-1] / exact - 1) < 1e-12


def test_the_least_loss_of_rotated_covariances_is_exact_in_long_contexts() -> None:
    # At N = 10^12 it is ((D + 1)/N) tr ΩΛ (1 + O(1/N)) for tasks of full rank: x_d = (a_d + T)/N
    inputs, tasks = random_covariances(4)
    law = moments_from(inputs, 10**12, task_covariance=tasks)
    assert_allclose(best_loss(law), 4 * np.sum(inputs * tasks) / 1e12, rtol=1e-9)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    turned = moments_from(turn @ inputs @ turn.T, 10**12, task_covariance=turn @ tasks @ turn.T)
    assert_allclose(best_loss(turned), best_loss(law), rtol=1e-12)


def test_ranks_and_plateaus_of_long_contexts_agree() -> None:
    law = moments_from(np.diag([0.4, 0.3, 0.2]), 10**12)
    levels = dynamics.plateaus(law)
    assert_allclose(levels[1:], [best_loss(law, rank=rank) for rank in (1, 2, 3)], rtol=1e-12)
    assert levels[0] == law.null_loss


def test_the_aligned_staircase_ends_at_the_least_loss_of_long_contexts() -> None:
    problem = Regression(eigenvalues=(0.4, 0.3), context_length=10**12)
    assert_allclose(dynamics.aligned_loss(problem, (0.5, 0.5), 1e6), best_loss(moments(problem)), rtol=1e-9)
