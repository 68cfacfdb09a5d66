"""A start in the place of one that is not known: random weights of the size at which the first drop comes in time."""

import numpy as np

from iclab.attention import Layer, random_merged, random_separate
from iclab.numerics.curves import first_below
from iclab.overlay.conventions import Conventions
from iclab.overlay.curves import theory_loss
from iclab.overlay.logs import LossLog
from iclab.problem import Regression

__all__ = ["stand_in"]

SIZES = 1e-6, 1.0  # between which the size is looked for
HALVINGS = 12
RECORDS = 400
USUAL = 0.01  # size where the run shows no drop


def stand_in(log: LossLog, problem: Regression, conventions: Conventions, levels: np.ndarray) -> Layer:
    """A layer of random weights whose flow makes its first drop when the run does."""
    half = float(levels[0] + levels[1]) / 2
    drop = first_below(log.clock, conventions.errors(log.loss), half)
    if not np.isfinite(drop) or drop <= 0:
        return _random(problem, conventions, USUAL)
    clock = np.linspace(0, 3 * drop, RECORDS)
    low, high = np.log(SIZES)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        loss = theory_loss(problem, conventions, _random(problem, conventions, float(np.exp(middle))), clock)
        early = first_below(clock, loss, half) < drop
        low, high = (low, middle) if early else (middle, high)
    return _random(problem, conventions, float(np.exp((low + high) / 2)))


def _random(problem: Regression, conventions: Conventions, size: float) -> Layer:
    rng, d = np.random.default_rng(0), problem.dimension
    draw = random_merged if conventions.attention == "merged" else random_separate
    return draw(d, conventions.heads or d, scale=size, rng=rng)
