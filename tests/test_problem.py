"""Descriptions of problems, and what is refused."""

import dataclasses

import numpy as np
import pytest

from iclab import Regression


def test_a_problem_is_hashable_and_holds_plain_numbers() -> None:
    given = Regression(eigenvalues=np.array([0.5, 0.25]), context_length=np.int64(8), noise=np.float32(0.5))  # type: ignore[arg-type]
    assert given == Regression(eigenvalues=(0.5, 0.25), context_length=8, noise=0.5)
    assert hash(given) == hash(Regression(eigenvalues=(0.5, 0.25), context_length=8, noise=0.5))
    assert type(given.context_length) is int
    assert type(given.eigenvalues[0]) is float


def test_the_default_problem_is_the_published_one() -> None:
    assert Regression() == Regression((0.4, 0.3, 0.2, 0.1), 31, 0.0, None)
    assert Regression().dimension == 4
    assert Regression().task_spectrum == (1.0, 1.0, 1.0, 1.0)


def test_an_unsorted_list_is_sorted_with_its_tasks_and_said() -> None:
    with pytest.warns(UserWarning, match="eigenvalues came unsorted .* task_eigenvalues moved with them"):
        problem = Regression(eigenvalues=(0.1, 0.4, 0.2), task_eigenvalues=(1.0, 2.0, 3.0))
    assert problem.eigenvalues == (0.4, 0.2, 0.1)
    assert problem.task_eigenvalues == (2.0, 3.0, 1.0)


def test_equal_eigenvalues_keep_the_order_of_their_tasks() -> None:
    assert Regression(eigenvalues=(0.5, 0.5), task_eigenvalues=(1.0, 2.0)).task_eigenvalues == (1.0, 2.0)


def test_a_zero_eigenvalue_is_allowed() -> None:
    assert Regression(eigenvalues=(0.5, 0.0)).dimension == 2


def test_several_context_lengths_are_kept_as_given() -> None:
    assert Regression(context_length=(4, 8)).context_lengths == (4, 8)
    assert Regression(context_length=8).context_lengths == (8,)


def test_a_problem_cannot_be_changed_but_replaced() -> None:
    problem = Regression()
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.noise = 1.0  # type: ignore[misc]
    assert dataclasses.replace(problem, noise=1.0).noise == 1.0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"eigenvalues": ()}, "eigenvalues must not be empty"),
        ({"eigenvalues": (0.4, -0.1)}, r"eigenvalues must be finite and >= 0; got -0\.1"),
        ({"eigenvalues": (float("nan"),)}, "eigenvalues must be finite and >= 0; got nan"),
        ({"eigenvalues": (float("inf"),)}, "eigenvalues must be finite and >= 0; got inf"),
        ({"eigenvalues": (0.0, 0.0)}, "eigenvalues must hold a positive one"),
        ({"eigenvalues": 0.4}, "eigenvalues must be a list of numbers; got 0.4"),
        ({"eigenvalues": ("a",)}, "eigenvalues must be a number or an array of numbers; got 'a'"),
        ({"context_length": 0}, "context_length must be whole numbers >= 1; got 0"),
        ({"context_length": -3}, "context_length must be whole numbers >= 1; got -3"),
        ({"context_length": 2.0}, "context_length must be whole numbers >= 1; got 2.0"),
        ({"context_length": True}, "context_length must be whole numbers >= 1; got True"),
        ({"context_length": ()}, "context_length must hold at least one length"),
        ({"context_length": (4, 0)}, "context_length must be whole numbers >= 1; got 0"),
        ({"noise": -0.1}, r"noise must be finite and >= 0; got -0\.1"),
        ({"noise": float("nan")}, "noise must be finite and >= 0; got nan"),
        ({"task_eigenvalues": (1.0,)}, "task_eigenvalues must be as many as eigenvalues; got 1 and 4"),
        ({"task_eigenvalues": (1.0, 1.0, 1.0, -1.0)}, "task_eigenvalues must be finite and >= 0; got -1.0"),
    ],
)
def test_impossible_problems_are_refused_by_name(fields: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Regression(**fields)
