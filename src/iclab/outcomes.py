"""What witnesses return: frozen arrays whose fields know their symbol, their axes and their unit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
from jaxtyping import Float

from iclab.numerics import Values, require


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
class ModeCurves:
    """A transformer of two diagonal factors along training, mode by mode, in the eigenbasis of the inputs."""

    time: Float[np.ndarray, "time"] = quantity("t", "time", unit="τ", words="training time")
    value: Float[np.ndarray, "time mode"] = quantity("p", "time", "mode", words="value weight of a mode")
    key_query: Float[np.ndarray, "time mode"] = quantity("q", "time", "mode", words="key-query weight of a mode")
    strength: Float[np.ndarray, "time mode"] = quantity("p q", "time", "mode", words="strength of a mode")
    loss: Float[np.ndarray, "time"] = quantity("L", "time", unit="label²", words="mean squared error")

    @classmethod
    def of(cls, time: np.ndarray, value: np.ndarray, key_query: np.ndarray, loss: np.ndarray) -> Self:
        """The curves of given weights; the strengths are their products."""
        return cls(time, value, key_query, value * key_query, loss)


@dataclass(frozen=True)
class MatrixCurves:
    """A transformer of two full matrices along training, in the eigenbasis of the inputs.

    The misalignment is the share of the weights' norm that lies off the diagonals, the balance |p|² − |q|².
    """

    time: Float[np.ndarray, "time"] = quantity("t", "time", unit="τ", words="training time")
    value: Float[np.ndarray, "time row column"] = quantity("p", "time", "row", "column", words="value matrix")
    key_query: Float[np.ndarray, "time row column"] = quantity("q", "time", "row", "column", words="key-query matrix")
    strength: Float[np.ndarray, "time mode"] = quantity("p q", "time", "mode", words="strength of a mode")
    misalignment: Float[np.ndarray, "time"] = quantity("off/all", "time", words="share of the norm off the diagonals")
    balance: Float[np.ndarray, "time"] = quantity("|p|²−|q|²", "time", words="balance of the two factors")
    loss: Float[np.ndarray, "time"] = quantity("L", "time", unit="label²", words="mean squared error")

    @staticmethod
    def readings(value: np.ndarray, key_query: np.ndarray) -> dict[str, np.ndarray]:
        """Strength, misalignment and balance of given matrices, whatever axes stand before their last two."""
        diagonal = [np.einsum("...ii->...i", matrix) for matrix in (value, key_query)]
        size = [np.sum(matrix**2, (-2, -1)) for matrix in (value, key_query)]
        total = size[0] + size[1]
        off = np.maximum(total - sum(np.sum(entries**2, -1) for entries in diagonal), 0.0)
        share = np.sqrt(off / np.where(total > 0, total, 1.0))
        return {"strength": diagonal[0] * diagonal[1], "misalignment": share, "balance": size[0] - size[1]}


@dataclass(frozen=True)
class TransformerCurves(MatrixCurves):
    """The whole linear transformer along training.

    `stray` is the norm of the blocks that no expected gradient drives: value entries that read inputs, key-query
    entries that read labels. The loss is that of the batch each step is taken on, before the step.
    """

    stray: Float[np.ndarray, "time"] = quantity("|p₁|, |q₂|", "time", words="norm of the undriven blocks")


@dataclass(frozen=True)
class SingleHeadCurves:
    """One head with a scalar value and a diagonal key-query matrix along training."""

    time: Float[np.ndarray, "time"] = quantity("t", "time", unit="τ", words="training time")
    value: Float[np.ndarray, "time"] = quantity("u", "time", words="value weight")
    key_query: Float[np.ndarray, "time mode"] = quantity("U", "time", "mode", words="key-query weight of a mode")
    strength: Float[np.ndarray, "time mode"] = quantity("u U", "time", "mode", words="strength of a mode")
    loss: Float[np.ndarray, "time"] = quantity("L", "time", unit="label²", words="mean squared error")


@dataclass(frozen=True)
class ExpectedLoss:
    """Loss of stochastic gradient descent, averaged over the draws, beside that of descent on the population.

    `stable` says whether the rate lies below the critical one; above it the average grows without bound, although
    most runs may look healthy, and is inf after overflow.
    """

    time: Float[np.ndarray, "time"] = quantity("t", "time", unit="τ", words="training time")
    loss: Float[np.ndarray, "time"] = quantity("E L", "time", unit="label²", words="expected mean squared error")
    deterministic: Float[np.ndarray, "time"] = quantity(
        "L̄", "time", unit="label²", words="mean squared error of descent on the population"
    )
    stable: bool = quantity("η < η_c", words="whether the rate is below the critical one")


@dataclass(frozen=True)
class SmallNoiseLoss:
    """Loss and balance of stochastic gradient descent to first order in the gradient's variance.

    `spread` is the standard deviation of the weights relative to their norm: the expansion holds while it is small.
    `stable` says whether descent on the population is stable where the run ends; noise may forbid it earlier.
    """

    time: Float[np.ndarray, "time"] = quantity("t", "time", unit="τ", words="training time")
    loss: Float[np.ndarray, "time"] = quantity("E L", "time", unit="label²", words="expected mean squared error")
    deterministic: Float[np.ndarray, "time"] = quantity(
        "L̄", "time", unit="label²", words="mean squared error of descent on the population"
    )
    balance: Float[np.ndarray, "time"] = quantity("E u²−|U|²", "time", words="expected balance of the two factors")
    spread: Float[np.ndarray, "time"] = quantity("δW/W", "time", words="relative spread of the weights")
    stable: bool = quantity("stable", words="whether descent on the population is stable at the end")


@dataclass(frozen=True)
class GammaRuns:
    """Runs of one-pass SGD on Γ; one axis of runs may stand first.

    `batch_loss` is the mean squared error on the batch of a step, before the step: its average over runs is the
    expected loss.
    """

    time: Float[np.ndarray, "time"] = quantity("t", "time", unit="τ", words="training time")
    gamma: Float[np.ndarray, "*run time row column"] = quantity("Γ", "time", "row", "column", words="weights")
    batch_loss: Float[np.ndarray, "*run time"] = quantity(
        "L_B", "time", unit="label²", words="mean squared error on one batch"
    )


@dataclass(frozen=True)
class HeadRuns:
    """Runs of one-pass SGD on one head, Γ = u U; one axis of runs may stand first."""

    time: Float[np.ndarray, "time"] = quantity("t", "time", unit="τ", words="training time")
    value: Float[np.ndarray, "*run time"] = quantity("u", "time", words="value weight")
    key_query: Float[np.ndarray, "*run time row column"] = quantity(
        "U", "time", "row", "column", words="key-query matrix"
    )
    batch_loss: Float[np.ndarray, "*run time"] = quantity(
        "L_B", "time", unit="label²", words="mean squared error on one batch"
    )

    @property
    def gamma(self) -> Float[np.ndarray, "*run time row column"]:
        """Γ = u U."""
        return self.value[..., None, None] * self.key_query


@dataclass(frozen=True)
class LossSample:
    """Mean squared error over independent runs: mean with its standard error, and median."""

    time: Float[np.ndarray, "time"] = quantity("t", "time", unit="τ", words="training time")
    loss: Float[np.ndarray, "time"] = quantity("⟨L⟩", "time", unit="label²", words="mean over runs")
    standard_error: Float[np.ndarray, "time"] = quantity(
        "±", "time", unit="label²", words="standard error of the mean"
    )
    median: Float[np.ndarray, "time"] = quantity("med L", "time", unit="label²", words="median over runs")

    @classmethod
    def of(cls, time: np.ndarray, losses: Float[np.ndarray, "run time"]) -> Self:
        """The sample of given losses, one run a row."""
        error = np.std(losses, axis=0, ddof=1) / np.sqrt(len(losses))
        return cls(time, np.mean(losses, axis=0), error, np.median(losses, axis=0))


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
