"""Baselines for networks on given contexts: ridge regression, dMMSE, least squares and gradient descent.

Contexts are inputs (P, N+1, D) and labels (P, N+1). A prediction is the label expected at input m + 1 from the m
labeled examples before it, for every m in `examples_before`: N alone for a query at the end, all of 0 .. N for a
curve along the context, which is the default. The last label is never read. All is computed in double precision.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from iclab.numerics import Validated, checked, checked_number, numbers, require, whole_number
from iclab.simulation.linear.summaries import checked_tasks
from iclab.simulation.pretraining.estimators import CHUNK, posterior_weights

__all__ = ["best_rates", "dmmse", "gradient_descent", "least_squares", "ridge", "squared_distance"]

Array = np.ndarray
Estimator = Callable[..., jax.Array]  # estimates of w for each number of examples, from one context


def ridge(
    inputs: Validated[ArrayLike],
    labels: Validated[ArrayLike],
    *,
    noise: Validated[float],
    examples_before: Validated[Iterable[int] | None] = None,
) -> Float[Array, "P query"]:
    """Predictions of (XᵀX + ρ)⁻¹ Xᵀy, the posterior mean for tasks N(0, I) and label noise of variance ρ.

    Without noise those of least squares.

    Raises ValueError for contexts that do not fit each other, numbers of examples outside 0 .. N and negative noise.
    """
    contexts = _checked(inputs, labels, examples_before)
    rho = checked_number("noise", noise, at_least=0.0, advice="It is a variance.")
    return _predictions(_ridge, contexts, rho)


def least_squares(
    inputs: Validated[ArrayLike],
    labels: Validated[ArrayLike],
    *,
    examples_before: Validated[Iterable[int] | None] = None,
) -> Float[Array, "P query"]:
    """Predictions of the task that fits the examples best, of least norm where several do.

    Raises ValueError as ridge does.
    """
    return _predictions(_ridge, _checked(inputs, labels, examples_before), 0.0)


def dmmse(
    inputs: Validated[ArrayLike],
    labels: Validated[ArrayLike],
    *,
    tasks: Validated[ArrayLike],
    noise: Validated[float],
    examples_before: Validated[Iterable[int] | None] = None,
) -> Float[Array, "P query"]:
    """Predictions of the posterior mean over a pool of equally likely tasks; without noise of the nearest ones.

    Raises ValueError as ridge does, and for tasks that are no list of finite vectors of the dimension.
    """
    contexts, pool = _checked(inputs, labels, examples_before), checked_tasks(tasks)
    d = contexts.inputs.shape[2]
    require(pool.ndim == 2 and pool.shape[1] == d, f"tasks must have the shape (K, {d}); got {pool.shape}.")
    rho = checked_number("noise", noise, at_least=0.0, advice="It is a variance.")
    return _predictions(_dmmse, contexts, rho, pool, numbers_each=2 * len(pool) * contexts.inputs.shape[1])


def gradient_descent(
    inputs: Validated[ArrayLike],
    labels: Validated[ArrayLike],
    *,
    rate: Validated[ArrayLike],
    steps: Validated[int] = 1,
    preconditioner: Validated[ArrayLike | None] = None,
    examples_before: Validated[Iterable[int] | None] = None,
) -> Float[Array, "P query"]:
    """Predictions of w after steps w ← w + η P Xᵀ(y − Xw)/m from zero on m examples: descent of half the mean square.

    A preconditioner P (D, D) multiplies the gradient; the learning rate η is one number, or one for each number of
    examples. With inputs N(0, I/D) descent converges for η below some 2D/(1 + √(D/m))².

    Raises ValueError as ridge does, for steps below 1, learning rates that are not positive and a preconditioner of
    another shape; ArithmeticError when a prediction leaves the finite numbers.
    """
    contexts = _checked(inputs, labels, examples_before)
    d, count = contexts.inputs.shape[2], len(contexts.before)
    rates = np.asarray(checked("rate", rate, above=0.0, infinite=False))
    require(
        rates.shape in ((), (count,)),
        f"rate must be one number, or one for each of {count} numbers of examples; got shape {rates.shape}.",
    )
    matrix = np.eye(d) if preconditioner is None else numbers("preconditioner", preconditioner)
    require(matrix.shape == (d, d), f"preconditioner must have the shape ({d}, {d}); got {matrix.shape}.")
    found = _predictions(_descent, contexts, np.broadcast_to(rates, count), matrix, whole_number("steps", steps))
    if not np.all(np.isfinite(found)):
        raise ArithmeticError("gradient descent left the finite numbers; lower the learning rate.")
    return found


def best_rates(
    dimension: Validated[int],
    context_length: Validated[int],
    *,
    noise: Validated[float],
    examples_before: Validated[Iterable[int] | None] = None,
) -> Float[Array, "query"]:
    """The learning rates of least error after one step on m examples, mD/(m + 1 + D(1 + ρ)); for m = 0 as for m = 1.

    For inputs N(0, I/D) and tasks N(0, I). At rate 1 a prediction times its label is 1/D in the mean, and its square
    (m + 1 + D(1 + ρ))/(m D²): their ratio is best. Before any example all rates predict 0.

    Raises ValueError for sizes below 1, numbers of examples outside 0 .. N and negative noise.
    """
    d = whole_number("dimension", dimension)
    rho = checked_number("noise", noise, at_least=0.0, advice="It is a variance.")
    before = np.maximum(_before(whole_number("context_length", context_length), examples_before), 1)
    return before * d / (before + 1 + d * (1 + rho))


def squared_distance(predictions: ArrayLike, baseline: ArrayLike) -> Float[Array, "*times query"]:
    """Mean square over contexts of the difference of predictions (*times, P, query) from a baseline (P, query).

    Raises ValueError for predictions that do not fit the baseline and for numbers that are not finite.
    """
    found, other = numbers("predictions", predictions), numbers("baseline", baseline)
    require(
        other.ndim == 2 and other.size > 0 and found.shape[-2:] == other.shape,
        f"predictions must have the shape (..., P, query) of the baseline, {other.shape}; got {found.shape}.",
    )
    return np.mean((found - other) ** 2, axis=-2)


class _Contexts(NamedTuple):
    inputs: Float[Array, "P example D"]
    labels: Float[Array, "P example"]
    before: Int[Array, "query"]


def _checked(inputs: ArrayLike, labels: ArrayLike, examples_before: Iterable[int] | None) -> _Contexts:
    x, y = numbers("inputs", inputs), numbers("labels", labels)
    require(
        x.ndim == 3 and x.size > 0 and y.shape == x.shape[:2],
        f"inputs and labels must have the shapes (P, N+1, D) and (P, N+1); got {x.shape} and {y.shape}.",
    )
    return _Contexts(x, y, _before(x.shape[1] - 1, examples_before))


def _before(longest: int, examples_before: Validated[Iterable[int] | None]) -> Int[Array, "query"]:
    if examples_before is None:
        return np.arange(longest + 1)
    several = [whole_number("examples_before", one, least=0) for one in examples_before]
    require(
        len(several) > 0 and max(several) <= longest,
        f"examples_before must hold numbers in 0 .. N = {longest}; got {several}.",
    )
    return np.asarray(several)


def _predictions(
    estimator: Estimator, contexts: _Contexts, *given: Any, numbers_each: int | None = None
) -> Float[Array, "P query"]:
    """Predictions of an estimator, in chunks of contexts that fit the memory, by the numbers of each context."""
    each = numbers_each or len(contexts.before) * contexts.inputs[0].size
    chunk = max(1, min(len(contexts.inputs), CHUNK // each))
    with jax.enable_x64(True):
        return np.asarray(_predicted(estimator, chunk, *contexts, given))


@partial(jax.jit, static_argnums=(0, 1))
def _predicted(
    estimator: Estimator, chunk: int, inputs: jax.Array, labels: jax.Array, before: jax.Array, given: tuple
) -> jax.Array:
    def predictions(context: tuple[jax.Array, jax.Array]) -> jax.Array:
        x, y = context
        return jnp.sum(x[before] * estimator(x, y, before, *given), axis=1)

    return jax.lax.map(predictions, (inputs, labels), batch_size=chunk)


def _shown(x: jax.Array, y: jax.Array, before: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The examples before each query, with zeros instead of later ones, which no estimator depends on."""
    seen = jnp.arange(len(y)) < before[:, None]
    return jnp.where(seen[..., None], x, 0.0), jnp.where(seen, y, 0.0)


def _ridge(x: jax.Array, y: jax.Array, before: jax.Array, noise: jax.Array) -> jax.Array:
    inputs, labels = _shown(x, y, before)
    left, values, right = jnp.linalg.svd(inputs, full_matrices=False)
    kept = values > max(x.shape) * np.finfo(float).eps * values[:, :1]
    shrunk = jnp.where(kept, values / jnp.where(kept, values**2 + noise, 1.0), 0.0)
    return jnp.einsum("asd,as,ans,an->ad", right, shrunk, left, labels)


def _dmmse(x: jax.Array, y: jax.Array, before: jax.Array, noise: jax.Array, pool: jax.Array) -> jax.Array:
    squares = (y[:-1, None] - x[:-1] @ pool.T) ** 2
    misfits = jnp.concatenate([jnp.zeros((1, len(pool))), jnp.cumsum(squares, axis=0)])[before]
    return jax.vmap(posterior_weights, in_axes=(0, None))(misfits, noise) @ pool


def _descent(
    x: jax.Array, y: jax.Array, before: jax.Array, rates: jax.Array, matrix: jax.Array, steps: jax.Array
) -> jax.Array:
    inputs, labels = _shown(x, y, before)
    scaled = (rates / jnp.maximum(before, 1))[:, None, None] * matrix

    def update(_: jax.Array, w: jax.Array) -> jax.Array:
        residual = labels - jnp.einsum("and,ad->an", inputs, w)
        return w + jnp.einsum("aed,and,an->ae", scaled, inputs, residual)

    return jax.lax.fori_loop(0, steps, update, jnp.zeros((len(before), x.shape[1])))
