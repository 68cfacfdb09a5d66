"""Contexts of diagonal tasks, checked: what every law of modes reads."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import increasing_grid, require
from iclab.problem import checked_lengths

Array = np.ndarray
PRECISION = 1e-10  # relative, of a step of the solver behind every flow of modes


@dataclass(frozen=True)
class DiagonalTasks:
    """Inputs of covariance diag(s), tasks W = diag(Λ) in the same basis, labels W x + noise in each output.

    `task_second_moments` m holds E Λ_α²: 1 for fresh standard normal tasks, the mean of the squares for a finite
    pool. Different modes need not be independent: only m enters while p and q are diagonal.
    """

    eigenvalues: Float[Array, "mode"]
    context_length: int
    noise: float
    task_second_moments: Float[Array, "mode"]

    @property
    def modes(self) -> int:
        """D, the number of modes."""
        return len(self.eigenvalues)

    @property
    def label_variances(self) -> Float[Array, "mode"]:
        """r = m s + noise, variance of each output's labels."""
        return self.task_second_moments * self.eigenvalues + self.noise


def diagonal_tasks(
    eigenvalues: Float[Array, "mode"],
    context_length: int,
    *,
    noise: float = 0.0,
    task_second_moments: Float[Array, "mode"] | None = None,
) -> DiagonalTasks:
    """The checked law of contexts, in the order given: nothing is sorted, since starts are given mode by mode.

    Raises ValueError, naming the field, for numbers that are negative, not finite, or none at all.

    Source: mainali2025exact, section on the model; noise and pools as in docs/derivations/modes.
    """
    s = _variances("eigenvalues", eigenvalues)
    require(bool(np.any(s > 0)), "eigenvalues must hold a positive one; got zeros only.")
    m = np.ones(len(s)) if task_second_moments is None else _variances("task_second_moments", task_second_moments)
    require(
        len(m) == len(s), f"task_second_moments must be one per eigenvalue; got {len(m)} for {len(s)} eigenvalues."
    )
    require(bool(np.isfinite(noise)) and noise >= 0, f"noise must be finite and >= 0; got {noise!r}.")
    lengths = checked_lengths(context_length)
    require(
        len(lengths) == 1, f"context_length must be one number here; got {lengths}. Mixed lengths are not supported."
    )
    return DiagonalTasks(s, lengths[0], float(noise), m)


def mode_start(start: tuple[ArrayLike, ArrayLike], modes: int) -> tuple[Float[Array, "mode"], Float[Array, "mode"]]:
    """(p₀, q₀) with one number per mode, from scalars or lists. Raises ValueError where they do not fit.

    Source: no formula; conventions of docs/derivations/modes.
    """
    require(len(start) == 2, f"start must be a pair (p0, q0); got {len(start)} entries.")
    parts = [np.asarray(part, dtype=float) for part in start]
    for part in parts:
        require(
            part.shape in ((), (modes,)),
            f"start must hold scalars or one number per mode, {modes}; got shape {part.shape}.",
        )
        require(bool(np.all(np.isfinite(part))), "start must be finite; got NaN or infinity.")
    p, q = (np.broadcast_to(part, (modes,)) for part in parts)
    return p, q


def checked_time(time: ArrayLike) -> Float[Array, "time"]:
    """Increasing times as an array. Raises ValueError for negative, repeated, falling or infinite ones.

    Source: no formula; conventions of docs/derivations/modes.
    """
    return increasing_grid("time", np.atleast_1d(np.asarray(time, dtype=float)))


def start_floor(size: Float[Array, "n"]) -> Float[Array, "n"]:
    """Below which entries count as absolute numbers for the solver: a thousandth of the start, where there is one.

    So that escapes from tiny starts are as sharp as from large ones.

    Source: no formula; for the flows of docs/derivations/modes.
    """
    return 1e-3 * np.where(size > 0, size, np.max(size) or 1.0)


def checked_mode(
    start: tuple[ArrayLike, ArrayLike], limit: ArrayLike, time_constant: ArrayLike
) -> tuple[Array, Array, Array, Array]:
    """Start (p, q), limit and time constant of single modes as arrays. Raises ValueError where they are impossible.

    Source: no formula; conventions of docs/derivations/modes.
    """
    p, q = (np.asarray(part, dtype=float) for part in start)
    limit, tau = np.asarray(limit, dtype=float), np.asarray(time_constant, dtype=float)
    require(bool(np.all(np.isfinite(p)) and np.all(np.isfinite(q))), "start must be finite; got NaN or infinity.")
    require(bool(np.all((limit > 0) & np.isfinite(limit))), f"limit must be positive and finite; got {limit!s}.")
    require(bool(np.all(tau > 0)), f"time_constant must be positive; got {tau!s}. inf never moves.")
    return p, q, limit, tau


def _variances(name: str, values: ArrayLike) -> Float[Array, "mode"]:
    array = np.asarray(values, dtype=float)
    require(array.ndim == 1 and array.size > 0, f"{name} must be a list of numbers; got shape {array.shape}.")
    require(
        bool(np.all(np.isfinite(array) & (array >= 0))),
        f"{name} must be finite and >= 0; got {array.min()!s} to {array.max()!s}.",
    )
    return array
