"""Wrong theories of modes and of one-pass SGD.

No verdict can notice two rows of the list. `balance_drift` and `exact_descent` are called by no study: their values
are those of tests/test_modes_exact.py. `conserved` measures the simulation of `conservation`, so that theory and
simulation would have to change together: tests/test_conservation.py.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from iclab.theory import modes, sgd
from iclab.theory.modes import exact, matrix
from iclab.theory.sgd import diagonal, small_noise
from iclab.theory.sgd.moments import LengthFactors
from tests.wrong_theories.battery import Wrong, scaled

Function = Callable[..., Any]


def as_tasks(**changes: Any) -> Callable[[Function], Function]:
    """The law of other tasks; changes are values, or functions of the tasks."""

    def change(right: Function) -> Function:
        def wrong(tasks: modes.DiagonalTasks, *given: Any, **named: Any) -> Any:
            values = {name: value(tasks) if callable(value) else value for name, value in changes.items()}
            parts = {"context_length": tasks.context_length, "noise": tasks.noise, **values}
            return right(
                modes.DiagonalTasks(tasks.eigenvalues, parts.pop("context_length"), **parts), *given, **named
            )

        return wrong

    return change


def in_last(factor: float) -> Callable[[Function], Function]:
    """A factor in the last mode, on the last axis."""

    def change(right: Function) -> Function:
        def wrong(*given: Any, **named: Any) -> Any:
            found = np.array(right(*given, **named))
            found[..., -1] *= factor
            return found

        return wrong

    return change


def one_mode_more(right: Function) -> Function:
    """The strongest of the modes that are off is on, at a hundredth of its own limit."""

    def wrong(tasks: modes.DiagonalTasks) -> np.ndarray:
        found = right(tasks)
        off = np.flatnonzero(found == 0)
        found[off[:1]] = 0.05 / tasks.eigenvalues[off[:1]]
        return found

    return wrong


def law_in(field: str, factor: float) -> Callable[[Function], Function]:
    """A field of the moments of contexts, multiplied."""
    return lambda right: lambda *given: replace(law := right(*given), **{field: factor * getattr(law, field)})


def no_third_moment(right: Function) -> Function:
    """E h³w without its term −3 c₂/N."""

    def wrong(problem: Any) -> Any:
        law, n = right(problem), LengthFactors.of(problem.context_lengths)
        s, c = np.array(problem.eigenvalues), np.array(problem.task_spectrum)
        shared = np.outer(s**2 * c, s * c) * (1 + 2 * np.eye(len(s)))
        return replace(law, mixed=law.mixed + 3 * n.second_per * shared)

    return wrong


def more_drag(right: Function) -> Function:
    """The quadratic term of the loss, larger by half a percent."""
    return lambda law, mean, squares: right(law, mean, squares) + 0.005 * np.sum(law.curvature * squares)


def of_time(factor: float) -> Callable[[Function], Function]:
    """A law that runs faster."""
    return lambda right: lambda start, limit, tau, time: right(start, limit, tau, factor * time)


def without_leak(right: Function) -> Function:
    """Descent of full matrices without the term that other modes share."""

    def wrong(tasks: modes.DiagonalTasks, p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        dp, dq = right(tasks, p, q)
        rows = np.sum(tasks.eigenvalues * np.sum(q**2 * tasks.eigenvalues, axis=-1), axis=-1, keepdims=True)
        return dp + p * (rows * tasks.label_variances / tasks.context_length)[..., None, :], dq

    return wrong


def last_signal(right: Function) -> Function:
    """Descent of full matrices with a signal of the last mode that is larger by a tenth."""

    def wrong(tasks: modes.DiagonalTasks, p: np.ndarray, q: np.ndarray) -> list[np.ndarray]:
        found = [np.array(part) for part in right(tasks, p, q)]
        signal = 0.1 * (tasks.task_second_moments * tasks.eigenvalues**2)[-1]
        for part, other in zip(found, (q, p), strict=True):
            part[..., -1, -1] += signal * other[..., -1, -1]
        return found

    return wrong


def noiseless_at(rate: float) -> Callable[[Function], Function]:
    """The critical rate of descent on the population, multiplied."""
    return lambda right: lambda problem, batch: right(problem, batch=batch) * (rate if np.isinf(batch) else 1.0)


def curves_scaled(**factors: float) -> Callable[[Function], Function]:
    """Parts of a curve, multiplied."""

    def change(right: Function) -> Function:
        def wrong(*given: Any, **named: Any) -> Any:
            found = right(*given, **named)
            return replace(found, **{name: factor * getattr(found, name) for name, factor in factors.items()})

        return wrong

    return change


def nothing(right: Function) -> Function:
    """Zeros in place of a term."""
    return lambda *given: 0 * right(*given)


FIXED, SGD = ("finite-context",), ("sgd-noise",)
WRONG = [
    Wrong("N for N + 1 in strengths", modes.exact_fixed_point, lambda right: lambda tasks: right(tasks)
          * (tasks.context_length + 1) / tasks.context_length, FIXED),
    Wrong("one mode more on", modes.exact_fixed_point, one_mode_more, FIXED),
    Wrong("last strength", modes.exact_fixed_point, in_last(1.1), FIXED),
    Wrong("strengths by 3 %", modes.exact_fixed_point, scaled(1.03), FIXED),
    Wrong("fixed point without noise", modes.exact_fixed_point, as_tasks(noise=0.0), FIXED),
    Wrong("limits by .5 %", modes.limits, scaled(1.005), (*FIXED, "mode-staging")),
    Wrong("flow without 1/N", modes.exact_flow, as_tasks(context_length=10**9), ("mode-staging", "conservation")),
    Wrong("flow of N + 1", modes.exact_flow, as_tasks(context_length=lambda tasks: tasks.context_length + 1),
          ("mode-staging", "conservation")),
    Wrong("growth of the law", modes.mode_law, of_time(1.02), ("mode-staging", "phase-portrait")),
    Wrong("limit of the law", modes.limits, scaled(1.03), ("mode-staging", "phase-portrait")),
    Wrong("descent of modes by 2 %", exact._descent, lambda right: lambda *given: [1.02 * part for part in
          right(*given)], ("mode-staging",)),
    Wrong("growth at the saddle", modes.growth_rates, scaled(1.03), ("phase-portrait",)),
    Wrong("time constants", modes.time_constants, scaled(1.03), ("phase-portrait",)),
    Wrong("matrices without leak", matrix._descent, without_leak, ("alignment",)),
    Wrong("signal of the last mode", matrix._descent, last_signal, ("alignment",)),
    Wrong("matrices of N + 2", modes.matrix_flow, as_tasks(context_length=lambda tasks: tasks.context_length + 2),
          ("alignment",)),
    Wrong("value of one head", modes.single_head_flow, curves_scaled(value=1.001), ("conservation",)),
    Wrong("no third derivative", small_noise._third_derivative, nothing, ("conservation",)),
    Wrong("noise of one head", small_noise._gradient_covariance, scaled(1.1), ("conservation",)),
    Wrong("no third moment", diagonal.diagonal_law, no_third_moment, SGD),
    Wrong("moments of fourth order", diagonal.diagonal_law, law_in("summaries", 1.02), SGD),
    Wrong("signal of contexts", diagonal.diagonal_law, law_in("signal", 1.01), SGD),
    Wrong("curvature of contexts", diagonal.diagonal_law, law_in("curvature", 1.01), SGD),
    Wrong("drag", diagonal.loss_of, more_drag, SGD),
    Wrong("critical rate", sgd.critical_rate, scaled(1.03), SGD),
    Wrong("critical rate without noise", sgd.critical_rate, noiseless_at(1.03), SGD),
    Wrong("noise of a batch", diagonal.noise_map, scaled(1.02), SGD),
]  # fmt: skip
