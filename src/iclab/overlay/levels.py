"""Landmarks of a run: the levels at which it rests and the times of its drops."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from iclab.numerics.curves import rests_and_drops

__all__ = ["LEVELS", "TIMES", "Landmark", "blurs", "landmarks", "names_of"]

Array = np.ndarray
Curve = Float[Array, "record"]
CLOSE = 0.02  # of the range: levels that are closer are one


@dataclass(frozen=True)
class Landmark:
    """A kind of landmark, and what is claimed of it."""

    variable: str
    meaning: str
    measure: str


LEVELS = Landmark(
    "levels/loss",
    "The run begins, rests and ends where training sets of its size do.",
    "relative deviation of a level",
)
TIMES = Landmark(
    "drops/time", "The drops come when they do on training sets of its size.", "relative deviation of a drop's time"
)


def landmarks(
    clock: Curve, curves: Float[Array, "*draw record"], levels: Float[Array, "plateau"]
) -> dict[str, Float[Array, "draw entry"]]:
    """Logarithms of the landmarks of curves, by kind; NaN where a curve has none."""
    rows = np.atleast_2d(curves)
    apart = _distinct(levels)
    found = [rests_and_drops(clock, row, apart) for row in rows]
    with np.errstate(invalid="ignore", divide="ignore"):
        rests, drops = (np.log(np.array(part)) for part in zip(*found, strict=True))
        return {LEVELS.variable: np.column_stack([np.log(rows[:, 0]), rests]), TIMES.variable: drops}


def blurs(
    clock: Curve, curves: Float[Array, "draw record"], levels: Float[Array, "plateau"]
) -> Float[Array, "entry"]:
    """Relative errors of drop times by the distance of records: what a log knows of a drop that falls between two.

    The distance over √12, as of a time that may be anywhere in it, times the share of the drop that falls there.
    """
    apart = _distinct(levels)
    spacing = np.log(clock[1:] / np.maximum(clock[:-1], clock[1:] / np.e))
    found = np.zeros((len(curves), len(apart) - 1))
    for row, curve in enumerate(curves):
        for drop, (high, low) in enumerate(pairwise(apart)):
            below = np.flatnonzero(curve < (high + low) / 2)
            at = below[0] - 1 if len(below) and below[0] > 0 else 0
            share = min(1.0, max(0.0, (curve[at] - curve[at + 1]) / (high - low)))
            found[row, drop] = spacing[at] * share / np.sqrt(12)
    return found.mean(axis=0)


def names_of(kind: Landmark, entries: int) -> list[str]:
    """Names of the entries of a kind."""
    if kind is TIMES:
        return [f"drop {i + 1}" for i in range(entries)]
    return ["the start", *(f"the rest after drop {i + 1}" for i in range(entries - 2)), "the end"]


def _distinct(levels: Float[Array, "plateau"]) -> Float[Array, "plateau"]:
    """The levels that can be told apart."""
    kept = [levels[0]]
    for level in levels[1:]:
        if kept[-1] - level > CLOSE * np.ptp(levels):
            kept.append(level)
    return np.array(kept)
