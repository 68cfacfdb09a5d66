"""Errors of reference estimators after m examples of one context, at any finite dimension.

Inputs are N(0, I/D), labels have variance 1 before noise of variance ρ, and functions are wᵀx with E wwᵀ = I, dense
or sparse, or wide random networks. All errors hold the noise of the target, and the estimators are linear in labels,
so only the covariance of the functions enters.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from iclab.numerics import Validated, checked_number, whole_number

__all__ = ["finite_ridge_error", "least_squares_error", "one_step_error", "two_layer_ridge_error"]

_STREAM = 20251201  # the nodes of the quadrature: as fixed as those of any other rule
_CHUNK = 2**22  # numbers in an array of several contexts


def finite_ridge_error(
    dimension: Validated[int],
    context_length: Validated[int],
    noise: Validated[float],
    *,
    contexts: Validated[int] = 40_000,
) -> float:
    """Error of (XᵀX + ρ)⁻¹ Xᵀy on linear functions, ρ + (ρ/D) E tr (XᵀX + ρ)⁻¹: the Bayes error for w ~ N(0, I).

    A quadrature over X from a fixed stream, with the known means of tr XᵀX and of its square as control variates: to
    about a thousandth. Without noise the fraction of directions without data, max(0, 1 − m/D).

    Raises ValueError for sizes below 1, a negative number of examples and negative noise.

    Source: derived in docs/derivations/estimators.
    """
    d, m, rho = _sizes(dimension, context_length, noise)
    if rho == 0 or m == 0:
        return max(0.0, 1 - m / d) + rho
    chunks = _inputs(whole_number("contexts", contexts), m, d)
    eigenvalues = np.concatenate([np.linalg.eigvalsh(np.swapaxes(inputs, 1, 2) @ inputs) for inputs in chunks])
    lost = np.mean(rho / (rho + eigenvalues), axis=1)
    first, second = np.sum(eigenvalues, axis=1) - m, np.sum(eigenvalues**2, axis=1) - m * (m + d + 1) / d
    return rho + _without(lost, np.stack([first, second]))


def two_layer_ridge_error(
    dimension: Validated[int],
    context_length: Validated[int],
    noise: Validated[float],
    *,
    contexts: Validated[int] = 40_000,
) -> float:
    """Error of the same estimator on two-layer ReLU functions √(2/r) Σ v max(0, uᵀx), u and v being N(0, I).

    Their covariance is k(x, x′) = |x||x′| (sin θ + (π − θ) cos θ)/π at the angle θ between two inputs, whatever the
    number r of neurons, and the error of an estimator aᵀy is k(q, q) + ρ − 2 aᵀk(X, q) + aᵀ(k(X, X) + ρ)a. A
    quadrature over X and q from a fixed stream, to about a hundredth. Without noise it is infinite after D − 1, D and
    D + 1 examples, if those and D are two or more: the nonlinear part is fitted like noise.

    Raises ValueError as finite_ridge_error does.

    Source: derived in docs/derivations/estimators.
    """
    d, m, rho = _sizes(dimension, context_length, noise)
    if m == 0:
        return 1 + rho
    if rho == 0 and min(d, m) > 1 and abs(d - m) <= 1:
        return np.inf
    chunks = _inputs(whole_number("contexts", contexts), m + 1, d)
    errors, values = np.concatenate([_two_layer_errors(chunk, rho) for chunk in chunks], axis=1)
    return rho + _without(errors, values[None] - 1)


def _two_layer_errors(chunk: Float[np.ndarray, "P n D"], rho: float) -> Float[np.ndarray, "2 P"]:
    """Errors of contexts before the noise of the target, and the variances k(q, q) of functions at the query."""
    m, d = chunk.shape[1] - 1, chunk.shape[2]
    inputs, query = chunk[:, :m], chunk[:, m:]
    covariance = _relu_covariance(chunk)
    gram = np.swapaxes(inputs, 1, 2) @ inputs + rho * np.eye(d)
    weights = np.linalg.solve(gram, np.swapaxes(query, 1, 2))[..., 0] if rho > 0 else _least(inputs, query)
    a = np.einsum("pmd,pd->pm", inputs, weights)
    labels = covariance[:, :m, :m] + rho * np.eye(m)
    error = (
        covariance[:, m, m] - 2 * np.sum(a * covariance[:, :m, m], axis=1) + np.einsum("pm,pmn,pn->p", a, labels, a)
    )
    return np.stack([error, covariance[:, m, m]])


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
    return (
        whole_number("dimension", dimension),
        whole_number("context_length", context_length, least=0),
        checked_number("noise", noise, at_least=0.0, advice="It is a variance."),
    )


def _inputs(contexts: int, count: int, dimension: int) -> Iterator[Float[np.ndarray, "P n D"]]:
    """Inputs of all contexts, in chunks whose products fit into memory."""
    stream = np.random.default_rng(_STREAM)
    size = max(1, _CHUNK // max(count, dimension) ** 2)
    for begin in range(0, contexts, size):
        yield stream.standard_normal((min(size, contexts - begin), count, dimension)) / np.sqrt(dimension)


def _without(values: Float[np.ndarray, "P"], centered: Float[np.ndarray, "c P"]) -> float:
    """The mean of the values, with control variates of known mean zero regressed out."""
    coefficients = np.linalg.lstsq(centered.T - centered.mean(1), values - values.mean(), rcond=None)[0]
    return float(values.mean() - coefficients @ centered.mean(1))


def _least(inputs: Float[np.ndarray, "P m D"], query: Float[np.ndarray, "P 1 D"]) -> Float[np.ndarray, "P D"]:
    inverse = np.linalg.pinv(np.swapaxes(inputs, 1, 2) @ inputs, hermitian=True)
    return np.einsum("pde,pe->pd", inverse, query[:, 0])


def _relu_covariance(inputs: Float[np.ndarray, "P n D"]) -> Float[np.ndarray, "P n n"]:
    norm = np.linalg.norm(inputs, axis=2)
    size = norm[:, :, None] * norm[:, None, :]
    cosine = np.clip(inputs @ np.swapaxes(inputs, 1, 2) / size, -1, 1)
    angle = np.arccos(cosine)
    return size * (np.sin(angle) + (np.pi - angle) * cosine) / np.pi
