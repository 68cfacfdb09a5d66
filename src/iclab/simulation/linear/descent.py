"""Training of linear attention by gradient descent, in float64.

Three routes lead to the same curve: on tokens, on cubic features and on sufficient statistics. The first is
plain attention, the last is thousands of times faster; all share one loop. The learning rate η acts on half the mean
squared error, so that time = η × step is the time of gradient flow, in units of τ. Starts with leading axes train in
one batch; these axes come before `time` in what is returned.
"""

from collections.abc import Iterable

import jax
import numpy as np
from jaxtyping import Key

from iclab.attention import Layer
from iclab.numerics import Validated, require, whole_number
from iclab.outcomes import Trajectory
from iclab.problem import Regression
from iclab.simulation.linear.contexts import Contexts, regression_law
from iclab.simulation.linear.loop import require_dimension, trajectory
from iclab.simulation.linear.routes import FEATURES, TOKENS, fresh_route, statistics_route
from iclab.simulation.linear.statistics import Statistics, features, features_read_by

__all__ = ["on_features", "on_statistics", "on_tokens", "one_pass"]


def on_statistics(
    statistics: Statistics, start: Layer, *, rate: Validated[float], steps: Validated[Iterable[int]]
) -> Trajectory:
    """Full-batch gradient descent on sufficient statistics.

    `steps` are the step numbers at which loss and weights are recorded; the last one ends the run. Statistics
    with leading axes pair with starts with the same leading axes, or with one start for all. Cost of a step:
    the square of the number of features. Losses are differences of numbers of size E[y²], and exact to their
    rounding.

    Raises ValueError for a start that does not fit the statistics, for a learning rate that is not positive and for
    steps that do not increase; ArithmeticError when the loss leaves the finite numbers.
    """
    count = features_read_by(start)
    require(
        statistics.feature_count == count,
        f"start must read as many features as the statistics hold, {statistics.feature_count}; got {count}. "
        "Restricted layers read D² features, unrestricted ones D(D+1)(D+2)/2 distinct ones.",
    )
    data = (statistics.cross, statistics.left, statistics.right, statistics.null_loss)
    batch = np.shape(statistics.null_loss)
    return trajectory(statistics_route(start, batch), data, batch, start, rate=rate, steps=steps)


def on_features(
    contexts: Contexts, start: Layer, *, rate: Validated[float], steps: Validated[Iterable[int]]
) -> Trajectory:
    """Full-batch gradient descent on the cubic features of drawn contexts: the same curve, P F products a step.

    Arguments and errors as for `on_statistics`.
    """
    return trajectory(FEATURES, (features(contexts, start), contexts.target), (), start, rate=rate, steps=steps)


def on_tokens(
    contexts: Contexts, start: Layer, *, rate: Validated[float], steps: Validated[Iterable[int]]
) -> Trajectory:
    """Full-batch gradient descent of attention on the tokens themselves, with the output at the query alone.

    Arguments and errors as for `on_statistics`. Cost of a step: of the order of P N H D products.
    """
    require_dimension(start, contexts.dimension, "contexts")
    data = (contexts.tokens, contexts.target, contexts.divisor)
    return trajectory(TOKENS, data, (), start, rate=rate, steps=steps)


def one_pass(
    problem: Regression,
    start: Layer,
    *,
    rate: Validated[float],
    batch: Validated[int],
    steps: Validated[Iterable[int]],
    key: Key[jax.Array, "*batch"],
) -> Trajectory:
    """Stochastic gradient descent in which every step takes `batch` fresh contexts.

    The contexts of a step depend on the key and on the number of the step alone. The loss recorded at a step is
    that on its own contexts before the update: an unbiased estimate of the population loss. Several
    keys along leading axes pair with starts with the same leading axes; one key serves all starts.

    Raises ValueError for a start of another dimension, for a batch below 1, for a learning rate that is not positive
    and for steps that do not increase; ArithmeticError when the loss leaves the finite numbers.
    """
    require_dimension(start, problem.dimension, "problem")
    route = fresh_route(whole_number("batch", batch), max(problem.context_lengths))
    laws = jax.tree.map(lambda part: np.broadcast_to(part, (*key.shape, *part.shape)), regression_law(problem))
    return trajectory(route, (key, laws), key.shape, start, rate=rate, steps=steps)
