"""Three routes to the readout that ridge regression finds, none of which need know how the sequences came about.

The features x gᵀ of a sequence are products, so that a Gram matrix of sequences is the entrywise product of two small
ones, and a product with all features costs 4 n D² operations and no memory for them. All routes minimise
Σ (y − xᵀ G g)² + (n/D) λ ‖G‖², without ridge by the solution of least norm. Rows of zeros add nothing.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from iclab.simulation.summaries import Summaries

Readout = Float[jax.Array, "D D+1"]
Number = Any  # a number that compiled functions take


class Solution(NamedTuple):
    """A readout and the steps that led to it."""

    readout: Any
    iterations: Any


class Check(NamedTuple):
    """What a readout leaves: the gradient of the penalised error against that at zero, and the mean squared error."""

    residual: Any
    train: Any


def direct(data: Summaries, count: Number, ridge: Number) -> Solution:
    """By singular values of the features themselves: the witness. Cost: n p min(n, p), p = D(D+1)."""
    x, g, y = _flat(data)
    features = (x[:, :, None] * g[:, None, :]).reshape(len(y), -1)
    left, values, right = jnp.linalg.svd(features, full_matrices=False)
    kept = values > max(features.shape) * jnp.finfo(y.dtype).eps * values[0]
    penalty = ridge * count / x.shape[1]
    shrunk = jnp.where(kept, values / jnp.where(kept, values**2 + penalty, 1.0), 0.0)
    return Solution((right.T @ (shrunk * (left.T @ y))).reshape(x.shape[1], g.shape[1]), 0)


def kernel(data: Summaries, count: Number, ridge: Number) -> Solution:
    """By the n × n Gram matrix of the sequences, factored. Without ridge it takes fewer sequences than weights.

    One refinement undoes what a small ridge loses to rounding, where large weights of the sequences cancel.
    """
    x, g, y = _flat(data)
    empty = jnp.arange(len(y)) >= count  # rows of zeros, which without ridge would make the matrix singular
    penalty = ridge * count / x.shape[1]
    factor = jax.scipy.linalg.cho_factor((x @ x.T) * (g @ g.T) + jnp.diag(penalty + empty), lower=True)
    weight = jax.scipy.linalg.cho_solve(factor, y)
    readout = x.T @ (weight[:, None] * g)
    missed = y - _answer((x, g), readout) - penalty * weight
    return Solution(readout + x.T @ (jax.scipy.linalg.cho_solve(factor, missed)[:, None] * g), 0)


def plain(data: Summaries, count: Number, ridge: Number, tolerance: Number, most: Number) -> Solution:
    """By conjugate gradients on the weights. Starting at zero they stay in the span of the features."""
    return _primal(data, count, ridge, tolerance, most, lambda gradient: gradient)


def preconditioned(data: Summaries, count: Number, ridge: Number, tolerance: Number, most: Number) -> Solution:
    """By conjugate gradients on the weights, divided by their mean curvature: diag(S) ⊗ B of the sequences, plus ξ.

    Not without ridge for fewer sequences than weights, where it would lead to another solution of zero error.
    """
    d = data.query.shape[-1]
    second = jax.lax.scan(
        lambda sum, g: (sum + g.T @ g, None), jnp.zeros((d + 1, d + 1), data.target.dtype), data.features
    )
    g_values, vectors = jnp.linalg.eigh(second[0] / count)
    x_values = jnp.sum(data.query**2, axis=(0, 1)) * d / count
    values = x_values[:, None] * jnp.maximum(g_values, 0)
    curvature = values + _effective_ridge(jnp.mean(values), count / d**2, ridge)
    curvature = jnp.maximum(curvature, jnp.finfo(values.dtype).eps * jnp.max(curvature))

    def precondition(gradient: Readout) -> Readout:
        return ((gradient @ vectors) / curvature) @ vectors.T

    return _primal(data, count, ridge, tolerance, most, precondition)


def dual(data: Summaries, count: Number, ridge: Number, tolerance: Number, most: Number) -> Solution:
    """By conjugate gradients on a weight for each sequence, for the solution of least norm."""
    penalty = ridge * count / data.query.shape[-1]

    def gram(weight: jax.Array) -> jax.Array:
        return answers(data, adjoint(data, weight)) + penalty * weight

    weight, iterations = _conjugate_gradients(gram, data.target, lambda part: part, tolerance, most)
    return Solution(adjoint(data, weight), iterations)


def check(data: Summaries, count: Number, ridge: Number, readout: Readout) -> Check:
    """How far a readout is from the minimum, and its error on the sequences."""

    def add(sums: Any, part: Any) -> tuple[Any, None]:
        slope, start, squares = sums
        x, g, y = part
        missed = y - _answer((x, g), readout)
        return (slope + x.T @ (missed[:, None] * g), start + x.T @ (y[:, None] * g), squares + missed @ missed), None

    zero = jnp.zeros_like(readout)
    slope, start, squares = jax.lax.scan(add, (zero, zero, jnp.zeros((), readout.dtype)), tuple(data))[0]
    penalty, scale = ridge * count / readout.shape[0], jnp.linalg.norm(start)
    return Check(jnp.linalg.norm(slope - penalty * readout) / jnp.where(scale > 0, scale, 1.0), squares / count)


def answers(data: Summaries, readout: Readout) -> Float[jax.Array, "block row"]:
    """The answer to every query, block by block."""
    return jax.lax.map(lambda part: _answer(part, readout), (data.query, data.features))


def adjoint(data: Summaries, weight: Float[jax.Array, "block row"]) -> Readout:
    """Σ a x gᵀ over the sequences, block by block."""

    def add(total: Readout, part: Any) -> tuple[Readout, None]:
        x, g, a = part
        return total + x.T @ (a[:, None] * g), None

    zero = jnp.zeros((data.query.shape[-1], data.features.shape[-1]), weight.dtype)
    return jax.lax.scan(add, zero, (data.query, data.features, weight))[0]


def _primal(
    data: Summaries,
    count: Number,
    ridge: Number,
    tolerance: Number,
    most: Number,
    precondition: Callable[[Readout], Readout],
) -> Solution:
    scale = data.query.shape[-1] / count  # the features then have covariance S ⊗ B and the ridge is λ

    def curvature(readout: Readout) -> Readout:
        def add(total: Readout, part: Any) -> tuple[Readout, None]:
            x, g = part
            return total + x.T @ (_answer(part, readout)[:, None] * g), None

        total = jax.lax.scan(add, jnp.zeros_like(readout), (data.query, data.features))[0]
        return scale * total + ridge * readout

    pull = scale * adjoint(data, data.target)
    return Solution(*_conjugate_gradients(curvature, pull, precondition, tolerance, most))


def _conjugate_gradients(
    product: Callable[[jax.Array], jax.Array],
    target: jax.Array,
    precondition: Callable[[jax.Array], jax.Array],
    tolerance: Number,
    most: Number,
) -> tuple[jax.Array, jax.Array]:
    """The solution of product(x) = target from x = 0, to a residual of tolerance times the target."""
    goal = tolerance * jnp.linalg.norm(target)
    first = precondition(target)
    start = (jnp.zeros_like(target), target, first, jnp.sum(target * first), jnp.asarray(0))

    def unsettled(state: Any) -> jax.Array:
        return (jnp.linalg.norm(state[1]) > goal) & (state[4] < most)

    def step(state: Any) -> Any:
        x, residual, direction, size, count = state
        turned = product(direction)
        length = size / jnp.sum(direction * turned)
        residual = residual - length * turned
        improved = precondition(residual)
        following = jnp.sum(residual * improved)
        return x + length * direction, residual, improved + following / size * direction, following, count + 1

    x, *_, count = jax.lax.while_loop(unsettled, step, start)
    return x, count


def _answer(part: Any, readout: Readout) -> Float[jax.Array, "row"]:
    x, g = part
    return jnp.sum((x @ readout) * g, axis=1)


def _flat(data: Summaries) -> tuple[jax.Array, jax.Array, jax.Array]:
    return tuple(part.reshape(-1, *part.shape[2:]) for part in data)


def _effective_ridge(value: jax.Array, tau: Number, ridge: Number) -> jax.Array:
    """ξ of features that all have the same curvature, near enough to divide by: τ (1 − λ/ξ) = v/(v + ξ)."""
    excess = tau * (value - ridge) - value
    root = jnp.sqrt(excess**2 + 4 * tau**2 * ridge * value)
    stable = 2 * tau * ridge * value / jnp.maximum(excess + root, jnp.finfo(value.dtype).tiny)
    return jnp.where(excess > 0, stable, (root - excess) / (2 * tau))
