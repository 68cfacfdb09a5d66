"""Sequences of finite pretraining, drawn in parts that fit the cache: pools of tasks, and contexts that use them."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from iclab.numerics import require
from iclab.problem import Pretraining
from iclab.simulation.summaries import Summaries, SummaryLaw, relative_eigenvalues, summarized, summary_law

Array = np.ndarray
Spectrum = Sequence[float] | Float[Array, "D"]
PRECISIONS = ("float64", "float32")
PART = 512  # sequences of one product: with them in the cache it is quickest
LARGE_PART = 2**17  # the same on other devices than a CPU


class SequenceLaw(NamedTuple):
    """How sequences and their tasks come about."""

    contexts: SummaryLaw
    task_scale: Float[Array, "D"]


def sequence_law(pretraining: Pretraining, inputs: Spectrum | None, tasks: Spectrum | None) -> SequenceLaw:
    """The law of the sequences with inputs N(0, diag(s)/D) and tasks of covariance diag(c).

    Raises ValueError for spectra that are not D numbers >= 0.
    """
    d = pretraining.dimension
    contexts = summary_law(d, pretraining.context_length, pretraining.noise, inputs)
    return SequenceLaw(contexts, np.sqrt(relative_eigenvalues("task_eigenvalues", tasks, d)))


def room_of(pretraining: Pretraining, room: Pretraining | None) -> int:
    """Sequences of the run, or of the larger run `room` that it is to share compiled functions with.

    Raises ValueError for a room that does not hold it.
    """
    own, most = pretraining, pretraining if room is None else room
    require(
        most.dimension == own.dimension
        and most.sequences >= own.sequences
        and (most.tasks or 0) >= (own.tasks or 0)
        and (most.tasks is None) == (own.tasks is None),
        f"room must hold the sequences and tasks of a run of its dimension and kind of tasks; got {room!r}.",
    )
    return most.sequences


def drawn_pool(rng: np.random.Generator, law: SequenceLaw, pretraining: Pretraining) -> Float[Array, "K D"]:
    """The tasks of a pool, none for fresh ones."""
    return _tasks(rng, pretraining.tasks or 0, law, pretraining.normalized)


def drawn_sequences(
    rng: np.random.Generator, pool: Float[Array, "K D"], law: SequenceLaw, pretraining: Pretraining
) -> list[Summaries]:
    """The sequences part by part: with tasks of the pool in turn if balanced, else at random, or with fresh ones."""
    count, parts = pretraining.sequences, []
    for first in range(0, count, PART):
        rows = np.arange(first, min(first + PART, count))
        if pretraining.tasks is None:
            tasks = _tasks(rng, len(rows), law, pretraining.normalized)
        else:
            tasks = pool[rows % len(pool) if pretraining.balanced else rng.integers(len(pool), size=len(rows))]
        parts.append(summarized(tasks, law.contexts, rng))
    return parts


def placed(parts: list[Summaries], room: int, precision: str) -> list[Summaries]:
    """The sequences on the device that computes.

    A CPU takes them as they are; another device takes large parts, and rows of zeros that fill the room.
    """
    if jax.default_backend() == "cpu":
        return [Summaries(*(array.astype(precision, copy=False) for array in part)) for part in parts]
    return on_device(parts, room, precision)


def on_device(parts: list[Summaries], room: int, precision: str) -> list[Summaries]:
    """The sequences as large arrays of JAX, with rows of zeros that fill the room."""
    several, count = LARGE_PART // PART, sum(len(part.target) for part in parts)
    groups = [parts[first : first + several] for first in range(0, len(parts), several)]
    joined = [Summaries(*map(np.concatenate, zip(*group, strict=True))) for group in groups]
    if room > count:
        joined.append(Summaries(*(np.zeros((room - count, *array.shape[1:])) for array in parts[0])))
    return [Summaries(*(jnp.asarray(array, precision) for array in part)) for part in joined]


def _tasks(rng: np.random.Generator, count: int, law: SequenceLaw, normalized: bool) -> Float[Array, "task D"]:
    """On the sphere if normalized, else normal; times the root of a covariance."""
    normal = rng.standard_normal((count, len(law.task_scale)))
    size = np.sqrt(normal.shape[1]) / np.linalg.norm(normal, axis=1, keepdims=True) if normalized else 1.0
    return normal * size * law.task_scale
