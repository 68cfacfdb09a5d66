"""Landmarks of a run: the levels at which it rests and the times of its drops."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.numerics.curves import rests_and_drops

__all__ = ["LEVELS", "TIMES", "Landmark", "landmarks", "names_of"]

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
