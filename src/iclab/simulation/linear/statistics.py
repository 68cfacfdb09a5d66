"""Sufficient statistics of full-batch training of linear attention: a few moments of the data.

The prediction is linear in T = Σ a ⊗ B, summed over heads: it is ⟨T, φ⟩ with cubic features φ = M ⊗ x_q and M =
XXᵀ/N. A restricted layer reads one row of M, the summary h; for an unrestricted one M is symmetric, and the D(D+1)²
features hold D(D+1)(D+2)/2 distinct ones. So the loss over any number of sequences is E[y²] − 2⟨T, E[yφ]⟩ + ⟨T,
E[φφᵀ] T⟩.

Source: zhang2025training, eqs. 6, 7 and 13; unrestricted layers derived in docs/derivations/statistics.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from iclab.attention import Layer
from iclab.numerics import checks_its_fields, require
from iclab.simulation.linear.contexts import Contexts
from iclab.simulation.linear.loop import require_dimension

__all__ = ["PopulationMoments", "Statistics", "features", "features_read_by", "stack", "statistics"]

Array = np.ndarray
BLOCK = 1024  # sequences whose features are in memory at once


@runtime_checkable
class PopulationMoments(Protocol):
    """Moments of a population, B, C and Λ, with the loss of predicting 0."""

    @property
    def cross(self) -> Float[Array, "D D"]: ...
    @property
    def second(self) -> Float[Array, "D D"]: ...
    @property
    def input_covariance(self) -> Float[Array, "D D"]: ...
    @property
    def null_loss(self) -> float: ...


@checks_its_fields
@dataclass(frozen=True)
class Statistics:
    """The moments of features, of drawn sequences or of a population.

    T is read as a matrix of the shape of `cross` = E[yφ]; E[φφᵀ] acts on it as left · T · right, and null_loss
    is E[y²]. For drawn sequences `cross` has shape (F, 1) and `right` is [[1]]. The population of a restricted
    layer factors: Statistics(B, C, Λ, E[y²]). Leading axes may stand before all four.

    Raises ValueError when shapes do not fit each other.
    """

    cross: Float[Array, "*batch rows columns"]
    left: Float[Array, "*batch rows rows"]
    right: Float[Array, "*batch columns columns"]
    null_loss: Float[Array, "*batch"] | float

    def __post_init__(self) -> None:
        require(
            np.ndim(self.cross) >= 2,
            f"cross must be a matrix, of shape (F, 1) or (D, D); got shape {np.shape(self.cross)}.",
        )
        *batch, rows, columns = np.shape(self.cross)
        expected = ((*batch, rows, rows), (*batch, columns, columns), tuple(batch))
        got = tuple(np.shape(part) for part in (self.left, self.right, self.null_loss))
        require(got == expected, f"left, right and null_loss must have shapes {expected}; got {got}.")

    @classmethod
    def of_moments(cls, moments: "PopulationMoments") -> "Statistics":
        """The statistics of infinitely many sequences, for a restricted layer."""
        return cls(moments.cross, moments.second, moments.input_covariance, np.asarray(moments.null_loss))

    @classmethod
    def of_features(
        cls, cross: Float[Array, "feature"], second: Float[Array, "feature feature"], null_loss: float
    ) -> "Statistics":
        """The statistics of E[yφ], E[φφᵀ] and E[y²], as for drawn sequences."""
        return cls(cross[:, None], second, np.ones((1, 1)), np.asarray(null_loss))

    @property
    def feature_count(self) -> int:
        """F, the number of features."""
        return self.cross.shape[-2] * self.cross.shape[-1]


def features_read_by(layer: Layer) -> int:
    """F, the number of distinct features: D² for a restricted layer, D(D+1)(D+2)/2 for an unrestricted one."""
    dimension = layer.dimension
    return dimension**2 if layer.restricted else dimension * (dimension + 1) * (dimension + 2) // 2


def features(contexts: Contexts, start: Layer) -> Float[Array, "P F"]:
    """The cubic features of each sequence that a layer of this kind reads. Memory: 8 P F bytes.

    Raises ValueError for a layer of another dimension.
    """
    require_dimension(start, contexts.dimension, "contexts")
    return _cubic(contexts.tokens, contexts.divisor, start.restricted)


def statistics(contexts: Contexts, start: Layer) -> Statistics:
    """Moments of the features that a layer of this kind reads, averaged over the sequences.

    Cost: P F² multiplications; memory: F² numbers and the features of a block of sequences.

    Raises ValueError for a layer of another dimension.
    """
    require_dimension(start, contexts.dimension, "contexts")
    count, width = len(contexts.target), features_read_by(start)
    second, cross = np.zeros((width, width)), np.zeros(width)
    for first in range(0, count, BLOCK):
        block = slice(first, first + BLOCK)
        cubic = _cubic(contexts.tokens[block], contexts.divisor[block], start.restricted)
        second += cubic.T @ cubic
        cross += contexts.target[block] @ cubic
    null_loss = float(np.mean(contexts.target**2))
    return Statistics(cross[:, None] / count, second / count, np.ones((1, 1)), null_loss)


def stack(several: Sequence[Statistics]) -> Statistics:
    """Statistics of several data sets along one leading axis, to train on each of them at once."""
    return Statistics(*map(np.stack, zip(*map(astuple, several), strict=True)))


def _cubic(
    tokens: Float[Array, "P token entry"], divisor: Float[Array, "P"], restricted: bool
) -> Float[Array, "P F"]:
    if restricted:
        summary = tokens[:, :, -1:].transpose(0, 2, 1) @ tokens[:, :, :-1]
    else:
        summary = tokens.transpose(0, 2, 1) @ tokens
        summary = summary[:, *np.triu_indices(tokens.shape[-1])]
    summary = summary.reshape(len(tokens), -1, 1) / divisor[:, None, None]
    return (summary * tokens[:, -1, None, :-1]).reshape(len(tokens), -1)
