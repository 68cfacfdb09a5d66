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

    def block(number: jax.Array) -> Summaries:
        task_key, own = jax.random.split(jax.random.fold_in(key, number))
        rows = number * shape.block + jnp.arange(shape.block)
        if shape.pool == 0:
            chosen = drawn_tasks(task_key, shape.block, law, shape)
        elif shape.balanced:
            chosen = pool[rows % tasks]
        else:
            chosen = pool[jax.random.randint(task_key, (shape.block,), 0, tasks)]
        held = rows < count
        drawn = summarized(chosen, law.contexts, own)
        return Summaries(*(jnp.where(held.reshape(-1, *(1,) * (part.ndim - 1)), part, 0) for part in drawn))

    return jax.lax.map(block, jnp.arange(shape.blocks))


def drawn_tasks(key: jax.Array, count: int, law: SequenceLaw, shape: Shape) -> jax.Array:
    """Tasks of a pool, or fresh ones: of the sphere if normalized, else normal; times the root of a covariance."""
    normal = jax.random.normal(key, (count, shape.dimension), shape.precision)
    if shape.normalized:
        normal = normal * (np.sqrt(shape.dimension) / jnp.linalg.norm(normal, axis=1, keepdims=True))
    return (normal * law.task_scale).astype(shape.precision)
