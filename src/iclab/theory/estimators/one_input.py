"""Errors of the posterior mean over a pool of tasks with a single input entry, by quadrature.

At D = 1 a context enters through two numbers, A = Σ x² and b = Σ x y. A is a χ² variable and b, given A and the task
w, is N(wA, ρA).
"""

import numpy as np
from jaxtyping import Float

from iclab.numerics import Validated, instance
from iclab.outcomes import EstimatorErrors
from iclab.problem import ContextLaw, NormalTasks, Pool, SphereTasks, Tasks
from iclab.theory.estimators.eigenvalue_law import singular_values

__all__ = ["one_input_dmmse_errors"]

_MOST_NODES = (
    20_000  # of an integral over b; at a jump between two tasks their errors agree, so that it is exact to h²
)
_SPAN = 9.0  # standard deviations


def one_input_dmmse_errors(law: Validated[ContextLaw], new: Validated[Tasks]) -> EstimatorErrors | None:
    """Errors at D = 1 of the pool that `law` holds, on it and on new tasks: normal ones, a pool, or on the sphere.

    None for another law of new tasks. To 1e-8 of the label variance, to 1e-6 where the noise is below a hundredth of
    it. Cost: some 400 integrals over b of at most 20 000 nodes and K tasks each.

    Raises ValueError for anything but a law of contexts.

    Source: derived in docs/derivations/strategies.
    """
    instance("law", law, ContextLaw)
    scale = float(law.input_root[0, 0])
    pool, drawn = law.tasks.vectors[:, 0] * scale, _new_tasks(new, scale)  # pyright: ignore[reportAttributeAccessIssue]
    if drawn is None:
        return None
    spread = float(np.ptp(pool)) + np.sqrt(law.noise)
    nodes = singular_values(law.context_length, 1, finest=min(1.0, np.sqrt(law.noise) / spread))
    errors = np.zeros(2)
    for weight, a in zip(nodes.weights, nodes.nodes**2, strict=True):
        if weight > 1e-16:
            errors += weight * np.array([_squares(a, law.noise, pool, tasks) for tasks in (drawn, (pool, 0.0))])
    return EstimatorErrors(law.noise + errors[0], law.noise + errors[1])


def _new_tasks(new: Tasks, scale: float) -> tuple[Float[np.ndarray, "K"], float] | None:
    """Means of equal probability and a common variance of the new tasks, with whitened inputs."""
    match new:
        case NormalTasks():
            return np.zeros(1), float(new.covariance[0, 0]) * scale**2
        case Pool():
            return new.vectors[:, 0] * scale, 0.0
        case SphereTasks():
            return np.array([-1.0, 1.0]) * np.sqrt(float(np.asarray(new.covariance)[0, 0])) * scale, 0.0
        case _:
            return None


def _squares(
    a: float, noise: float, pool: Float[np.ndarray, "K"], tasks: tuple[Float[np.ndarray, "n"], float]
) -> float:
    """Mean of (w − ŵ)² over b given A, for tasks of these means and this variance."""
    mean, variance = tasks
    deviation = np.sqrt(a * noise + a**2 * variance)
    low, high = a * mean.min() - _SPAN * deviation, a * mean.max() + _SPAN * deviation
    finest = 0.3 * min(deviation, np.sqrt(a * noise), noise / (np.ptp(pool) + 1e-300))
    b = np.linspace(low, high, int(min(_MOST_NODES, 40 + (high - low) / finest)))
    exponent = (np.outer(b, pool) - a * pool**2 / 2) / noise
    weight = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    estimate = weight @ pool / weight.sum(axis=1)
    density = np.exp(-(((b[:, None] - a * mean) / deviation) ** 2) / 2) / (np.sqrt(2 * np.pi) * deviation * len(mean))
    best = mean + variance * (b[:, None] - a * mean) / (a * variance + noise)  # of w given b, with what is left of it
    left = noise * variance / (a * variance + noise)
    return float(np.sum(density * (best - estimate[:, None]) ** 2) * (b[1] - b[0]) + left)
