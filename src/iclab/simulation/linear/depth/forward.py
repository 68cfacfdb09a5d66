"""Answers of a stack in JAX, token by token and as the recursion, and its loss on fresh contexts."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from iclab.attention import StackedAttention
from iclab.numerics import Validated, require, whole_number
from iclab.problem import Regression
from iclab.simulation.keys import checked_key
from iclab.simulation.linear.contexts import Contexts, RegressionLaw, fresh, regression_law

__all__ = ["FreshLoss", "answers", "descended_answers", "fresh_loss", "one_length", "stack_answers"]

Array = np.ndarray
_CHUNK = 20_000  # contexts at once


class FreshLoss(NamedTuple):
    """Mean squared error on fresh contexts, and its standard error."""

    loss: float
    error: float


def answers(contexts: Contexts, stack: Validated[StackedAttention]) -> Float[Array, "P"]:
    """The stack's answer to the query of each context, by attention on its tokens.

    Raises ValueError for a stack of another dimension or with leading axes, and for contexts of several lengths.
    """
    _require_one(stack, contexts.dimension)
    length = _length_of(contexts)
    whole = stack.unrestricted() if stack.restricted else stack
    with jax.enable_x64(True):
        weights = jnp.asarray(whole.value), jnp.asarray(whole.key_query)
        found = _answers(weights, jnp.asarray(contexts.tokens), length=length, masked=stack.masked)
        return np.asarray(found)


def descended_answers(contexts: Contexts, gammas: Validated[Float[Array, "layer D D"]]) -> Float[Array, "P"]:
    """The answers of the recursion w ← w + Γ_lᵀ (1/N) Σ (y − wᵀx) x, in JAX.

    Raises ValueError for contexts of several lengths.
    """
    length = _length_of(contexts)
    with jax.enable_x64(True):
        parts = (jnp.asarray(part) for part in (contexts.inputs, contexts.labels, contexts.query, gammas))
        return np.asarray(_descended(*parts, length=length))


def fresh_loss(
    problem: Validated[Regression], stack: Validated[StackedAttention], contexts: Validated[int], *, key: PRNGKeyArray
) -> FreshLoss:
    """Loss of a stack on so many fresh contexts, noise of the query's label included.

    Raises ValueError for a stack of another dimension, several context lengths, and fewer than two contexts.
    """
    _require_one(stack, problem.dimension)
    count, length = whole_number("contexts", contexts, least=2), one_length(problem)
    whole = stack.unrestricted() if stack.restricted else stack
    squares = []
    with jax.enable_x64(True):
        weights = jnp.asarray(whole.value), jnp.asarray(whole.key_query)
        for part, chunk in enumerate(range(0, count, _CHUNK)):
            size, one = min(_CHUNK, count - chunk), jax.random.fold_in(checked_key(key), part)
            law = regression_law(problem)
            squares.append(np.asarray(_squares(weights, law, one, length=length, masked=stack.masked, size=size)))
    found = np.concatenate(squares)
    return FreshLoss(float(found.mean()), float(found.std(ddof=1) / np.sqrt(count)))


def stack_answers(
    weights: tuple[jax.Array, jax.Array], tokens: Float[jax.Array, "P token entry"], *, length: int, masked: bool
) -> Float[jax.Array, "P"]:
    """Answers from value and key-query matrices (L, D+1, D+1), from within a compiled function."""

    def layer(tokens: jax.Array, matrices: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        value, key_query = matrices
        keys = tokens[:, :length] if masked else tokens
        moments = jnp.einsum("pti,ptj->pij", keys, keys) / length
        acting = jnp.einsum("ij,pjk,kl->pil", value, moments, key_query)
        return tokens + jnp.einsum("pil,ptl->pti", acting, tokens), None

    return -jax.lax.scan(layer, tokens, weights)[0][:, -1, -1]


_answers = jax.jit(stack_answers, static_argnames=("length", "masked"))


@partial(jax.jit, static_argnames=("length", "masked", "size"))
def _squares(
    weights: tuple[jax.Array, jax.Array], law: RegressionLaw, key: jax.Array, *, length: int, masked: bool, size: int
) -> jax.Array:
    tokens, target, _ = fresh(law, size, length, key)
    return (stack_answers(weights, tokens, length=length, masked=masked) - target) ** 2


@partial(jax.jit, static_argnames="length")
def _descended(
    inputs: jax.Array, labels: jax.Array, query: jax.Array, gammas: jax.Array, *, length: int
) -> jax.Array:
    def step(weights: jax.Array, gamma: jax.Array) -> tuple[jax.Array, None]:
        residual = labels - jnp.einsum("pnd,pd->pn", inputs, weights)
        return weights + jnp.einsum("pn,pnd,de->pe", residual, inputs, gamma) / length, None

    return jnp.sum(jax.lax.scan(step, jnp.zeros_like(query), gammas)[0] * query, axis=1)


def one_length(problem: Regression) -> int:
    """N. Raises ValueError for several context lengths."""
    lengths = problem.context_lengths
    require(len(lengths) == 1, f"context_length must be one number here; got {lengths}. Simulate one at a time.")
    return lengths[0]


def _length_of(contexts: Contexts) -> int:
    lengths = np.unique(contexts.lengths)
    require(len(lengths) == 1, f"contexts must have one length; got {lengths}. Ask for one at a time.")
    return int(lengths[0])


def _require_one(stack: StackedAttention, dimension: int) -> None:
    require(
        stack.dimension == dimension and stack.key_query.ndim == 3,
        f"stack must be one of dimension {dimension}; got key_query of shape {stack.key_query.shape}.",
    )
