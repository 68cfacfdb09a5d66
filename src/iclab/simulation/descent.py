"""Training of linear attention by gradient descent, in float64.

Three routes lead to the same curve: on tokens, on cubic features and on sufficient statistics. The first is
plain attention, the last is thousands of times faster; all share one loop. Rates act on half the mean squared
error, so that time = rate × step is the time of gradient flow, in units of τ. Starts with leading axes train
side by side; these axes come before `time` in what is returned.
"""

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from iclab.attention import Layer
from iclab.numerics import require
from iclab.outcomes import Trajectory
from iclab.problem import Regression
from iclab.simulation.contexts import Contexts, fresh, law
from iclab.simulation.loop import Route, Weights, half_gradient, require_dimension, trajectory
from iclab.simulation.statistics import Statistics, features, features_read_by

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray


def on_statistics(statistics: Statistics, start: Layer, *, rate: float, steps: Iterable[int]) -> Trajectory:
    """Full-batch gradient descent on sufficient statistics.

    `steps` are the step numbers at which loss and weights are recorded; the last one ends the run. Statistics
    with leading axes pair with starts with the same leading axes, or with one start for all. Cost of a step:
    the square of the number of features. Losses are differences of numbers of size E[y²], and exact to their
    rounding.

    Raises ValueError for a start that does not fit the statistics, for a rate that is not positive and for steps
    that do not increase; ArithmeticError when the loss leaves the finite numbers.
    """
    count = features_read_by(start)
    require(
        statistics.feature_count == count,
        f"start must read as many features as the statistics hold, {statistics.feature_count}; got {count}. "
        "Restricted layers read D² features, unrestricted ones D(D+1)².",
    )
    data = (statistics.cross, statistics.left, statistics.right, statistics.null_loss)
    return trajectory(STATISTICS, data, np.shape(statistics.null_loss), start, rate=rate, steps=steps)


def on_features(contexts: Contexts, start: Layer, *, rate: float, steps: Iterable[int]) -> Trajectory:
    """Full-batch gradient descent on the cubic features of drawn contexts: the same curve, P F products a step.

    Arguments and errors as for `on_statistics`.
    """
    return trajectory(FEATURES, (features(contexts, start), contexts.target), (), start, rate=rate, steps=steps)


def on_tokens(contexts: Contexts, start: Layer, *, rate: float, steps: Iterable[int]) -> Trajectory:
    """Full-batch gradient descent of attention on the tokens themselves, the output of the query alone.

    Arguments and errors as for `on_statistics`. Cost of a step: of the order of P N H D products.
    """
    require_dimension(start, contexts.dimension, "contexts")
    data = (contexts.tokens, contexts.target, contexts.divisor)
    return trajectory(TOKENS, data, (), start, rate=rate, steps=steps)


def one_pass(
    problem: Regression,
    start: Layer,
    *,
    rate: float,
    batch: int,
    steps: Iterable[int],
    key: "PRNGKeyArray",
) -> Trajectory:
    """Stochastic gradient descent in which every step sees `batch` fresh contexts.

    The contexts of a step depend on the key and on the number of the step alone. The loss recorded at a step is
    that of its own contexts before they are learned from: an unbiased estimate of the population loss. Several
    keys along leading axes pair with starts with the same leading axes; one key serves all starts.

    Raises ValueError for a start of another dimension, for a batch below 1, for a rate that is not positive and
    for steps that do not increase; ArithmeticError when the loss leaves the finite numbers.
    """
    require(batch >= 1, f"batch must be at least 1; got {batch!r}.")
    require_dimension(start, problem.dimension, "problem")
    route = _fresh_contexts(int(batch), max(problem.context_lengths))
    laws = jax.tree.map(lambda part: np.broadcast_to(part, (*key.shape, *part.shape)), law(problem))
    return trajectory(route, (key, laws), key.shape, start, rate=rate, steps=steps)


def acting(weights: Weights) -> Float[jax.Array, "value key query"]:
    """T = Σ a ⊗ B: the prediction is ⟨T, φ⟩, so that the weights reach it through T alone."""
    return jnp.einsum("ha,hbc->abc" if len(weights) == 2 else "ha,hrb,hrc->abc", *weights)


def query_output(tokens: Float[jax.Array, "P N+1 D+1"], weights: Weights) -> Float[jax.Array, "P"]:
    """The output of attention at the query's label, before division."""
    value, *rest = weights
    query = tokens[:, -1, :-1]
    restricted = value.shape[-1] == 1
    values, keys = (tokens[..., -1:], tokens[..., :-1]) if restricted else (tokens, tokens)
    asked = jnp.einsum("hbc,pc->phb" if len(rest) == 1 else "hrb,hrc,pc->phb", *rest, query)
    scores = jnp.einsum("pnb,phb->phn", keys, asked)
    return jnp.einsum("phn,pna,ha->p", scores, values, value)


def _tokens_loss(data: Any, weights: Weights, step: Any) -> jax.Array:
    tokens, target, divisor = data
    return jnp.mean((query_output(tokens, weights) / divisor - target) ** 2)


def _features_loss(data: Any, weights: Weights, step: Any) -> jax.Array:
    cubic, target = data
    return jnp.mean((cubic @ acting(weights).ravel() - target) ** 2)


def _statistics_loss(data: Any, weights: Weights, step: Any) -> jax.Array:
    cross, left, right, null_loss = data
    tensor = acting(weights).reshape(cross.shape)
    return null_loss + jnp.vdot(tensor, left @ tensor @ right - 2 * cross)


def _statistics_gradient(data: Any, weights: Weights, step: Any) -> Weights:
    cross, left, right, _ = data
    tensor, pull = jax.vjp(acting, weights)
    slope = left @ tensor.reshape(cross.shape) @ right - cross  # one product, for the second moment is symmetric
    return pull(slope.reshape(tensor.shape))[0]


TOKENS = half_gradient(_tokens_loss)
FEATURES = half_gradient(_features_loss)
STATISTICS = Route(_statistics_loss, _statistics_gradient)


@cache  # the compiled loop is found again by the identity of its route
def _fresh_contexts(batch: int, longest: int) -> Route:
    def loss(data: Any, weights: Weights, step: Any) -> jax.Array:
        key, law = data
        tokens, target, lengths = fresh(law, batch, longest, jax.random.fold_in(key, step))
        return _tokens_loss((tokens, target, lengths), weights, step)

    return half_gradient(loss)
