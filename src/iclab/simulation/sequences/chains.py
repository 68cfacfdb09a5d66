"""Sequences of urns and of Markov chains, each of a fresh task or one of a pool; the next token is predicted."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray

from iclab.numerics import checks_its_fields, positive, whole_number
from iclab.simulation.memory import require_memory
from iclab.simulation.sequences.batches import Batch

__all__ = ["MarkovSequences", "UrnSequences", "counted_laws"]


@checks_its_fields
@dataclass(frozen=True)
class _OfTasks(ABC):
    """Common part: symbols, the Dirichlet law of their laws, the pool."""

    loss: ClassVar[str] = "cross-entropy"

    symbols: int = 3  # S, symbols of an urn or states of a chain
    length: int = 32  # T, predictions of a sequence
    concentration: float = 1.0  # α of the Dirichlet law
    tasks: int | None = None  # K, tasks of the pool; none: a fresh task for each sequence
    batch_size: int = 32  # sequences of a batch

    def __post_init__(self) -> None:
        for name, least in {"symbols": 2, "length": 1, "batch_size": 1}.items():
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least=least))
        object.__setattr__(self, "concentration", positive("concentration", self.concentration))
        if self.tasks is not None:
            object.__setattr__(self, "tasks", whole_number("tasks", self.tasks))

    @property
    def outputs(self) -> int:
        """A logit for each symbol."""
        return self.symbols

    def fixed(self, key: PRNGKeyArray) -> Any:
        """The laws of the pool, (K, row, S); nothing for fresh tasks."""
        return () if self.tasks is None else self._laws(self.tasks, key)

    def batch(self, fixed: Any, key: PRNGKeyArray) -> Batch:
        """New sequences of tasks of the pool, or of fresh tasks."""
        for_task, for_tokens = jax.random.split(key)
        if self.tasks is None:
            return self._drawn(self._laws(self.batch_size, for_task), for_tokens)
        return self._drawn(fixed[jax.random.randint(for_task, (self.batch_size,), 0, self.tasks)], for_tokens)

    def test(self, fixed: Any, key: PRNGKeyArray, count: int) -> Batch:
        """New sequences of fresh tasks."""
        del fixed
        for_task, for_tokens = jax.random.split(key)
        return self._drawn(self._laws(count, for_task), for_tokens)

    @property
    @abstractmethod
    def _rows(self) -> int:
        """Laws of a task."""

    @abstractmethod
    def _drawn(self, laws: Float[jax.Array | np.ndarray, "P row S"], key: PRNGKeyArray) -> Batch:
        """A sequence of each task."""

    def _laws(self, count: int, key: PRNGKeyArray) -> Float[jax.Array, "P row S"]:
        require_memory("sequences and symbols", count * (self._rows * self.symbols + 2 * self.length))
        alpha = jnp.full((self.symbols,), self.concentration, jnp.float32)
        return jax.random.dirichlet(key, alpha, (count, self._rows), jnp.float32)


@checks_its_fields
@dataclass(frozen=True)
class UrnSequences(_OfTasks):
    """Independent symbols of a law θ ~ Dirichlet(α, …, α). The first is predicted too, from a token of its own.

    Raises ValueError for sizes below 1, for fewer than two symbols and a concentration that is not positive.
    """

    @property
    def vocabulary(self) -> int:
        """The symbols, and last the token that every sequence begins with."""
        return self.symbols + 1

    @property
    def _rows(self) -> int:
        return 1

    def _drawn(self, laws: Float[jax.Array | np.ndarray, "P 1 S"], key: PRNGKeyArray) -> Batch:
        shape = self.length, len(laws)
        target = jax.random.categorical(key, jnp.log(laws[:, 0]), shape=shape).T.astype(jnp.int32)
        first = jnp.full((len(laws), 1), self.symbols, jnp.int32)
        tokens = jnp.concatenate([first, target[:, :-1]], axis=1)
        return Batch(tokens, target, jnp.ones(target.shape, jnp.float32))


@checks_its_fields
@dataclass(frozen=True)
class MarkovSequences(_OfTasks):
    """Markov chains with rows P_i ~ Dirichlet(α, …, α) and a uniform first token, which is not predicted.

    Raises ValueError for sizes below 1, for fewer than two states and a concentration that is not positive.
    """

    @property
    def vocabulary(self) -> int:
        """The states."""
        return self.symbols

    @property
    def _rows(self) -> int:
        return self.symbols

    def _drawn(self, laws: Float[jax.Array | np.ndarray, "P S S"], key: PRNGKeyArray) -> Batch:
        first, target = _walked(jnp.log(laws), key, self.length)
        tokens = jnp.concatenate([first[:, None], target[:, :-1]], axis=1)
        return Batch(tokens, target, jnp.ones(target.shape, jnp.float32))


@partial(jax.jit, static_argnums=2)
def _walked(logs: Float[jax.Array, "P S S"], key: PRNGKeyArray, length: int) -> tuple[jax.Array, jax.Array]:
    """The first token of each chain, uniform, and those that follow."""
    count, symbols = logs.shape[:2]
    every, (for_first, for_next) = jnp.arange(count, dtype=jnp.int32), jax.random.split(key)
    first = jax.random.randint(for_first, (count,), 0, symbols, jnp.int32)

    def step(now: Int[jax.Array, "P"], key: PRNGKeyArray) -> tuple[Any, Any]:
        new = jax.random.categorical(key, logs[every, now]).astype(jnp.int32)
        return new, new

    return first, jax.lax.scan(step, first, jax.random.split(for_next, length))[1].T


def counted_laws(
    tokens: Int[np.ndarray, "P T"], *, symbols: int, concentration: float
) -> tuple[Float[np.ndarray, "P T S"], Float[np.ndarray, "P T S"]]:
    """The laws of the next token by counts of all tokens so far, and by counts of what followed the last one."""
    count, length = tokens.shape
    every, tallies = np.arange(count), np.full((count, symbols), concentration)
    followed = np.full((count, symbols, symbols), concentration)
    alone, after = np.empty((count, length, symbols)), np.empty((count, length, symbols))
    for t in range(length):
        now = tokens[:, t]
        tallies[every, now] += 1
        if t:
            followed[every, tokens[:, t - 1], now] += 1
        alone[:, t] = tallies / tallies.sum(axis=1, keepdims=True)
        after[:, t] = followed[every, now] / followed[every, now].sum(axis=1, keepdims=True)
    return alone, after
