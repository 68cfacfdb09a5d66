"""Gradient descent of a stack on the covariances of a sample, exact in the mean over tasks, noise and queries.

With G_l = Γ_lᵀ, K from K ← K + G (1 − S K) and P = 1 − KS, the loss is ρ + mean of tr ΛPΩPᵀ + (ρ/N) tr ΛKSKᵀ.
Layers are whole matrices Γ, or products v U, or v Kᵀ Q.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, nonnegative, positive, require
from iclab.problem import Regression
from iclab.simulation.linear.depth.forward import one_length

__all__ = ["StackRuns", "descend", "sample_loss"]

Array = np.ndarray
Weights = tuple[jax.Array, ...]


class StackRuns(NamedTuple):
    """Runs of gradient descent: time = learning rate × step, loss and Γ of every layer there."""

    time: Float[Array, "time"]
    loss: Float[Array, "run time"]
    gammas: Float[Array, "run time layer D D"]


class _Law(NamedTuple):
    inputs: Float[Array, "D"]  # λ
    tasks: Float[Array, "D"]  # ω
    length: float  # N


def sample_loss(
    problem: Validated[Regression],
    gammas: Validated[Float[ArrayLike, "layer D D"]],
    *,
    covariances: Float[Array, "M D D"],
) -> Float[Array, "M"]:
    """The loss of a stack in each of M contexts, averaged over tasks, label noise and queries.

    Raises ValueError for matrices of another size than the problem.
    """
    matrices = np.asarray(gammas, dtype=float)
    _require_sized(problem, (matrices[None],), covariances)
    with jax.enable_x64(True):
        return np.asarray(_losses(_law(problem), problem.noise, jnp.asarray(covariances), jnp.asarray(matrices)))


def descend(
    problem: Validated[Regression],
    start: Validated[tuple[ArrayLike, ...]],
    *,
    covariances: Float[Array, "M D D"],
    rate: Validated[float],
    steps: Validated[Iterable[int]],
    noise: Validated[Float[ArrayLike, "run"] | None] = None,
) -> StackRuns:
    """Full-batch gradient descent of several runs side by side, recorded at `steps`.

    `start` holds the weights of all layers with a leading axis of runs: whole Γ (run, L, D, D); or values (run, L)
    and key-query matrices (run, L, D, D); or values, keys and queries (run, L, R, D). `noise` may give each run a
    label noise of its own. The learning rate acts on half the mean squared error. Cost of a step: some 10 L D³ M
    products.

    Raises ValueError for weights that do not fit each other or the problem, no layer, negative noise, a learning rate
    that is not positive or, for whole Γ on white inputs and tasks, beyond the largest stable one, and for steps that
    do not increase; ArithmeticError when a loss leaves the finite numbers.
    """
    weights = tuple(np.asarray(part, dtype=float) for part in start)
    _require_sized(problem, weights, covariances)
    runs, recorded = len(weights[0]), np.array(list(steps), dtype=int)
    require(
        recorded.size > 0 and recorded[0] >= 0 and bool(np.all(np.diff(recorded) > 0)),
        f"steps must increase from 0 or more; got {recorded}.",
    )
    levels = np.broadcast_to(nonnegative("noise", problem.noise if noise is None else noise), runs)
    _require_stable(problem, weights, covariances, positive("rate", rate), float(np.max(levels)))
    spans = (np.concatenate([[0], recorded[:-1]]), recorded)
    with jax.enable_x64(True):
        found = _descend(_law(problem), levels, jnp.asarray(covariances), weights, float(rate), spans)
        loss, gammas = (np.asarray(part) for part in found)
    lost = ~np.isfinite(loss).all(axis=0)
    if lost.any():
        raise ArithmeticError(
            f"the loss is not finite at step {recorded[np.argmax(lost)]}: gradient descent diverged at learning rate "
            f"{rate:.3g}. Use a smaller one."
        )
    return StackRuns(rate * recorded, loss, gammas)


@jax.jit
def _losses(law: _Law, noise: jax.Array, covariances: jax.Array, gammas: jax.Array) -> jax.Array:
    one = jnp.eye(covariances.shape[-1])
    answer = jnp.broadcast_to(gammas[0].T, covariances.shape)
    for gamma in gammas[1:]:
        answer = answer + gamma.T @ (one - covariances @ answer)
    seen = answer @ covariances
    kept = one - seen
    bias = jnp.einsum("i,mij,j->m", law.inputs, kept**2, law.tasks)
    spread = jnp.einsum("i,mij,mij->m", law.inputs, seen, answer)
    return noise + bias + noise / law.length * spread


def _gammas(weights: Weights) -> jax.Array:
    """Γ of every layer (L, D, D)."""
    if len(weights) == 1:
        return weights[0]
    value, *rest = weights
    matrices = rest[0] if len(rest) == 1 else jnp.einsum("lri,lrj->lij", *rest)
    return value[:, None, None] * matrices


def _mean_loss(weights: Weights, law: _Law, noise: jax.Array, covariances: jax.Array) -> jax.Array:
    return jnp.mean(_losses(law, noise, covariances, _gammas(weights)))


@jax.jit
def _descend(
    law: _Law,
    noise: jax.Array,
    covariances: jax.Array,
    weights: Weights,
    rate: jax.Array,
    spans: tuple[jax.Array, jax.Array],
) -> tuple[jax.Array, jax.Array]:
    def alone(noise: jax.Array, weights: Weights) -> tuple[jax.Array, jax.Array]:
        def update(_: jax.Array, weights: Weights) -> Weights:
            gradient = jax.grad(_mean_loss)(weights, law, noise, covariances)
            return jax.tree.map(lambda weight, change: weight - 0.5 * rate * change, weights, gradient)

        def record(
            weights: Weights, span: tuple[jax.Array, jax.Array]
        ) -> tuple[Weights, tuple[jax.Array, jax.Array]]:
            weights = jax.lax.fori_loop(*span, update, weights)
            return weights, (_mean_loss(weights, law, noise, covariances), _gammas(weights))

        return jax.lax.scan(record, weights, spans)[1]

    return jax.vmap(alone)(noise, weights)


def _law(problem: Regression) -> _Law:
    return _Law(np.array(problem.eigenvalues), np.array(problem.task_spectrum), float(one_length(problem)))


def _require_sized(problem: Regression, weights: tuple[Array, ...], covariances: Array) -> None:
    size = problem.dimension
    shapes: list[Any] = [part.shape for part in weights]
    require(
        covariances.ndim == 3 and covariances.shape[1:] == (size, size),
        f"covariances must have shape (M, {size}, {size}); got {covariances.shape}.",
    )
    lead = (*shapes[0][:2], 0, 0)[:2] if shapes else (0, 0)
    whole = len(shapes) == 1 and len(shapes[0]) == 4 and shapes[0][2:] == (size, size)
    merged = len(shapes) == 2 and len(shapes[0]) == 2 and shapes[1] == (*lead, size, size)
    apart = len(shapes) == 3 and len(shapes[0]) == 2 and shapes[1] == shapes[2] == (*lead, shapes[1][-2], size)
    require(
        (whole or merged or apart) and min(lead) >= 1,
        f"start must hold Γ (run, L, {size}, {size}), or values (run, L) with key-query matrices or with keys and "
        f"queries (run, L, R, {size}), one run and one layer at least; got shapes {shapes}.",
    )


def _require_stable(
    problem: Regression, weights: tuple[Any, ...], covariances: Array, rate: float, noise: float
) -> None:
    """Raise ValueError beyond 2 over the largest curvature of half the loss along scalar layers, of this sample."""
    white = len({*problem.eigenvalues}) == len({*problem.task_spectrum}) == 1
    matrices, *factors = weights
    if factors or not white:
        return
    scale, size, depth = problem.eigenvalues[0], problem.dimension, matrices.shape[1]
    signal = scale * sum(problem.task_spectrum)
    first = float(np.mean(np.trace(covariances, axis1=1, axis2=2))) / (size * scale)
    second = float(np.mean(np.sum(covariances**2, axis=(1, 2)))) / (size * scale**2)
    felt = noise / signal * size / one_length(problem)
    most = 2 / ((2 * depth - 1) * second + depth * felt * first) * size / (signal * scale**2)
    require(
        rate <= most,
        f"rate must be at most {most:.4g} for {depth} layers on this sample; got {rate:.4g}. Above it training "
        "diverges, or hangs between the levels.",
    )
