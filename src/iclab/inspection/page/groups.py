"""Tracks that belong on one figure: the same circuit or kind of matrix, of all layers and heads."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from iclab.spectra.observation.dynamics import MatrixSeries, SpectralDynamics

_FIRST = ("QK", "OV", "QK averaged")
_POINTS = 400  # checkpoints that a line is drawn through
WORDS = {
    "QK": "query-key circuits",
    "OV": "output-value circuits",
    "QK averaged": "query-key circuits over offsets",
    "QK balance": "balance of queries and keys, by key head",
    "OV balance": "balance of values and outputs, by key head",
}


@dataclass(frozen=True)
class Group:
    """Tracks of one role in one tower, over steps in increasing order."""

    role: str
    tower: str
    steps: Int[np.ndarray, "step"]
    matrices: tuple[MatrixSeries, ...]
    order: Int[np.ndarray, "step"]  # of the steps in the matrices

    @property
    def of_heads(self) -> bool:
        """Whether there is a series for each head."""
        return self.matrices[0].head is not None

    @property
    def title(self) -> str:
        """What it is, in words."""
        said = WORDS.get(self.role, f"matrices {self.role}")
        return f"{said} of {self.tower}" if self.tower else said

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """Measures with a number anywhere."""
        names = dict.fromkeys(name for series in self.matrices for name in series.curves)
        return tuple(name for name in names if np.isfinite(self.values(name)).any())

    def values(self, measure: str) -> Float[np.ndarray, "matrix step"]:
        """The curves of a measure; nan where a matrix was not in order."""
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
        """The different levels of a measure on random matrices of the shapes of the group, and their spreads."""
        found = {
            (series.curves[measure].null, series.curves[measure].spread)
            for series in self.matrices
            if measure in series.curves and np.isfinite(series.curves[measure].null)
        }
        return sorted(found)

    @cached_property
    def layers(self) -> tuple[int, ...]:
        """The layers there are; −1 stands for none."""
        return tuple(sorted({_layer(series) for series in self.matrices}))

    def by_layer(self, measure: str) -> Float[np.ndarray, "layer step"]:
        """Medians over the heads of each layer."""
        values = self.values(measure)
        whose = np.array([_layer(series) for series in self.matrices])
        return np.stack([quantiles(values[whose == layer], 0.5)[0] for layer in self.layers])

    def of_layer(self, layer: int) -> "Group":
        """The matrices of one layer."""
        return replace(self, matrices=tuple(series for series in self.matrices if _layer(series) == layer))

    def leading(self, series: MatrixSeries) -> Float[np.ndarray, "step value"]:
        """The leading singular values of a series of the group."""
        rows = np.where(self._sound(series)[:, None], series.leading[self.order], np.nan)
        return np.where(rows > 0, rows, np.nan)

    def _sound(self, series: MatrixSeries) -> np.ndarray:
        return np.array([series.status[index] == "ok" for index in self.order])


def groups(dynamics: SpectralDynamics) -> tuple[Group, ...]:
    """The groups of an observation, circuits first; of very many checkpoints an even choice with both ends."""
    found: dict[tuple[str, str], list[MatrixSeries]] = defaultdict(list)
    for series in dynamics.matrices:
        found[series.role, series.tower].append(series)
    order = np.argsort(dynamics.steps, kind="stable")
    if len(order) > _POINTS:
        order = order[np.round(np.linspace(0, len(order) - 1, _POINTS)).astype(int)]
    keys = sorted(found, key=lambda key: _FIRST.index(key[0]) if key[0] in _FIRST else len(_FIRST))
    return tuple(Group(*key, dynamics.steps[order], tuple(found[key]), order) for key in keys)


def thinned(dynamics: SpectralDynamics) -> int:
    """How many checkpoints lines leave out."""
    return max(0, len(dynamics.steps) - _POINTS)


def quantiles(rows: Float[np.ndarray, "matrix step"], *shares: float) -> Float[np.ndarray, "share step"]:
    """Quantiles over matrices of what is defined; nan where nothing is."""
    ordered = np.sort(np.where(np.isfinite(rows), rows, np.nan), axis=0)  # the undefined last
    last = np.sum(np.isfinite(rows), axis=0) - 1
    positions = np.maximum(np.outer(shares, last), 0.0)
    below = positions.astype(int)
    low, high = (np.take_along_axis(ordered, np.minimum(one, len(rows) - 1), axis=0) for one in (below, below + 1))
    return np.where(positions > below, low + (positions - below) * (high - low), low)


def same(group: Group, others: Mapping[str, tuple[Group, ...]]) -> dict[str, Group]:
    """The group of the same kind in each other run."""
    return {
        name: other
        for name, there in others.items()
        for other in there
        if (other.role, other.tower) == (group.role, group.tower)
    }


def _layer(series: MatrixSeries) -> int:
    return -1 if series.layer is None else series.layer
