"""Outcomes of training linear attention."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.outcomes.labelled import quantity, unlabelled


@dataclass(frozen=True)
class LossCurve:
    """Mean squared error along training."""

    time: Float[np.ndarray, "time"] = quantity("t", "time", unit="τ", words="training time")
    loss: Float[np.ndarray, "time"] = quantity("L", "time", unit="label²", words="mean squared error")


@dataclass(frozen=True)
class Trajectory(LossCurve):
    """Loss and weights along training; the weights carry `time` as their leading axis and are not labelled."""

    weights: Any = unlabelled()


@dataclass(frozen=True)
class HeadCurves(LossCurve):
    """Loss of separate key-query attention, and the one head that each mode is learned by.

    Heads stand in the order of the modes they learn; alignment is the smaller |cosine| of the head's key and
    query with the eigenvector of its mode.
    """

    value: Float[np.ndarray, "time mode"] = quantity("|v|", "time", "mode", words="value weight of the mode's head")
    alignment: Float[np.ndarray, "time mode"] = quantity("|cos|", "time", "mode", words="alignment with the mode")


@dataclass(frozen=True)
class ValueCurves:
    """Value weights along training, of one head for each mode."""

    time: Float[np.ndarray, "time"] = quantity("t", "time", unit="τ", words="training time")
    value: Float[np.ndarray, "time mode"] = quantity("|v|", "time", "mode", words="value weight of the mode's head")


@dataclass(frozen=True)
class Levels:
    """Losses of the plateaus, from nothing learned to everything learned."""

    loss: Float[np.ndarray, "plateau"] = quantity("L(M_m)", "plateau", unit="label²", words="loss of a plateau")


@dataclass(frozen=True)
class DropCounts:
    """How often the loss of each kind of attention drops between stages."""

    merged: int = quantity("n", words="drops with merged key and query")
    separate: int = quantity("n", words="drops with separate key and query")


@dataclass(frozen=True)
class SearchEnds:
    """Where searches for a vanishing gradient ended."""

    loss: Float[np.ndarray, "search"] = quantity("L", "search", unit="label²", words="loss at the end")
    slope: Float[np.ndarray, "search"] = quantity("|∇L|/2", "search", words="length of the gradient at the end")
