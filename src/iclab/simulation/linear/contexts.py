"""Sequences of in-context linear regression: tasks, inputs and labels, drawn or given."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray
from numpy.typing import ArrayLike

from iclab.numerics import Validated, checks_its_fields, require, whole_number
from iclab.problem import Regression
from iclab.simulation.keys import checked_key
from iclab.simulation.linear.summaries import Summaries, checked_tasks, draw_summaries, summary_law
from iclab.simulation.memory import require_memory

__all__ = [
    "Contexts", "RegressionLaw", "Summaries", "assemble", "draw", "draw_summaries", "draw_tokens", "fresh",
    "regression_law",
]  # fmt: skip

Array = np.ndarray


@checks_its_fields
@dataclass(frozen=True)
class Contexts:
    """P sequences as tokens (x, y), the input of the query last with label 0.

    A context shorter than the longest has zero tokens before the query: they add nothing to XXᵀ. The sums over the
    tokens of a sequence are divided by its `divisor`: its length in this library; other codes divide by its tokens,
    length + 1, or not at all.

    Raises ValueError when shapes do not fit each other, for numbers that are not finite, for lengths outside
    1..N and for a query that shows its label.
    """

    tokens: Float[Array, "P token entry"]  # N + 1 tokens of D + 1 entries
    target: Float[Array, "P"]  # labels of the queries
    lengths: Int[Array, "P"]  # labeled examples before the query
    divisor: Float[Array, "P"]

    def __post_init__(self) -> None:
        shape, count = np.shape(self.tokens), len(self.target)
        require(
            len(shape) == 3 and min(shape) >= 1 and shape[1] >= 2 and shape[2] >= 2,
            f"tokens must have shape (P, N+1, D+1) with P, N, D >= 1; got {shape}.",
        )
        for name in ("target", "lengths", "divisor"):
            got = np.shape(getattr(self, name))
            require(got == shape[:1], f"{name} must be one number for each of {shape[0]} sequences; got shape {got}.")
        for name in ("tokens", "target", "divisor"):
            require(bool(np.all(np.isfinite(getattr(self, name)))), f"{name} must be finite; got NaN or infinity.")
        low, high = int(np.min(self.lengths)), int(np.max(self.lengths))
        require(
            low >= 1 and high < shape[1],
            f"lengths must be between 1 and N = {shape[1] - 1}; got {low} to {high} in {count} sequences.",
        )
        require(float(np.min(self.divisor)) > 0, f"divisor must be positive; got {np.min(self.divisor)}.")
        require(not np.any(self.tokens[:, -1, -1]), "tokens must end in a query with label 0; put it in target.")

    @property
    def inputs(self) -> Float[Array, "P N D"]:
        """Inputs of the labeled examples, zero beyond the length of a context."""
        return self.tokens[:, :-1, :-1]

    @property
    def labels(self) -> Float[Array, "P N"]:
        """Labels of the examples, zero beyond the length of a context."""
        return self.tokens[:, :-1, -1]

    @property
    def query(self) -> Float[Array, "P D"]:
        """Inputs of the queries."""
        return self.tokens[:, -1, :-1]

    @property
    def dimension(self) -> int:
        """D, the number of entries of an input."""
        return self.tokens.shape[-1] - 1


def assemble(
    inputs: Validated[ArrayLike],
    labels: Validated[ArrayLike],
    query: Validated[ArrayLike],
    target: Validated[ArrayLike],
) -> Contexts:
    """Sequences of one length from their inputs (P, N, D), labels (P, N), queries (P, D) and targets (P,).

    Raises ValueError when shapes do not fit each other and for numbers that are not finite.
    """
    x, y, x_q = (np.asarray(part, dtype=float) for part in (inputs, labels, query))
    require(
        x.ndim == 3 and y.shape == x.shape[:2] and x_q.shape == x[:, 0].shape,
        "inputs, labels and query must have shapes (P, N, D), (P, N), (P, D); "
        f"got {x.shape}, {y.shape}, {x_q.shape}.",
    )
    count, length, dimension = x.shape
    tokens = np.zeros((count, length + 1, dimension + 1))
    tokens[:, :-1, :-1], tokens[:, :-1, -1], tokens[:, -1, :-1] = x, y, x_q
    return Contexts(tokens, np.asarray(target, dtype=float), np.full(count, length), np.full(count, float(length)))


def draw(problem: Regression, sequences: Validated[int], *, key: PRNGKeyArray) -> Contexts:
    """`sequences` independent contexts of a problem, each with a task and a length of its own.

    The divisor of each is its length. Memory: 8 bytes for each of P (N+1) (D+1) entries.

    Raises ValueError for fewer than one sequence.
    """
    count = whole_number("sequences", sequences)
    with jax.enable_x64(True):
        drawn = _fresh(regression_law(problem), count, max(problem.context_lengths), key)
        tokens, target, lengths = map(np.asarray, drawn)
    return Contexts(tokens, target, lengths, lengths.astype(float))


def draw_tokens(
    tasks: Validated[ArrayLike],
    context_length: Validated[int],
    *,
    noise: Validated[float] = 0.0,
    input_eigenvalues: Validated[ArrayLike | None] = None,
    key: Validated[PRNGKeyArray],
) -> Contexts:
    """A context of N examples for each of P tasks (P, D), drawn token by token: the witness of draw_summaries.

    Inputs are N(0, diag(s)/D), s = `input_eigenvalues`, D numbers, white unless given.

    Raises ValueError as draw_summaries does.
    """
    w = checked_tasks(tasks)
    require(w.ndim == 2, f"tasks must have the shape (P, D), a task for each sequence; got {w.shape}.")
    (count, d), law = w.shape, summary_law(w.shape[-1], context_length, noise, input_eigenvalues)
    shape = (count, int(law.length) + 1, d + 1)
    require_memory("tasks and context_length", 4.0 * math.prod(shape))
    with jax.enable_x64(True):
        normal = np.asarray(jax.random.normal(checked_key(key), shape, float))
    inputs = normal[..., :d] * (law.input_scale / np.sqrt(d))
    labels = np.einsum("pnd,pd->pn", inputs, w) + np.sqrt(law.noise) * normal[..., d]
    return assemble(inputs[:, :-1], labels[:, :-1], inputs[:, -1], labels[:, -1])


class RegressionLaw(NamedTuple):
    """A problem as arrays that compiled functions take: another problem compiles nothing anew."""

    input_scale: Float[Array, "D"]
    task_scale: Float[Array, "D"]
    noise_scale: Float[Array, ""]
    lengths: Int[Array, "several"]


def regression_law(problem: Regression) -> RegressionLaw:
    """Standard deviations and context lengths of a problem."""
    return RegressionLaw(
        np.sqrt(problem.eigenvalues),
        np.sqrt(problem.task_spectrum),
        np.asarray(np.sqrt(problem.noise)),
        np.asarray(problem.context_lengths),
    )


def fresh(
    law: RegressionLaw, sequences: int, longest: int, key: PRNGKeyArray
) -> tuple[Float[jax.Array, "P token entry"], Float[jax.Array, "P"], Int[jax.Array, "P"]]:
    """Tokens (P, N+1, D+1), targets and lengths of new contexts, from within a compiled function.

    All that is random in a context comes from one row of normal numbers: a draw costs a third of a second of
    compilation, however small.
    """
    dimension, tokens = len(law.input_scale), longest + 1
    columns = np.array([1, dimension, tokens, tokens * dimension])
    normal = jax.random.normal(key, (sequences * columns.sum(),), float).reshape(sequences, -1)
    choice, task, noise, inputs = jnp.split(normal, np.cumsum(columns)[:-1], axis=1)
    inputs = law.input_scale * inputs.reshape(sequences, tokens, dimension)
    labels = jnp.sum(inputs * (law.task_scale * task)[:, None], axis=-1) + law.noise_scale * noise
    even = jax.scipy.special.ndtr(choice[:, 0])  # uniform in 0 .. 1
    lengths = law.lengths[(len(law.lengths) * even).astype(int)]
    position = jnp.arange(tokens)
    shown = position < lengths[:, None]
    inputs = jnp.where((shown | (position == longest))[..., None], inputs, 0.0)
    return jnp.concatenate([inputs, jnp.where(shown, labels, 0.0)[..., None]], axis=-1), labels[:, -1], lengths


_fresh = jax.jit(fresh, static_argnames=("sequences", "longest"))
