"""Small numerical tools that know nothing of learning."""

import operator
from collections.abc import Callable
from typing import SupportsIndex

import numpy as np
from jaxtyping import Float

Array = np.ndarray


def require(holds: bool, message: str) -> None:
    """Raise ValueError with `message` unless `holds`.

    A message says what must hold, what came and what to do, in that order.
    """
    if not holds:
        raise ValueError(message)


def require_positive(name: str, value: float) -> None:
    """Raise ValueError unless a number is positive and finite."""
    require(bool(np.isfinite(value)) and value > 0, f"{name} must be positive and finite; got {value!r}.")


def nonnegative(name: str, values: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """The values as an array. Raises ValueError with `name` unless all are finite and >= 0."""
    checked = np.asarray(values, dtype=float)
    require(bool(np.all(np.isfinite(checked) & (checked >= 0))), f"{name} must be finite and >= 0; got {values!r}.")
    return checked


def increasing_grid(name: str, values: Float[Array, "n"]) -> Float[Array, "n"]:
    """The values as an array. Raises ValueError with `name` unless they increase strictly from one >= 0."""
    grid = nonnegative(name, values)
    require(grid.ndim == 1 and grid.size > 0, f"{name} must be a non-empty list; got shape {grid.shape}.")
    require(
        bool(np.all(np.diff(grid) > 0)),
        f"{name} must increase strictly; got a step back or a repeat. Sort it and drop repeats.",
    )
    return grid


def increasing_root(
    function: Callable[[Array], tuple[Array, Array]], lower: Float[Array, "*n"], upper: Float[Array, "*n"]
) -> Float[Array, "*n"]:
    """The root in [lower, upper], 0 < lower, of an increasing function, element by element.

    `function(x)` returns its value and its slope in log x. Newton in log x, by bisection wherever a step would
    leave the bracket or is not half the step before it, so that roots at 1e-300 are as sharp as roots at 1 and
    no function takes more than some hundred steps. The bracket must hold:
    function(lower) <= 0 <= function(upper). Relative accuracy: a few units of rounding in x, as far as the
    function itself is that accurate.

    Raises ValueError where the bracket does not hold, ArithmeticError where the root is not reached.
    """
    lower, upper = (np.array(end, dtype=float) for end in np.broadcast_arrays(lower, upper))
    low, high = np.log(lower), np.log(upper)
    below, above = function(lower)[0], function(upper)[0]
    require(
        bool(np.all((below <= 0) & (above >= 0))),
        "the function must be <= 0 at the lower and >= 0 at the upper end of the bracket; "
        f"got {np.max(below)!s} and {np.min(above)!s}. Widen the bracket.",
    )
    point, stride = np.where(below == 0, low, np.where(above == 0, high, 0.5 * (low + high))), high - low
    for _ in range(200):
        value, slope = function(np.exp(point))
        low, high = np.where(value <= 0, point, low), np.where(value >= 0, point, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = point - value / slope
        narrow = 2**-51 * np.maximum(1.0, np.abs(point))
        settled = (value == 0) | (np.abs(newton - point) <= narrow) | (high - low <= narrow)
        if np.all(settled):
            inside = np.clip(np.exp(point), lower, upper)  # the exponential of a logarithm may leave the bracket
            return np.where(below == 0, lower, np.where(above == 0, upper, inside))
        trusted = (newton > low) & (newton < high) & (np.abs(newton - point) <= 0.5 * stride)
        following = np.where(settled, point, np.where(trusted, newton, 0.5 * (low + high)))
        point, stride = following, np.abs(following - point)
    raise ArithmeticError("no root to working precision within 200 steps; the function is not increasing")


def whole_number(name: str, value: SupportsIndex, *, least: int = 1) -> int:
    """`value` as an int. Raises ValueError, which calls it `name`, unless it is a whole number >= `least`."""
    try:
        whole = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        whole = None
    if whole is None or whole < least:
        raise ValueError(f"{name} must be a whole number >= {least}; got {value!r}.")
    return whole
