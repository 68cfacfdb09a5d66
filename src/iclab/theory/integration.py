"""Explicit integration of smooth flows that linger near saddles."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.integrate import DOP853

from iclab.numerics import require

Array = np.ndarray
LONGEST = 1_000_000  # steps; minutes of work, where a well-posed flow takes thousands


def integrate(
    slope: Callable[[Array], Array],
    start: Float[Array, "n"],
    time: Float[Array, "time"],
    *,
    tolerance: float = 1e-9,
    floor: Float[Array, "n"] | float = 1.0,
) -> Float[Array, "time n"]:
    """States at the times of a grid, of the flow d state/dt = slope(state) that leaves `start` at time 0.

    `tolerance` bounds the error of a step relative to each entry, or to `floor` where an entry is smaller; the
    error of the result is proportional to it. Units of time: those of `slope`.

    Raises ValueError for a grid that is no increasing list of times >= 0, for an unusable tolerance, and for a
    start where the slope is not finite; ArithmeticError when the flow escapes to infinity or takes too many steps.

    Source: hairer1993solving, section II.5, Dormand-Prince of order 8.
    """
    time = increasing_times(time)
    require(0 < tolerance <= 1e-2, f"tolerance must lie in (0, 0.01]; got {tolerance!r}. 1e-9 suits most flows.")
    with np.errstate(over="ignore", invalid="ignore"):
        require(
            bool(np.all(np.isfinite(slope(start)))),
            "start must be small enough for its slope to be finite; got an overflow. Shrink the start.",
        )
        return _states(slope, start, time, tolerance, np.maximum(floor, np.finfo(float).tiny))


def increasing_times(time: Float[Array, "time"]) -> Float[Array, "time"]:
    """The grid as an array. Raises ValueError unless it increases strictly from a time >= 0."""
    grid = np.asarray(time, dtype=float)
    require(grid.ndim == 1 and grid.size > 0, f"time must be a non-empty list of times; got shape {grid.shape}.")
    require(bool(np.all(np.isfinite(grid)) and grid[0] >= 0), "time must be finite and >= 0; the flow starts at 0.")
    require(
        bool(np.all(np.diff(grid) > 0)),
        "time must increase strictly; got a step back or a repeated time. Sort it and drop repeats.",
    )
    return grid


def _states(
    slope: Callable[[Array], Array], start: Array, time: Array, tolerance: float, floor: Array
) -> Float[Array, "time n"]:
    solver = DOP853(lambda _, state: slope(state), 0.0, start, time[-1], rtol=tolerance, atol=tolerance * floor)  # pyright: ignore[reportArgumentType]
    states = np.empty((len(time), len(start)))
    filled = steps = 0
    while filled < len(time):
        message = solver.step()
        steps += 1
        if solver.status == "failed":
            raise ArithmeticError(
                f"the flow stopped at time {solver.t:.6g}: {message} Shrink the start or the times."
            )
        if steps == LONGEST:
            raise ArithmeticError(
                f"the flow reached time {solver.t:.6g} of {time[-1]:.6g} in {LONGEST} steps; it is stiff, as from a "
                "large start. Shorten the time grid or shrink the start."
            )
        reached = np.searchsorted(time, solver.t, side="right")
        if reached > filled:
            states[filled:reached] = solver.dense_output()(time[filled:reached]).T
            filled = reached
    return states
