"""Routes to the readout that ridge regression finds, for sequences of any origin.

The features x gᵀ of a sequence are products, so that a Gram matrix of sequences is the entrywise product of two small
ones, and a product with all features costs 4 n D² operations and no memory for them. All routes minimize
Σ (y − xᵀ G g)² + (n/D) λ ‖G‖², without ridge by the solution of least norm. Rows of zeros add nothing.

Sequences come in parts, as arrays of NumPy or of JAX, and routes are written for both: on a CPU products of NumPy
take a third to two thirds of the time of JAX's, and nothing is compiled.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Float

from iclab.simulation.linear.summaries import Summaries

__all__ = [
    "FACTORED", "ITERATIVE", "Check", "Parts", "Readout", "Solution", "adjoint", "check", "predictions", "solve",
]  # fmt: skip

Parts = Sequence[Summaries]
Readout = Float[Any, "D D+1"]
Linear = Callable[[Any], Any]
COARSE = 1e-4  # of a residual, where a round in single precision ends
OPEN = 1e-3  # of a readout, that a residual may leave open


class Solution(NamedTuple):
    """A readout and the steps that led to it."""

    readout: Readout
    iterations: int


class Check(NamedTuple):
    """Residual of a readout, the norm of the gradient of the penalized error against that at zero, and its error."""

    residual: float
    train: float


def direct(data: Parts, count: int, ridge: float) -> Solution:
    """Solution by singular values of the features themselves: the witness. Cost: n p min(n, p), p = D(D+1)."""
    (x, g, y), xp = _joined(data), _library(data)
    features = (x[:, :, None] * g[:, None, :]).reshape(len(y), -1)
    left, values, right = xp.linalg.svd(features, full_matrices=False)
    kept = values > max(features.shape) * np.finfo(y.dtype).eps * values[0]
    shrunk = xp.where(kept, values / xp.where(kept, values**2 + ridge / _scale(data, count), 1.0), 0.0)
    return Solution((right.T @ (shrunk * (left.T @ y))).reshape(x.shape[1], g.shape[1]), 0)


def kernel(data: Parts, count: int, ridge: float) -> Solution:
    """Solution by the n × n Gram matrix of the sequences, factored. Without ridge for fewer sequences than weights.

    One refinement undoes what a small ridge loses to rounding, where large weights of the sequences cancel.
    """
    (x, g, y), xp, penalty = _joined(data), _library(data), ridge / _scale(data, count)
    linear = scipy.linalg if xp is np else jax.scipy.linalg
    empty = xp.arange(len(y)) >= count  # rows of zeros, which without ridge would make the matrix singular
    gram = (x @ x.T) * (g @ g.T) + xp.diag(penalty + empty)
    try:
        factor = linear.cho_factor(gram.T, lower=True, overwrite_a=True)  # symmetric; .T is in the order of LAPACK
    except np.linalg.LinAlgError as error:
        raise ArithmeticError(
            "route kernel found features that depend on each other to rounding: raise the ridge, or use route direct."
        ) from error
    weight = linear.cho_solve(factor, y)
    readout = x.T @ (weight[:, None] * g)
    residual = y - predictions(Summaries(x, g, y), readout) - penalty * weight
    return Solution(readout + x.T @ (linear.cho_solve(factor, residual)[:, None] * g), 0)


def plain(data: Parts, count: int, ridge: float, tolerance: float, most: int) -> Solution:
    """Solution by conjugate gradients on the weights. Starting at zero they stay in the span of the features.

    Raises ArithmeticError where features nearly depend on each other, so that a small residual leaves the readout
    open.
    """
    scale = _scale(data, count)
    right_side = scale * adjoint(data, [part.target for part in data])
    curvature = _curvature(data, scale, ridge)
    found = Solution(*_conjugate_gradients(curvature, right_side, lambda part: part, tolerance, most))
    means = _mean_curvatures(data, count)
    reached = int((means.x > 0).sum()) * int(means.reached.sum())
    edge = (1 - math.sqrt(reached / count)) ** 2  # of the spectrum of random features of one curvature
    least = float(means.x[means.x > 0].min()) * float(means.g[means.reached].min()) * edge + ridge
    doubt = tolerance * _norm(right_side) / least if least > 0 else math.inf
    if doubt > OPEN * _norm(found.readout):
        raise ArithmeticError(
            f"route plain leaves the readout open at a tolerance of {tolerance:g}, since features nearly depend on "
            f"each other. Lower the tolerance {doubt / (OPEN * _norm(found.readout)):.0e} times, raise the ridge, or "
            "use another route."
        )
    return found


def preconditioned(data: Parts, count: int, ridge: float, tolerance: float, most: int) -> Solution:
    """Solution by conjugate gradients on the weights, divided by their mean curvature diag(S) ⊗ B + ξ.

    Not without ridge for fewer sequences than weights, where it would lead to another solution of zero error. Rounds
    in single precision, which takes half the time, reduce the residual of full precision; where one leaves more than
    a tenth of it, full precision finishes. Directions are scaled so that predictions have size one.
    """
    scale, means = _scale(data, count), _mean_curvatures(data, count)
    precondition = _division(means, count, ridge)
    single = [Summaries(*(array.astype(np.float32) for array in part)) for part in data]
    full, half = _curvature(data, scale, ridge), _curvature(single, scale, 0.0)
    right_side = scale * adjoint(data, [part.target for part in data])
    reach = math.sqrt(float(means.x.mean()) * float(means.g.mean()))

    def rough(direction: Readout) -> Readout:
        size = _norm(direction) * reach
        return size * half((direction / size).astype(np.float32)).astype(right_side.dtype) + ridge * direction

    readout, residual, goal = right_side * 0, right_side, tolerance * _norm(right_side)
    taken = 0
    product, least = rough, COARSE
    while (before := _norm(residual)) > goal and taken < most:
        close = max(goal / before / 2, least)  # half, since single precision rounds
        step, steps = _conjugate_gradients(product, residual, precondition, close, most - taken)
        readout, taken = readout + step, taken + steps
        residual = right_side - full(readout)
        if product is full:
            break
        if _norm(residual) > before / 10:
            product, least = full, 0.0
    return Solution(readout, taken)


def dual(data: Parts, count: int, ridge: float, tolerance: float, most: int) -> Solution:
    """The solution of least norm, by conjugate gradients on a weight for each sequence."""
    concatenate, penalty = _library(data).concatenate, ridge / _scale(data, count)
    ends = np.cumsum([0, *(len(part.target) for part in data)])

    def split(weight: Any) -> list[Any]:
        return [weight[first:last] for first, last in pairwise(ends)]

    def gram(weight: Any) -> Any:
        readout = adjoint(data, split(weight))
        return concatenate([predictions(part, readout) for part in data]) + penalty * weight

    target = concatenate([part.target for part in data])
    weight, steps = _conjugate_gradients(gram, target, lambda part: part, tolerance, most)
    return Solution(adjoint(data, split(weight)), steps)


FACTORED: dict[str, Callable[[Parts, int, float], Solution]] = {"direct": direct, "kernel": kernel}
"""Routes that factor a matrix: of sequences, their number and the ridge."""
ITERATIVE: dict[str, Callable[[Parts, int, float, float, int], Solution]] = {
    "plain": plain,
    "preconditioned": preconditioned,
    "dual": dual,
}
"""Routes by conjugate gradients: of sequences, their number, the ridge, the tolerance and the most iterations."""


def solve(route: str, data: Parts, count: int, ridge: float, *, tolerance: float, most: int) -> Solution:
    """The solution by a named route; those that factor a matrix need neither tolerance nor a limit of iterations."""
    if route in FACTORED:
        return FACTORED[route](data, count, ridge)
    return ITERATIVE[route](data, count, ridge, tolerance, most)


def check(data: Parts, count: int, ridge: float, readout: Readout) -> Check:
    """Distance of a readout from the minimum, by its gradient, and its error on the sequences."""
    gradient, start, squares = -ridge / _scale(data, count) * readout, readout * 0, 0.0
    for part in data:
        residual = part.target - predictions(part, readout)
        gradient = gradient + adjoint([part], [residual])
        start = start + adjoint([part], [part.target])
        squares += _dot(residual, residual)
    norm = _norm(start)
    return Check(_norm(gradient) / norm if norm > 0 else _norm(gradient), squares / count)


def predictions(part: Summaries, readout: Readout) -> Float[Any, "row"]:
    """The prediction for every query."""
    return _library([part]).vecdot(part.features @ readout.T, part.query)


def adjoint(data: Parts, weights: Sequence[Float[Any, "_"]]) -> Readout:
    """Σ a x gᵀ over the sequences, with a number a for each."""
    return _sum((own[:, None] * part.query).T @ part.features for part, own in zip(data, weights, strict=True))


def _scale(data: Parts, count: int) -> float:
    """D/n: features times its root have covariance S ⊗ B, and the ridge is λ."""
    return data[0].query.shape[-1] / count


def _curvature(data: Parts, scale: float, ridge: float) -> Linear:
    def product(readout: Readout) -> Readout:
        readout = readout.T.copy().T  # contiguous columns multiply sooner
        total = _sum(adjoint([part], [predictions(part, readout)]) for part in data)
        return scale * total + ridge * readout

    return product


class _Curvatures(NamedTuple):
    """Mean curvatures x gᵀ of weights."""

    x: Float[Any, "D"]
    g: Float[Any, "D+1"]  # in rising order
    vectors: Float[Any, "D+1 D+1"]  # that g belong to
    reached: Any  # True where g is more than rounding


def _mean_curvatures(data: Parts, count: int) -> _Curvatures:
    xp = _library(data)
    g, vectors = xp.linalg.eigh(_sum(part.features.T @ part.features for part in data) / count)
    x = _scale(data, count) * _sum(xp.einsum("ij,ij->j", part.query, part.query) for part in data)
    return _Curvatures(x, g, vectors, g > len(g) * float(np.finfo(g.dtype).eps) * g[-1])


def _division(means: _Curvatures, count: int, ridge: float) -> Linear:
    """Division by the mean curvature of the sequences and their effective ridge; 0 where no feature ever is.

    Features of one task depend on each other where there is no noise: only then do some of their directions vanish.
    """
    values = means.x[:, None] * means.g.clip(0.0)
    curvature = values + _effective_ridge(float(values.mean()), count / len(means.x) ** 2, ridge)
    curvature = curvature.clip(float(np.finfo(values.dtype).eps * curvature.max()))
    inverse = means.reached / curvature

    def divided(gradient: Readout) -> Readout:
        return ((gradient @ means.vectors) * inverse) @ means.vectors.T

    return divided


def _effective_ridge(value: float, tau: float, ridge: float) -> float:
    """ξ of features of one curvature, an approximation good enough to divide by: τ (1 − λ/ξ) = v/(v + ξ)."""
    excess = tau * (value - ridge) - value
    root = math.sqrt(excess**2 + 4 * tau**2 * ridge * value)
    return 2 * tau * ridge * value / (excess + root) if excess > 0 else (root - excess) / (2 * tau)


def _conjugate_gradients(
    product: Linear, target: Any, precondition: Linear, tolerance: float, most: int
) -> tuple[Any, int]:
    """The solution of product(x) = target from x = 0, to a residual of tolerance times the target, and its steps."""
    goal, steps = tolerance * _norm(target), 0
    x, residual, direction = target * 0, target, precondition(target)
    size = _dot(target, direction)
    while _norm(residual) > goal and steps < most and size > 0:
        image = product(direction)
        curvature = _dot(direction, image)
        if not curvature > 0:  # nothing left but rounding
            break
        length = size / curvature
        x, residual = x + length * direction, residual - length * image
        improved = precondition(residual)
        size, before = _dot(residual, improved), size
        direction = improved + size / before * direction
        steps += 1
    return x, steps


def _sum(arrays: Iterable[Any]) -> Any:
    return reduce(add, arrays)


def _dot(first: Any, second: Any) -> float:
    return float((first * second).sum())


def _norm(array: Any) -> float:
    return math.sqrt(_dot(array, array))


def _joined(data: Parts) -> tuple[Any, ...]:
    return tuple(_library(data).concatenate(arrays) for arrays in zip(*data, strict=True))


def _library(data: Parts) -> Any:
    """NumPy or jax.numpy, whose arrays the sequences are."""
    return np if isinstance(data[0].target, np.ndarray) else jnp
