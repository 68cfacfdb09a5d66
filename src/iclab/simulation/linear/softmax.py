"""Training of softmax attention on tokens, which no moment of the data can replace.

The layers are those of linear attention. Each head normalizes its scores over all tokens of a sequence, the
query's own included: prediction Σ_heads Σ_n softmax_n(z_nᵀ B x_q) aᵀ z_n, without temperature and without a
division by N.
"""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from iclab.attention import Layer
from iclab.outcomes import Trajectory
from iclab.simulation.linear.contexts import Contexts
from iclab.simulation.linear.loop import Weights, half_gradient, require_dimension, trajectory


def on_tokens(contexts: Contexts, start: Layer, *, rate: float, steps: Iterable[int]) -> Trajectory:
    """Full-batch gradient descent of softmax attention, merged or separate, restricted or not.

    `steps` are the step numbers at which loss and weights are recorded; the last one ends the run. The rate acts
    on half the mean squared error and time = rate × step. Cost of a step: P N H exponentials and a few times
    P N H D products, 0.4 ms at P = 400, N = 31, H = 4. Starts with leading axes train side by side on the same
    contexts. For seeds with contexts of their own call once for each: calls share one compilation, and vmapping
    three seeds took 1.2 to 1.5 times the processor time of three calls.

    Raises ValueError for a start of another dimension than the contexts, for a rate that is not positive and for
    steps that do not increase; ArithmeticError when the loss leaves the finite numbers.
    """
    require_dimension(start, contexts.dimension, "contexts")
    place = np.arange(contexts.tokens.shape[1])
    shown = (place < contexts.lengths[:, None]) | (place == place[-1])
    return trajectory(SOFTMAX, (contexts.tokens, contexts.target, shown), (), start, rate=rate, steps=steps)


def softmax_query_output(
    tokens: Float[jax.Array, "P N+1 D+1"], shown: Bool[jax.Array, "P N+1"], weights: Weights
) -> Float[jax.Array, "P"]:
    """The output of attention at the query's label; tokens that are not shown get no share."""
    value, *rest = weights
    query = tokens[:, -1, :-1]
    restricted = value.shape[-1] == 1
    values, keys = (tokens[..., -1:], tokens[..., :-1]) if restricted else (tokens, tokens)
    asked = jnp.einsum("hbc,pc->phb" if len(rest) == 1 else "hrb,hrc,pc->phb", *rest, query)
    scores = jnp.einsum("pnb,phb->phn", keys, asked)
    share = jax.nn.softmax(jnp.where(shown[:, None], scores, -jnp.inf), axis=-1)
    return jnp.einsum("phn,pna,ha->p", share, values, value)


def _loss(data: Any, weights: Weights, step: Any) -> jax.Array:
    tokens, target, shown = data
    return jnp.mean((softmax_query_output(tokens, shown, weights) - target) ** 2)


SOFTMAX = half_gradient(_loss)
