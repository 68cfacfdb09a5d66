"""Errors after finite pretraining."""

from dataclasses import dataclass

from iclab.numerics import Values
from iclab.outcomes.labeled import quantity


@dataclass(frozen=True)
class Errors:
    """Mean squared errors after finite pretraining: on new tasks (ICL), on tasks of the pool (IDG), on its data.

    The noise of the target is included in all three. Fields are arrays where the question was a grid.
    """

    icl: Values = quantity("e_ICL", unit="label²", words="error on new tasks")
    idg: Values = quantity("e_IDG", unit="label²", words="error on tasks of the pool")
    train: Values = quantity("e_train", unit="label²", words="error on the pretraining data")
    effective_ridge: Values = quantity("ξ", words="effective ridge")


@dataclass(frozen=True)
class FittedErrors:
    """Mean squared errors of a fitted readout: on new tasks (ICL), on tasks of the pool (IDG), on its data."""

    icl: Values = quantity("e_ICL", unit="label²", words="error on new tasks")
    idg: Values = quantity("e_IDG", unit="label²", words="error on tasks of the pool")
    train: Values = quantity("e_train", unit="label²", words="error on the pretraining data")


@dataclass(frozen=True)
class EstimatorErrors:
    """Mean squared errors of an estimator that knows a pool of tasks: on new tasks and on tasks of the pool."""

    icl: Values = quantity("e_ICL", unit="label²", words="error on new tasks")
    idg: Values = quantity("e_IDG", unit="label²", words="error on tasks of the pool")
