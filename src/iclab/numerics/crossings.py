"""Sizes at which a curve that is not monotone stays below a level: scans, dips and peaks, crossings."""

from collections.abc import Callable

import numpy as np

from iclab.numerics.checks import MOST, Values
from iclab.numerics.minima import golden_section

__all__ = ["Curve", "Interval", "intervals", "with_turns"]

Curve = Callable[[Values], Values]
Interval = tuple[float, float]


def with_turns(curve: Curve, scan: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sizes of a scan and the curve there, with its dips and peaks polished. The scan may end at infinity."""
    sizes, heights = scan, np.asarray(curve(scan))
    inner = np.arange(2, len(sizes) - 2)
    turns = []
    for sign in (1, -1):
        left, here, right = (sign * heights[inner + step] for step in (-1, 0, 1))
        at = inner[(here < left) & (here <= right) & np.isfinite(here)]
        turns.append(
            golden_section(lambda x, sign=sign: sign * curve(x), sizes[at - 1], sizes[at + 1], tolerance=1e-6)
        )
    sizes = np.unique(np.concatenate([sizes, *turns]))
    return sizes, np.asarray(curve(sizes))


def intervals(curve: Curve, sizes: np.ndarray, heights: np.ndarray, level: float) -> tuple[Interval, ...]:
    """Closed intervals on which the curve is at most the level, in rising order; from 0 if the first size is."""
    reached = heights <= level
    edges = [0.0] if reached[0] else []
    for i in np.flatnonzero(reached[1:] != reached[:-1]):
        edges.append(_crossing(curve, float(sizes[i]), float(sizes[i + 1]), level, rising=bool(reached[i])))
    if reached[-1]:
        edges.append(np.inf)
    return tuple(zip(edges[::2], edges[1::2], strict=True))


def _crossing(curve: Curve, low: float, high: float, level: float, *, rising: bool) -> float:
    """The crossing of curve and level, on the side where the level is reached; eight scans, each of 64 parts.

    A size of 1e40 represents all larger ones; if it is not yet on the side of infinity, only infinity is.
    """
    ends = low, min(high, MOST)
    if np.isinf(high) and (float(curve(MOST)) <= level) == rising:
        return MOST if rising else np.inf
    for _ in range(8):
        sizes = np.geomspace(*ends, 65)
        beyond = (np.asarray(curve(sizes)) <= level) != rising
        first = int(np.argmax(beyond[1:])) + 1
        ends = float(sizes[first - 1]), float(sizes[first])
    return ends[0] if rising else ends[1]
