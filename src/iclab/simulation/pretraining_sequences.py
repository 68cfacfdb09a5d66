"""Sequences of finite pretraining, drawn on the device in blocks: pools of tasks, and contexts that use them."""

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
BLOCK = 512  # sequences of one product: with them in the cache it is quickest


class SequenceLaw(NamedTuple):
    """How sequences come about, as numbers that compiled functions take."""

    contexts: SummaryLaw
    task_scale: Float[Array, "D"]


class Shape(NamedTuple):
    """What the compiler must know."""

    dimension: int
    blocks: int
    block: int
    pool: int  # tasks to make room for; 0: fresh ones
    normalized: bool
    balanced: bool
    precision: str


def rows_of(sequences: int) -> int:
    """Sequences filled up to whole blocks."""
    block = min(BLOCK, sequences)
    return -(-sequences // block) * block


def sequence_law(pretraining: Pretraining, inputs: Spectrum | None, tasks: Spectrum | None) -> SequenceLaw:
    """The law of the sequences with inputs N(0, diag(s)/D) and tasks of covariance diag(c).

    Raises ValueError for spectra that are not D numbers >= 0.
    """
    d = pretraining.dimension
    contexts = summary_law(d, pretraining.context_length, pretraining.noise, inputs)
    return SequenceLaw(contexts, np.sqrt(relative_eigenvalues("task_eigenvalues", tasks, d)))


def shape_of(pretraining: Pretraining, room: Pretraining | None, precision: str) -> Shape:
    """The shape of a run, or of the larger run `room` that it is to share a compiled function with.

    Raises ValueError for a room that does not hold it and for an unknown precision.
    """
    require(precision in PRECISIONS, f"precision must be one of {', '.join(PRECISIONS)}; got {precision!r}.")
    own, most = pretraining, pretraining if room is None else room
    require(
        most.dimension == own.dimension
        and most.sequences >= own.sequences
        and (most.tasks or 0) >= (own.tasks or 0)
        and (most.tasks is None) == (own.tasks is None),
        f"room must hold the sequences and tasks of a run of its dimension and kind of tasks; got {room!r}.",
    )
    rows, block = rows_of(most.sequences), min(BLOCK, most.sequences)
    return Shape(own.dimension, rows // block, block, most.tasks or 0, own.normalized, own.balanced, precision)


def drawn_sequences(
    key: jax.Array, pool: jax.Array, law: SequenceLaw, count: jax.Array, tasks: jax.Array, shape: Shape
) -> Summaries:
    """The sequences in blocks, and rows of zeros beyond them."""
    size = (shape.block, shape.dimension)

    def block(number: jax.Array, key: jax.Array) -> Summaries:
        rows = number * shape.block + jnp.arange(shape.block)

        def fresh(normal: jax.Array) -> jax.Array:
            return _tasks_of(normal, law, shape)

        def at_random(normal: jax.Array) -> jax.Array:
            even = jax.scipy.special.ndtr(normal[:, 0])  # uniform in 0 .. 1
            return pool[jnp.minimum((tasks * even).astype(int), tasks - 1)]

        def in_turn(_: jax.Array) -> jax.Array:
            return pool[rows % tasks]

        choose, columns = (
            (fresh, shape.dimension) if shape.pool == 0 else (in_turn, 0) if shape.balanced else (at_random, 1)
        )
        drawn = summarized(choose, columns, size, law.contexts, key)
        held = rows < count
        return Summaries(*(jnp.where(held.reshape(-1, *(1,) * (part.ndim - 1)), part, 0) for part in drawn))

    keys = jax.random.split(key, shape.blocks)
    return jax.lax.map(lambda own: block(*own), (jnp.arange(shape.blocks), keys))


def parts_of(drawn: Summaries) -> list[Summaries]:
    """Sequences in parts: blocks in the memory of NumPy on a CPU, else all that the device holds at once."""
    if next(iter(drawn.target.devices())).platform == "cpu":
        return [Summaries(*block) for block in zip(*map(np.asarray, drawn), strict=True)]
    return [Summaries(*(array.reshape(-1, *array.shape[2:]) for array in drawn))]


def drawn_pool(key: jax.Array, law: SequenceLaw, shape: Shape) -> jax.Array:
    """The tasks of a pool, one at least."""
    return _tasks_of(jax.random.normal(key, (max(1, shape.pool), shape.dimension), shape.precision), law, shape)


def _tasks_of(normal: jax.Array, law: SequenceLaw, shape: Shape) -> jax.Array:
    """On the sphere if normalized, else normal; times the root of a covariance."""
    size = np.sqrt(shape.dimension) / jnp.linalg.norm(normal, axis=1, keepdims=True) if shape.normalized else 1.0
    return normal * size * law.task_scale
