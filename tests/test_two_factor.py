"""The two-factor transformer on combinations of drawn contexts: means, gradient, flow and fit."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab import Regression
from iclab.simulation.keys import key_of
from iclab.simulation.linear.two_factor import Combinations, combined, descent_direction, flow, least_weights
from iclab.theory import modes

PROBLEM = Regression(eigenvalues=(1.0, 0.5), context_length=6, noise=0.3)
TASKS = modes.DiagonalTasks((1.0, 0.5), 6, noise=0.3)


def one_by_one() -> tuple[Combinations, np.ndarray, np.ndarray, np.ndarray]:
    """Means over combinations of two tasks, with both signs, three contexts and two queries, and these themselves."""
    rng = np.random.default_rng(0)
    tasks, contexts, queries = rng.normal(size=(2, 2)), rng.normal(size=(3, 2, 2)), rng.normal(size=(2, 2))
    summaries = [(w, w[:, None] * context) for w in (*tasks, *-tasks) for context in contexts]
    second = np.mean([np.multiply.outer(h, h) for _, h in summaries], axis=0)
    signal = np.mean([np.multiply.outer(w, h) for w, h in summaries], axis=0)
    return Combinations(second, signal, queries.T @ queries / 2), tasks, contexts, queries


def test_the_gradient_is_that_of_the_loss_of_every_combination() -> None:
    drawn, tasks, contexts, queries = one_by_one()
    p, q = np.random.default_rng(1).normal(size=(2, 2, 2))

    def loss(p: np.ndarray, q: np.ndarray) -> float:
        errors = [
            p @ (w[:, None] * context) @ q @ x - w * x
            for w, context, x in itertools.product((*tasks, *-tasks), contexts, queries)
        ]
        return float(np.mean(np.sum(np.square(errors), axis=1)))

    found = descent_direction(drawn, p, q)
    for part, other in ((0, 1), (1, 0)):
        for place in np.ndindex(2, 2):
            change = np.zeros((2, 2, 2))
            change[part][place] = 1e-6
            slope = (loss(p + change[0], q + change[1]) - loss(p - change[0], q - change[1])) / 2e-6
            assert_allclose(found[part][place], -slope / 2, rtol=1e-6, atol=1e-8)  # of the difference
        assert found[other].shape == (2, 2)


def test_means_of_many_contexts_are_those_of_the_population() -> None:
    drawn = combined(PROBLEM, (40_000,), key=key_of(0)).at(0)
    p, q = np.random.default_rng(2).normal(size=(2, 2, 2))
    found, known = descent_direction(drawn, p, q), modes.matrix_gradient(TASKS, p, q)
    for one, other in zip(found, known, strict=True):
        assert_allclose(
            one, -other / 2, rtol=0, atol=0.02 * float(np.max(abs(other)))
        )  # six errors of the largest mean


def test_the_flow_of_means_keeps_its_balance_and_runs_from_many_starts_at_once() -> None:
    drawn = combined(PROBLEM, (500,), key=key_of(3)).at(0)
    time, starts = np.linspace(0, 6, 7), np.random.default_rng(3).normal(size=(2, 3, 2, 2))
    p, q = flow(drawn, start=tuple(starts), time=time)
    assert p.shape == q.shape == (3, 7, 2, 2)
    alone = flow(drawn, start=tuple(starts[:, 1]), time=np.linspace(0, 6, 61))
    assert_allclose(p[1], alone[0][::10], atol=1e-5)  # of the solver
    balance = np.sum(p**2 - q**2, axis=(-2, -1))
    assert_allclose(balance, np.broadcast_to(balance[:, :1], balance.shape), atol=1e-5)
    diagonal = flow(drawn, start=(0.2, 0.3), time=time)
    assert_allclose(diagonal[0][0], 0.2 * np.eye(2), atol=0)


def test_fitted_weights_have_the_least_exact_loss_up_to_the_sample() -> None:
    p, q = least_weights(combined(PROBLEM, (20_000,), key=key_of(0)).at(0))
    excess = modes.exact_loss(TASKS, p, q) / modes.exact_least_loss(TASKS) - 1
    assert 0 < excess < 2e-3
    ends = flow(combined(PROBLEM, (20_000,), key=key_of(0)).at(0), start=(0.5, 0.5), time=np.linspace(0, 200, 201))
    assert_allclose(np.prod(ends, axis=0)[-1][[0, 1], [0, 1]], p * q, rtol=2e-2)  # off-diagonal entries are left out


def test_fewer_contexts_are_the_first_of_more() -> None:
    alone, both = (combined(PROBLEM, sizes, key=key_of(1)) for sizes in ((300,), (900, 300)))
    for one, other in zip(both.at(1), alone.at(0), strict=True):
        assert_allclose(one, other, rtol=1e-12)
    assert both.query.shape == (2, 2, 2)


def test_few_vectors_have_few_directions() -> None:
    problem = Regression(eigenvalues=(2.0, 1.0, 0.5), context_length=1)
    drawn = combined(problem, (1, 2), key=key_of(4))
    assert np.linalg.matrix_rank(drawn.query[0]) == 1
    assert np.linalg.matrix_rank(drawn.query[1]) == 2


def test_impossible_sizes_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="sequences must be a whole number"):
        combined(PROBLEM, (0,), key=key_of(0))
    with pytest.raises(ValueError, match="context_length must be one number"):
        combined(Regression((1.0,), (4, 8)), (10,), key=key_of(0))
