"""Training of Γ as a product of two factors of limited rank, and tests of frozen Γ on drawn contexts.

Several ranks train in one batch, in factors of the largest one: a pair of columns that starts at zero never moves.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float, PRNGKeyArray
from numpy.typing import ArrayLike

from iclab.numerics import Validated, positive, whole_number
from iclab.problem import Regression
from iclab.simulation.linear.contexts import RegressionLaw, fresh, regression_law
from iclab.simulation.linear.loop import not_diverged
from iclab.simulation.linear.statistics import Statistics
from iclab.simulation.related.loop import descended

__all__ = ["BLOCK", "Factors", "descend", "factors", "frozen_losses", "one_pass"]

Array = np.ndarray
Factors = tuple[Float[Array, "layer D rank"], Float[Array, "layer D rank"]]
DESCENT = optax.sgd(1.0)  # gradients here hold the learning rate: it multiplies that in Γ, before the products
BLOCK = 4000  # contexts in one batch of a test


def factors(dimension: int, ranks: tuple[int, ...], *, scale: float, key: PRNGKeyArray) -> Factors:
    """Independent normal starts of several ranks, padded with zeros to the largest one."""
    with jax.enable_x64(True):
        drawn = np.array(jax.random.normal(key, (2, len(ranks), dimension, max(ranks)), float))
    kept = np.arange(max(ranks)) < np.array(ranks)[:, None, None]
    left, right = scale * drawn * kept
    return left, right


def descend(
    statistics: Statistics, start: Factors, *, rate: Validated[float], steps: Validated[int]
) -> Float[Array, "layer D D"]:
    """Γ after gradient descent of the factors on half the loss that the statistics of contexts define.

    Raises ValueError for a learning rate that is not positive and fewer than one step, ArithmeticError if it
    diverges.
    """
    positive("rate", rate)
    with jax.enable_x64(True):
        parts = (statistics.cross, statistics.left, statistics.right)
        return not_diverged(np.asarray(_descend(parts, start, float(rate), whole_number("steps", steps))), rate)


def one_pass(
    problem: Regression,
    start: Factors,
    *,
    rate: Validated[float],
    steps: Validated[int],
    batch: Validated[int],
    key: PRNGKeyArray,
) -> Float[Array, "layer D D"]:
    """Γ after one-pass SGD of the factors on fresh contexts, the same for all layers.

    The learning rate falls as a cosine.

    Raises ValueError for a learning rate that is not positive, and fewer than one step or context; ArithmeticError if
    it diverges.
    """
    positive("rate", rate)
    with jax.enable_x64(True):
        sizes = whole_number("steps", steps), whole_number("batch", batch), max(problem.context_lengths)
        trained = _one_pass(regression_law(problem), start, key, float(rate), *sizes)
        return not_diverged(np.asarray(trained), rate)


def frozen_losses(
    gamma: Float[Array, "layer D D"],
    problem: Regression,
    *,
    noises: Validated[ArrayLike],
    contexts: Validated[int],
    tasks: Validated[tuple[ArrayLike, ArrayLike] | None] = None,
    key: PRNGKeyArray,
) -> Float[Array, "layer noise"]:
    """Loss of frozen layers over drawn contexts, the same ones at every noise; averaged over the query exactly.

    Contexts have the inputs, tasks and length of the problem; with `tasks` the first labels every context and the
    second the query, whose label carries the noise.

    Raises ValueError for fewer contexts than a block holds.
    """
    blocks = -(-whole_number("contexts", contexts, least=BLOCK) // BLOCK)
    fixed = None if tasks is None else tuple(np.asarray(task, dtype=float) for task in tasks)
    with jax.enable_x64(True):
        found = _frozen_losses(
            gamma, regression_law(problem), fixed, np.asarray(noises), key, blocks, problem.context_lengths[0]
        )
        return np.asarray(found)


@partial(jax.jit, static_argnums=3)
def _descend(statistics: tuple[jax.Array, ...], start: Any, rate: jax.Array, steps: int) -> jax.Array:
    cross, second, inputs = (jnp.asarray(part) for part in statistics)

    def gradient(weights: Any, _: jax.Array) -> Any:
        left, right = weights
        return _in_factors(rate * (second @ (left @ right.swapaxes(1, 2)) @ inputs - cross), left, right)

    left, right = descended(gradient, start, optimizer=DESCENT, steps=steps)
    return left @ right.swapaxes(1, 2)


@partial(jax.jit, static_argnums=(4, 5, 6))
def _one_pass(
    law: RegressionLaw, start: Any, key: jax.Array, rate: jax.Array, steps: int, batch: int, longest: int
) -> jax.Array:
    def gradient(weights: Any, step: jax.Array) -> Any:
        left, right = weights
        tokens, target, _ = fresh(law, batch, longest, jax.random.fold_in(key, step))
        summary = jnp.einsum("pn,pnd->pd", tokens[:, :-1, -1], tokens[:, :-1, :-1]) / longest
        query = tokens[:, -1, :-1]
        residual = jnp.einsum("pi,lir,ljr,pj->lp", summary, left, right, query) - target
        now = rate * 0.5 * (1 + jnp.cos(jnp.pi * step / steps))
        return _in_factors(now * (jnp.einsum("lp,pi,pj->lij", residual, summary, query) / batch), left, right)

    left, right = descended(gradient, start, optimizer=DESCENT, steps=steps)
    return left @ right.swapaxes(1, 2)


def _in_factors(gradient: jax.Array, left: jax.Array, right: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Gradients in the factors of Γ = left · rightᵀ from that in Γ."""
    return gradient @ right, gradient.swapaxes(1, 2) @ left


@partial(jax.jit, static_argnums=(5, 6))
def _frozen_losses(
    gamma: jax.Array, law: RegressionLaw, fixed: Any, noises: jax.Array, key: jax.Array, blocks: int, length: int
) -> jax.Array:
    dimension = len(law.input_scale)

    def block(number: jax.Array) -> jax.Array:
        normal = jax.random.normal(jax.random.fold_in(key, number), (BLOCK, length * (dimension + 1) + dimension))
        inputs, ripple, task = jnp.split(normal, np.cumsum([length * dimension, length]), axis=1)
        inputs = law.input_scale * inputs.reshape(BLOCK, length, dimension)
        task_of_context, task_of_query = (
            (law.task_scale * task,) * 2 if fixed is None else (jnp.broadcast_to(one, task.shape) for one in fixed)
        )
        clean = jnp.einsum("pnd,pnc,pc->pd", inputs, inputs, task_of_context) / length
        noisy = jnp.einsum("pn,pnd->pd", ripple, inputs) / length
        summary = clean + jnp.sqrt(noises)[:, None, None] * noisy
        residual = task_of_query - jnp.einsum("spi,lij->lspj", summary, gamma)
        return jnp.mean(jnp.sum((law.input_scale * residual) ** 2, axis=-1), axis=-1)

    return jnp.mean(jax.lax.map(block, jnp.arange(blocks)), axis=0) + noises
