"""Outcomes of training linear attention."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.outcomes.labeled import shared, unlabeled

__all__ = ["LossCurve", "Trajectory"]


@dataclass(frozen=True)
class LossCurve:
    """Mean squared error along training."""

    time: Float[np.ndarray, "time"] = shared("time")
    loss: Float[np.ndarray, "*batch time"] = shared("time")


@dataclass(frozen=True)
class Trajectory(LossCurve):
    """Loss and weights along training; the weights carry `time` as their leading axis and are not labeled."""

    weights: Any = unlabeled()
