"""Parts that networks share: starts, norms, shares of attention, rotations."""

import math
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from iclab.simulation.memory import require_memory

Parameters = dict[str, Any]
"""Weights by name, of shape (outputs, inputs); tables of shape (rows, width)."""
ACTIVATIONS = {"gelu": jax.nn.gelu, "relu": jax.nn.relu}
EPSILON = 1e-5  # added to the variance of a norm
BASE = 10_000.0  # of the wavelengths of rotary positions
LARGEST = 1e15  # of weights: squares of larger ones overflow, and a norm then makes 0 of its input
HIDDEN = -1e30  # score of a token that is not seen


class Network(Protocol):
    """What can be trained: frozen and hashable, with a start and an answer."""

    @property
    def length(self) -> int:
        """Tokens of the longest sequence."""
        ...

    @property
    def shortest(self) -> int:
        """Tokens of the shortest sequence."""
        ...

    @property
    def entries(self) -> int:
        """Numbers in the largest array that a sequence goes through."""
        ...

    def start(self, key: jax.Array) -> Parameters:
        """Weights drawn from a key."""
        ...

    def forward(self, parameters: Parameters, tokens: jax.Array) -> jax.Array:
        """Outputs (context, position, output) for tokens (context, position) or (context, position, feature)."""
        ...


@partial(jax.jit, static_argnums=0)
def drawn(shapes: tuple[tuple[str, tuple[int, ...]], ...], key: jax.Array) -> Parameters:
    """Tables of entries N(0, 1/width), matrices of entries N(0, 1/inputs), gains of one: the last axis says which.

    All numbers are drawn at once, so that one draw is compiled, whatever the number of matrices.

    Raises ValueError for more than fit in memory.
    """
    matrices = [(name, shape) for name, shape in shapes if len(shape) > 1]
    require_memory("the weights of the network", sum(math.prod(shape) for _, shape in matrices))
    ends = np.cumsum([math.prod(shape) for _, shape in matrices])
    pieces = jnp.split(jax.random.normal(key, (ends[-1],), jnp.float32), ends[:-1])
    weights = {
        name: piece.reshape(shape) / np.float32(np.sqrt(shape[-1]))
        for (name, shape), piece in zip(matrices, pieces, strict=True)
    }
    return weights | {name: jnp.ones(shape, jnp.float32) for name, shape in shapes if len(shape) == 1}


def looked_up(table: Float[jax.Array, "token *position width"], *places: jax.Array) -> Float[jax.Array, "..."]:
    """The rows of a table, by token or by token and position; one that it lacks gives NaN, never another row."""
    return jnp.asarray(table).at[places].get(mode="fill", fill_value=jnp.nan, wrap_negative_indices=False)


def layer_norm(state: Float[jax.Array, "row width"], gain: Float[jax.Array, "width"] | None) -> jax.Array:
    """Rows centered and divided by their deviation, times the gain if there is one."""
    centered = state - jnp.mean(state, axis=-1, keepdims=True)
    normed = centered * jax.lax.rsqrt(jnp.mean(centered**2, axis=-1, keepdims=True) + EPSILON)
    return normed if gain is None else normed * gain


def softmax_attention_weights(
    scores: Float[jax.Array, "... asked token"], seen: Bool[jax.Array, "asked token"] | None
) -> Any:
    """Shares of attention that sum to one over the tokens that are seen."""
    return jax.nn.softmax(scores if seen is None else jnp.where(seen, scores, HIDDEN), axis=-1)


def linear_attention_weights(
    scores: Float[jax.Array, "... asked token"], seen: Bool[jax.Array, "asked token"] | None
) -> Any:
    """Scores divided by the number of tokens that are seen, 0 on the others."""
    if seen is None:
        return scores / scores.shape[-1]
    return scores * (seen / jnp.sum(seen, axis=-1, keepdims=True, dtype=jnp.float32))


def rotated(heads: Float[jax.Array, "context head token dim"], length: int) -> Float[jax.Array, "..."]:
    """Entries i and i + dim/2 turned by the position times their frequency; the last tokens of `length`."""
    half = heads.shape[-1] // 2
    place = np.arange(length)[-heads.shape[-2] :, None]
    angle = place * BASE ** (-np.arange(half) / half)
    cosine, sine = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    first, second = heads[..., :half], heads[..., half:]
    return jnp.concatenate([first * cosine - second * sine, first * sine + second * cosine], axis=-1)
