"""Roots of increasing functions, for many functions at once."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from iclab.numerics.checks import Values, every

__all__ = ["border", "increasing_root"]

_SHARP, _SHORT = 2.0**-49, 2.0**-13  # 8 units of rounding; a step whose fourth power is less than one


def increasing_root(
    function: Callable[[Any], tuple[Values, Values]],
    lower: Values,
    upper: Values,
    *,
    start: Values | None = None,
) -> Any:
    """The root in [lower, upper], 0 < lower, of an increasing function, element by element.

    `function(x)` returns its value and its slope in log x. Newton in log x, by bisection wherever a step would
    leave the bracket and, from the twelfth step on, every third time, so that roots at 1e-300 are as sharp as
    roots at 1 and no function takes more than some two hundred steps. A root is accepted when value/slope, its
    relative error, is a few units of rounding; when a short step is followed by one below its square, which
    shows that the next would be; or when the bracket has closed on it. The bracket must hold:
    function(lower) <= 0 <= function(upper). With a guess `start`, its ends are evaluated only in doubt.

    Raises ValueError where the bracket does not hold, ArithmeticError where the root is not reached.
    """
    lower, upper = np.asarray(lower, dtype=float)[()], np.asarray(upper, dtype=float)[()]
    low, high, settled, before = lower, upper, np.False_, np.inf
    if start is None:
        below, above = _ends(function, lower, upper)
        middle = np.sqrt(lower) * np.sqrt(upper)
        point = np.where(below == 0, lower, np.where(above == 0, upper, middle))[()]
    else:
        point = np.asarray(start, dtype=float)[()]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for count in range(300):
            value, slope = function(point)
            step = -np.divide(value, slope)
            step = np.where(settled & np.isnan(step), 0.0, step)[
                ()
            ]  # ∞/∞ where a root lies on the end of its bracket
            newton = point * np.exp(step)
            size = abs(step)
            settled = settled | (size <= _SHARP) | ((before <= _SHORT) & (size <= before**2))
            if every(settled):
                return np.minimum(np.maximum(newton, lower), upper)
            low, high = np.maximum(low, point * (value <= 0)), np.minimum(high, point / (value >= 0))
            trusted = settled | (newton > low) & (newton < high) & (count < 12 or count % 3 > 0)
            if not every(trusted):
                if every(settled | (high <= low * (1 + _SHARP))):
                    break
                newton = np.where(trusted, newton, np.sqrt(low) * np.sqrt(high))[()]
            point, before = newton, size
    _ends(function, lower, upper)
    if every(settled | (high <= low * (1 + _SHARP))):
        return np.where(settled, point, low)[()]
    raise ArithmeticError("no root to working precision within 300 steps; the function is not increasing")


def _ends(function: Callable[[Any], tuple[Values, Values]], lower: Values, upper: Values) -> tuple[Values, Values]:
    """The function at both ends of a bracket. Raises ValueError unless it holds, to within rounding."""
    (below, rise), (above, climb) = function(lower), function(upper)
    if not np.all((below <= _SHARP * rise) & (above >= -_SHARP * climb)):
        raise ValueError(
            "the function must be <= 0 at the lower and >= 0 at the upper end of the bracket; "
            f"got {np.max(below, initial=-np.inf)!s} and {np.min(above, initial=np.inf)!s}. Widen the bracket."
        )
    return below, above


def border(
    holds: Callable[[Any], Bool[np.ndarray, "*n"]], low: Float[np.ndarray, "*n"], high: Float[np.ndarray, "*n"], *,
    halvings: int,
) -> Float[np.ndarray, "*n"]:  # fmt: skip
    """The numbers up to which a condition holds, between a low one where it does and a high one where it does not.

    By bisection, element by element, to a share 2^-halvings of the brackets.
    """
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        inside = holds(middle)
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return 0.5 * (low + high)
