"""The loss that knowing a pool of K tasks saves, from two numbers of a context: information and chi-square.

Averaged over pools, the gap Δ between the posterior mean over the pool and the Bayes prediction under the law that
tasks are drawn from lies between bounds that hold at any K, and tends to χ²/(2K).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import gammaln

from iclab.numerics import (
    FIXED_STREAM,
    Validated,
    Values,
    checked,
    checked_number,
    instance,
    require,
    whole_number,
)
from iclab.problem import ContextLaw, Pool
from iclab.theory.estimators.eigenvalue_law import singular_values

__all__ = [
    "PoolInformation", "SampledGap", "gap_bounds", "gap_limit", "pool_information", "sampled_gap",
]  # fmt: skip


@dataclass(frozen=True)
class PoolInformation:
    """Information I in nats of a context about its task, and χ²: through them the size of a pool enters its gap."""

    information: float
    chi_square: float


@dataclass(frozen=True)
class SampledGap:
    """A gap in nats, as a mean over drawn contexts, and the standard error of the mean."""

    mean: float
    error: float


def gap_bounds(
    information: Validated[ArrayLike], chi_square: Validated[ArrayLike], tasks: Validated[ArrayLike]
) -> tuple[Values, Values]:
    """Least and most of the mean gap in nats over pools of K tasks: max(0, I − ln K) and min(I, ln(1 + χ²/K)).

    They hold at any K, for any tasks and contexts.

    Raises ValueError for negative information or χ² and for fewer than one task.

    Source: cuff2013distributed, sec. IV (soft covering); derived in docs/derivations/strategies.
    """
    i, chi, k = checked("information", information, at_least=0.0), *_sizes(chi_square, tasks)
    return np.maximum(0.0, i - np.log(k)), np.minimum(i, np.log1p(chi / k))


def gap_limit(chi_square: Validated[ArrayLike], tasks: Validated[ArrayLike]) -> Values:
    """χ²/(2K), to which the mean gap in nats tends for K ≫ χ².

    Raises ValueError for negative χ² and for fewer than one task.

    Source: derived in docs/derivations/strategies.
    """
    chi, k = _sizes(chi_square, tasks)
    return chi / (2 * k)


def pool_information(
    dimension: Validated[int], context_length: Validated[int], noise: Validated[float]
) -> PoolInformation:
    """Information and χ² of a context of N examples of wᵀx, w ~ N(0, I), inputs N(0, I/D), about its task.

    I = E ½ ln det(1 + XᵀX/ρ), an integral over the exact density of eigenvalues; given the inputs 1 + χ² = e^(2I), so
    that its mean is E det(1 + XᵀX/ρ) = Σ_k C(D, k) [N!/(N − k)!] (Dρ)^-k.

    Raises ValueError for sizes below 1, noise that is not positive (the information is infinite) and for examples and
    dimension that are both above 1000; ArithmeticError where χ² exceeds the range of numbers.

    Source: derived in docs/derivations/strategies.
    """
    d, n = whole_number("dimension", dimension), whole_number("context_length", context_length)
    rho = checked_number("noise", noise, above=0.0, advice="Without noise a context tells all of its task.")
    law = singular_values(n, d, finest=min(1.0, np.sqrt(d * rho)))
    information = 0.5 * float(law.weights @ np.log1p(law.nodes**2 / (d * rho)))
    k = np.arange(min(d, n) + 1)
    ways = gammaln(d + 1) - gammaln(k + 1) - gammaln(d - k + 1) + gammaln(n + 1) - gammaln(n - k + 1)
    log_all = np.logaddexp.reduce(ways - k * np.log(d * rho))
    if log_all > 700:
        raise ArithmeticError(f"chi_square must be a number of double precision; got exp({log_all:.6g}).")
    return PoolInformation(information, float(np.expm1(log_all)))


def sampled_gap(law: Validated[ContextLaw], *, contexts: Validated[int] = 4000) -> SampledGap:
    """Δ in nats of a pool of regression tasks: the divergence of labels under the pool from those under w ~ N(0, I).

    Given the inputs, and summed over the N labels of a context. Contexts are drawn from a fixed stream, the same for
    the same call, and every task has as many contexts. Cost: contexts × N × (K D + N²).

    Raises ValueError for a law without a pool, without noise and for contexts below 2.

    Source: raventos2023pretraining, sec. 2 (the estimator); derived in docs/derivations/strategies.
    """
    instance("law", law, ContextLaw)
    if not isinstance(law.tasks, Pool):
        raise ValueError(f"law.tasks must be a Pool; got {type(law.tasks).__name__}.")
    require(law.noise > 0, "law.noise must be positive; got 0. Without noise the gap is infinite.")
    count, stream = whole_number("contexts", contexts, least=2), np.random.default_rng(FIXED_STREAM)
    root = law.input_root
    gaps = [_log_ratio(law, task, root, stream) for task in law.tasks.draw(count, stream)]
    return SampledGap(float(np.mean(gaps)), float(np.std(gaps, ddof=1) / np.sqrt(count)))


def _log_ratio(
    law: ContextLaw, task: Float[np.ndarray, "D"], root: Float[np.ndarray, "D D"], stream: np.random.Generator
) -> float:
    """ln of the density of one context's labels under the pool over that under normal tasks."""
    inputs = stream.standard_normal((law.context_length, law.dimension)) @ root / np.sqrt(law.dimension)
    labels = inputs @ task + np.sqrt(law.noise) * stream.standard_normal(law.context_length)
    pool = law.tasks.vectors  # pyright: ignore[reportAttributeAccessIssue]
    misfits = np.sum((labels - pool @ inputs.T) ** 2, axis=1) / law.noise
    covariance = inputs @ inputs.T / law.noise + np.eye(law.context_length)
    log_det = np.linalg.slogdet(covariance)[1]
    quadratic = labels @ np.linalg.solve(covariance, labels) / law.noise
    return float(np.logaddexp.reduce(-misfits / 2) - np.log(len(pool)) + 0.5 * (quadratic + log_det))


def _sizes(chi_square: Validated[ArrayLike], tasks: Validated[ArrayLike]) -> tuple[Values, Values]:
    return checked("chi_square", chi_square, at_least=0.0), checked(
        "tasks", tasks, at_least=1.0, advice="A pool of no task knows nothing."
    )
