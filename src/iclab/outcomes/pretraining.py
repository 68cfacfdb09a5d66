"""Errors after finite pretraining."""

from dataclasses import dataclass

from iclab.numerics import Values
from iclab.outcomes.labeled import quantity, shared

__all__ = ["Errors", "EstimatorErrors", "FittedErrors"]


@dataclass(frozen=True)
class Errors:
    """Mean squared errors after finite pretraining: on new tasks (ICL), on tasks of the pool (IDG), on its data.

    The noise of the target is included in all three. Fields are arrays where the question was a grid.
    """

    icl: Values = shared()
    idg: Values = shared()
    train: Values = shared()
    effective_ridge: Values = quantity("ξ", words="effective ridge")


@dataclass(frozen=True)
class FittedErrors:
    """Mean squared errors of a fitted readout: on new tasks (ICL), on tasks of the pool (IDG), on its data."""

    icl: Values = shared()
    idg: Values = shared()
    train: Values = shared()


@dataclass(frozen=True)
class EstimatorErrors:
    """Mean squared errors of an estimator that knows a pool of tasks: on new tasks and on tasks of the pool."""

    icl: Values = shared()
    idg: Values = shared()
