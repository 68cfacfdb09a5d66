"""Groups of matrices for one figure: the same circuit or kind of matrix, of all layers and heads."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from iclab.spectra.observation.dynamics import MatrixSeries, SpectralDynamics

__all__ = ["WORDS", "Group", "groups", "quantiles", "same", "thinned"]

_FIRST = ("QK", "OV", "QK averaged")
_POINTS = 400  # most checkpoints of a line
WORDS = {
    "QK": "query-key circuits",
    "OV": "output-value circuits",
    "QK averaged": "query-key circuits over offsets",
    "QK balance": "balance of queries and keys, by key head",
    "OV balance": "balance of values and outputs, by key head",
}


@dataclass(frozen=True)
class Group:
    """Matrices of one role in one tower, over steps in increasing order."""

    role: str
    tower: str
    steps: Int[np.ndarray, "step"]
    matrices: tuple[MatrixSeries, ...]
    order: Int[np.ndarray, "step"]  # of the steps in the matrices

    @property
    def of_heads(self) -> bool:
        """True where there is a series for each head."""
        return self.matrices[0].head is not None

    @property
    def title(self) -> str:
        """Title of the group in words."""
        title = WORDS.get(self.role, f"matrices {self.role}")
        return f"{title} of {self.tower}" if self.tower else title

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """Measures with at least one defined value."""
        names = dict.fromkeys(name for series in self.matrices for name in series.curves)
        return tuple(name for name in names if np.isfinite(self.values(name)).any())

    def values(self, measure: str) -> Float[np.ndarray, "matrix step"]:
        """Curves of a measure; nan where the status of a matrix is not ok."""
        nothing = np.full(len(self.order), np.nan)
        return np.stack(
            [
                np.where(
                    self._sound(series),
                    series.curves[measure].values[self.order] if measure in series.curves else nothing,
                    np.nan,
                )
                for series in self.matrices
            ]
        )

    def levels(self, measure: str) -> list[tuple[float, float]]:
        """Distinct random-matrix baselines of a measure for the shapes of the group, with their spreads."""
        found = {
            (series.curves[measure].null, series.curves[measure].spread)
            for series in self.matrices
            if measure in series.curves and np.isfinite(series.curves[measure].null)
        }
        return sorted(found)

    @cached_property
    def layers(self) -> tuple[int, ...]:
        """Layers of the group; −1 stands for none."""
        return tuple(sorted({_layer(series) for series in self.matrices}))

    def by_layer(self, measure: str) -> Float[np.ndarray, "layer step"]:
        """Medians over the heads of each layer."""
        values = self.values(measure)
        whose = np.array([_layer(series) for series in self.matrices])
        return np.stack([quantiles(values[whose == layer], 0.5)[0] for layer in self.layers])

    def of_layer(self, layer: int) -> "Group":
        """Group of the matrices of one layer."""
        return replace(self, matrices=tuple(series for series in self.matrices if _layer(series) == layer))

    def leading(self, series: MatrixSeries) -> Float[np.ndarray, "step value"]:
        """Leading singular values of one matrix of the group."""
        rows = np.where(self._sound(series)[:, None], series.leading[self.order], np.nan)
        return np.where(rows > 0, rows, np.nan)

    def _sound(self, series: MatrixSeries) -> np.ndarray:
        return np.array([series.status[index] == "ok" for index in self.order])


def groups(dynamics: SpectralDynamics) -> tuple[Group, ...]:
    """Groups of an observation, circuits first; of very many checkpoints an even choice with both ends."""
    found: dict[tuple[str, str], list[MatrixSeries]] = defaultdict(list)
    for series in dynamics.matrices:
        found[series.role, series.tower].append(series)
    order = np.argsort(dynamics.steps, kind="stable")
    if len(order) > _POINTS:
        order = order[np.round(np.linspace(0, len(order) - 1, _POINTS)).astype(int)]
    keys = sorted(found, key=lambda key: _FIRST.index(key[0]) if key[0] in _FIRST else len(_FIRST))
    return tuple(Group(*key, dynamics.steps[order], tuple(found[key]), order) for key in keys)


def thinned(dynamics: SpectralDynamics) -> int:
    """Number of checkpoints that lines leave out."""
    return max(0, len(dynamics.steps) - _POINTS)


def quantiles(rows: Float[np.ndarray, "matrix step"], *shares: int | float) -> Float[np.ndarray, "share step"]:
    """Quantiles over matrices of the defined values; nan where there is none."""
    ordered = np.sort(np.where(np.isfinite(rows), rows, np.nan), axis=0)  # undefined values last
    last = np.sum(np.isfinite(rows), axis=0) - 1
    positions = np.maximum(np.outer(shares, last), 0.0)
    below = positions.astype(int)
    low, high = (np.take_along_axis(ordered, np.minimum(one, len(rows) - 1), axis=0) for one in (below, below + 1))
    return np.where(positions > below, low + (positions - below) * (high - low), low)


def same(group: Group, others: Mapping[str, tuple[Group, ...]]) -> dict[str, Group]:
    """Group of the same kind in each other run."""
    return {
        name: other
        for name, found in others.items()
        for other in found
        if (other.role, other.tower) == (group.role, group.tower)
    }


def _layer(series: MatrixSeries) -> int:
    return -1 if series.layer is None else series.layer
