"""Samples of each matrix along a series: cosines and distances between any two of its states."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from iclab.spectra.checkpoints.content import sampled
from iclab.spectra.observation.integrity.findings import Record, names_of

__all__ = ["Sampled", "samples"]

_SPREADS = 3.5  # of a cosine by chance, up to which it is one of chance


@dataclass(frozen=True)
class Sampled:
    """Samples of one matrix at the records that have it, in units of the root mean square of its entries."""

    name: str
    shape: tuple[int, ...]
    at: Int[np.ndarray, "step"]  # indices of the records
    entries: Float[np.ndarray, "step entry"]
    size: Float[np.ndarray, "step"]  # root mean square, over the largest

    @property
    def directions(self) -> Float[np.ndarray, "step entry"]:
        """Samples of length 1."""
        length = np.linalg.norm(self.entries, axis=1, keepdims=True)
        return self.entries / np.where(length > 0, length, 1.0)

    @property
    def chance(self) -> float:
        """Cosine up to which two states may have nothing to do with each other."""
        return _SPREADS / np.sqrt(self.entries.shape[1])

    def distances(self) -> Float[np.ndarray, "step step"]:
        """Squared distances between all states, on average over the sample."""
        values = self.size[:, None] * self.entries
        squares = np.mean(values**2, axis=1)
        return np.maximum(squares[:, None] + squares - 2 * values @ values.T / values.shape[1], 0.0)


def samples(records: Sequence[Record]) -> Iterator[Sampled]:
    """Samples of all matrices of one shape and many numbers that three records have or more."""
    for name in names_of(records):
        held = [(index, record.contents[name]) for index, record in enumerate(records) if name in record.contents]
        held = [(index, one) for index, one in held if one.sample and one.many]
        if len(held) > 2 and len({one.shape for _, one in held}) == 1:
            norms = np.array([one.norm for _, one in held])
            entries = np.stack([sampled(one.sample) for _, one in held])
            at = np.array([index for index, _ in held])
            yield Sampled(name, held[0][1].shape, at, entries, norms / norms.max())
