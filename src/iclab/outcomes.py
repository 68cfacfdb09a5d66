"""What witnesses return: frozen arrays whose fields know their symbol, their axes and their unit."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.numerics import Values


@dataclass(frozen=True)
class Quantity:
    """How one field of an outcome is written: its symbol, the names of its axes, its unit, in words."""

    symbol: str
    axes: tuple[str, ...]
    unit: str
    words: str


def quantity(symbol: str, *axes: str, unit: str = "", words: str = "") -> Any:
    """A dataclass field that holds an array over named axes."""
    return field(metadata={"quantity": Quantity(symbol, axes, unit, words)})


def quantities(outcome: Any) -> Iterator[tuple[str, Quantity, np.ndarray]]:
    """Name, description and array of each field of an outcome, weights inside it included.

    An outcome with several leading axes more than a field names is refused by whoever labels it.
    """
    for entry in fields(outcome):
        value = getattr(outcome, entry.name)
        if "quantity" in entry.metadata:
            yield entry.name, entry.metadata["quantity"], np.asarray(value)
        elif is_dataclass(value):
            yield from quantities(value)


@dataclass(frozen=True)
class LossCurve:
    """Mean squared error along training."""

    time: Float[np.ndarray, "time"] = quantity("t", "time", unit="τ", words="training time")
    loss: Float[np.ndarray, "time"] = quantity("L", "time", unit="label²", words="mean squared error")


@dataclass(frozen=True)
class Trajectory:
    """Loss and weights along training; the weights carry `time` as their leading axis."""

    time: Float[np.ndarray, "time"]
    loss: Float[np.ndarray, "time"]
    weights: Any


@dataclass(frozen=True)
class Levels:
    """Losses of the plateaus, from nothing learned to everything learned."""

    level: Float[np.ndarray, "plateau"] = quantity("L(M_m)", "plateau", unit="label²", words="loss of a plateau")


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
class EstimatorErrors:
    """Mean squared errors of an estimator that knows a pool of tasks: on new tasks and on tasks of the pool."""

    icl: Values = quantity("e_ICL", unit="label²", words="error on new tasks")
    idg: Values = quantity("e_IDG", unit="label²", words="error on tasks of the pool")
