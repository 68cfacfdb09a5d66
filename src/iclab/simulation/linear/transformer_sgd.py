"""One-pass SGD of the whole linear transformer on tokens: two matrices of 2D × 2D, no reduction of any kind.

Tokens z = (x, y) in 2D dimensions, f(Z) = Z + W^P (Z Zᵀ/N) W^Q Z, the prediction is the lower half of f at the query
(x_q, 0). Tasks y = Λ x are diagonal in the eigenbasis of the inputs, in which everything is drawn and reported:
gradient descent commutes with rotations, so no generality is lost.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Key
from numpy.typing import ArrayLike

from iclab.numerics import Validated, require
from iclab.outcomes import TransformerCurves
from iclab.problem import Regression
from iclab.simulation.linear.one_pass import descend, normals

__all__ = ["TokenLaw", "TokenShape", "fresh_tokens", "transformer_sgd"]

Array = np.ndarray


class TokenLaw(NamedTuple):
    """Standard deviations of inputs, tasks and label noise; pool of tasks (None: fresh ones)."""

    inputs: Float[Array, "D"]
    tasks: Float[Array, "D"]
    noise: float
    pool: Float[Array, "task D"] | None


class TokenShape(NamedTuple):
    """Context length, batch size, and True where labels carry noise."""

    length: int
    batch: int
    noisy: bool


def transformer_sgd(
    problem: Regression,
    *,
    start: Validated[tuple[ArrayLike, ArrayLike]],
    rate: Validated[float],
    batch: Validated[int],
    steps: Validated[int],
    every: Validated[int] = 1,
    tasks: Validated[ArrayLike | None] = None,
    key: Validated[Key[jax.Array, "*run"]],
) -> TransformerCurves:
    """Curves of the linear transformer under one-pass SGD, one run for each key, kept at steps 0, every, 2 every, ….

    `start` is (p₀, q₀), the block of W^P from labels to labels and that of W^Q from inputs to inputs, each a scalar
    (times the identity), one number per mode, or a D × D matrix, with the axes of `key` in front or not; the other
    blocks start at zero and are trained too. `tasks` is a pool of diagonals Λ to draw from; by default every context
    has fresh ones of variance problem.task_eigenvalues. Eigenvalues, and so modes, come largest first. The loss is
    summed over outputs; each carries the noise. The learning rate acts on half the mean squared error; float64; time
    = rate × step. Cost: about 25 ns per token entry, 30 s for 16 runs of 3000 steps of 512 contexts of 8 examples in
    4 dimensions.

    Raises ValueError for settings that are not positive, `every` that does not divide `steps`, mixed context lengths,
    starts and tasks that do not fit.
    """
    size, lengths = problem.dimension, problem.context_lengths
    require(len(lengths) == 1, f"context_length must be one number here; got {lengths}. Simulate one at a time.")
    pool = None if tasks is None else np.asarray(tasks, dtype=float)
    require(
        pool is None or (pool.ndim == 2 and len(pool) > 0 and pool.shape[1] == size),
        f"tasks must be a pool, one row of {size} numbers for each task; got {tasks!r}.",
    )
    projection, key_query = np.zeros((2, *key.shape, 2 * size, 2 * size))
    projection[..., size:, size:] = _block(start[0], size, key.shape)
    key_query[..., :size, :size] = _block(start[1], size, key.shape)
    (projection, key_query), losses = descend(
        _loss,
        TokenShape(lengths[0], batch, problem.noise > 0),
        TokenLaw(np.sqrt(problem.eigenvalues), np.sqrt(problem.task_spectrum), float(np.sqrt(problem.noise)), pool),
        (projection, key_query),
        draws=int(batch * size * (lengths[0] + 2) * (1 + (problem.noise > 0))),
        rate=rate,
        batch=batch,
        steps=steps,
        every=every,
        key=key,
    )
    p, q = projection[..., size:, size:], key_query[..., :size, :size]
    stray = np.hypot(
        np.linalg.norm(projection[..., size:, :size], axis=(-2, -1)),
        np.linalg.norm(key_query[..., size:, :size], axis=(-2, -1)),
    )
    time = rate * every * np.arange(losses.shape[-1])
    return TransformerCurves(time, p, q, **TransformerCurves.readings(p, q), loss=losses, stray=stray)


def _block(part: Validated[ArrayLike], size: int, runs: tuple[int, ...]) -> Array:
    block = np.asarray(part, dtype=float)
    require(
        block.shape in ((), (size,), (size, size), (*runs, size, size)) and bool(np.all(np.isfinite(block))),
        f"start must hold finite scalars, {size} numbers, or matrices, one or one for each run; got {block.shape}.",
    )
    return block if block.ndim >= 2 else np.diag(np.broadcast_to(block, (size,)))


def _loss(weights: tuple[jax.Array, jax.Array], key: jax.Array, law: TokenLaw, shape: TokenShape) -> jax.Array:
    """Mean over a drawn batch of the squared error, summed over outputs."""
    tokens, label = fresh_tokens(key, law, shape)
    size, (projection, key_query) = label.shape[0], weights
    query = key_query @ tokens[:, shape.length]
    scores = jnp.sum(tokens * query[:, None], axis=0) / shape.length
    attended = projection @ jnp.sum(tokens * scores, axis=1)
    output = tokens[size:, shape.length] + attended[size:]
    return jnp.mean(jnp.sum((output - label) ** 2, axis=0))


def fresh_tokens(key: jax.Array, law: TokenLaw, shape: TokenShape) -> tuple[jax.Array, jax.Array]:
    """Token matrices Z (2D, N + 1, B), the query last, and its labels (D, B)."""
    size, (length, batch, noisy) = len(law.inputs), shape
    grid = (size, length + 1, batch)
    for_numbers, for_pool = (key, key) if law.pool is None else jax.random.split(key)
    inputs, task, *noise = normals(for_numbers, grid, (size, batch), *[grid] * noisy)
    inputs = inputs * law.inputs[:, None, None]
    if law.pool is None:
        task = task * law.tasks[:, None]
    else:
        task = jnp.asarray(law.pool)[jax.random.randint(for_pool, (batch,), 0, len(law.pool))].T
    labels = task[:, None] * inputs + sum(part * law.noise for part in noise)
    shown = labels.at[:, length].set(0.0)
    return jnp.concatenate([inputs, shown]), labels[:, length]
