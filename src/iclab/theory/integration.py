"""Integration of smooth flows that linger near saddles."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.integrate import DOP853, LSODA, Radau

from iclab.numerics import Validated, increasing_grid, require

__all__ = ["descend_flow", "integrate", "integrate_stiff", "require_fall", "squares"]

PATIENCE = 1000, 20  # explicit steps, and more per entry: an implicit step costs one evaluation of velocity per entry
LONGEST = 300_000  # steps in all; minutes of work
BLURRED = 1e-5  # relative error of the loss from the rounding of weights that is still returned
ROUNDED = 1e-13  # of the loss of zero weights, from which the loss is a difference
GLANCE = 50  # steps between two tests for rest
STIFF = 1e3  # times the rate at the minimum: a start from which explicit steps are too small
MOST_STIFF = 20_000  # stiff steps in all; where rounding is as large as the tolerance they are many and small


def integrate(
    velocity: Callable[[np.ndarray], np.ndarray],
    start: Float[np.ndarray, "n"],
    time: Validated[Float[ArrayLike, "time"]],
    *,
    tolerance: Validated[float] = 1e-9,
    floor: float | Float[np.ndarray, "*n"] = 1.0,
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
    time = _checked(velocity, start, time, tolerance)
    with np.errstate(over="ignore", invalid="ignore"):
        return _states(velocity, start, time, tolerance, np.maximum(floor, np.finfo(float).tiny))


def descend_flow(
    velocity: Callable[[np.ndarray], np.ndarray],
    start: Float[np.ndarray, "n"],
    time: Validated[Float[ArrayLike, "time"]],
    *,
    tolerance: float = 1e-9,
    floor: Float[np.ndarray, "n"],
    factors: int,
    leverage: float,
    size: float,
) -> Float[np.ndarray, "time n"]:
    """States of a gradient flow on a product of `factors` factors, which is stiff where the start is large.

    `leverage` is the bound on |∂ product/∂ state|² at the start, the rate there in units of the curvature; `size` is
    that of the product at the minimum. A large start takes integrate_stiff(), to the tolerance relative to `size`,
    any other integrate().

    Raises ValueError and ArithmeticError as these.

    Source: derived in docs/derivations/dynamics.
    """
    if leverage <= STIFF * size ** (2 - 2 / factors):
        return integrate(velocity, start, time, tolerance=tolerance, floor=floor)
    rounding = 1e-14 / tolerance * float(np.max(floor))
    sharp = np.minimum(floor, max(size / np.sqrt(leverage), rounding))
    return integrate_stiff(velocity, start, time, tolerance=tolerance, floor=sharp)


def squares(*parts: Float[np.ndarray, "*n"]) -> float:
    """Sum of the squares of all entries of arrays; inf beyond the range of numbers.

    Source: the leverage of a product of two factors in docs/derivations/dynamics.
    """
    with np.errstate(over="ignore"):
        return float(sum(np.sum(np.square(part)) for part in parts))


def require_fall(
    falling: Float[np.ndarray, "time"],
    *,
    height: float,
    tolerance: float = 1e-9,
    blur: float | np.ndarray = 0.0,
) -> None:
    """Raise ArithmeticError where what falls along a flow rises, or `blur`, its change by rounding, is not small.

    `height` is the loss of zero weights. Next to a minimum that lies far below it, as in long contexts without noise,
    the loss is known to the tolerance of that height, and no better than its rounding.

    Source: derived in docs/derivations/dynamics.
    """
    rises, change = np.diff(falling), np.broadcast_to(blur, falling.shape)
    known = 1e3 * tolerance * falling[:-1] + tolerance * height + change[1:]
    if np.any(change > BLURRED * falling + ROUNDED * height) or np.any(rises > known):
        raise ArithmeticError(
            f"the loss must fall along the flow; got weights whose rounding changes it by {np.max(change):.1e}, "
            f"and a rise of {np.max(rises, initial=0.0):.1e}. Shrink the start."
        )


def integrate_stiff(
    velocity: Callable[[np.ndarray], np.ndarray],
    start: Float[np.ndarray, "n"],
    time: Validated[Float[ArrayLike, "time"]],
    *,
    tolerance: Validated[float] = 1e-9,
    floor: float | Float[np.ndarray, "*n"] = 1.0,
) -> Float[np.ndarray, "time n"]:
    """States as integrate() returns them, of a flow that is stiff from the first step, as from a large start.

    Multistep, by differentiation formulas of order up to 5. `velocity` is analytic and takes complex states, from
    which its derivatives come without rounding. Cost: `n` evaluations for each of them.

    Raises ValueError as integrate(); ArithmeticError when the flow escapes to infinity or takes too many steps.

    Source: hairer1996stiff, section V.3 (the solver LSODA); derivatives by imaginary steps.
    """
    time = _checked(velocity, start, time, tolerance)
    atol: Any = tolerance * floor
    solver = LSODA(
        lambda _, y: velocity(y), 0.0, start, time[-1], rtol=max(tolerance, 1e-11), atol=atol,
        jac=lambda _, y: _derivatives(velocity, y),
    )  # fmt: skip
    states, filled = np.empty((len(time), len(start))), 0
    for _ in range(MOST_STIFF):
        reached = np.searchsorted(time, solver.t, side="right")
        if reached > filled:
            here = solver.dense_output()(time[filled:reached]).T if solver.t > 0 else np.tile(start, (reached, 1))
            states[filled:reached], filled = here, reached
        if filled == len(time):
            return states
        if solver.status == "failed" or not np.all(np.isfinite(solver.y)):
            break
        solver.step()
    raise ArithmeticError(
        f"the flow stopped at time {solver.t:.6g} of {time[-1]:.6g}: the start is so large that rounding is no "
        "longer small. Shrink the start or the time grid."
    )


def _checked(
    velocity: Callable[[np.ndarray], np.ndarray], start: np.ndarray, time: Validated[ArrayLike], tolerance: float
) -> Float[np.ndarray, "time"]:
    """The grid of times. Raises ValueError for what cannot be integrated."""
    require(
        1e-13 <= tolerance <= 1e-2, f"tolerance must lie in [1e-13, 0.01]; got {tolerance!r}. 1e-9 suits most flows."
    )
    with np.errstate(over="ignore", invalid="ignore"):
        require(
            bool(np.all(np.isfinite(velocity(start)))),
            "start must be small enough for its velocity to be finite; got an overflow. Shrink the start.",
        )
    return increasing_grid("time", time)


def _derivatives(velocity: Callable[[np.ndarray], np.ndarray], state: Float[np.ndarray, "n"]) -> np.ndarray:
    """∂ velocity_i/∂ state_j, from imaginary steps, in which no difference is taken."""
    step = 1e-40
    return np.stack([np.imag(velocity(state + 1j * step * one)) / step for one in np.eye(len(state))], axis=1)


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
