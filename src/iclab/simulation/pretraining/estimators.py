"""Errors of Bayes estimators on drawn contexts: ridge regression, and the posterior mean over a pool (dMMSE).

Given a context all is averaged exactly that can be: the query and the noise of its label always; for ridge regression
the task too, and for tasks of the pool the task over the posterior. That leaves a fraction of the variance of scoring
single queries.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray
from numpy.typing import ArrayLike

from iclab.numerics import Validated, checked_number, magnitude_number, require, whole_number
from iclab.problem import ContextLaw, Pool
from iclab.simulation.keys import checked_key, generators_of
from iclab.simulation.linear.summaries import checked_tasks
from iclab.simulation.memory import require_memory

__all__ = [
    "CHUNK", "ContextErrors", "drawn_dmmse_errors", "drawn_ridge_errors", "fittest_dmmse_errors", "log_tasks_at",
    "mean_dmmse_errors", "mean_fittest_errors", "posterior_weights",
]  # fmt: skip

Array = np.ndarray
CHUNK = 2**20  # numbers in the contexts of one chunk
FITTEST = 100.0  # tasks of a huge pool, about, that are drawn for each context
REACH = 2.0  # how far above their typical misfit tasks are drawn, in units of the noise that they are drawn at


class ContextErrors(NamedTuple):
    """Mean squared error after each of many drawn contexts, with the noise of the target: their mean is the error."""

    icl: Float[Array, "context"]  # on new tasks
    idg: Float[Array, "context"]  # on tasks of the pool


def drawn_dmmse_errors(
    tasks: Validated[ArrayLike],
    context_length: Validated[int],
    *,
    noise: Validated[float],
    contexts: Validated[int] = 400,
    normalized: Validated[bool] = False,
    key: Validated[PRNGKeyArray],
) -> ContextErrors:
    """Errors of the posterior mean over a pool (K, D), on contexts of new tasks, N(0, I) or normalized, and its own.

    Inputs are N(0, I/D). Without noise the posterior is the task that fits best. Cost: contexts × N × K × D.

    Raises ValueError for tasks that are no list of finite vectors, sizes below 1 or beyond memory and negative noise.
    """
    pool = checked_tasks(tasks)
    require(pool.ndim == 2, f"tasks must have the shape (K, D), the tasks of a pool; got {pool.shape}.")
    require(isinstance(normalized, bool), f"normalized must be True or False; got {normalized!r}.")
    length, count, rho, chunk = _checked(context_length, contexts, noise, sum(pool.shape))
    keys = jax.random.split(checked_key(key), count)
    with jax.enable_x64(True):
        icl, idg = jax.device_get(_dmmse(keys, pool, rho, length, normalized, chunk))
    return ContextErrors(rho + icl, rho + idg)


def drawn_ridge_errors(
    dimension: Validated[int],
    context_length: Validated[int],
    *,
    noise: Validated[float],
    contexts: Validated[int] = 400,
    key: Validated[PRNGKeyArray],
) -> Float[Array, "context"]:
    """Error after each of many drawn contexts of the Bayes estimator for tasks N(0, I), ridge regression at ρ.

    Given inputs X it is ρ + ρ tr (XᵀX + ρ)^-1/D; without noise the fraction of directions that X does not reach.

    Raises ValueError for sizes below 1 or beyond memory and negative noise.
    """
    d = whole_number("dimension", dimension)
    length, count, rho, chunk = _checked(context_length, contexts, noise, d)
    require_memory("dimension", 4.0 * min(length, d) ** 2)
    keys = jax.random.split(checked_key(key), count)
    with jax.enable_x64(True):
        return rho + np.asarray(_lost(keys, rho, length, d, chunk))


def fittest_dmmse_errors(
    dimension: Validated[int],
    context_length: Validated[int],
    *,
    noise: Validated[float],
    log_tasks: Validated[float],
    contexts: Validated[int] = 40,
    key: Validated[PRNGKeyArray],
) -> Float[Array, "context"]:
    """Errors on new tasks of the posterior mean over a huge pool of tasks N(0, I), the fittest of which are drawn.

    A pool of a Poisson number of tasks, of mean K = exp(log_tasks), of which the posterior weighs those of least
    misfit. Some hundred of them are drawn, from the posterior at the larger noise r whose divergence from the prior
    is ln K/100, and kept as often as the prior has them: all of the pool below a misfit. Below the threshold of the
    random-energy model the tasks above it weigh nothing.

    Raises ValueError for sizes below 1, noise that is not positive and fewer than a thousand tasks.
    """
    d, n = whole_number("dimension", dimension), whole_number("context_length", context_length)
    rho = checked_number("noise", noise, above=0.0)
    log = checked_number("log_tasks", log_tasks, at_least=float(np.log(1000)), advice="Draw smaller pools whole.")
    count, (rng,) = whole_number("contexts", contexts), generators_of(checked_key(key)[None])
    return np.array([_fittest(d, n, rho, log, rng) for _ in range(count)])


def mean_dmmse_errors(
    laws: Sequence[ContextLaw], *, contexts: int, key: PRNGKeyArray
) -> tuple[Float[Array, "law"], Float[Array, "law"]]:
    """Means of the errors on contexts of new tasks and of tasks of each pool, inputs N(0, I/D)."""
    found = []
    for i, law in enumerate(laws):
        assert isinstance(law.tasks, Pool)
        sample = {"noise": law.noise, "contexts": contexts, "key": jax.random.fold_in(key, i)}
        found.append(drawn_dmmse_errors(law.tasks.vectors, law.context_length, **sample))
    return np.array([np.mean(one.icl) for one in found]), np.array([np.mean(one.idg) for one in found])


def mean_fittest_errors(
    dimension: int, shares: Float[Array, "s"], *, alpha: float, noise: float, contexts: int, key: PRNGKeyArray
) -> Float[Array, "s"]:
    """Means of the errors on new tasks with pools that are, in D dimensions, as exp(sD) tasks in the limit."""
    length, found = max(1, round(alpha * dimension)), []
    for i, s in enumerate(shares):
        sample = {"noise": noise, "contexts": contexts, "key": jax.random.fold_in(key, i)}
        found.append(np.mean(fittest_dmmse_errors(dimension, length, log_tasks=log_tasks_at(s, dimension), **sample)))
    return np.array(found)


def log_tasks_at(share: float, dimension: int) -> float:
    """ln K of the pool that is in D dimensions as exp(sD) tasks in the limit: s D + ½ ln(4π ln K)."""
    log = share * dimension
    for _ in range(100):
        log = share * dimension + 0.5 * np.log(4 * np.pi * max(log, 1.0))
    return float(log)


def _posterior(
    scale: Float[np.ndarray, "D"], labels: Float[np.ndarray, "D"], noise: float
) -> tuple[Float[np.ndarray, "D"], Float[np.ndarray, "D"]]:
    """Mean and variance of a task in the singular vectors of its inputs, at a noise."""
    return scale * labels / (scale**2 + noise), noise / (scale**2 + noise)


def _fittest(d: int, n: int, rho: float, log_tasks: float, rng: np.random.Generator) -> float:
    """The error on one context, in the singular vectors of its inputs."""
    values = np.linalg.svd(rng.standard_normal((n, d)) / np.sqrt(d), compute_uv=False)
    scale = np.append(values, np.zeros(d - len(values)))
    task, noise = rng.standard_normal(d), np.sqrt(rho) * rng.standard_normal(d)
    labels = scale * task + (scale > 0) * noise  # those of other directions, of more examples, fit all tasks alike
    low, high = np.log(rho) - 40, np.log(rho) + 40
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        mean, spread = _posterior(scale, labels, np.exp(middle))
        divergence = 0.5 * np.sum(spread + mean**2 - 1 - np.log(spread))
        low, high = (middle, high) if divergence > log_tasks - np.log(FITTEST) else (low, middle)
    r = np.exp(high)
    mean, spread = _posterior(scale, labels, r)
    states = mean + np.sqrt(spread) * rng.standard_normal((rng.poisson(FITTEST * np.exp(REACH)), d))
    misfit = 0.5 * np.sum((labels - scale * states) ** 2, axis=1)
    most = 0.5 * np.sum((labels - scale * mean) ** 2 + scale**2 * spread) + REACH * r
    kept = (misfit < most) & (rng.random(len(misfit)) < np.exp(np.minimum((misfit - most) / r, 0.0)))
    weight = np.exp(-(misfit[kept] - np.min(misfit[kept])) / rho)
    return rho + float(np.sum((task - weight @ states[kept] / np.sum(weight)) ** 2)) / d


def posterior_weights(misfit: Float[jax.Array, "K"], noise: jax.Array) -> Float[jax.Array, "K"]:
    """Posterior weights of equally likely tasks from the sum of squares of each, from within a compiled function.

    Without noise those of the least sum have equal weights, the others none.
    """
    excess = misfit - jnp.min(misfit)
    weight = jnp.where(noise > 0, jnp.exp(-excess / jnp.where(noise > 0, 2 * noise, 1.0)), excess == 0)
    return weight / jnp.sum(weight)


def _checked(
    context_length: Validated[int], contexts: Validated[int], noise: Validated[float], width: int
) -> tuple[int, int, float, int]:
    """Length, number and noise of contexts, and the size of a chunk of them at `width` numbers an example."""
    rho = magnitude_number("noise", noise, zero=True, advice="It is a variance.")
    length, count = whole_number("context_length", context_length), whole_number("contexts", contexts)
    chunk = max(1, min(count, CHUNK // (length * width)))
    require_memory("context_length and contexts", 4.0 * count + 6.0 * chunk * length * width)
    return length, count, rho, chunk


@partial(jax.jit, static_argnames=("length", "normalized", "chunk"))
def _dmmse(
    keys: jax.Array, pool: jax.Array, noise: jax.Array, length: int, normalized: bool, chunk: int
) -> tuple[jax.Array, jax.Array]:
    count, d = pool.shape

    def posterior(task: jax.Array, normal: jax.Array) -> jax.Array:
        inputs = normal[:, :d] / np.sqrt(d)
        misfit = jnp.sum((inputs @ (pool - task).T - jnp.sqrt(noise) * normal[:, d:]) ** 2, axis=0)
        return posterior_weights(misfit, noise)

    def context(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        for_task, for_numbers = jax.random.split(key)
        own = pool[jax.random.randint(for_task, (), 0, count)]
        first, second, fresh = jnp.split(
            jax.random.normal(for_numbers, (2 * length + 1, d + 1)), [length, 2 * length]
        )
        new = fresh[0, :d]
        new = new * (np.sqrt(d) / jnp.linalg.norm(new)) if normalized else new
        error = new - posterior(new, first) @ pool
        weight = posterior(own, second)
        spread = weight @ jnp.sum((pool - weight @ pool) ** 2, axis=1)
        return jnp.sum(error**2) / d, spread / d

    return jax.lax.map(context, keys, batch_size=chunk)


@partial(jax.jit, static_argnames=("length", "dimension", "chunk"))
def _lost(keys: jax.Array, noise: jax.Array, length: int, dimension: int, chunk: int) -> jax.Array:
    def context(key: jax.Array) -> jax.Array:
        inputs = jax.random.normal(key, (length, dimension)) / np.sqrt(dimension)
        values = jnp.linalg.eigvalsh(inputs @ inputs.T if length < dimension else inputs.T @ inputs)
        reached = jnp.sum(jnp.where(noise > 0, noise / jnp.maximum(values + noise, noise), 0.0))
        return (reached + max(0, dimension - length)) / dimension

    return jax.lax.map(context, keys, batch_size=chunk)
