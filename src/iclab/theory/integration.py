"""Integration of smooth flows that linger near saddles."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.integrate import DOP853, Radau

from iclab.numerics import Validated, increasing_grid, require

__all__ = ["integrate"]

PATIENCE = 1000, 20  # explicit steps, and more per entry: an implicit step costs one evaluation of velocity per entry
LONGEST = 300_000  # steps in all; minutes of work
GLANCE = 50  # steps between two tests for rest


def integrate(
    velocity: Callable[[np.ndarray], np.ndarray],
    start: Float[np.ndarray, "n"],
    time: Validated[Float[ArrayLike, "time"]],
    *,
    tolerance: Validated[float] = 1e-9,
    floor: float | Float[np.ndarray, "n"] = 1.0,
) -> Float[np.ndarray, "time n"]:
    """States at the times of a grid, of the flow d state/dt = velocity(state) that leaves `start` at time 0.

    `tolerance` bounds the error of a step relative to each entry, or to `floor` where an entry is smaller; the
    error of the result is proportional to it. The solver is explicit, of order 8; when plateaus are so long that
    its steps, bound by stability, run into thousands, an implicit one of order 5 goes on from there. A state that is
    at rest to within `tolerance` of every entry is kept for all later times, however long. Units of time: those of
    `velocity`.

    Raises ValueError for a grid that is no increasing list of times >= 0, for a tolerance outside [1e-13, 0.01], and
    for a start where the velocity is not finite; ArithmeticError when the flow escapes to infinity or takes too many
    steps.

    Source: hairer1993solving, section II.5 (Dormand-Prince of order 8); hairer1996stiff, section IV.8 (Radau IIA).
    """
    time = increasing_grid("time", time)
    require(
        1e-13 <= tolerance <= 1e-2, f"tolerance must lie in [1e-13, 0.01]; got {tolerance!r}. 1e-9 suits most flows."
    )
    with np.errstate(over="ignore", invalid="ignore"):
        require(
            bool(np.all(np.isfinite(velocity(start)))),
            "start must be small enough for its velocity to be finite; got an overflow. Shrink the start.",
        )
        return _states(velocity, start, time, tolerance, np.maximum(floor, np.finfo(float).tiny))


def _states(
    velocity: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    time: np.ndarray,
    tolerance: float,
    floor: float | np.ndarray,
) -> Float[np.ndarray, "time n"]:
    def from_here(method: type[DOP853 | Radau], now: float, state: np.ndarray) -> DOP853 | Radau:
        scale = tolerance * floor
        return method(lambda _, y: velocity(y), now, state, time[-1], rtol=tolerance, atol=scale)  # pyright: ignore[reportArgumentType]

    solver = from_here(DOP853, 0.0, start)
    states = np.empty((len(time), len(start)))
    filled = steps = 0
    patience = PATIENCE[0] + PATIENCE[1] * len(start)
    while filled < len(time):
        if steps == patience:
            solver = from_here(Radau, solver.t, solver.y)
        message = solver.step()
        steps += 1
        if solver.status == "failed":
            raise ArithmeticError(
                f"the flow stopped at time {solver.t:.6g}: {message} Take a start of another size or shorter times."
            )
        if steps == LONGEST:
            raise ArithmeticError(
                f"the flow reached time {solver.t:.6g} of {time[-1]:.6g} in {LONGEST} steps. Shorten the time grid, "
                "shrink the start or loosen the tolerance."
            )
        reached = np.searchsorted(time, solver.t, side="right")
        if reached > filled:
            states[filled:reached] = solver.dense_output()(time[filled:reached]).T
            filled = reached
        if steps % GLANCE == 0 and _at_rest(velocity, solver.y, tolerance, floor):
            states[filled:] = solver.y
            break
    return states


def _at_rest(
    velocity: Callable[[np.ndarray], np.ndarray], state: np.ndarray, tolerance: float, floor: float | np.ndarray
) -> bool:
    """True where every velocity is below what a change of the state by the tolerance makes of it, or its entry is 0.

    An entry that grows, however slowly, fails: its velocity changes by that small part of itself only.
    """
    now = velocity(state)
    resolution = np.abs(velocity(state * (1 + tolerance)) - now)
    return bool(np.all((np.abs(now) <= resolution) | (np.abs(state) <= tolerance * floor)))
