"""The solver behind every flow of modes."""

from collections.abc import Callable
from itertools import count

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from iclab.numerics import require

Array = np.ndarray
EVALUATIONS = 300_000


def integrate(
    velocity: Callable[[Float[Array, "n"]], Float[Array, "n"]],
    start: Float[Array, "n"],
    time: Float[Array, "time"],
    *,
    scale: Float[Array, "n"],
) -> Float[Array, "time n"]:
    """Path of weights under `velocity` from `start` at rising times from 0.

    LSODA, since eigenvalues that differ by 100 make rates that differ by 10⁴. Errors: relative 1e-10, absolute
    1e-13 of `scale`, the size of the start, so that escapes from tiny starts are sharp.

    Raises ArithmeticError where the solver stops early or needs more than 300000 evaluations (some 10 s).

    Source: no formula; the solver behind every flow of modes.
    """
    floor = np.where(scale > 0, scale, np.max(scale) or 1.0)
    evaluations = count()

    def counted(now: float, weights: Float[Array, "n"]) -> Float[Array, "n"]:
        if next(evaluations) >= EVALUATIONS:
            raise ArithmeticError(
                f"the flow took {EVALUATIONS} evaluations to time {now:.3g} of {time[-1]:.3g}: its rates are too far "
                "apart. Leave out eigenvalues that learn nothing in that time, or start smaller."
            )
        return velocity(weights)

    path = solve_ivp(
        counted,
        (0.0, time[-1] or 1.0),
        start,
        method="LSODA",
        t_eval=time,
        rtol=1e-10,
        atol=1e-13 * floor,
    )
    if not path.success:
        raise ArithmeticError(f"the flow was not solved to time {time[-1]!s}: {path.message} Use a smaller start.")
    return path.y.T


def checked_time(time: ArrayLike) -> Float[Array, "time"]:
    """Times in rising order as an array. Raises ValueError for negative, falling or infinite ones.

    Source: no formula; reads the times of every law of modes.
    """
    times = np.atleast_1d(np.asarray(time, dtype=float))
    require(
        times.ndim == 1 and len(times) > 0 and bool(np.all(np.isfinite(times))) and times[0] >= 0,
        "time must be a list of finite times >= 0; got one that is empty, negative or not finite.",
    )
    require(bool(np.all(np.diff(times) >= 0)), "time must not fall from one entry to the next. Sort it.")
    return times
