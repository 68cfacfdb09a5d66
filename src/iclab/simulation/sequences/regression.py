"""Contexts of regression for networks: with fresh tasks or those of a pool, fresh themselves or drawn once.

Inputs are N(0, I/D) and labels have variance 1 before noise. Contexts come as sequences of tokens in three forms:
"pair" has the tokens (x, y, 0) and for the query (x, 0, 1); "paper" leaves out that mark; "interleaved" has inputs
(x, 0) and labels (0, y) in turn, and a label is predicted at every input.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Float, PRNGKeyArray

from iclab.numerics import checked_number, checks_its_fields, instance, one_of, require, whole_number
from iclab.simulation.memory import require_memory
from iclab.simulation.sequences.batches import Batch
from iclab.simulation.sequences.functions import Linear, SparseLinear, TwoLayer

__all__ = ["FORMS", "FixedRegression", "RegressionContexts"]

FORMS = ("pair", "paper", "interleaved")


@checks_its_fields
@dataclass(frozen=True)
class RegressionContexts:
    """Fresh contexts in every batch, each with a task of a pool that is drawn once, or with a fresh one.

    Raises ValueError for sizes below 1, negative noise, unknown forms and functions, and where a draw exceeds memory.
    """

    loss: ClassVar[str] = "square"
    outputs: ClassVar[int] = 1

    dimension: int = 4  # D, entries of an input
    context_length: int = 8  # N, labeled examples before the last query
    noise: float = 0.0  # ρ, variance of the label noise
    tasks: int | None = None  # K, tasks of the pool; None: a fresh one for every context
    batch_size: int = 128  # contexts of a batch
    form: str = "pair"  # of the tokens: pair, paper or interleaved
    functions: Linear | SparseLinear | TwoLayer = Linear()

    def __post_init__(self) -> None:
        for name in ("dimension", "context_length", "batch_size"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        noise = checked_number("noise", self.noise, at_least=0.0, advice="It is a variance.")
        object.__setattr__(self, "noise", noise)
        one_of("form", self.form, FORMS)
        require(
            isinstance(self.functions, Linear | TwoLayer),
            f"functions must be Linear(), SparseLinear() or TwoLayer(); got {self.functions!r}.",
        )
        self.functions.normals(self.dimension)
        if self.tasks is not None:
            require(self.tasks != 0, "tasks must be at least 1; got an empty pool. For fresh tasks use tasks=None.")
            object.__setattr__(self, "tasks", whole_number("tasks", self.tasks))

    @property
    def length(self) -> int:
        """Tokens of a context."""
        return self.context_length * (2 if self.form == "interleaved" else 1) + 1

    @property
    def features(self) -> int:
        """Numbers of a token."""
        return self.dimension + (2 if self.form == "pair" else 1)

    @property
    def query_positions(self) -> slice:
        """Positions at which a label is predicted."""
        return slice(None, None, 2) if self.form == "interleaved" else slice(-1, None)

    @property
    def examples_before(self) -> tuple[int, ...]:
        """Labeled examples before each position at which a label is predicted."""
        least = 0 if self.form == "interleaved" else self.context_length
        return tuple(range(least, self.context_length + 1))

    def fixed(self, key: PRNGKeyArray) -> Float[jax.Array, "K entry"]:
        """The tasks of the pool; none for fresh ones."""
        return self.pool(key, self.tasks or 0)

    def batch(self, fixed: Float[jax.Array, "K entry"], key: PRNGKeyArray) -> Batch:
        """New contexts of tasks of the pool, or of fresh tasks where there is none."""
        return (
            self.test(fixed, key, self.batch_size)
            if self.tasks is None
            else self.test_of_pool(fixed, key, self.batch_size)
        )

    def test(self, fixed: Any, key: PRNGKeyArray, count: int) -> Batch:
        """New contexts of new tasks: on these the error is that of ICL."""
        del fixed
        of_task = self.functions.normals(self.dimension)
        normal = self._normal(key, count, of_task)
        return self._contexts(self.functions.tasks(normal[:, :of_task]), normal[:, of_task:])

    def test_of_pool(self, fixed: Float[jax.Array, "K entry"], key: PRNGKeyArray, count: int) -> Batch:
        """New contexts of tasks of the pool, each as likely: on these the error is that of IDG."""
        normal = self._normal(key, count, 1)
        even = jax.scipy.special.ndtr(normal[:, 0])  # uniform in 0 .. 1
        choice = jnp.minimum((len(fixed) * even).astype(jnp.int32), len(fixed) - 1)  # rounding reaches 1
        return self._contexts(fixed[choice], normal[:, 1:])

    def contexts_of(self, tasks: Float[jax.Array, "P entry"], key: PRNGKeyArray) -> Batch:
        """A new context of each task."""
        return self._contexts(tasks, self._normal(key, len(tasks), 0))

    def pool(self, key: PRNGKeyArray, count: int) -> Float[jax.Array, "task entry"]:
        """New tasks."""
        of_task = self.functions.normals(self.dimension)
        require_memory("tasks", count * of_task)
        return self.functions.tasks(jax.random.normal(key, (count, of_task), jnp.float32))

    def examples(self, batch: Batch) -> tuple[Float[Any, "P example D"], Float[Any, "P example"]]:
        """Inputs and labels of contexts, those of the query last."""
        apart = slice(None, None, 2) if self.form == "interleaved" else slice(None)
        return batch.tokens[:, apart, : self.dimension], batch.target[:, apart]

    def _normal(self, key: PRNGKeyArray, count: int, of_task: int) -> Float[jax.Array, "P normals"]:
        """A row of normal numbers for each context: `of_task` for its task, then its inputs, then its noise.

        All in one draw, since every draw costs half a second of compilation, however small.
        """
        examples = (self.context_length + 1) * (self.dimension + 1)
        require_memory("contexts, context_length and dimension", count * (of_task + examples))
        return jax.random.normal(key, (count, of_task + examples), jnp.float32)

    def _contexts(self, tasks: Float[jax.Array, "P entry"], normal: Float[jax.Array, "P normals"]) -> Batch:
        count, n, d = len(tasks), self.context_length + 1, self.dimension
        inputs = normal[:, : n * d].reshape(count, n, d) / math.sqrt(d)
        return self._in_form(
            inputs, self.functions.values(tasks, inputs) + math.sqrt(self.noise) * normal[:, n * d :]
        )

    def _in_form(self, inputs: Float[jax.Array, "P example D"], labels: Float[jax.Array, "P example"]) -> Batch:
        count, d = len(labels), self.dimension
        tokens = jnp.zeros((count, self.length, self.features), jnp.float32)
        weight = jnp.zeros((count, self.length), jnp.float32).at[:, self.query_positions].set(1.0)
        if self.form == "interleaved":
            tokens = tokens.at[:, ::2, :d].set(inputs).at[:, 1::2, d].set(labels[:, :-1])
            return Batch(tokens, jnp.zeros_like(weight).at[:, ::2].set(labels), weight)
        tokens = tokens.at[..., :d].set(inputs).at[:, :-1, d].set(labels[:, :-1])
        return Batch(tokens.at[:, -1, d + 1 :].set(1.0), labels, weight)


@checks_its_fields
@dataclass(frozen=True)
class FixedRegression:
    """A set of sequences drawn once: every batch is all of them, or several at random, none of them twice.

    Each sequence has a task of the pool, at random, or one of its own. A batch holds `batch_size` of the contexts.

    Raises ValueError for fewer sequences than a batch holds.
    """

    loss: ClassVar[str] = "square"
    outputs: ClassVar[int] = 1

    contexts: RegressionContexts  # law of a sequence
    sequences: int  # n, contexts seen in pretraining

    def __post_init__(self) -> None:
        instance("contexts", self.contexts, RegressionContexts)
        object.__setattr__(self, "sequences", whole_number("sequences", self.sequences))
        size = self.contexts.batch_size
        require(
            size <= self.sequences,
            f"sequences must be at least those of a batch, {size}; got {self.sequences}. Lower batch_size.",
        )

    @property
    def length(self) -> int:
        """Tokens of a context."""
        return self.contexts.length

    @property
    def features(self) -> int:
        """Numbers of a token."""
        return self.contexts.features

    def fixed(self, key: PRNGKeyArray) -> tuple[Float[jax.Array, "K entry"], Batch]:
        """The tasks of the pool, or those of all sequences, and the sequences."""
        for_pool, for_contexts = jax.random.split(key)
        law, count = self.contexts, self.sequences
        pool = law.pool(for_pool, law.tasks or count)
        if law.tasks is None:
            return pool, law.contexts_of(pool, for_contexts)
        return pool, law.test_of_pool(pool, for_contexts, count)

    def batch(self, fixed: tuple[Any, Batch], key: PRNGKeyArray) -> Batch:
        """Several of the sequences, or all in their order."""
        _, every = fixed
        if self.contexts.batch_size == self.sequences:
            return every
        rows = jax.random.permutation(key, jnp.arange(self.sequences, dtype=jnp.int32))[: self.contexts.batch_size]
        return Batch(*(part[rows] for part in every))

    def test(self, fixed: tuple[Float[jax.Array, "K entry"], Batch], key: PRNGKeyArray, count: int) -> Batch:
        """New contexts of new tasks: on these the error is that of ICL."""
        return self.contexts.test(fixed[0], key, count)

    def test_of_pool(self, fixed: tuple[Float[jax.Array, "K entry"], Batch], key: PRNGKeyArray, count: int) -> Batch:
        """New contexts of the tasks that were trained on: on these the error is that of IDG."""
        return self.contexts.test_of_pool(fixed[0], key, count)
