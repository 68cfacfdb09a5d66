"""The law of drawn summaries against that of tokens; what is refused."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2, kstest

from iclab.simulation.keys import key_of
from iclab.simulation.linear.contexts import draw_summaries, draw_tokens

TASK = np.array([1.3, -0.4, 0.7])
COUNT = 100_000


def seen(tasks: np.ndarray, length: int, *, tokens: bool, seed: int, **law) -> np.ndarray:
    """Query, features and target of each sequence, side by side."""
    if not tokens:
        drawn = draw_summaries(tasks, length, key=key_of(seed), **law)
        return np.column_stack([drawn.query, drawn.features, drawn.target])
    parts = []
    for seed_of_part, some in enumerate(np.split(tasks, 10), start=1000 * seed):
        contexts = draw_tokens(some, length, key=key_of(seed_of_part), **law)
        summary = np.einsum("pn,pnd->pd", contexts.labels, contexts.inputs) * tasks.shape[1] / length
        square = np.mean(contexts.labels**2, axis=1)
        parts.append(np.column_stack([contexts.query, summary, square, contexts.target]))
    return np.concatenate(parts)


def moments_to_order_four(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means of all products of up to four columns, and their standard errors."""
    means, errors = [], []
    for order in range(1, 5):
        for columns in combinations_with_replacement(range(values.shape[1]), order):
            products = np.prod(values[:, columns], axis=1)
            means.append(products.mean())
            errors.append(products.std() / np.sqrt(len(products)))
    return np.array(means), np.array(errors)


@pytest.mark.parametrize(
    ("length", "law"),
    [
        (2, {"noise": 0.3}),
        (5, {"noise": 0.3, "input_eigenvalues": [2.0, 0.7, 0.3]}),
        (4, {"noise": 0.0}),
    ],
)
def test_summaries_have_the_joint_moments_of_tokens_to_order_four(length: int, law: dict) -> None:
    tasks = np.tile(TASK, (COUNT, 1))
    (drawn, error), (told, other) = (
        moments_to_order_four(seen(tasks, length, tokens=tokens, seed=3, **law)) for tokens in (False, True)
    )
    distance = np.abs(drawn - told) / np.hypot(error, other)
    assert len(distance) == 494  # products of one to four of eight numbers
    assert np.max(distance) < 4.5  # of 494 normal numbers one in 300 sets goes beyond


@pytest.mark.parametrize("length", [1, 2, 30])
def test_labels_of_a_context_are_as_large_as_chi_square_says(length: int) -> None:
    drawn = draw_summaries(np.tile(TASK, (20_000, 1)), length, noise=0.3, key=key_of(4))
    squares = drawn.features[:, 3] * length / (TASK @ TASK / 3 + 0.3)
    assert kstest(squares, chi2(length).cdf).pvalue > 1e-3


def test_long_contexts_cost_no_more_and_tell_the_task() -> None:
    drawn = draw_summaries(np.tile(TASK, (1000, 1)), 10**9, noise=0.5, key=key_of(1))
    assert_allclose(drawn.features.mean(axis=0), [*TASK, TASK @ TASK / 3 + 0.5], rtol=1e-4)  # N^-1/2


def test_each_task_has_a_sequence_of_its_own_in_any_shape() -> None:
    tasks = np.zeros((2, 5, 3))
    tasks[1] = TASK
    drawn = draw_summaries(tasks, 10, key=key_of(2))
    assert (drawn.query.shape, drawn.features.shape, drawn.target.shape) == ((2, 5, 3), (2, 5, 4), (2, 5))
    assert not drawn.features[0].any()  # labels of the zero task, without noise
    assert_array_equal(drawn.target[0], 0.0)
    assert_allclose(drawn.target[1], drawn.query[1] @ TASK, rtol=1e-14)


def test_directions_without_inputs_stay_empty() -> None:
    drawn = draw_summaries(np.ones((100, 3)), 4, input_eigenvalues=(1.0, 0.0, 2.0), noise=0.1, key=key_of(3))
    assert not drawn.query[:, 1].any()
    assert not drawn.features[:, 1].any()


@pytest.mark.parametrize("draw", [draw_summaries, draw_tokens])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"context_length": 0}, "context_length must be a whole number >= 1; got 0"),
        ({"noise": -1.0}, "noise must be finite and >= 0; got -1"),
        ({"input_eigenvalues": (1.0, 2.0)}, "input_eigenvalues must be 3 numbers"),
        ({"input_eigenvalues": (1.0, 2.0, -1.0)}, "input_eigenvalues must be finite and >= 0"),
        ({"input_eigenvalues": (0.0, 0.0, 0.0)}, "one of them positive"),
        ({"tasks": np.array([[1.0, np.nan, 1.0]])}, "tasks must be finite"),
        ({"tasks": np.array(1.0)}, "tasks must be vectors"),
    ],
)
def test_impossible_contexts_are_refused(draw, arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw(**({"tasks": np.ones((4, 3)), "context_length": 5, "key": key_of(0)} | arguments))
