"""Does attention with merged key and query learn in context in one abrupt drop?

Linear attention whose key and query are one matrix for each head has two fixed points: nothing learned, and
the least loss. From a small start it waits near the first and then drops to the second. Theory is the
gradient flow of the population loss; simulation is gradient descent, on the population moments to show that
it becomes that flow as its step shrinks, and on drawn sequences, with every weight that reaches the
prediction free, to show where a finite training set ends up. Published as figure 1 of arXiv 2501.16265.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from iclab import theory as theories
from iclab.agreement import ExactInRate, LimitInSequences
from iclab.attention import MergedAttention, random_merged
from iclab.outcomes import Levels, LossByRate, LossBySequences, LossCurve, Trajectory
from iclab.problem import Regression
from iclab.study import Study

if TYPE_CHECKING:
    import xarray as xr
    from jax import Array
    from matplotlib.figure import Figure

EPOCH = 0.062  # training time of one epoch of the published run: 2 × .001 × 31


@dataclass(frozen=True)
class Case:
    """One run of merged key-query attention."""

    problem: Regression = Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31)
    heads: int = 8  # H
    initial: float = 5.57e-6  # standard deviation of every entry at the start; published: 1e-6 × √31
    rate: float = EPOCH  # η, step of gradient descent on half the mean squared error
    steps: int = 6000  # steps of gradient descent
    sequences: tuple[int, ...] = (2000, 8000, 32000)  # P, sizes of the training sets


def start(case: Case, seed: int) -> MergedAttention:
    """Small independent normal entries."""
    return random_merged(case.problem.dimension, case.heads, scale=case.initial, rng=np.random.default_rng(seed))


def theory(case: Case, start: MergedAttention) -> dict[str, LossCurve | Levels]:
    """The gradient flow, its two levels, and the loss of the D + 1 scalars that a small start reduces to."""
    dynamics, population = theories.dynamics, theories.population
    moments = population.moments(case.problem)
    time = record(case) * case.rate
    return {
        "flow": dynamics.merged_flow(moments, start, time),
        "reduced": dynamics.reduced_merged_flow(moments, dynamics.growing_amplitude(moments, start), time),
        "levels": Levels(np.array([moments.null_loss, population.best_loss(moments)])),
    }
