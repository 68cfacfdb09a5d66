"""Sequences of finite pretraining, drawn in parts that fit the cache: pools of tasks, and contexts that use them."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from iclab.numerics import Validated, instance, require
from iclab.problem import Pretraining
from iclab.simulation.linear.summaries import (
    Summaries,
    SummaryLaw,
    empty_summaries,
    relative_eigenvalues,
    summarize,
    summary_law,
)

__all__ = [
    "LARGEST", "LARGE_PART", "PART", "PRECISIONS", "VARIANCE", "SequenceLaw", "Spectrum", "draw_parts", "drawn_pool",
    "empty_parts", "on_device", "sequence_law",
]  # fmt: skip

Array = np.ndarray
Spectrum = Sequence[float] | Float[Array, "D"]
PRECISIONS = ("float64", "float32")
PART = 512  # sequences of one product: with them in the cache it is quickest
LARGE_PART = 2**17  # the same on other devices than a CPU
VARIANCE = 1e-10, 1e10  # of labels: features hold both labels and their squares
LARGEST = 10**6  # dimension whose readout takes 8 TB


class SequenceLaw(NamedTuple):
    """The law of sequences and their tasks."""

    contexts: SummaryLaw
    task_scale: Float[Array, "D"]

    @property
    def rank(self) -> int:
        """Number of directions in which inputs vary."""
        return int(np.count_nonzero(self.contexts.input_scale))

    @property
    def variance(self) -> float:
        """Mean square of labels."""
        return float(np.mean((self.contexts.input_scale * self.task_scale) ** 2)) + self.contexts.noise

    @property
    def curvature(self) -> float:
        """Mean second moment of a feature, times D: what a ridge adds to."""
        inputs, tasks = self.contexts.input_scale**2, self.task_scale**2
        d, length, labels = len(inputs), self.contexts.length, self.variance
        along, across = (1 + 1 / length) * float(np.sum(inputs**2 * tasks)), d / length * labels * float(inputs.sum())
        return (along + across + (1 + 2 / length) * labels**2) * float(inputs.sum()) / (self.rank * (self.rank + 1))


def sequence_law(
    pretraining: Validated[Pretraining], inputs: Validated[Spectrum | None], tasks: Validated[Spectrum | None]
) -> SequenceLaw:
    """The law of the sequences with inputs N(0, diag(s)/D) and tasks of covariance diag(c).

    Raises ValueError for spectra that are not D numbers >= 0, labels of extreme variance and more than a million
    dimensions.
    """
    instance("pretraining", pretraining, Pretraining)
    d = pretraining.dimension
    require(d <= LARGEST, f"dimension must be at most {LARGEST}; got {d}. No memory holds its readout.")
    contexts = summary_law(d, pretraining.context_length, pretraining.noise, inputs)
    law = SequenceLaw(contexts, np.sqrt(relative_eigenvalues("task_eigenvalues", tasks, d)))
    least, most = VARIANCE
    require(
        least <= law.variance <= most,
        f"labels must have a variance between {least:g} and {most:g}; got {law.variance:.3g}. Take other units: "
        "features hold labels and their squares, and rounding would hide the smaller of them.",
    )
    return law


def drawn_pool(rng: np.random.Generator, law: SequenceLaw, pretraining: Pretraining) -> Float[Array, "K D"]:
    """The tasks of a pool, none for fresh ones."""
    return _tasks(rng, pretraining.tasks or 0, law, pretraining.normalized)


def empty_parts(pretraining: Pretraining, precision: str) -> list[Summaries]:
    """Arrays for the sequences, part by part, not filled."""
    whole = empty_summaries(pretraining.sequences, pretraining.dimension, precision)
    starts = range(0, pretraining.sequences, PART)
    return [Summaries(*(array[first : first + PART] for array in whole)) for first in starts]


def draw_parts(
    rng: np.random.Generator,
    pool: Float[Array, "K D"],
    law: SequenceLaw,
    pretraining: Pretraining,
    *,
    out: list[Summaries],
) -> None:
    """Draw the sequences: with tasks of the pool in turn if balanced, else at random, or with fresh ones."""
    for number, part in enumerate(out):
        rows = PART * number + np.arange(len(part.target))
        if pretraining.tasks is None:
            tasks = _tasks(rng, len(rows), law, pretraining.normalized)
        else:
            tasks = pool[rows % len(pool) if pretraining.balanced else rng.integers(len(pool), size=len(rows))]
        summarize(tasks, law.contexts, rng, out=part)


def on_device(parts: list[Summaries], rows: int) -> list[Summaries]:
    """The sequences as large arrays of JAX, padded with zeros to so many rows."""
    several, missing = LARGE_PART // PART, rows - sum(len(part.target) for part in parts)
    zeros = [Summaries(*(np.zeros((missing, *array.shape[1:]), array.dtype) for array in parts[0]))]
    groups = [parts[first : first + several] for first in range(0, len(parts), several)]
    joined = [map(np.concatenate, zip(*group, strict=True)) for group in groups]
    return [Summaries(*map(jnp.asarray, part)) for part in (*joined, *zeros[: missing > 0])]


def _tasks(rng: np.random.Generator, count: int, law: SequenceLaw, normalized: bool) -> Float[Array, "task D"]:
    """On the sphere if normalized, else normal; times the root of a covariance."""
    normal = rng.standard_normal((count, len(law.task_scale)))
    size = np.sqrt(normal.shape[1]) / np.linalg.norm(normal, axis=1, keepdims=True) if normalized else 1.0
    return normal * size * law.task_scale
