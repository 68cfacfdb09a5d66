"""One-pass SGD on contexts of scalar regression, drawn token by token: on Γ itself, or on one head Γ = u U.

Every step draws a batch of fresh tasks, inputs and labels and follows the automatic gradient of half its mean squared
error. Nothing here knows a moment of the contexts.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Key
from numpy.typing import ArrayLike

from iclab.numerics import Validated, require
from iclab.outcomes import GammaRuns, HeadRuns
from iclab.problem import Regression
from iclab.simulation.linear.one_pass import descend, normals

__all__ = ["ScalarLaw", "ScalarShape", "gamma_sgd", "head_sgd"]

Array = np.ndarray


class ScalarLaw(NamedTuple):
    """Standard deviations of inputs, tasks and label noise."""

    inputs: Float[Array, "D"]
    tasks: Float[Array, "D"]
    noise: float


class ScalarShape(NamedTuple):
    """Context length and batch size."""

    length: int
    batch: int


def gamma_sgd(
    problem: Regression,
    *,
    rate: Validated[float],
    batch: Validated[int],
    steps: Validated[int],
    every: Validated[int] = 1,
    start: Validated[ArrayLike | None] = None,
    key: Validated[Key[jax.Array, "*run"]],
) -> GammaRuns:
    """Runs of one-pass SGD on Γ, one for each key; Γ and the batch's loss are kept at steps 0, every, 2 every, ….

    `key` is one key, or an array of keys: its axis leads those of the outcome, and a run depends on its key alone.
    `start` is zero by default, one Γ for all runs or one for each. float64; the learning rate acts on half the mean
    squared error; time = rate × step. Cost: 20000 runs of 120 steps, 8 contexts of 5 examples in 2 dimensions each,
    take about 12 s on one core.

    Raises ValueError for settings that are not positive, `every` that does not divide `steps`, mixed context lengths.
    """
    size = problem.dimension
    gamma = np.zeros((size, size)) if start is None else np.asarray(start, dtype=float)
    require(
        gamma.shape in ((size, size), (*key.shape, size, size)),
        f"start must have shape {(size, size)}, with the axes of key in front or not; got {gamma.shape}.",
    )
    (gamma,), losses = descend(
        _gamma_loss,
        ScalarShape(_length(problem), batch),
        _law(problem),
        (np.broadcast_to(gamma, (*key.shape, size, size)),),
        draws=_draws(problem, batch),
        rate=rate,
        batch=batch,
        steps=steps,
        every=every,
        key=key,
    )
    return GammaRuns(rate * every * np.arange(losses.shape[-1]), gamma, losses)


def head_sgd(
    problem: Regression,
    *,
    rate: Validated[float],
    batch: Validated[int],
    steps: Validated[int],
    every: Validated[int] = 1,
    start: Validated[tuple[ArrayLike, ArrayLike]],
    key: Validated[Key[jax.Array, "*run"]],
) -> HeadRuns:
    """Runs of one-pass SGD on a value u and a key-query matrix U, one for each key; kept as in gamma_sgd().

    `start` is (u₀, U₀) for all runs, U₀ a scalar (times the identity), one number per mode, or a matrix.

    Raises ValueError as gamma_sgd() does, and for a start that does not fit.
    """
    size = problem.dimension
    value, matrix = (np.asarray(part, dtype=float) for part in start)
    require(
        value.shape == () and matrix.shape in ((), (size,), (size, size)),
        f"start must be (u0, U0), U0 a scalar, {size} numbers or a matrix; got {value.shape} and {matrix.shape}.",
    )
    full = matrix if matrix.ndim == 2 else np.diag(np.broadcast_to(matrix, (size,)))
    (values, matrices), losses = descend(
        _head_loss,
        ScalarShape(_length(problem), batch),
        _law(problem),
        (np.broadcast_to(value, key.shape), np.broadcast_to(full, (*key.shape, size, size))),
        draws=_draws(problem, batch),
        rate=rate,
        batch=batch,
        steps=steps,
        every=every,
        key=key,
    )
    return HeadRuns(rate * every * np.arange(losses.shape[-1]), values, matrices, losses)


def _gamma_loss(weights: tuple[jax.Array], key: jax.Array, law: ScalarLaw, shape: ScalarShape) -> jax.Array:
    """Mean squared error of hᵀ Γ x_q on a drawn batch."""
    summary, query, label = _contexts(key, law, shape)
    return jnp.mean((jnp.sum(summary[:, None] * weights[0][:, :, None] * query, axis=(0, 1)) - label) ** 2)


def _head_loss(weights: tuple[jax.Array, jax.Array], key: jax.Array, law: ScalarLaw, shape: ScalarShape) -> jax.Array:
    return _gamma_loss((weights[0] * weights[1],), key, law, shape)


def _contexts(key: jax.Array, law: ScalarLaw, shape: ScalarShape) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Summaries (D, B), query inputs (D, B) and query labels (B,) of a batch of fresh contexts."""
    size, (length, batch) = len(law.inputs), shape
    token, task = normals(key, (length + 1, size + 1, batch), (size, batch))
    task = task * law.tasks[:, None]
    inputs = token[:, :size] * law.inputs[:, None]
    labels = jnp.sum(inputs * task, axis=1) + law.noise * token[:, size]
    summary = jnp.sum(inputs[:length] * labels[:length, None], axis=0) / length
    return summary, inputs[length], labels[length]


def _law(problem: Regression) -> ScalarLaw:
    return ScalarLaw(np.sqrt(problem.eigenvalues), np.sqrt(problem.task_spectrum), float(np.sqrt(problem.noise)))


def _length(problem: Regression) -> int:
    lengths = problem.context_lengths
    require(len(lengths) == 1, f"context_length must be one number here; got {lengths}. Simulate one at a time.")
    return lengths[0]


def _draws(problem: Regression, batch: Validated[int]) -> int:
    return int(batch * ((_length(problem) + 1) * (problem.dimension + 1) + problem.dimension))
