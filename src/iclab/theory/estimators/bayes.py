"""Bayes estimators, references for linear attention: ridge regression, and the posterior mean over a finite pool.

Ridge regression is the Bayes estimator for tasks w ~ N(0, I). The discrete minimum mean squared error (dMMSE)
estimator knows the pool and weights its tasks by exp(−|y − Xw|²/2ρ). With exp(sD) tasks there is a threshold in s:
below it a context singles out one task of the pool, above it the pool is as good as all tasks. Linear attention
needs about D tasks to learn in context, this estimator exponentially many.
"""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import (
    FIXED_STREAM,
    LEAST,
    MOST,
    Validated,
    Values,
    checked,
    checked_number,
    increasing_root,
    instance,
    magnitude,
    require,
    whole_number,
)
from iclab.outcomes import EstimatorErrors
from iclab.problem import ContextLaw, NormalTasks, Pool, Tasks, require_tasks
from iclab.theory.estimators.one_input import one_input_dmmse_errors
from iclab.theory.pretraining.resolvent import LONG, MANY, WishartMoments, bounded, wishart_moments_at

__all__ = [
    "discrete_weights", "dmmse_errors", "effective_log_tasks", "nearest_task_errors", "pool_dmmse_errors",
    "ridge_error", "spectral_integrals", "task_threshold",
]  # fmt: skip

_SILENT = 1e-120  # replaces noise 0
_NODES = 20_000  # of an integral over the Marchenko-Pastur law
_RANGE = 1e-20, 1e20  # sizes at which the divergence of two posteriors exceeds rounding


def ridge_error(alpha: Validated[ArrayLike], noise: Validated[ArrayLike]) -> Values:
    """Error of ridge regression at ridge ρ, the Bayes estimator for w ~ N(0, I), target noise included.

    ρ + E ρ/(ρ + λ) over the eigenvalues λ of XᵀX, D → ∞. Without noise: 1 − α below α = 1, 0 from there on.

    Raises ValueError for alpha that is not positive and for negative noise.

    Source: derived in docs/derivations/estimators; lu2025asymptotic, theory code (dMMSE comparison).
    """
    alpha, rho = _checked(alpha, noise)
    silent = np.maximum(1 - alpha, 0.0)
    return np.where(rho > 0, rho + _spectrum(alpha, rho).lost, silent)[()]


def task_threshold(alpha: Validated[ArrayLike], noise: Validated[ArrayLike]) -> Values:
    """s_c, the information of a context about its task in nats for each dimension: I(w; y | X)/D.

    With more than exp(s_c D) tasks the pool is as good as all tasks. Infinite without noise and at α = ∞.

    Raises ValueError for alpha that is not positive and for negative noise.

    Source: derived in docs/derivations/estimators.
    """
    alpha, rho = _checked(alpha, noise)
    infinite = (rho == 0) | np.isinf(alpha)
    return np.where(infinite, np.inf, _information(alpha, rho))[()]


def spectral_integrals(alpha: Validated[float], noise: Validated[float]) -> tuple[float, float]:
    """s_c and the error of ridge regression again, as integrals over the Marchenko-Pastur law of XᵀX.

    By the midpoint rule in the angle of the law: a witness of task_threshold and ridge_error, with which it shares
    no formula.

    Raises ValueError for alpha and noise that are not positive.

    Source: derived in docs/derivations/estimators.
    """
    alpha, rho = checked_number("alpha", alpha, above=0.0), checked_number("noise", noise, above=0.0)
    angle = np.pi * (np.arange(_NODES) + 0.5) / _NODES
    values = 1 + alpha + 2 * np.sqrt(alpha) * np.cos(angle)  # eigenvalues of XᵀX, but for zeros
    weights = 2 * alpha * np.sin(angle) ** 2 / values / _NODES
    error = rho + float(weights @ (rho / (rho + values))) + max(0.0, 1 - alpha)
    return 0.5 * float(weights @ np.log1p(values / rho)), error


def dmmse_errors(
    alpha: Validated[ArrayLike], noise: Validated[ArrayLike], log_tasks_per_dimension: Validated[ArrayLike]
) -> EstimatorErrors:
    """Errors of the dMMSE estimator with exp(sD) tasks w ~ N(0, I), D → ∞: a random-energy model.

    From the threshold s_c on both are the ridge error. Below it a pool task is singled out, so IDG is ρ; on a new
    task the weight stays on a few tasks of the pool, those of best fit, and ICL falls from ρ + 2 at s = 0 to
    the ridge error at s_c. Holds at noise 0 too, where the threshold is infinite. At finite D use
    effective_log_tasks for s; below D = 30 the transition is rounded.

    Raises ValueError for alpha that is not positive, negative noise, a negative number of tasks, and for sizes
    below 1e-20 or above 1e20 that are not 0 or infinite.

    Source: derived in docs/derivations/estimators.
    """
    alpha, rho, s = *_checked(alpha, noise, _RANGE), _checked_log_tasks(log_tasks_per_dimension)
    r = _edge(alpha, rho, s)
    fit, many = _spectrum(alpha, r), s >= task_threshold(alpha, rho)
    condensed = 1 - rho / r  # Σ p², the weight that does not spread over several tasks
    few = rho + fit.lost_square + rho / r * fit.mixed + condensed * fit.lost
    ridge = ridge_error(alpha, rho)
    icl = np.where(many, ridge, np.where(s > 0, few, rho + 2))
    return EstimatorErrors(icl[()], np.where(many, ridge, rho)[()])


def nearest_task_errors(
    alpha: Validated[ArrayLike], noise: Validated[ArrayLike], log_tasks_per_dimension: Validated[ArrayLike]
) -> EstimatorErrors:
    """Errors of the one pool task of best fit to the context, with exp(sD) tasks w ~ N(0, I).

    The same random-energy model: the posterior at its edge, of which one task is taken. Beyond the threshold
    another task fits better than the true one, and the error on pool tasks is that on new ones.

    Raises ValueError as dmmse_errors does.

    Source: derived in docs/derivations/estimators.
    """
    alpha, rho, s = *_checked(alpha, noise, _RANGE), _checked_log_tasks(log_tasks_per_dimension)
    r = _edge(alpha, rho, s)
    fit = _spectrum(alpha, r)
    icl = np.where(s > 0, rho + fit.lost_square + rho / r * fit.mixed + fit.lost, rho + 2)
    return EstimatorErrors(icl[()], np.where(s >= task_threshold(alpha, rho), icl, rho)[()])


def effective_log_tasks(tasks: Validated[ArrayLike], dimension: Validated[ArrayLike]) -> Values:
    """s of the limit D → ∞ that describes K tasks in D dimensions: (ln K − ½ ln(4π ln K))/D, at least 0.

    The second term is that of the largest of K normal energies. Infinite for an infinite pool.

    Raises ValueError for fewer than one task and for a dimension that is not positive and finite.

    Source: derived in docs/derivations/estimators.
    """
    log, d = np.log(checked("tasks", tasks, at_least=1.0)), magnitude("dimension", dimension, infinite=False)
    log = np.minimum(log, MANY)
    shift = 0.5 * np.log(4 * np.pi * np.maximum(log, 1 / (4 * np.pi)))
    return np.where(log < MANY, np.maximum((log - shift) / d, 0.0), np.inf)[()]


def discrete_weights(
    inputs: Float[np.ndarray, "*batch N D"],
    labels: Float[np.ndarray, "*batch N"],
    tasks: Float[np.ndarray, "K D"],
    noise: Validated[float],
) -> Float[np.ndarray, "*batch K"]:
    """Posterior probability of each task of a pool given a context. Without noise: the tasks of best fit.

    Raises ValueError for negative noise.

    Source: lu2025asymptotic, theory code (dMMSE).
    """
    rho = checked_number("noise", noise, at_least=0.0)
    residual = np.sum((labels[..., None] - inputs @ np.asarray(tasks).T) ** 2, axis=-2)
    excess = residual - np.min(residual, axis=-1, keepdims=True)  # before the division: no overflow at small noise
    weights = np.exp(-excess / (2 * rho)) if rho > 0 else (excess == 0).astype(float)
    return weights / np.sum(weights, axis=-1, keepdims=True)


def pool_dmmse_errors(
    law: Validated[ContextLaw], *, new: Validated[Tasks | None] = None, contexts: Validated[int] = 400
) -> EstimatorErrors:
    """Errors of the dMMSE estimator for a given pool at finite size; `new` tasks are N(0, I) unless given.

    At D = 1 with noise, and new tasks of a known law, exact by quadrature. Else a mean over contexts from a fixed
    stream, so that the same call gives the same result. The error of each context is averaged over the query and the
    noise of the target exactly, on pool tasks over the posterior too; the sampling error falls like contexts^-1/2.
    Cost: contexts × N × K × D.

    Raises ValueError for a law without a pool and for contexts below 1.

    Source: derived in docs/derivations/estimators; lu2025asymptotic, theory code (dMMSE), samples the query too.
    """
    instance("law", law, ContextLaw)
    if not isinstance(law.tasks, Pool):
        raise ValueError(f"law.tasks must be a Pool; got {type(law.tasks).__name__}.")
    if new is not None:
        require_tasks("new", new)
        require(new.dimension == law.dimension, f"new must have {law.dimension} dimensions; got {new.dimension}.")
    count = whole_number("contexts", contexts)
    new = NormalTasks(np.eye(law.dimension)) if new is None else new
    exact = one_input_dmmse_errors(law, new) if law.dimension == 1 and law.noise > 0 else None
    return _sampled_dmmse_errors(law, new, count) if exact is None else exact


def _sampled_dmmse_errors(law: ContextLaw, new: Tasks, count: int) -> EstimatorErrors:
    """Means of both errors over so many contexts of new tasks and of tasks of the pool."""
    stream = np.random.default_rng(FIXED_STREAM)
    root = law.input_root
    pool = law.tasks.vectors @ root  # with whitened inputs  # pyright: ignore[reportAttributeAccessIssue]
    pooled = law.tasks.draw(count, stream) @ root
    fresh = new.draw(count, stream) @ root
    icl, idg = np.empty(count), np.empty(count)
    for i in range(count):
        estimate = _posterior(law, pool, fresh[i], stream) @ pool
        icl[i] = np.sum((fresh[i] - estimate) ** 2)
        weights = _posterior(law, pool, pooled[i], stream)
        idg[i] = weights @ np.sum((pool - weights @ pool) ** 2, axis=1)
    return EstimatorErrors(law.noise + np.mean(icl) / law.dimension, law.noise + np.mean(idg) / law.dimension)


def _posterior(
    law: ContextLaw, pool: Float[np.ndarray, "K D"], task: Float[np.ndarray, "D"], stream: np.random.Generator
) -> Float[np.ndarray, "K"]:
    """Posterior of the pool's tasks given one context of a task."""
    inputs = stream.standard_normal((law.context_length, law.dimension)) / np.sqrt(law.dimension)
    labels = inputs @ task + np.sqrt(law.noise) * stream.standard_normal(law.context_length)
    return discrete_weights(inputs, labels, pool, law.noise)


def _checked(
    alpha: Validated[ArrayLike], noise: Validated[ArrayLike], between: tuple[float, float] = (LEAST, MOST)
) -> tuple[Values, Values]:
    return magnitude("alpha", alpha, between=between), magnitude(
        "noise", noise, zero=True, infinite=False, between=between
    )


def _checked_log_tasks(s: Validated[ArrayLike]) -> Values:
    return magnitude("log_tasks_per_dimension", s, zero=True, between=_RANGE)


def _edge(alpha: Values, noise: Values, s: Values) -> Values:
    """r at which the posterior under noise r has divergence s from the prior: the edge of exp(sD) tasks."""
    reach = np.minimum(np.where(s > 0, s, 1.0), _divergence(alpha, noise, _SILENT))

    def equation(r: Values) -> tuple[Values, Values]:
        divergence = _divergence(alpha, noise, r)
        falls = (divergence - _divergence(alpha, noise, r * (1 + 1e-5))) / 1e-5
        return reach - divergence, np.maximum(falls, 1e-6 * reach)  # level at small r, up to rounding

    far = 10 * (1 + noise) * (1 + bounded(alpha, LONG)) * (1 + 1 / reach)
    return increasing_root(equation, _SILENT + 0 * reach, far)


def _spectrum(alpha: Values, noise: Values) -> WishartMoments:
    """The spectrum of XᵀX, α times a Wishart matrix of "pool size" α, at the shift ρ/α."""
    length = bounded(alpha, LONG)
    return wishart_moments_at(np.maximum(noise, _SILENT) / length, length)


def _information(alpha: Values, noise: Values) -> Values:
    """I(w; y | X)/D in nats."""
    fit, length = _spectrum(alpha, noise), bounded(alpha, LONG)
    per_noise = fit.inverse / length  # E 1/(ρ + λ)
    log_lost = np.where(fit.kept < 0.5, np.log1p(-np.minimum(fit.kept, 0.5)), np.log(fit.lost))
    return 0.5 * (length * np.log1p(per_noise) - log_lost - fit.kept)


def _divergence(alpha: Values, noise: Values, r: Values) -> Values:
    """KL divergence, for each dimension, of the posterior that assumes noise r from the prior."""
    fit = _spectrum(alpha, r)
    return 0.5 * (fit.kept_square + noise / r * fit.mixed - fit.kept) + _information(alpha, r)
