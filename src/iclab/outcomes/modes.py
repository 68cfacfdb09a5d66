"""Outcomes of training two-factor transformers and of one-pass SGD."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.outcomes.labeled import quantity, shared

__all__ = [
    "ExpectedLoss", "GammaRuns", "HeadRuns", "MatrixCurves", "ModeCurves", "ModeDescent",
    "SingleHeadCurves", "SmallNoiseLoss", "TransformerCurves",
]  # fmt: skip

Array = np.ndarray


@dataclass(frozen=True)
class ModeCurves:
    """A transformer of two diagonal factors along training, mode by mode, in the eigenbasis of the inputs."""

    time: Float[Array, "time"] = shared("time")
    value: Float[Array, "time mode"] = quantity("p", "time", "mode", words="value weight of a mode")
    key_query: Float[Array, "time mode"] = quantity("q", "time", "mode", words="key-query weight of a mode")
    strength: Float[Array, "time mode"] = quantity("p q", "time", "mode", words="strength of a mode")
    loss: Float[Array, "time"] = shared("time")

    @classmethod
    def of(cls, time: np.ndarray, value: np.ndarray, key_query: np.ndarray, loss: np.ndarray) -> "ModeCurves":
        """The curves of given weights; the strengths are their products."""
        return cls(time, value, key_query, value * key_query, loss)


@dataclass(frozen=True)
class ModeDescent(ModeCurves):
    """The same under steps of finite size.

    `stable` says whether descent is stable where the run ends; where it is not, the weights oscillate or grow, and
    are infinite after overflow.
    """

    stable: bool = quantity("stable", words="whether descent is stable where the run ends")


@dataclass(frozen=True)
class MatrixCurves:
    """A transformer of two full matrices along training, in the eigenbasis of the inputs.

    The misalignment is the share of the weights' norm that lies off the diagonals, the balance |p|² − |q|².
    """

    time: Float[Array, "time"] = shared("time")
    value: Float[Array, "*run time row column"] = quantity("p", "time", "row", "column", words="value matrix")
    key_query: Float[Array, "*run time row column"] = quantity("q", "time", "row", "column", words="key-query matrix")
    strength: Float[Array, "*run time mode"] = quantity("p q", "time", "mode", words="strength of a mode")
    misalignment: Float[Array, "*run time"] = quantity("off/all", "time", words="share of the norm off the diagonals")
    balance: Float[Array, "*run time"] = quantity("|p|²−|q|²", "time", words="balance of the two factors")
    loss: Float[Array, "*run time"] = shared("time")

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

    stray: Float[Array, "*run time"] = quantity("|p₁|, |q₂|", "time", words="norm of the undriven blocks")


@dataclass(frozen=True)
class SingleHeadCurves:
    """One head with a scalar value and a diagonal key-query matrix along training."""

    time: Float[Array, "time"] = shared("time")
    value: Float[Array, "time"] = quantity("u", "time", words="value weight")
    key_query: Float[Array, "time mode"] = quantity("U", "time", "mode", words="key-query weight of a mode")
    strength: Float[Array, "time mode"] = quantity("u U", "time", "mode", words="strength of a mode")
    loss: Float[Array, "time"] = shared("time")


@dataclass(frozen=True)
class ExpectedLoss:
    """Loss of stochastic gradient descent, averaged over the draws, beside that of descent on the population.

    `stable` says whether the rate lies below the critical one; above it the average grows without bound, although
    most runs may look healthy, and is inf after overflow.
    """

    time: Float[Array, "time"] = shared("time")
    loss: Float[Array, "time"] = quantity("E L", "time", unit="label²", words="expected mean squared error")
    deterministic: Float[Array, "time"] = shared("time")
    stable: bool = quantity("η < η_c", words="whether the rate is below the critical one")


@dataclass(frozen=True)
class SmallNoiseLoss:
    """Loss and balance of stochastic gradient descent to first order in the gradient's variance.

    `spread` is the standard deviation of the weights relative to their norm: the expansion holds while it is small.
    `stable` says whether descent on the population is stable where the run ends; noise may forbid it earlier.
    """

    time: Float[Array, "time"] = shared("time")
    loss: Float[Array, "time"] = quantity("E L", "time", unit="label²", words="expected mean squared error")
    deterministic: Float[Array, "time"] = shared("time")
    balance: Float[Array, "time"] = quantity("E u²−|U|²", "time", words="expected balance of the two factors")
    spread: Float[Array, "time"] = quantity("δW/W", "time", words="relative spread of the weights")
    stable: bool = quantity("stable", words="whether descent on the population is stable at the end")


@dataclass(frozen=True)
class GammaRuns:
    """Runs of one-pass SGD on Γ; one axis of runs may stand first.

    `batch_loss` is the mean squared error on the batch of a step, before the step: its average over runs is the
    expected loss.
    """

    time: Float[Array, "time"] = shared("time")
    gamma: Float[Array, "*run time row column"] = quantity("Γ", "time", "row", "column", words="weights")
    batch_loss: Float[Array, "*run time"] = shared("time")


@dataclass(frozen=True)
class HeadRuns:
    """Runs of one-pass SGD on one head, Γ = u U; one axis of runs may stand first."""

    time: Float[Array, "time"] = shared("time")
    value: Float[Array, "*run time"] = quantity("u", "time", words="value weight")
    key_query: Float[Array, "*run time row column"] = quantity("U", "time", "row", "column", words="key-query matrix")
    batch_loss: Float[Array, "*run time"] = shared("time")

    @property
    def gamma(self) -> Float[Array, "*run time row column"]:
        """Γ = u U."""
        return self.value[..., None, None] * self.key_query
