"""Errors of reference estimators after m examples of one context, at any finite dimension.

Inputs are N(0, I/D), labels have variance 1 before noise of variance ρ, and functions are wᵀx with E wwᵀ = I, dense
or sparse, or wide random networks. All errors hold the noise of the target, and the estimators are linear in labels,
so only the covariance of the functions enters.
"""

import numpy as np

from iclab.numerics import Validated, checked_number, whole_number
from iclab.theory.estimators.eigenvalue_law import singular_values

__all__ = ["finite_ridge_error", "least_squares_error", "one_step_error", "two_layer_ridge_error"]


def finite_ridge_error(
    dimension: Validated[int],
    context_length: Validated[int],
    noise: Validated[float],
    *,
    task_variance: Validated[float] = 1.0,
) -> float:
    """Error of (XᵀX + ρ)⁻¹ Xᵀy on linear functions, ρ + (ρ/D) E tr (XᵀX + ρ)⁻¹: the Bayes error for w ~ N(0, I).

    With another task_variance, the mean of |w|²/D, it is the error of the same estimator on such tasks, as those of
    a pool: ρ + task_variance (ρ²/D) E tr (XᵀX + ρ)⁻² + (ρ/D) E tr XᵀX (XᵀX + ρ)⁻². An integral over the exact density
    of eigenvalues, to ten digits; milliseconds at D = 20, two seconds at 1000. Without noise the fraction of
    directions without data, max(0, 1 − m/D), times task_variance.

    Raises ValueError for sizes below 1, a negative number of examples, negative noise or task_variance, and for
    examples and dimension that are both above 1000.

    Source: derived in docs/derivations/estimators; on a pool in docs/derivations/strategies.
    """
    d, m, rho = _sizes(dimension, context_length, noise)
    signal = checked_number("task_variance", task_variance, at_least=0.0, advice="It is the mean of |w|²/D.")
    if rho == 0 or m == 0:
        return max(0.0, 1 - m / d) * signal + rho
    law, ridge = singular_values(m, d, finest=min(1.0, np.sqrt(d * rho))), d * rho
    missed = ridge / (ridge + law.nodes**2)
    seen = float(law.weights @ (missed * (1 + (signal - 1) * missed)))
    return rho + (max(0, d - m) * signal + seen) / d


def two_layer_ridge_error(
    dimension: Validated[int], context_length: Validated[int], noise: Validated[float]
) -> float:
    """Error of the same estimator on two-layer ReLU functions √(2/r) Σ v max(0, uᵀx), u and v being N(0, I).

    Such a function, of any number r of neurons, is a linear one of half the variance and an even one of covariance
    |x||x′| (sin θ + (π/2 − θ) cos θ)/π at the angle θ between two inputs. The even part of two examples is fitted
    without a mean, so that only its variance at each example is left: an integral over the exact density of
    eigenvalues, to ten digits. Without noise it is infinite after D − 1, D and D + 1 examples, if those and D are two
    or more: the nonlinear part is fitted like noise.

    Raises ValueError as finite_ridge_error does.

    Source: derived in docs/derivations/estimators.
    """
    d, m, rho = _sizes(dimension, context_length, noise)
    if m == 0:
        return 1 + rho
    few, apart = min(d, m), abs(d - m)
    unseen, share = 0.5 * max(0, d - m) / d, 1 / (2 * d * (m + 2))
    if rho == 0:
        if few > 1 and apart <= 1:
            return np.inf
        inverse = (m * d - 2) / (apart - 1) if few > 1 else 1.0
        return 0.5 + unseen + share * few * (inverse + 2)
    law, r = singular_values(m, d, finest=min(1.0, np.sqrt(d * rho))), d * rho
    x = law.nodes**2
    linear = 0.5 * (r / (r + x)) ** 2 + r * x / (r + x) ** 2
    even = m * d * x / (r + x) ** 2 + 2 * x * (r - x) / (r + x) ** 3 + 2 * (x / (r + x)) ** 2
    return rho + 0.5 + unseen + float(law.weights @ (linear / d + share * even))


def least_squares_error(dimension: Validated[int], context_length: Validated[int], noise: Validated[float]) -> float:
    """Error of the linear fit to the examples, of least norm where several fit, on linear functions.

    1 − m/D + ρ + ρ m/(D − m − 1) with fewer examples than D − 1, ρ + ρ D/(m − D − 1) with more than D + 1. Between
    them it is infinite, unless there is no noise or no example.

    Raises ValueError for sizes below 1, a negative number of examples and negative noise.

    Source: derived in docs/derivations/estimators.
    """
    d, m, rho = _sizes(dimension, context_length, noise)
    unseen = max(0.0, 1 - m / d)
    if rho == 0 or m == 0:
        return unseen + rho
    spare = abs(d - m) - 1
    return unseen + rho + rho * min(d, m) / spare if spare > 0 else np.inf


def one_step_error(dimension: Validated[int], context_length: Validated[int], noise: Validated[float]) -> float:
    """Error of one gradient step from zero at its best learning rate, on linear functions: the least with Γ ∝ I.

    1 + ρ − m/(m + 1 + D(1 + ρ)).

    Raises ValueError for sizes below 1, a negative number of examples and negative noise.

    Source: zhang2025training, eq. 19 (white inputs); derived in docs/derivations/estimators.
    """
    d, m, rho = _sizes(dimension, context_length, noise)
    return 1 + rho - m / (m + 1 + d * (1 + rho))


def _sizes(
    dimension: Validated[int], context_length: Validated[int], noise: Validated[float]
) -> tuple[int, int, float]:
    d, m = whole_number("dimension", dimension), whole_number("context_length", context_length, least=0)
    return d, m, checked_number("noise", noise, at_least=0.0, advice="It is a variance.")
