"""Time until training from a start is done: its loss has come as close to the least one as is asked for."""

from collections.abc import Callable, Iterable
from math import ceil

import numpy as np

from iclab.attention import Layer, MergedAttention, SeparateAttention
from iclab.numerics import Validated, instance, require
from iclab.numerics.curves import first_below
from iclab.theory.dynamics.closed_forms import growing_amplitude, reduced_merged_flow
from iclab.theory.dynamics.commuting import commuting_modes
from iclab.theory.dynamics.escape import drop_times
from iclab.theory.dynamics.fixed_points import plateaus
from iclab.theory.dynamics.flows import separate_flow
from iclab.theory.population import Moments

__all__ = ["settling_time"]

BLOW_UPS = 1e4  # times the shortest escape, beyond which the flow of a separate layer is not followed
RELAXATIONS = 5.0  # of a mode after half of its drop: what is left falls by e⁻⁵
UNLEARNED = 0.05  # share of all that can be learned that may be left where the least loss is a high floor
LATEST = 1e3, 1e8  # times the fastest time scale: where to look first, and beyond which nothing is waited for


def settling_time(moments: Validated[Moments], start: Validated[Layer], *, within: Validated[float] = 0.002) -> float:
    """Time after which the loss of gradient flow is within a fraction `within` of the least one of its heads.

    Drops that are not needed for that are not waited for; at least 95 % of what can be learned is. From the closed
    forms of a small start: the scalars of merged attention, the drop times of separate attention and a few relaxation
    times; where heads rotate between modes, or the start is not small, from the flow itself. Infinite where the
    start never gets there, or too late to wait for. Units: τ.

    Raises ValueError for covariances that do not commute, for a start that does not fit them or has several
    key-query pairs to a head, and for a fraction outside (0, 1).

    Source: derived in docs/derivations/stable_rate.
    """
    instance("moments", moments, Moments)
    instance("start", start, MergedAttention | SeparateAttention)
    require(0 < within < 1, f"within must be a fraction between 0 and 1; got {within!r}.")
    levels = plateaus(moments)
    if isinstance(start, SeparateAttention):
        levels = levels[: len(start.value) * start.rank + 1]
    height = levels[-1] + min(within * levels[-1], UNLEARNED * (levels[0] - levels[-1]))
    if levels[0] == levels[-1]:
        return float("inf")
    if isinstance(start, MergedAttention):
        return _merged(moments, start, height)
    try:
        return _after_drops(moments, start, int(np.argmax(levels <= height)))
    except (ValueError, ArithmeticError):
        return _separate(moments, start, height)


def _merged(moments: Moments, start: MergedAttention, height: float) -> float:
    amplitude = growing_amplitude(moments, start)
    return _first_time(moments, lambda time: reduced_merged_flow(moments, amplitude, time).loss, height)


def _after_drops(moments: Moments, start: SeparateAttention, count: int) -> float:
    """Time of so many drops, and of the slowest relaxation among their modes."""
    modes = commuting_modes(moments)
    pace = 3 * modes.signal[:count] * np.cbrt(modes.best[:count])  # of the return to v*
    return float(drop_times(moments, start)[count - 1] + RELAXATIONS / np.min(pace))


def _separate(moments: Moments, start: SeparateAttention, height: float) -> float:
    size = float(np.max(np.abs(start.value), initial=0.0) + np.max(np.abs(start.key)) + np.max(np.abs(start.query)))
    latest = (BLOW_UPS / size,) if size > 0 else ()
    return _first_time(moments, lambda time: separate_flow(moments, start, time, tolerance=1e-6).loss, height, latest)


def _first_time(
    moments: Moments, curve: Callable[[np.ndarray], np.ndarray], height: float, horizons: Iterable[float] = LATEST
) -> float:
    """First time at which a curve is below a height, on grids up to one horizon after another."""
    fastest = float(np.max(commuting_modes(moments).signal))
    for latest in horizons:
        time = np.geomspace(1e-2, latest, 200 * ceil(np.log10(latest) + 2)) / fastest
        try:
            found = first_below(time, curve(time), height)
        except ArithmeticError:  # too long for its steps
            break
        if np.isfinite(found):
            return found
    return float("inf")
