"""Pretraining at finite dimension: exact errors of a readout, and predicted errors for a given pool."""

from iclab.problem import ContextLaw, NormalTasks, Pool, SphereTasks
from iclab.problem.readouts import exact_error, readout_of
from iclab.theory.pretraining.predictions import LEAST_DIMENSION, leverage_errors, pool_errors

__all__ = [
    "LEAST_DIMENSION",
    "ContextLaw",
    "NormalTasks",
    "Pool",
    "SphereTasks",
    "exact_error",
    "leverage_errors",
    "pool_errors",
    "readout_of",
]  # fmt: skip
