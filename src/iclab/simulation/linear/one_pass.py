"""One-pass SGD of any loss on drawn batches: every step draws anew, every run has a key of its own."""

import math
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Key

from iclab.numerics import Validated, positive, require, whole_number
from iclab.simulation.waiting import report

__all__ = ["LossOn", "Weights", "descend", "normals"]

Array = np.ndarray
Weights = tuple[Array, ...]
LossOn = Callable[[Any, Any, Any, Any], jax.Array]
NUMBERS = 2**17  # drawn in a step by the runs of one block: more would leave the cache


def descend(
    loss_on: LossOn,
    shape: Hashable,
    law: Any,
    weights: Weights,
    *,
    draws: int,
    rate: Validated[float],
    batch: Validated[int],
    steps: Validated[int],
    every: Validated[int],
    key: Validated[Key[jax.Array, "*run"]],
) -> tuple[Weights, Array]:
    """Weights and batch losses of all runs at steps 0, every, …, steps; the axes of `key` first, then the records.

    `loss_on(weights, key, law, shape)` is the mean squared error of one drawn batch; `shape` holds what the compiler
    must know. `weights` carry the axes of `key` in front. The learning rate acts on half that error. A run depends
    on its own key alone, and draws at a step what it would draw there in a shorter or longer run. `draws` is the
    number of random numbers of a step, which sets how many runs are computed in one block.

    Raises ValueError, naming the field, for a learning rate, batch or steps out of range, `every` that does not
    divide them.
    """
    positive("rate", rate)
    batch, steps = whole_number("batch", batch), whole_number("steps", steps, least=0)
    require(
        every >= 1 and steps % every == 0,
        f"every must be a whole part of steps = {steps}; got {every!r}. Use 1 to keep every step.",
    )
    require(
        jnp.issubdtype(key.dtype, jax.dtypes.prng_key),
        f"key must be made by jax.random.key; got an array of {key.dtype}.",
    )
    with jax.enable_x64(True):
        runs = key.size
        block = -(-runs // -(-runs * draws // NUMBERS)) if runs else 1
        fill = np.arange(runs + -runs % block) % max(runs, 1)
        flat = tuple(np.asarray(part, dtype=float).reshape(runs, *part.shape[key.ndim :])[fill] for part in weights)
        settings = float(rate), steps // every, every, block
        pieces = []
        for first in range(0, len(fill), max(block, 1)) or [0]:
            own = slice(first, first + block)
            kept, losses = _descend(loss_on, shape, law, tuple(part[own] for part in flat), key, fill[own], *settings)
            pieces.append([np.asarray(part) for part in (*kept, losses)])
            report("run", min(first + block, runs), runs)
        whole = [np.concatenate(parts)[:runs] for parts in zip(*pieces, strict=True)]
        shaped = [part.reshape(*key.shape, *part.shape[1:]) for part in whole]
    return tuple(shaped[:-1]), shaped[-1]


def normals(key: jax.Array, *shapes: tuple[int, ...]) -> list[jax.Array]:
    """Standard normal arrays of given shapes, from one draw.

    One draw compiles several times faster than several; without the barrier the compiler repeats it at every use.
    """
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    drawn = jax.lax.optimization_barrier(jax.random.normal(key, (ends[-1],)))
    return [part.reshape(shape) for part, shape in zip(jnp.split(drawn, ends[:-1]), shapes, strict=True)]


@partial(jax.jit, static_argnums=(0, 1, 7, 9))
def _descend(
    loss_on: LossOn,
    shape: Hashable,
    law: Any,
    weights: Any,
    keys: jax.Array,
    fill: jax.Array,
    rate: jax.Array,
    records: int,
    every: jax.Array,
    block: int,
) -> tuple[Any, jax.Array]:
    loss_and_gradient = jax.value_and_grad(loss_on)

    def run(start: tuple[jax.Array, Any]) -> tuple[Any, jax.Array]:
        key, weights = start

        def step(number: jax.Array, state: tuple[Any, Any]) -> tuple[Any, Any]:
            weights, kept = state
            loss, gradient = loss_and_gradient(weights, jax.random.fold_in(key, number), law, shape)
            row = (number + every - 1) // every  # written last by the step that is to be kept
            kept = jax.tree.map(lambda rows, new: rows.at[row].set(new), kept, (weights, loss))
            return jax.tree.map(lambda part, change: part - rate / 2 * change, weights, gradient), kept

        empty = jax.tree.map(lambda part: jnp.zeros((records + 1, *jnp.shape(part))), (weights, 0.0))
        return jax.lax.fori_loop(0, records * every + 1, step, (weights, empty))[1]

    return jax.lax.map(run, (keys.reshape(-1)[fill], weights), batch_size=block)
