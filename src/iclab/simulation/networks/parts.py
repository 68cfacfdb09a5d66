"""Parts that networks share: starts, norms, attention weights, rotary embeddings."""

import math
from functools import partial
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from iclab.simulation.memory import require_memory

__all__ = [
    "ACTIVATIONS", "BASE", "EPSILON", "HIDDEN", "LARGEST", "AnyArray", "Network", "Parameters", "drawn", "layer_norm",
    "linear_attention_weights", "looked_up", "rotated", "softmax_attention_weights",
]  # fmt: skip

AnyArray = jax.Array | np.ndarray
Parameters = dict[str, Any]
"""Weights by name, of shape (outputs, inputs); tables of shape (rows, width)."""
ACTIVATIONS = {"gelu": jax.nn.gelu, "relu": jax.nn.relu}
EPSILON = 1e-5  # added to the variance of a norm
BASE = 10_000.0  # of the wavelengths of rotary embeddings
LARGEST = 1e15  # of weights: squares of larger ones overflow, and a norm then maps its input to 0
HIDDEN = -1e30  # score of a token that is not seen


@runtime_checkable
class Network(Protocol):
    """A network that can be trained: frozen and hashable, with a start and a forward pass."""

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
    """Tables of entries N(0, 1/width), matrices of entries N(0, 1/inputs), gains of one.

    Width and inputs are the last axis. All numbers are drawn at once, so that one draw is compiled, whatever the
    number of matrices.

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


def looked_up(table: Float[AnyArray, "token *position width"], *positions: AnyArray) -> Float[jax.Array, "..."]:
    """The rows of a table, by token or by token and position; one that it lacks gives NaN, never another row."""
    return jnp.asarray(table).at[positions].get(mode="fill", fill_value=jnp.nan, wrap_negative_indices=False)


def layer_norm(state: Float[jax.Array, "row width"], gain: Float[AnyArray, "width"] | None) -> jax.Array:
    """Rows centered and divided by their deviation, times the gain if there is one."""
    centered = state - jnp.mean(state, axis=-1, keepdims=True)
    normed = centered * jax.lax.rsqrt(jnp.mean(centered**2, axis=-1, keepdims=True) + EPSILON)
    return normed if gain is None else normed * gain


def softmax_attention_weights(
    scores: Float[jax.Array, "... query token"], seen: Bool[jax.Array, "query token"] | None
) -> Float[jax.Array, "... query token"]:
    """Softmax of the scores over the tokens that are seen."""
    return jax.nn.softmax(scores if seen is None else jnp.where(seen, scores, HIDDEN), axis=-1)


def linear_attention_weights(
    scores: Float[jax.Array, "... query token"], seen: Bool[jax.Array, "query token"] | None
) -> Float[jax.Array, "... query token"]:
    """Scores divided by the number of tokens that are seen, 0 on the others."""
    if seen is None:
        return scores / scores.shape[-1]
    return scores * (seen / jnp.sum(seen, axis=-1, keepdims=True, dtype=jnp.float32))


def rotated(heads: Float[jax.Array, "context head token dim"], length: int) -> Float[jax.Array, "..."]:
    """Rotary embedding: entries i and i + dim/2 rotated by position × frequency, for the last tokens of `length`."""
    half = heads.shape[-1] // 2
    position = np.arange(length)[-heads.shape[-2] :, None]
    angle = position * BASE ** (-np.arange(half) / half)
    cosine, sine = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    first, second = heads[..., :half], heads[..., half:]
    return jnp.concatenate([first * cosine - second * sine, first * sine + second * cosine], axis=-1)
