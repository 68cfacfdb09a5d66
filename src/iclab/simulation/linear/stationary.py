"""Stationary points of a loss, saddles as well as minima, found from any start."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from iclab.attention import SeparateAttention
from iclab.numerics import Validated, require, whole_number
from iclab.simulation.linear.routes import STATISTICS
from iclab.simulation.linear.statistics import Statistics, features_read_by

__all__ = ["Found", "search"]

Array = np.ndarray


@dataclass(frozen=True)
class Found:
    """Ends of searches: the loss, and the norm of the gradient of half of it."""

    loss: Float[Array, "start"]
    gradient_norm: Float[Array, "start"]

    def losses(self, count: int, *, vanishing: float, same: float) -> Float[Array, "point"]:
        """The different losses of ends whose gradient vanishes, least first; infinite unless they are `count`.

        A gradient vanishes below a norm, and losses of one point differ by less than `same`.
        """
        ends = np.sort(self.loss[self.gradient_norm < vanishing])
        groups = np.split(ends, np.flatnonzero(np.diff(ends) > same) + 1)
        found_all = len(ends) > 0 and len(groups) == count
        return np.array([group.mean() for group in groups]) if found_all else np.full(count, np.inf)


def search(statistics: Statistics, starts: SeparateAttention, *, iterations: Validated[int]) -> Found:
    """Levenberg and Marquardt's iteration on the gradient of a restricted layer's loss, from each start.

    It solves gradient = 0, so that it ends at saddles as readily as at minima; some searches end at no such point, as
    the norm of their gradient shows. The starts stand along one leading axis. Cost of an iteration: a solution of as
    many equations as the layer has weights.

    Raises ValueError for starts that do not fit the statistics and for fewer than one iteration.
    """
    whole_number("iterations", iterations)
    require(
        starts.restricted and np.ndim(starts.value) == 2,
        f"starts must be restricted layers along one axis, value (S, H); got {np.shape(starts.value)}.",
    )
    require(
        statistics.feature_count == features_read_by(starts) and np.ndim(statistics.cross) == 2,
        f"starts must read as many features as the statistics hold, {statistics.feature_count}; got "
        f"{features_read_by(starts)}.",
    )
    with jax.enable_x64(True):
        data = tuple(jnp.asarray(part, float) for part in vars(statistics).values())
        weights = tuple(jnp.asarray(part, float) for part in (starts.value[..., None], starts.key, starts.query))
        loss, norm = jax.device_get(_search(data, weights, iterations))
    return Found(loss, norm)


@partial(jax.jit, static_argnames="iterations")
def _search(data: Any, weights: Any, iterations: int) -> tuple[jax.Array, jax.Array]:
    def alone(weights: Any) -> tuple[jax.Array, jax.Array]:
        first, unravel = ravel_pytree(weights)

        def gradient(point: jax.Array) -> jax.Array:
            return ravel_pytree(STATISTICS.gradient(data, unravel(point), jnp.asarray(0)))[0]

        def improve(_: Any, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            point, damping = state
            here, hessian = gradient(point), jax.jacfwd(gradient)(point)
            normal = hessian.T @ hessian + damping * jnp.eye(len(point))
            tried = point - jax.scipy.linalg.solve(normal, hessian.T @ here, assume_a="pos")
            better = jnp.sum(gradient(tried) ** 2) < jnp.sum(here**2)
            return jnp.where(better, tried, point), jnp.where(better, damping / 5, damping * 3)

        point, _ = jax.lax.fori_loop(0, iterations, improve, (first, jnp.asarray(1.0)))
        return STATISTICS.loss(data, unravel(point), jnp.asarray(0)), jnp.linalg.norm(gradient(point))

    return jax.lax.map(alone, weights, batch_size=16)
