"""The Bayes estimator that knows its pool (dMMSE), on drawn contexts, and integrals that it must agree with."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from iclab.outcomes import Labeled, labeled
from iclab.problem import ContextLaw
from iclab.studies.pretraining.sizes import pool_of

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray

__all__ = ["drawn_errors", "drawn_many", "integrals"]


def integrals(s: Float[np.ndarray, "s"], *, alpha: float, noise: float) -> dict[str, Labeled]:
    """Threshold and error of ridge regression as integrals over the Marchenko-Pastur law; dMMSE where these tell it.

    Beyond the threshold dMMSE is ridge regression; below it tasks of the pool are known, and at s = 0 nothing is.
    """
    angle = np.pi * (np.arange(20_000) + 0.5) / 20_000
    values = 1 + alpha + 2 * np.sqrt(alpha) * np.cos(angle)  # eigenvalues of XᵀX, but for zeros
    weights = 2 * alpha * np.sin(angle) ** 2 / values / len(angle)
    information = 0.5 * float(weights @ np.log1p(values / noise))
    error = noise + float(weights @ (noise / (noise + values))) + max(0.0, 1 - alpha)
    many = s > information
    ends = s[many | (s == 0)]
    return {
        "integral": labeled({}, log_tasks=information, error=error),
        "known_new": labeled({"log_tasks": ends}, icl=np.where(ends > 0, error, noise + 2)),
        "known_pool": labeled({"log_tasks": s}, idg=np.where(many, error, noise)),
    }


def drawn_errors(
    laws: Sequence[ContextLaw], contexts: int, *, key: "PRNGKeyArray"
) -> tuple[Float[np.ndarray, "law"], Float[np.ndarray, "law"]]:
    """Mean errors on drawn contexts of new tasks and of tasks of each pool."""
    import jax

    from iclab.simulation.pretraining.estimators import drawn_dmmse_errors

    found = []
    for i, law in enumerate(laws):
        sample = {"noise": law.noise, "contexts": contexts, "key": jax.random.fold_in(key, i)}
        found.append(drawn_dmmse_errors(pool_of(law), law.context_length, **sample))
    return np.array([np.mean(one.icl) for one in found]), np.array([np.mean(one.idg) for one in found])


def drawn_many(
    dimension: int,
    log_tasks: Float[np.ndarray, "s"],
    *,
    alpha: float,
    noise: float,
    contexts: int,
    key: "PRNGKeyArray",
) -> Float[np.ndarray, "s"]:
    """Mean errors on new tasks with pools that are, in D dimensions, as exp(sD) tasks in the limit."""
    import jax

    from iclab.simulation.pretraining.estimators import fittest_dmmse_errors

    length, found = max(1, round(alpha * dimension)), []
    for i, s in enumerate(log_tasks):
        sample = {"noise": noise, "contexts": contexts, "key": jax.random.fold_in(key, i)}
        found.append(np.mean(fittest_dmmse_errors(dimension, length, log_tasks=_log_tasks(s, dimension), **sample)))
    return np.array(found)


def _log_tasks(s: float, dimension: int) -> float:
    """ln K of the pool that is as exp(sD) tasks in the limit: the inverse of effective_log_tasks."""
    log = s * dimension
    for _ in range(100):
        log = s * dimension + 0.5 * np.log(4 * np.pi * max(log, 1.0))
    return float(log)
