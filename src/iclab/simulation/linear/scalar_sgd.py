"""One-pass SGD on contexts of scalar regression, drawn token by token: on Γ itself, or on one head Γ = u U.

Every step draws a batch of fresh tasks, inputs and labels and follows the automatic gradient of half its mean squared
error. Nothing here knows a moment of the contexts.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, Key, PRNGKeyArray
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from iclab.numerics import Validated, require
from iclab.outcomes import GammaRuns, HeadRuns
from iclab.problem import Regression
from iclab.simulation.keys import checked_key, generators_of
from iclab.simulation.linear.one_pass import descend, normals

__all__ = [
    "DrawnSquares", "ScalarLaw", "ScalarShape", "drawn_squares", "gamma_sgd", "head_sgd",
    "squares_of_combinations",
]  # fmt: skip

Array = np.ndarray
Squares = tuple[Float[Array, "_ _"], Float[Array, "_ _ _ _"]]
ROWS = 2**13  # drawn at once: more would leave the cache


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


class DrawnSquares(NamedTuple):
    """Means of κκᵀ and κκᵀ ⊗ κκᵀ, κ = (vec h x_qᵀ, y_q), over all combinations of drawn tasks, contexts and queries.

    The residual of Γ is κᵀz with z = (vec Γ, −1), so that no more enters the mean squares of SGD on fresh batches.
    """

    second: Float[Array, "n n"]
    fourth: Float[Array, "n n n n"]

    def loss(self, state: Float[Array, "*batch n n"]) -> float | Float[Array, "*batch"]:
        """Mean squared error for E zzᵀ."""
        return np.einsum("ab,...ab->...", self.second, state)

    def losses_of(self, gamma: Float[Array, "*batch D D"]) -> Float[Array, "*batch"]:
        """Mean squared errors of given weights."""
        flat = gamma.reshape(*gamma.shape[:-2], -1)
        z = np.concatenate([flat, np.full_like(flat[..., :1], -1.0)], axis=-1)
        return np.asarray(self.loss(z[..., :, None] * z[..., None, :]))

    def followed(self, steps: int, *, rate: float, batch: int | float) -> Float[Array, "step"]:
        """Mean squared errors of one-pass SGD from Γ = 0 at steps 0, 1, …; of descent for an infinite batch."""
        state, losses = np.zeros_like(self.second), []
        state[-1, -1] = 1.0
        for _ in range(steps + 1):
            losses.append(self.loss(state))
            state = self.stepped(state, rate=rate, batch=batch)
        return np.array(losses)

    def stepped(self, state: Float[Array, "n n"], *, rate: float, batch: int | float) -> Float[Array, "n n"]:
        """E zzᵀ after a step on a fresh batch; the last entry of z stays."""
        drift, noise = self.second.copy(), np.einsum("abcd,cd->ab", self.fourth, state)
        drift[-1] = noise[-1] = noise[:, -1] = 0.0
        moved = drift @ state
        return state - rate * (moved + moved.T) + rate**2 * ((1 - 1 / batch) * moved @ drift.T + noise / batch)

    def growth(self, *, rate: float, batch: int | float) -> float:
        """Factor by which one step multiplies what grows fastest in E vec Γ vec Γᵀ."""
        size = len(self.second) - 1
        second, fourth = self.second[:size, :size], self.fourth[:size, :size, :size, :size]
        kept, squares = np.eye(size) - rate * second, fourth.reshape(size**2, size**2) - np.kron(second, second)
        return float(np.max(abs(np.linalg.eigvals(np.kron(kept, kept) + rate**2 / batch * squares))))

    def critical(self, *, batch: int | float) -> float:
        """Learning rate at which a step neither shrinks nor enlarges what grows fastest."""
        most = 1 / float(np.trace(self.second[:-1, :-1]))
        while self.growth(rate=most, batch=batch) < 1:
            most *= 2
        root: Any = brentq(lambda rate: self.growth(rate=rate, batch=batch) - 1, 1e-3 * most, most)
        return float(root)


def drawn_squares(problem: Regression, contexts: int, *, key: PRNGKeyArray) -> DrawnSquares:
    """Those of P contexts, drawn token by token, and of N P tasks and N P queries. Cost: D⁴ for each of them.

    Raises ValueError for mixed context lengths.
    """
    length, law, size = _length(problem), _law(problem), problem.dimension
    for_contexts, for_tasks, for_queries = generators_of(jax.random.split(checked_key(key), 3))

    def context(count: int) -> Float[Array, "P n"]:
        """Rows (vec S, e, 1) with S = (1/N) Σ x xᵀ and e = (1/N) Σ ε x."""
        inputs = law.inputs * for_contexts.standard_normal((count, length, size))
        noise = law.noise * for_contexts.standard_normal((count, 1, length))
        sums = np.matmul(np.concatenate([inputs.transpose(0, 2, 1), noise], axis=1), inputs) / length
        return np.concatenate([sums.reshape(count, -1), np.ones((count, 1))], axis=1)

    def task(count: int) -> Float[Array, "P n"]:
        """Rows (w, 1)."""
        return np.concatenate([law.tasks * for_tasks.standard_normal((count, size)), np.ones((count, 1))], axis=1)

    def query(count: int) -> Float[Array, "P n"]:
        """Rows (x, ε)."""
        return np.append(law.inputs, law.noise) * for_queries.standard_normal((count, size + 1))

    counts = (contexts, length * contexts, length * contexts)
    return squares_of_combinations(*map(_squares, (context, task, query), counts))


def squares_of_combinations(contexts: Squares, tasks: Squares, queries: Squares) -> DrawnSquares:
    """Those of every combination, from means of vvᵀ and vvᵀ ⊗ vvᵀ of rows (vec S, e, 1), (w, 1) and (x, ε)."""
    place, form = _tables(len(queries[0]) - 1)
    shared = [_combined(place, *contexts, *tasks), queries]
    second, fourth = (np.multiply.outer(one, other) for one, other in zip(*shared, strict=True))
    form = form.reshape(len(form), -1)
    second = _through(form, second.swapaxes(1, 2).reshape(2 * form.shape[1:]))
    fourth = _through(form, fourth.transpose(0, 4, 1, 5, 2, 6, 3, 7).reshape(4 * form.shape[1:]))
    return DrawnSquares(second, fourth)


def _tables(size: int) -> tuple[Int[Array, "entry column"], Float[Array, "n entry column"]]:
    """The row g = (h, w, 1) as R (w, 1): places of the entries of R in (vec S, e, 1, 0). κ = form · g ⊗ (x, ε)."""
    place = np.full((2 * size + 1, size + 1), -1)
    place[:size, :size] = np.arange(size**2).reshape(size, size)
    place[:size, size] = size**2 + np.arange(size)
    place[np.arange(size, 2 * size + 1), np.arange(size + 1)] = size**2 + size
    form = np.zeros((size**2 + 1, 2 * size + 1, size + 1))
    for i, j in np.ndindex(size, size):
        form[i * size + j, i, j] = 1.0
    form[-1, np.arange(size, 2 * size + 1), np.arange(size + 1)] = 1.0
    return place, form


def _combined(place: Array, c2: Array, c4: Array, w2: Array, w4: Array) -> tuple[Array, Array]:
    """Means of g gᵀ and of its square over all combinations of contexts and tasks."""
    c2, c4 = (np.pad(part, (0, 1)) for part in (c2, c4))
    pairs, fours = (part[np.ix_(*[place.ravel()] * part.ndim)] for part in (c2, c4))
    pairs, fours = pairs.reshape(2 * place.shape), fours.reshape(4 * place.shape)
    return np.einsum("aibj,ij->ab", pairs, w2), np.einsum("aibjckdl,ijkl->abcd", fours, w4)


def _through(form: Float[Array, "n m"], tensor: Array) -> Array:
    """A tensor with the form applied to each of its axes."""
    for _ in range(tensor.ndim):
        tensor = np.tensordot(tensor, form, axes=(0, 1))  # the first axis goes, a new one comes last
    return tensor


def _squares(drawn: Callable[[int], Array], count: int) -> Squares:
    """Means of vvᵀ and of vvᵀ ⊗ vvᵀ over drawn rows v."""
    second: Any = 0.0
    fourth: Any = 0.0
    for first in range(0, count, ROWS):
        rows = drawn(min(ROWS, count - first))
        pairs = (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
        second, fourth = second + rows.T @ rows / count, fourth + pairs.T @ pairs / count
    return second, fourth.reshape(2 * second.shape)
