"""Losses of linear attention and their gradients: on tokens, on cubic features, on statistics, on fresh contexts.

A head is a row a of its value matrix and a matrix B of its keys and queries. It acts through the tensor T = Σ a ⊗ B,
and depends on a sequence through the features φ = M ⊗ x_q: the prediction is ⟨T, φ⟩.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from iclab.attention import Layer, MergedAttention
from iclab.simulation.linear.contexts import fresh
from iclab.simulation.linear.loop import Route, Weights, half_gradient
from iclab.simulation.linear.statistics import features_read_by

__all__ = [
    "FEATURES", "STATISTICS", "STATISTICS_IN_ONE_LOOP", "TOKENS", "acting", "acting_in_one_loop", "fresh_route",
    "gathered", "linear_query_output", "query_scores", "scattered", "statistics_route",
]  # fmt: skip

Tensor = Float[jax.Array, "value key query"]
FEW = 4096  # products up to which one fused loop beats calls of a matrix library, by benchmarks/descent.py


def query_scores(
    tokens: Float[jax.Array, "P token entry"], weights: Weights
) -> tuple[Float[jax.Array, "P head token"], Float[jax.Array, "P token value_entry"]]:
    """Scores of the query on every token, and the entries of tokens that values read, all or the label alone."""
    value, *rest = weights
    query = tokens[:, -1, :-1]
    restricted = value.shape[-1] == 1
    values, keys = (tokens[..., -1:], tokens[..., :-1]) if restricted else (tokens, tokens)
    projected = jnp.einsum("hbc,pc->phb" if len(rest) == 1 else "hrb,hrc,pc->phb", *rest, query)
    return jnp.einsum("pnb,phb->phn", keys, projected), values


def linear_query_output(tokens: Float[jax.Array, "P token entry"], weights: Weights) -> Float[jax.Array, "P"]:
    """The output of linear attention at the query's label, before division."""
    scores, values = query_scores(tokens, weights)
    return jnp.einsum("phn,pna,ha->p", scores, values, weights[0])


def acting(weights: Weights) -> Tensor:
    """T = Σ a ⊗ B."""
    return jnp.einsum("ha,hbc->abc" if len(weights) == 2 else "ha,hrb,hrc->abc", *weights)


def acting_in_one_loop(weights: Weights) -> Tensor:
    """T = Σ a ⊗ B by products and sums alone, which compile to one loop: several times faster if they are few."""
    value, *rest = weights
    heads = rest[0] if len(rest) == 1 else jnp.sum(rest[0][..., None] * rest[1][:, :, None], axis=1)
    return jnp.sum(value[:, :, None, None] * heads[:, None], axis=0)


def gathered(tensor: Tensor) -> Float[jax.Array, "pair query"]:
    """T by distinct features. M is symmetric, so the entries abc and bac of T meet the same one and add."""
    if len(tensor) == 1:
        return tensor[0]
    a, b = np.triu_indices(len(tensor))
    return tensor[a, b] + jnp.where((a != b)[:, None], tensor[b, a], 0.0)


def scattered(gradient: Float[jax.Array, "pair query"], tensor: Tensor) -> Tensor:
    """The gradient in T of a function of `gathered`, from that in its result. JAX's own is several times slower."""
    if len(tensor) == 1:
        return gradient[None]
    a, b = np.triu_indices(len(tensor))
    pair = np.empty((len(tensor), len(tensor)), dtype=int)
    pair[a, b] = pair[b, a] = np.arange(len(a))
    return gradient[pair]


def _tokens_loss(data: Any, weights: Weights, step: Any) -> jax.Array:
    tokens, target, divisor = data
    return jnp.mean((linear_query_output(tokens, weights) / divisor - target) ** 2)


def _features_loss(data: Any, weights: Weights, step: Any) -> jax.Array:
    cubic, target = data
    return jnp.mean((cubic @ gathered(acting(weights)).ravel() - target) ** 2)


def _on_statistics(acting: Callable[[Weights], Tensor]) -> Route:
    def loss(data: Any, weights: Weights, step: Any) -> jax.Array:
        cross, left, right, null_loss = data
        matrix = gathered(acting(weights)).reshape(cross.shape)
        return null_loss + jnp.vdot(matrix, left @ matrix @ right - 2 * cross)

    def gradient(data: Any, weights: Weights, step: Any) -> Weights:
        cross, left, right, _ = data
        tensor, gradient_in_weights = jax.vjp(acting, weights)
        matrix = gathered(tensor)
        in_matrix = left @ matrix.reshape(cross.shape) @ right - cross  # once, for second moments are symmetric
        return gradient_in_weights(scattered(in_matrix.reshape(matrix.shape), tensor))[0]

    return Route(loss, gradient)


TOKENS = half_gradient(_tokens_loss)
FEATURES = half_gradient(_features_loss)
STATISTICS = _on_statistics(acting)
STATISTICS_IN_ONE_LOOP = _on_statistics(acting_in_one_loop)


def statistics_route(start: Layer, batch: tuple[int, ...]) -> Route:
    """The faster of two ways to descend on statistics with leading axes `batch`; their curves are the same."""
    last = start.key_query if isinstance(start, MergedAttention) else start.query
    alone = np.ndim(last) == 3 and not batch
    pairs = start.heads * (1 if isinstance(start, MergedAttention) else start.rank)
    return STATISTICS_IN_ONE_LOOP if alone and pairs * features_read_by(start) <= FEW else STATISTICS


@cache  # the compiled loop is found again by the identity of its route
def fresh_route(batch: int, longest: int) -> Route:
    """The loss on `batch` contexts drawn for this step alone; data are a key and a RegressionLaw."""

    def loss(data: Any, weights: Weights, step: Any) -> jax.Array:
        key, law = data
        tokens, target, lengths = fresh(law, batch, longest, jax.random.fold_in(key, step))
        return _tokens_loss((tokens, target, lengths), weights, step)

    return half_gradient(loss)
