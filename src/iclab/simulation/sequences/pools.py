"""Two strategies on drawn sequences of a pool: the memorizing one knows its laws, the generalizing one counts.

A pool of urns has one law each, a pool of chains one for each last token. Predictions are handed on token by token.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from iclab.numerics import Validated, checked_laws, positive, require, whole_number
from iclab.simulation.memory import require_memory

__all__ = ["drawn_gaps"]

_PADDED = 256  # tasks that pools are filled up to, by tasks of no weight: one program for all of them


def drawn_gaps(
    pool: Validated[Float[np.ndarray, "K *R S"]],
    *,
    length: Validated[int],
    concentration: Validated[float],
    sequences: Validated[int],
    key: PRNGKeyArray,
) -> Float[np.ndarray, "T"]:
    """Mean divergence in nats of both predictions before each of `length` draws or transitions, over drawn sequences.

    Raises ValueError for rows that are no laws, sizes below 1 and a concentration that is not positive.
    """
    laws = checked_laws("pool", pool)
    laws = laws[:, None] if laws.ndim == 2 else laws
    rows, states = laws.shape[1:]
    require(rows in (1, states), f"pool must hold urns, (K, S), or chains, (K, S, S); got {np.shape(pool)}.")
    steps, count = whole_number("length", length), whole_number("sequences", sequences)
    padded = max(_PADDED, 4 ** int(np.ceil(np.log(len(laws)) / np.log(4))))
    require_memory("tasks and sequences", count * (4 * padded + rows * states))
    known = np.full((padded, rows, states), 1 / states)
    known[: len(laws)] = laws
    alpha = positive("concentration", concentration)
    with jax.enable_x64(True):
        return np.asarray(_gaps(jnp.asarray(known), len(laws), alpha, key, steps, count))


@partial(jax.jit, static_argnums=(4, 5))
def _gaps(laws: jax.Array, tasks: int, concentration: float, key: PRNGKeyArray, length: int, count: int) -> jax.Array:
    padded, rows, states = laws.shape
    for_task, for_first, for_tokens = jax.random.split(key, 3)
    task = jax.random.randint(for_task, (count,), 0, tasks)
    first = jax.random.randint(for_first, (count,), 0, rows)
    every, logs = jnp.arange(count), jnp.log(jnp.maximum(laws, 1e-300))

    def draw(carry: tuple, key: PRNGKeyArray) -> tuple[tuple, jax.Array]:
        row, counts, fit = carry
        known = jnp.einsum("pk,kps->ps", jax.nn.softmax(fit, axis=1), laws[:, row])
        counted = counts[every, row] / counts[every, row].sum(axis=1, keepdims=True)
        ratio = jnp.where(known > 0, known / counted, 1.0)
        new = jax.random.categorical(key, logs[task, row])
        carry = (new if rows > 1 else row, counts.at[every, row, new].add(1.0), fit + logs[:, row, new].T)
        return carry, jnp.mean(jnp.sum(known * jnp.log(ratio), axis=1))

    start = (
        first,
        jnp.full((count, rows, states), concentration),
        jnp.tile(jnp.where(jnp.arange(padded) < tasks, 0.0, -jnp.inf), (count, 1)),
    )
    return jax.lax.scan(draw, start, jax.random.split(for_tokens, length))[1]
