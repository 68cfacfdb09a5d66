"""Training of softmax attention, on tokens: no moments of the data suffice.

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
from iclab.numerics import Validated
from iclab.outcomes import Trajectory
from iclab.simulation.linear.contexts import Contexts
from iclab.simulation.linear.loop import Weights, half_gradient, require_dimension, trajectory
from iclab.simulation.linear.routes import query_scores

__all__ = ["SOFTMAX", "on_tokens", "softmax_query_output"]


def on_tokens(
    contexts: Contexts, start: Layer, *, rate: Validated[float], steps: Validated[Iterable[int]]
) -> Trajectory:
    """Full-batch gradient descent of softmax attention, merged or separate, restricted or not.

    `steps` are the step numbers at which loss and weights are recorded; the last one ends the run. The learning rate
    acts on half the mean squared error and time = rate × step. Cost of a step: P N H exponentials and a few times P N
    H D products, 0.4 ms at P = 400, N = 31, H = 4. Starts with leading axes train in one batch on the same contexts.
    For seeds with contexts of their own call once for each: calls share one compilation, and vmapping three seeds
    took 1.2 to 1.5 times the processor time of three calls.

    Raises ValueError for a start of another dimension than the contexts, for a learning rate that is not positive and
    for steps that do not increase; ArithmeticError when the loss leaves the finite numbers.
    """
    require_dimension(start, contexts.dimension, "contexts")
    position = np.arange(contexts.tokens.shape[1])
    shown = (position < contexts.lengths[:, None]) | (position == position[-1])
    return trajectory(SOFTMAX, (contexts.tokens, contexts.target, shown), (), start, rate=rate, steps=steps)


def softmax_query_output(
    tokens: Float[jax.Array, "P token entry"], shown: Bool[jax.Array, "P token"], weights: Weights
) -> Float[jax.Array, "P"]:
    """The output of softmax attention at the query's label; tokens that are not shown have attention weight 0."""
    scores, values = query_scores(tokens, weights)
    attention = jax.nn.softmax(jnp.where(shown[:, None], scores, -jnp.inf), axis=-1)
    return jnp.einsum("phn,pna,ha->p", attention, values, weights[0])


def _loss(data: Any, weights: Weights, step: Any) -> jax.Array:
    tokens, target, shown = data
    return jnp.mean((softmax_query_output(tokens, shown, weights) - target) ** 2)


SOFTMAX = half_gradient(_loss)
