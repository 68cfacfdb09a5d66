"""What witnesses return: frozen arrays whose fields know their symbol, their axes and their unit."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from iclab.numerics import require


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


def unlabelled() -> Any:
    """A dataclass field for programs alone: it takes no part in labelled results."""
    return field()


def quantities(outcome: Any) -> Iterator[tuple[str, Quantity, np.ndarray]]:
    """Name, description and array of each labelled field of an outcome.

    Raises ValueError where an array has not one axis for each name.
    """
    for entry in fields(outcome):
        if "quantity" in entry.metadata:
            described, array = entry.metadata["quantity"], np.asarray(getattr(outcome, entry.name))
            name = f"{type(outcome).__name__}.{entry.name}"
            require(
                array.ndim == len(described.axes),
                f"{name} must have the axes {described.axes}; got shape {array.shape}.",
            )
            yield entry.name, described, array


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
class LossByRate:
    """Mean squared error along gradient descent at several step sizes, all at the same times."""

    rate: Float[np.ndarray, "rate"] = quantity("η", "rate", words="step of gradient descent")
    time: Float[np.ndarray, "time"] = quantity("t", "time", unit="τ", words="training time")
    loss: Float[np.ndarray, "rate time"] = quantity("L", "rate", "time", unit="label²", words="mean squared error")


@dataclass(frozen=True)
class LossBySequences:
    """Mean squared error on training sets of several sizes, along gradient descent on each."""

    sequences: Int[np.ndarray, "sequences"] = quantity("P", "sequences", words="training sequences")
    time: Float[np.ndarray, "time"] = quantity("t", "time", unit="τ", words="training time")
    loss: Float[np.ndarray, "sequences time"] = quantity(
        "L", "sequences", "time", unit="label²", words="mean squared error"
    )


@dataclass(frozen=True)
class Levels:
    """Losses of the plateaus, from nothing learned to everything learned."""

    loss: Float[np.ndarray, "plateau"] = quantity("L(M_m)", "plateau", unit="label²", words="loss of a plateau")
