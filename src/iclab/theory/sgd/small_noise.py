"""One-pass SGD on one head, Γ = u U: the loss to first order in the gradient's variance, and the broken balance.

Weights z = (u, vec U) follow descent on the population, z̄, plus fluctuations of covariance V and mean m, both of
order rate/B. Balance u² − |U|² is conserved by the flow; a step of SGD changes it by rate² ((∂_u)² − |∂_U|²).
"""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, instance, numbers, pair, require, whole_number
from iclab.outcomes import SmallNoiseLoss
from iclab.problem import Regression
from iclab.theory.population import gradient, loss
from iclab.theory.sgd.moments import ContextMoments, checked_batch, context_moments, gradient_second

__all__ = ["balance_step", "expected_balance_step", "small_noise_loss"]


def small_noise_loss(
    problem: Validated[Regression],
    *,
    rate: Validated[float],
    batch: Validated[float],
    steps: Validated[int],
    start: Validated[tuple[float, ArrayLike]],
) -> SmallNoiseLoss:
    """Expected loss and balance of SGD on one head at steps 0 … steps, to first order in rate/batch.

    `start` is (u₀, U₀), U₀ a scalar (times the identity), one number per mode, or a matrix. Holds while the returned
    spread is small, a few percent. It fails near the saddle at tiny starts, where noise sets the time of escape, and
    near the critical learning rate. Dense: D⁴ numbers, about D⁶ multiplications a step.

    Where the learning rate is so large that descent itself diverges the numbers grow, and are infinite after
    overflow.

    Raises ValueError for impossible settings and for D whose covariance does not fit into memory.

    Source: derived in docs/derivations/sgd.
    """
    instance("problem", problem, Regression)
    per_batch = checked_batch(rate, batch)
    steps = whole_number("steps", steps, least=0)
    law = _law(problem)
    weights = _weights(problem.dimension, start)
    shift, covariance = np.zeros_like(weights), np.zeros((len(weights), len(weights)))
    sign = np.concatenate([[1.0], -np.ones(len(weights) - 1)])
    rows = np.full((steps + 1, 4), np.inf)
    curvature = _curvature(law, weights)
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(steps + 1):
            half_gradient, curvature = _half_gradient(law, weights), _curvature(law, weights)
            deterministic = float(loss(law.population, _gamma(weights)))
            noise = 2 * half_gradient @ shift + np.sum(curvature * covariance)
            balance = sign @ (weights**2 + 2 * weights * shift + np.diag(covariance))
            spread = np.sqrt(np.trace(covariance)) / max(float(np.linalg.norm(weights)), np.finfo(float).tiny)
            row = np.array([deterministic + noise, deterministic, balance, spread])
            if not np.all(np.isfinite(row)):
                break
            rows[step] = row
            kept = np.eye(len(weights)) - rate * curvature
            shift = kept @ shift - rate / 2 * _third_derivative(law, weights, covariance)
            covariance = kept @ covariance @ kept + rate**2 * per_batch * _gradient_covariance(law, weights)
            weights = weights - rate * half_gradient
    finite = bool(np.all(np.isfinite(rows)))
    stable = finite and rate * float(np.linalg.eigvalsh(curvature)[-1]) < 2
    return SmallNoiseLoss(rate * np.arange(steps + 1), *rows.T, stable=stable)


def balance_step(
    value: Validated[Float[ArrayLike, "*batch"]],
    key_query: Validated[Float[ArrayLike, "*batch D D"]],
    gradient: Validated[Float[ArrayLike, "*batch D D"]],
    *,
    rate: Validated[float],
) -> float | Float[np.ndarray, "*batch"]:
    """Exact change of u² − |U|² in one step: rate² (⟨g, U⟩² − u² |g|²).

    g is the gradient with respect to Γ of half the mean squared error of the step's batch. On balanced weights the
    change is never positive, by Cauchy-Schwarz: noise inflates the matrix, by order rate/B per unit of time.

    Source: derived in docs/derivations/sgd.
    """
    along = np.sum(np.asarray(gradient) * key_query, axis=(-2, -1))
    return rate**2 * (along**2 - np.asarray(value) ** 2 * np.sum(np.asarray(gradient) ** 2, axis=(-2, -1)))


def expected_balance_step(
    problem: Validated[Regression],
    value: Validated[float],
    key_query: Validated[ArrayLike],
    *,
    rate: Validated[float],
    batch: Validated[float],
) -> float:
    """Average over batches of balance_step() at given weights; exact.

    Source: derived in docs/derivations/sgd.
    """
    instance("problem", problem, Regression)
    per_batch = checked_batch(rate, batch)
    law, weights = _law(problem), _weights(problem.dimension, (value, key_query))
    covariance = per_batch * _gradient_covariance(law, weights)
    change = _half_gradient(law, weights) ** 2 + np.diag(covariance)
    return float(rate**2 * (change[0] - np.sum(change[1:])))


def _law(problem: Regression) -> ContextMoments:
    return context_moments(
        np.diag(problem.eigenvalues),
        problem.context_lengths,
        task_covariance=np.diag(problem.task_spectrum),
        noise=problem.noise,
    )


def _weights(dimension: int, start: Validated[tuple[float, ArrayLike]]) -> Float[np.ndarray, "n"]:
    value, matrix = (numbers("start", part) for part in pair("start", start))
    require(
        value.shape == () and matrix.shape in ((), (dimension,), (dimension, dimension)),
        f"start must be (u0, U0), U0 a scalar, {dimension} numbers or a matrix; got shapes {value.shape} and "
        f"{matrix.shape}.",
    )
    full = matrix if matrix.ndim == 2 else np.diag(np.broadcast_to(matrix, (dimension,)))
    return np.concatenate([[value], full.ravel()])


def _gamma(weights: Float[np.ndarray, "n"]) -> Float[np.ndarray, "D D"]:
    size = round(np.sqrt(len(weights) - 1))
    return weights[0] * weights[1:].reshape(size, size)


def _half_gradient(law: ContextMoments, weights: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
    """Gradient of half the population loss in (u, U)."""
    flow = gradient(law.population, _gamma(weights)).ravel() / 2
    return np.concatenate([[flow @ weights[1:]], weights[0] * flow])


def _gamma_hessian(law: ContextMoments) -> Float[np.ndarray, "n n"]:
    """M, the Hessian of half the population loss in vec Γ."""
    return np.kron(law.population.second, law.population.input_covariance)


def _curvature(law: ContextMoments, weights: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n n"]:
    """Hessian of half the population loss in (u, U)."""
    value, matrix, hessian = weights[0], weights[1:], _gamma_hessian(law)
    edge = 2 * value * hessian @ matrix - law.population.cross.ravel()
    return np.block([[np.array([[matrix @ hessian @ matrix]]), edge[None, :]], [edge[:, None], value**2 * hessian]])


def _third_derivative(
    law: ContextMoments, weights: Float[np.ndarray, "n"], covariance: Float[np.ndarray, "n n"]
) -> Float[np.ndarray, "n"]:
    """Third derivative of half the population loss, contracted with the covariance."""
    value, matrix, hessian = weights[0], weights[1:], _gamma_hessian(law)
    across = covariance[0, 1:]
    first = 4 * across @ hessian @ matrix + 2 * value * np.sum(hessian * covariance[1:, 1:])
    return np.concatenate([[first], 2 * hessian @ matrix * covariance[0, 0] + 4 * value * hessian @ across])


def _gradient_covariance(law: ContextMoments, weights: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n n"]:
    """Covariance over contexts of the gradient of half the squared error in (u, U)."""
    gamma = _gamma(weights)
    drift = gradient(law.population, gamma).ravel() / 2
    second = gradient_second(law, gamma, np.multiply.outer(gamma, gamma))
    noise = second.reshape(len(drift), -1) - np.outer(drift, drift)
    jacobian = np.vstack([weights[1:], weights[0] * np.eye(len(drift))])
    return jacobian @ noise @ jacobian.T
