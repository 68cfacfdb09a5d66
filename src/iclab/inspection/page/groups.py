"""Tracks that belong on one figure: the same circuit or kind of matrix, of all layers and heads."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from iclab.spectra.observation.dynamics import SpectralDynamics, Track

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
    tracks: tuple[Track, ...]
    order: Int[np.ndarray, "step"]  # of the steps in the tracks

    @property
    def of_heads(self) -> bool:
        """Whether there is a track for each head."""
        return self.tracks[0].head is not None

    @property
    def title(self) -> str:
        """What it is, in words."""
        said = WORDS.get(self.role, f"matrices {self.role}")
        return f"{said} of {self.tower}" if self.tower else said

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """Measures with a number anywhere."""
        names = dict.fromkeys(name for track in self.tracks for name in track.curves)
        return tuple(name for name in names if np.isfinite(self.values(name)).any())

    def values(self, measure: str) -> Float[np.ndarray, "track step"]:
        """The curves of a measure; nan where a matrix was not in order."""
        nothing = np.full(len(self.order), np.nan)
        return np.stack(
            [
                np.where(
                    self._sound(track),
                    track.curves[measure].values[self.order] if measure in track.curves else nothing,
                    np.nan,
                )
                for track in self.tracks
            ]
        )

    def levels(self, measure: str) -> list[tuple[float, float]]:
        """The different levels of a measure on random matrices of the shapes of the group, and their spreads."""
        found = {
            (track.curves[measure].null, track.curves[measure].spread)
            for track in self.tracks
            if measure in track.curves and np.isfinite(track.curves[measure].null)
        }
        return sorted(found)

    @cached_property
    def layers(self) -> tuple[int, ...]:
        """The layers there are; −1 stands for none."""
        return tuple(sorted({_layer(track) for track in self.tracks}))

    def by_layer(self, measure: str) -> Float[np.ndarray, "layer step"]:
        """Medians over the heads of each layer."""
        values = self.values(measure)
        whose = np.array([_layer(track) for track in self.tracks])
        return np.stack([quantiles(values[whose == layer], 0.5)[0] for layer in self.layers])

    def of_layer(self, layer: int) -> "Group":
        """The tracks of one layer."""
        return replace(self, tracks=tuple(track for track in self.tracks if _layer(track) == layer))

    def leading(self, track: Track) -> Float[np.ndarray, "step value"]:
        """The leading singular values of a track of the group."""
        rows = np.where(self._sound(track)[:, None], track.leading[self.order], np.nan)
        return np.where(rows > 0, rows, np.nan)

    def _sound(self, track: Track) -> np.ndarray:
        return np.array([track.status[index] == "ok" for index in self.order])


def groups(dynamics: SpectralDynamics) -> tuple[Group, ...]:
    """The groups of an observation, circuits first; of very many checkpoints an even choice with both ends."""
    found: dict[tuple[str, str], list[Track]] = defaultdict(list)
    for track in dynamics.tracks:
        found[track.role, track.tower].append(track)
    order = np.argsort(dynamics.steps, kind="stable")
    if len(order) > _POINTS:
        order = order[np.round(np.linspace(0, len(order) - 1, _POINTS)).astype(int)]
    keys = sorted(found, key=lambda key: _FIRST.index(key[0]) if key[0] in _FIRST else len(_FIRST))
    return tuple(Group(*key, dynamics.steps[order], tuple(found[key]), order) for key in keys)


def thinned(dynamics: SpectralDynamics) -> int:
    """How many checkpoints lines leave out."""
    return max(0, len(dynamics.steps) - _POINTS)


def quantiles(rows: Float[np.ndarray, "track step"], *shares: float) -> Float[np.ndarray, "share step"]:
    """Quantiles over tracks of what is defined; nan where nothing is."""
    ordered = np.sort(np.where(np.isfinite(rows), rows, np.nan), axis=0)  # the undefined last
    last = np.sum(np.isfinite(rows), axis=0) - 1
    places = np.maximum(np.outer(shares, last), 0.0)
    below = places.astype(int)
    low, high = (np.take_along_axis(ordered, np.minimum(one, len(rows) - 1), axis=0) for one in (below, below + 1))
    return np.where(places > below, low + (places - below) * (high - low), low)


def same(group: Group, others: Mapping[str, tuple[Group, ...]]) -> dict[str, Group]:
    """The group of the same kind in each other run."""
    return {
        name: other
        for name, there in others.items()
        for other in there
        if (other.role, other.tower) == (group.role, group.tower)
    }


def _layer(track: Track) -> int:
    return -1 if track.layer is None else track.layer
