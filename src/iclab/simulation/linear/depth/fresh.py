"""Training of a stack by Adam on fresh contexts: of the blocks that write labels, or of all weights."""

from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import PRNGKeyArray

from iclab.attention import StackedAttention
from iclab.numerics import Validated, one_of, positive, require, whole_number
from iclab.problem import Regression
from iclab.simulation.keys import checked_key
from iclab.simulation.linear.contexts import RegressionLaw, fresh, regression_law
from iclab.simulation.linear.depth.forward import one_length, stack_answers

__all__ = ["train_fresh"]

Weights = tuple[jax.Array, jax.Array]


def train_fresh(
    problem: Validated[Regression],
    start: Validated[StackedAttention],
    *,
    writing: Validated[Literal["labels", "all"]],
    rate: Validated[float],
    batch: Validated[int],
    steps: Validated[int],
    key: PRNGKeyArray,
) -> StackedAttention:
    """The unrestricted stack after Adam on `batch` fresh contexts a step, its rate falling to 0 as a cosine.

    With `writing` "labels" only the value v at (label, label) and the input block U of the key-query matrix are
    trained, as in the restricted stack; with "all" every entry of both is: another model, which may rewrite inputs.

    Raises ValueError for a start of another dimension, several context lengths, and settings that are not positive;
    ArithmeticError when weights leave the finite numbers.
    """
    one_of("writing", writing, ("labels", "all"))
    require(
        start.dimension == problem.dimension and start.key_query.ndim == 3,
        f"start must be one stack of dimension {problem.dimension}; got key_query of shape {start.key_query.shape}.",
    )
    whole = start.unrestricted() if start.restricted else start
    size, length = problem.dimension, one_length(problem)
    settings = {"batch": whole_number("batch", batch), "steps": whole_number("steps", steps), "length": length}
    with jax.enable_x64(True):
        free = [jnp.ones(part.shape[1:]) for part in (whole.value, whole.key_query)]
        if writing == "labels":
            free = [jnp.zeros_like(free[0]).at[-1, -1].set(1.0), jnp.zeros_like(free[1]).at[:size, :size].set(1.0)]
        weights = jnp.asarray(whole.value), jnp.asarray(whole.key_query)
        law, peak = regression_law(problem), positive("rate", rate)
        trained = _trained(weights, (free[0], free[1]), law, peak, checked_key(key), masked=start.masked, **settings)
        value, key_query = (np.asarray(part) for part in trained)
    if not (np.all(np.isfinite(value)) and np.all(np.isfinite(key_query))):
        raise ArithmeticError(f"trained weights are not finite: Adam diverged at learning rate {rate:.3g}. Lower it.")
    return StackedAttention(value, key_query, start.masked)


@partial(jax.jit, static_argnames=("masked", "batch", "steps", "length"))
def _trained(
    weights: Weights, free: Weights, law: RegressionLaw, rate: jax.Array, key: jax.Array,
    *, masked: bool, batch: int, steps: int, length: int,
) -> Weights:  # fmt: skip
    scaling = optax.scale_by_adam()

    def loss(weights: Weights, key: jax.Array) -> jax.Array:
        tokens, target, _ = fresh(law, batch, length, key)
        return jnp.mean((stack_answers(weights, tokens, length=length, masked=masked) - target) ** 2)

    def update(step: jax.Array, state: tuple[Weights, optax.OptState]) -> tuple[Weights, optax.OptState]:
        weights, memory = state
        gradient = jax.grad(loss)(weights, jax.random.fold_in(key, step))
        gradient = jax.tree.map(jnp.multiply, gradient, free)
        change, memory = scaling.update(gradient, memory)
        now = rate * 0.5 * (1 + jnp.cos(jnp.pi * step / steps))
        return jax.tree.map(lambda weight, one: weight - now * one, weights, change), memory

    return jax.lax.fori_loop(0, steps, update, (weights, scaling.init(weights)))[0]
