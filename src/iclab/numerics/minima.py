"""Minimizers of functions of a positive number, for many functions at once."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.numerics.checks import Values

__all__ = ["golden_section", "least", "scanned", "vertex"]

_STEP = 0.02  # in log x; the error of a difference of seven points is of sixth order
_SLOPE = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60
_CURVATURE = np.array([2, -27, 270, -490, 270, -27, 2]) / 180


def least(
    function: Callable[[Any], Values], grid: Float[np.ndarray, "point"], shape: tuple[int, ...] = ()
) -> float | Float[np.ndarray, "*shape"]:
    """The minimizer of a function of a positive number, element by element: a scan of the grid, then polished.

    `function(x)` takes any x within the grid that broadcasts with `shape` and returns the broadcast. The least
    point of the grid is polished between its neighbours, to 1e-14 over the depth of the dip, relative to the
    function, where that is more than 1e-10; at an end of the grid that end is returned. A dip narrower than the
    grid can be missed.
    """
    points = np.asarray(grid, dtype=float)
    heights = function(points.reshape(-1, *(1,) * len(shape)))
    index = np.broadcast_to(np.argmin(heights, axis=0), shape)
    last = len(points) - 1
    lower, upper = points[np.maximum(index - 1, 0)], points[np.minimum(index + 1, last)]
    polished = golden_section(function, lower, upper, tolerance=1e-4)
    sharp = _sharpened(function, polished, points[0], points[-1])
    better = function(sharp) <= function(polished) * (1 + 1e-15)
    if not np.all(better):
        near = np.maximum(lower, polished * (1 - 2e-4)), np.minimum(upper, polished * (1 + 2e-4))
        sharp = np.where(better, sharp, golden_section(function, *near))
    return np.where((index == 0) | (index == last), points[index], sharp)[()]


def _sharpened(function: Callable[[Any], Values], near: Values, lowest: float, highest: float) -> Values:
    """Two Newton steps in log x towards zero slope; slope and curvature from differences of seven points."""
    steps = _STEP * np.arange(-3, 4).reshape(-1, *(1,) * np.ndim(near))
    for _ in range(2):
        heights = function(np.clip(near * np.exp(steps), lowest, highest))
        with np.errstate(divide="ignore", invalid="ignore"):
            step = -_STEP * np.tensordot(_SLOPE, heights, 1) / np.tensordot(_CURVATURE, heights, 1)
        near = near * np.exp(np.where(abs(step) <= _STEP, step, 0.0))  # NaN is no step either
    return np.clip(near, lowest, highest)


def golden_section(
    function: Callable[[Any], Values], lower: Values, upper: Values, *, tolerance: float = 1e-9
) -> Any:
    """The minimizer between two positive numbers of a function that falls and then rises, element by element.

    In log x, to `tolerance` or half of the digits of the function.
    """
    golden = (np.sqrt(5) - 1) / 2
    low, high = np.log(lower), np.log(upper)
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = function(np.exp(left)), function(np.exp(right))
    while np.max(high - low, initial=0.0) > tolerance:
        falls = at_left > at_right
        low, high = np.where(falls, left, low), np.where(falls, high, right)
        left, right = (
            np.where(falls, right, high - golden * (high - low)),
            np.where(falls, low + golden * (high - low), left),
        )
        fresh = function(np.exp(np.where(falls, right, left)))
        at_left, at_right = np.where(falls, at_right, fresh), np.where(falls, fresh, at_left)
    return np.exp(0.5 * (low + high))[()]


def scanned(
    error: Callable[[Any], Float[np.ndarray, "..."]], points: Float[np.ndarray, "point"], *, lowest: float
) -> Float[np.ndarray, "n"]:
    """The positive number of least error in a scan of equal ratios, by the parabola through it and its neighbors.

    0 where no point has less error than the lowest number, inf where none has less than infinity.
    """
    heights = error(points[:, None])
    index = np.clip(np.argmin(heights, axis=0), 1, len(points) - 2)
    floor = np.min(heights, axis=0) * (1 + 1e-14)  # equal up to rounding
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # of level errors
        three = heights[index + np.arange(-1, 2)[:, None], np.arange(len(index))]
        inner = vertex(points[index], three, points[1] / points[0])
    return np.where(error(lowest) <= floor, 0.0, np.where(error(np.inf) <= floor, np.inf, inner))


def vertex(
    middle: Float[np.ndarray, "*n"] | float, errors: Float[np.ndarray, "3 *n"], factor: float
) -> Float[np.ndarray, "*n"] | np.floating:
    """The least point of the parabola in log x through errors at a point over the factor, at it, and times it."""
    below, here, above = errors
    return middle * factor ** ((below - above) / (2 * (below - 2 * here + above)))
