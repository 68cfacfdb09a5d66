"""One-pass SGD on Γ for any covariances: first and second moments of Γ in full, D⁴ numbers."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, numbers, require, whole_number
from iclab.theory.population import gradient, loss
from iclab.theory.sgd.moments import ContextMoments, checked_batch, context_moments, gradient_second

__all__ = ["dense_expected_loss", "dense_step"]


def dense_expected_loss(
    input_covariance: Validated[Float[ArrayLike, "D D"]],
    context_lengths: Validated[int | Sequence[int]],
    *,
    task_covariance: Validated[Float[ArrayLike, "D D"] | None] = None,
    noise: Validated[float] = 0.0,
    rate: Validated[float],
    batch: Validated[float],
    steps: Validated[int],
    start: Validated[Float[ArrayLike, "D D"] | None] = None,
) -> Float[np.ndarray, "step"]:
    """Mean squared error of one-pass SGD on Γ at steps 0 … steps, for covariances that need not commute. Exact.

    For diagonal ones expected_loss() gives the same from D² numbers. Cost: dense_cost(). inf after overflow.

    Raises ValueError for impossible laws and settings, and for D whose second moment does not fit into memory.

    Source: derived in docs/derivations/sgd.
    """
    per_batch = checked_batch(rate, batch)
    steps = whole_number("steps", steps, least=0)
    law = context_moments(input_covariance, context_lengths, task_covariance=task_covariance, noise=noise)
    shape = law.population.cross.shape
    mean = np.zeros(shape) if start is None else numbers("start", start)
    require(mean.shape == shape, f"start must have shape {shape}; got {mean.shape}.")
    second = np.multiply.outer(mean, mean)
    losses = np.empty(steps + 1)
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(steps + 1):
            losses[step] = _loss(law, mean, second)
            mean, second = dense_step(law, mean, second, rate=rate, per_batch=per_batch)
    return np.where(np.isfinite(losses), losses, np.inf)


def dense_step(
    law: ContextMoments,
    mean: Float[np.ndarray, "D D"],
    second: Float[np.ndarray, "D D D D"],
    *,
    rate: float,
    per_batch: float,
) -> tuple[Float[np.ndarray, "D D"], Float[np.ndarray, "D D D D"]]:
    """E Γ and E Γ_ij Γ_kl after one step on batches of size B, per_batch = 1/B.

    Source: derived in docs/derivations/sgd.
    """
    population = law.population
    drift = gradient(population, mean) / 2
    once = _curved(law, second) - np.multiply.outer(population.cross, mean)
    twice = _curved(law, once.transpose(2, 3, 0, 1)) - np.multiply.outer(population.cross, drift)
    noisy = (1 - per_batch) * twice + per_batch * gradient_second(law, mean, second)
    return mean - rate * drift, second - rate * (once + once.transpose(2, 3, 0, 1)) + rate**2 * noisy


def _curved(law: ContextMoments, second: Float[np.ndarray, "D D D D"]) -> Float[np.ndarray, "D D D D"]:
    """C Γ Λ on the first pair of indices."""
    population = law.population
    return np.einsum("im,mnkl,nj->ijkl", population.second, second, population.input_covariance, optimize=True)


def _loss(law: ContextMoments, mean: Float[np.ndarray, "D D"], second: Float[np.ndarray, "D D D D"]) -> float:
    """E L: the loss is quadratic, so the covariance of Γ adds to the loss of the mean."""
    population = law.population
    covariance = second - np.multiply.outer(mean, mean)
    spread = np.einsum("ijkl,ik,jl", covariance, population.second, population.input_covariance)
    return float(loss(population, mean) + spread)
