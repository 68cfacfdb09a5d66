"""Diagonal tasks, the problem of every law of modes; checks of starts, weights and times mode by mode."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import (
    Validated,
    checked,
    checked_number,
    increasing_grid,
    magnitude,
    nonnegative,
    numbers,
    pair,
    require,
)
from iclab.problem import checked_lengths

__all__ = [
    "PRECISION", "DiagonalTasks", "checked_mode", "checked_time", "mode_start", "mode_weights",
    "require_diagonal_tasks", "start_floor",
]  # fmt: skip

PRECISION = 1e-10  # relative error of a step of the solver, in every flow of modes


@dataclass(frozen=True, eq=False, init=False)
class DiagonalTasks:
    """Contexts whose tasks are diagonal: x ~ N(0, diag(s)), labels W x + noise with W = diag(Λ) in the same basis.

    Only m = E Λ_α² of the tasks enters while value and key-query are diagonal, so different modes need not be
    independent. Modes stay in the order given: nothing is sorted, since starts are given mode by mode.

    Raises ValueError, naming the field, for numbers that are negative, not finite, or none at all.
    """

    eigenvalues: Float[np.ndarray, "mode"]  # s, of the input covariance
    context_length: int  # N, labeled examples before the query
    noise: float  # variance of the label noise in each output
    task_second_moments: Float[np.ndarray, "mode"]  # m: 1 for standard normal tasks, mean squares for a finite pool

    def __init__(
        self,
        eigenvalues: Validated[Float[ArrayLike, "mode"]],
        context_length: Validated[int],
        *,
        noise: Validated[float] = 0.0,
        task_second_moments: Validated[Float[ArrayLike, "mode"] | None] = None,
    ) -> None:
        s = _variances("eigenvalues", eigenvalues)
        require(bool(np.any(s > 0)), "eigenvalues must hold a positive one; got zeros only.")
        m = np.ones(len(s)) if task_second_moments is None else _variances("task_second_moments", task_second_moments)
        require(
            len(m) == len(s),
            f"task_second_moments must be one per eigenvalue; got {len(m)} for {len(s)} eigenvalues.",
        )
        variance = checked_number("noise", noise, at_least=0.0)
        lengths = checked_lengths(context_length)
        require(
            len(lengths) == 1,
            f"context_length must be one number here; got {lengths}. Mixed lengths are not supported.",
        )
        object.__setattr__(self, "eigenvalues", s)
        object.__setattr__(self, "context_length", lengths[0])
        object.__setattr__(self, "noise", variance)
        object.__setattr__(self, "task_second_moments", m)

    @property
    def modes(self) -> int:
        """D, the number of modes."""
        return len(self.eigenvalues)

    @property
    def label_variances(self) -> Float[np.ndarray, "mode"]:
        """r = m s + noise, variance of each output's labels."""
        return self.task_second_moments * self.eigenvalues + self.noise


def require_diagonal_tasks(tasks: Validated[DiagonalTasks]) -> None:
    """Raise ValueError, saying what to write, unless the tasks are DiagonalTasks.

    Source: no formula; conventions of docs/derivations/modes.
    """
    require(
        isinstance(tasks, DiagonalTasks),
        f"tasks must be a DiagonalTasks; got {type(tasks).__name__}. "
        "Write DiagonalTasks(eigenvalues, context_length, noise=...).",
    )


def mode_start(
    start: Validated[tuple[ArrayLike, ArrayLike]], modes: int
) -> tuple[Float[np.ndarray, "mode"], Float[np.ndarray, "mode"]]:
    """(p₀, q₀) with one number per mode, from scalars or lists. Raises ValueError where they do not fit.

    Source: no formula; conventions of docs/derivations/modes.
    """
    parts = [numbers("start", part) for part in pair("start", start)]
    for part in parts:
        require(
            part.shape in ((), (modes,)),
            f"start must hold scalars or one number per mode, {modes}; got shape {part.shape}.",
        )
    p, q = (np.broadcast_to(part, (modes,)) for part in parts)
    return p, q


def mode_weights(name: str, values: Validated[ArrayLike], modes: int) -> Float[np.ndarray, "*batch mode"]:
    """Finite weights whose last axis is that of the modes. Raises ValueError, with their name, for any other.

    Source: no formula; conventions of docs/derivations/modes.
    """
    array = numbers(name, values)
    require(
        array.shape[-1:] == (modes,), f"{name} must end in one number per mode, {modes}; got shape {array.shape}."
    )
    return array


def checked_time(time: Validated[ArrayLike]) -> Float[np.ndarray, "time"]:
    """Increasing times as an array. Raises ValueError for negative, repeated, falling or infinite ones.

    Source: no formula; conventions of docs/derivations/modes.
    """
    return increasing_grid("time", np.atleast_1d(numbers("time", time)))


def start_floor(size: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
    """Size of each entry below which the solver's tolerance is absolute: a thousandth of the start, where not 0.

    Escapes from tiny starts are then as sharp as from large ones.

    Source: no formula; for the flows of docs/derivations/modes.
    """
    return 1e-3 * np.where(size > 0, size, np.max(size) or 1.0)


def checked_mode(
    start: Validated[tuple[ArrayLike, ArrayLike]], limit: Validated[ArrayLike], time_constant: Validated[ArrayLike]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Start (p, q), limit and time constant of single modes as arrays. Raises ValueError where they are impossible.

    Source: no formula; conventions of docs/derivations/modes.
    """
    p, q = (numbers("start", part) for part in pair("start", start))
    largest = max(float(np.max(np.abs(part), initial=0.0)) for part in (p, q))
    require(largest <= 1e70, f"start must be at most 1e70, for its fourth power is needed; got {largest:g}.")
    limit = magnitude("limit", limit, infinite=False, between=(1e-150, 1e150))
    tau = checked("time_constant", time_constant, above=0.0, advice="inf never moves.")
    return p, q, np.asarray(limit), np.asarray(tau)


def _variances(name: str, values: Validated[ArrayLike]) -> Float[np.ndarray, "mode"]:
    array = nonnegative(name, values)
    require(array.ndim == 1 and array.size > 0, f"{name} must be a list of numbers; got shape {array.shape}.")
    return array
