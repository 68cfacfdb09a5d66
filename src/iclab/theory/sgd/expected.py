"""Expected loss of one-pass SGD, with the noise that fresh batches add to the flow.

Every step draws B fresh contexts and moves along minus half the gradient of their mean squared error. For Γ itself
(merged parametrization) first and second moments close: exact at any rate, stable or not. For two factors they do
not, and small_noise_loss() expands in the noise.
"""

import math

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, instance, numbers, require, whole_number
from iclab.outcomes import ExpectedLoss
from iclab.problem import Regression
from iclab.theory.sgd.diagonal import diagonal_law, loss_of, mean_gradient, noise_map, stepped_squares
from iclab.theory.sgd.moments import checked_batch

__all__ = ["critical_rate", "expected_loss"]


def expected_loss(
    problem: Validated[Regression],
    *,
    rate: Validated[float],
    batch: Validated[float],
    steps: Validated[int],
    start: Validated[Float[ArrayLike, "D D"] | None] = None,
) -> ExpectedLoss:
    """Mean squared error of one-pass SGD on Γ, averaged over all draws, at steps 0 … steps. Exact.

    `rate` is the learning rate η, acting on half the mean squared error; time = rate × step, units of τ. `start` is Γ
    at step 0, zero by default. batch = inf is descent on the
    population. Beyond critical_rate() the average grows without bound, and is inf after overflow, although typical
    runs look healthy: it is carried by rare ones. Mixed context lengths are drawn anew for every context.

    Cost: diagonal_cost(), 0.1 s for D = 64 and 1000 steps.

    Raises ValueError for a rate that is not positive, a batch below 1, negative steps or a start of another shape.

    Source: derived in docs/derivations/sgd.
    """
    instance("problem", problem, Regression)
    per_batch = checked_batch(rate, batch)
    steps = whole_number("steps", steps, least=0)
    law = diagonal_law(problem)
    mean = _present(problem, start)
    squares = mean**2
    losses = np.empty((2, steps + 1))
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(steps + 1):
            losses[:, step] = loss_of(law, mean, squares), loss_of(law, mean, mean**2)
            squares = stepped_squares(law, mean, squares, rate=rate, per_batch=per_batch)
            mean = mean - rate * mean_gradient(law, mean)
    expected, deterministic = np.where(np.isfinite(losses), losses, np.inf)
    return ExpectedLoss(
        rate * np.arange(steps + 1), expected, deterministic, stable=rate < critical_rate(problem, batch=batch)
    )


def critical_rate(problem: Validated[Regression], *, batch: Validated[float]) -> float:
    """Learning rate at and above which one-pass SGD on Γ is unstable in mean square.

    The map of second moments, I − rate A + rate² B, has spectral radius 1 where 1/rate is that of A⁻¹B: positive
    maps, so one power iteration, bracketed by the least and largest growth of an entry, to a relative 1e-12. Typical
    runs stay bounded somewhat beyond it. batch = inf: 2 over the largest curvature. inf for a problem without labels.

    Raises ValueError for a batch below 1, ArithmeticError if the iteration does not settle.

    Source: derived in docs/derivations/sgd.
    """
    instance("problem", problem, Regression)
    per_batch = checked_batch(1.0, batch)
    law = diagonal_law(problem)
    if law.null_loss == 0:
        return math.inf
    if per_batch == 0:
        return 2 / float(np.max(law.curvature))
    squares, least, most = np.ones_like(law.curvature), 0.0, math.inf
    for _ in range(100_000):
        driven = (1 - per_batch) * law.curvature**2 * squares + per_batch * noise_map(law, squares)
        image = driven / (2 * law.curvature)
        growth = image / squares
        least, most = float(np.min(growth)), float(np.max(growth))
        if most - least <= 1e-12 * most:
            return 2 / (least + most)
        squares = image / most
    raise ArithmeticError(
        f"the critical learning rate was bracketed by {1 / most!s} and {1 / least!s} only. Remove eigenvalues close "
        "to zero."
    )


def _present(problem: Regression, start: Validated[Float[ArrayLike, "D D"] | None]) -> Float[np.ndarray, "d d"]:
    """Γ at the start on the modes that have inputs; the others never reach a prediction."""
    size = problem.dimension
    gamma = np.zeros((size, size)) if start is None else numbers("start", start)
    require(
        gamma.shape == (size, size),
        f"start must be a matrix of shape {(size, size)}; got shape {gamma.shape}.",
    )
    present = np.array(problem.eigenvalues) > 0
    return gamma[np.ix_(present, present)]
