"""What witnesses return: frozen arrays whose fields know their symbol, their axes and their unit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from jaxtyping import Float

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
    """Name, description and array of each labelled part of an outcome.

    Raises ValueError where an array has not one axis for each name.
    """
    parts = outcome.quantities() if isinstance(outcome, Measured) else _fields(outcome)
    for name, described, array in parts:
        whole = f"{type(outcome).__name__}.{name}"
        require(
            array.ndim == len(described.axes),
            f"{whole} must have the axes {described.axes}; got shape {array.shape}.",
        )
        yield name, described, array


def _fields(outcome: Any) -> Iterator[tuple[str, Quantity, np.ndarray]]:
    for entry in fields(outcome):
        if "quantity" in entry.metadata:
            yield entry.name, entry.metadata["quantity"], np.asarray(getattr(outcome, entry.name))


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


AXES = {
    "time": Quantity("t", ("time",), "τ", "training time"),
    "rate": Quantity("η", ("rate",), "", "step of gradient descent"),
    "sequences": Quantity("P", ("sequences",), "", "training sequences"),
    "rank": Quantity("R", ("rank",), "", "key-query pairs of a head"),
    "initial": Quantity("s", ("initial",), "", "size of the start"),
    "context_length": Quantity("N", ("context_length",), "", "labelled examples before the query"),
    "noise": Quantity("ρ", ("noise",), "label²", "variance of the label noise"),
    "tilt": Quantity("p", ("tilt",), "", "power of the input eigenvalues"),
    "fraction": Quantity("p", ("fraction",), "", "fraction of sequences with fresh tasks"),
}
"""The axes along which `Measured` may lie and whose points have values."""


@dataclass(frozen=True)
class Measured:
    """One quantity over named axes, in their order.

    `axes` holds the points of each axis, or None where it only counts.
    """

    name: str
    symbol: str
    unit: str
    words: str
    values: np.ndarray
    axes: Mapping[str, np.ndarray | None]

    def quantities(self) -> Iterator[tuple[str, Quantity, np.ndarray]]:
        """The points of the axes, then the quantity itself."""
        for axis, points in self.axes.items():
            if points is not None:
                yield axis, AXES[axis], np.asarray(points)
        yield self.name, Quantity(self.symbol, tuple(self.axes), self.unit, self.words), np.asarray(self.values)


def losses(values: np.ndarray, **axes: np.ndarray | None) -> Measured:
    """Mean squared errors over named axes, as in losses(curves, rate=rates, time=time)."""
    return Measured("loss", "L", "label²", "mean squared error", values, axes)


def half_drops(values: np.ndarray, **axes: np.ndarray | None) -> Measured:
    """Times, in units of τ, at which half of a drop of the loss is made."""
    return Measured("half_drop", "t½", "τ", "time of a half drop", values, axes)


def answers(values: np.ndarray, **axes: np.ndarray | None) -> Measured:
    """Labels that layers answer to queries."""
    return Measured("answer", "ŷ", "label", "answer", values, axes)
