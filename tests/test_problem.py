"""Descriptions of problems, and what is refused."""

import dataclasses
import math

import numpy as np
import pytest

from iclab import Pretraining, Ratios, Regression


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
        ({"context_length": ()}, "context_length must hold at least one number"),
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


def test_a_run_next_to_ratios_has_whole_sizes_and_tells_the_ratios_that_it_has() -> None:
    run = Pretraining.of(Ratios(alpha=2.3, kappa=0.72, tau=0.5, noise=0.1), 10)
    assert run == Pretraining(10, 23, 49, 7, 0.1)  # 50/7 rounds to 7 uses
    assert run.ratios == Ratios(2.3, 0.7, 0.49, 0.1)
    assert run.uses == 7
    assert Pretraining.of(Ratios(2.3, 0.72, 0.5, 0.1), 10, balanced=False).sequences == 50
    fresh = Pretraining.of(Ratios(1.0, math.inf, 2.0, 0.0), 3)
    assert (fresh.tasks, fresh.sequences, fresh.ratios.kappa, fresh.uses) == (None, 18, math.inf, 1)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"dimension": 0}, "dimension must be a whole number >= 1; got 0"),
        ({"context_length": 0}, "context_length must be a whole number >= 1; got 0"),
        ({"sequences": 0}, "sequences must be a whole number >= 1; got 0"),
        ({"sequences": 12.5}, "sequences must be a whole number >= 1; got 12.5"),
        ({"tasks": 0}, "tasks must be a whole number >= 1; got 0"),
        ({"tasks": 13}, "tasks must be at most sequences, 12; got 13. For a fresh task in every sequence"),
        ({"tasks": 5}, "sequences must be a multiple of tasks, 5, for balanced use; got 12. Take 10 or 15"),
        ({"noise": -0.1}, "noise must be finite and >= 0"),
    ],
)
def test_impossible_runs_are_refused(sizes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Pretraining(**({"dimension": 4, "context_length": 8, "sequences": 12, "tasks": 4} | sizes))


@pytest.mark.parametrize(
    ("ratios", "message"),
    [
        (Ratios(0.01, 1.0, 1.0, 0.0), "alpha must give at least 1 of the examples of a context; got 0.01"),
        (Ratios(1.0, 0.04, 1.0, 0.0), "kappa must give at least 1 of the tasks; got 0.04"),
        (Ratios(1.0, 1.0, 0.001, 0.0), "tau must give at least 1 of the sequences; got 0.001"),
        (Ratios(1.0, 25.0, 1.0, 0.0), "got 250 for 100 sequences, which rounds to no use"),
        (Ratios(math.inf, 1.0, 1.0, 0.0), "alpha must be one finite number at finite dimension; got inf"),
        (Ratios(1.0, 1.0, math.inf, 0.0), "tau must be one finite number at finite dimension; got inf"),
    ],
)
def test_ratios_that_no_run_comes_near_are_refused(ratios: Ratios, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Pretraining.of(ratios, 10)
