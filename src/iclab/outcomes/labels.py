"""Arrays that know their symbol, their axes and their unit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

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
    "dimension": Quantity("D", ("dimension",), "", "entries of an input"),
    "alpha": Quantity("α", ("alpha",), "", "examples of a context for each dimension, N/D"),
    "kappa": Quantity("κ", ("kappa",), "", "tasks of the pool for each dimension, K/D"),
    "tau": Quantity("τ", ("tau",), "", "pretraining sequences for each squared dimension, n/D²"),
    "ridge": Quantity("λ", ("ridge",), "", "ridge of the readout"),
}
"""The axes along which `Measured` and `Table` may lie and whose points have values."""


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


@dataclass(frozen=True)
class Table:
    """Several quantities over the same named axes, in their order.

    `columns` holds each quantity by name: symbol, unit, words, values.
    """

    axes: Mapping[str, np.ndarray]
    columns: Mapping[str, tuple[str, str, str, np.ndarray]]

    def quantities(self) -> Iterator[tuple[str, Quantity, np.ndarray]]:
        """The points of the axes, then the quantities themselves."""
        for axis, points in self.axes.items():
            yield axis, AXES[axis], np.asarray(points)
        for name, (symbol, unit, words, values) in self.columns.items():
            yield name, Quantity(symbol, tuple(self.axes), unit, words), np.asarray(values)


def losses(values: np.ndarray, **axes: np.ndarray | None) -> Measured:
    """Mean squared errors over named axes, as in losses(curves, rate=rates, time=time)."""
    return Measured("loss", "L", "label²", "mean squared error", values, axes)


def half_drops(values: np.ndarray, **axes: np.ndarray | None) -> Measured:
    """Times, in units of τ, at which half of a drop of the loss is made."""
    return Measured("half_drop", "t½", "τ", "time of a half drop", values, axes)


def answers(values: np.ndarray, **axes: np.ndarray | None) -> Measured:
    """Labels that layers answer to queries."""
    return Measured("answer", "ŷ", "label", "answer", values, axes)


def quantities(outcome: Any) -> Iterator[tuple[str, Quantity, np.ndarray]]:
    """Name, description and array of each labelled part of an outcome.

    Raises ValueError where an array has not one axis for each name.
    """
    parts = outcome.quantities() if isinstance(outcome, Measured | Table) else _fields(outcome)
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
