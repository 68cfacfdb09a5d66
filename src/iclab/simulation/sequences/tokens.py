"""Sequences of tokens out of a vocabulary: periodic ones, and sums modulo a number."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int, PRNGKeyArray

from iclab.numerics import checks_its_fields, one_of, positive, require, whole_number
from iclab.simulation.memory import require_memory
from iclab.simulation.sequences.batches import Batch

__all__ = ["ModularAddition", "PeriodicSequences"]


@checks_its_fields
@dataclass(frozen=True)
class PeriodicSequences:
    """Random tokens that repeat with a period, drawn anew for each sequence; the next token is predicted everywhere.

    From the second period on it follows from the context alone. A range of periods leaves no fixed distance at which
    to look.

    Raises ValueError for sizes below 1 and for periods that leave nothing to predict.
    """

    loss: ClassVar[str] = "cross-entropy"

    vocabulary: int = 32  # different tokens
    length: int = 32  # tokens of a sequence
    shortest: int = 12  # period
    longest: int = 16  # period
    batch_size: int = 32  # sequences of a batch

    def __post_init__(self) -> None:
        for name, least in {"vocabulary": 2, "length": 3, "shortest": 1, "longest": 1, "batch_size": 1}.items():
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least=least))
        require(
            self.vocabulary <= 2**24,
            f"vocabulary must be at most 2**24, so that single precision tells tokens apart; got {self.vocabulary}.",
        )
        require(
            self.shortest <= self.longest,
            f"shortest must be at most longest, {self.longest}; got {self.shortest}.",
        )
        require(
            self.longest <= self.length - 2,
            f"longest must be at most length - 2, {self.length - 2}, so that a token recurs and another follows it; "
            f"got {self.longest}.",
        )

    @property
    def outputs(self) -> int:
        """A logit for each token."""
        return self.vocabulary

    def fixed(self, key: PRNGKeyArray) -> tuple[()]:
        """Nothing: every batch is fresh."""
        del key
        return ()

    def batch(self, fixed: tuple[()], key: PRNGKeyArray) -> Batch:
        """New sequences; every token that has a next one counts."""
        del fixed
        sequences, _ = self._drawn(self.batch_size, key)
        weight = jnp.ones((self.batch_size, self.length), jnp.float32).at[:, -1].set(0.0)
        return Batch(sequences[:, :-1], sequences[:, 1:], weight)

    def test(self, fixed: tuple[()], key: PRNGKeyArray, count: int) -> Batch:
        """New sequences; a token counts that has occurred one period earlier and has a next one."""
        del fixed
        sequences, period = self._drawn(count, key)
        position = jnp.arange(self.length)
        counts = (position >= period) & (position + 1 < self.length)
        return Batch(sequences[:, :-1], sequences[:, 1:], counts.astype(jnp.float32))

    def _drawn(self, count: int, key: PRNGKeyArray) -> tuple[Int[jax.Array, "P token"], Int[jax.Array, "P 1"]]:
        """Sequences that are one token longer, and their periods."""
        require_memory("sequences and length", count * (2 + self.longest + self.length))
        even = jax.random.uniform(key, (count, 1 + self.longest), jnp.float32)
        period = self.shortest + _whole(even[:, :1], self.longest + 1 - self.shortest)
        word = _whole(even[:, 1:], self.vocabulary)
        position = jnp.arange(self.length + 1, dtype=jnp.int32) % period
        return jnp.take_along_axis(word, position, axis=1), period


@checks_its_fields
@dataclass(frozen=True)
class ModularAddition:
    """a + b modulo p for all pairs, some of which are trained on, all at once, and the others held out.

    Tokens are a and b ("pair"), or a, b and a sign that stands for = ("equation"); the sum is predicted at the last
    alone, by networks with an output there alone.

    Raises ValueError for a modulus below 2 or above 46340, and for fractions that leave no pair to train on or none
    to hold out.
    """

    loss: ClassVar[str] = "cross-entropy"

    modulus: int = 53  # p
    fraction: float = 0.5  # of all pairs that are trained on
    form: str = "pair"  # of the tokens: pair or equation

    def __post_init__(self) -> None:
        object.__setattr__(self, "modulus", whole_number("modulus", self.modulus, least=2))
        require(
            self.modulus**2 < 2**31,
            f"modulus must be at most 46340, so that 32 bits count its pairs; got {self.modulus}.",
        )
        object.__setattr__(self, "fraction", positive("fraction", self.fraction))
        one_of("form", self.form, ("pair", "equation"))
        require(
            self.fraction < 1 and 0 < self.trained < self.modulus**2,
            f"fraction must be in (0, 1) and leave pairs on both sides; got {self.fraction} of {self.modulus**2}.",
        )

    @property
    def trained(self) -> int:
        """Pairs that are trained on."""
        return round(self.fraction * self.modulus**2)

    @property
    def vocabulary(self) -> int:
        """Different tokens."""
        return self.modulus + (self.form == "equation")

    @property
    def length(self) -> int:
        """Tokens of a sequence."""
        return 2 + (self.form == "equation")

    @property
    def outputs(self) -> int:
        """A logit for each sum."""
        return self.modulus

    def fixed(self, key: PRNGKeyArray) -> Int[jax.Array, "pair"]:
        """All pairs, a p + b, in random order: those that are trained on come first."""
        return jax.random.permutation(key, jnp.arange(self.modulus**2, dtype=jnp.int32))

    def batch(self, fixed: Int[jax.Array, "pair"], key: PRNGKeyArray) -> Batch:
        """All pairs that are trained on."""
        del key
        return self._sums(fixed[: self.trained])

    def held_out(self, fixed: Int[jax.Array, "pair"]) -> Batch:
        """All pairs that are not trained on."""
        return self._sums(fixed[self.trained :])

    def _sums(self, pairs: Int[jax.Array, "pair"]) -> Batch:
        first, second = pairs // self.modulus, pairs % self.modulus
        sign = jnp.full_like(first, self.modulus)
        tokens = jnp.stack([first, second, sign][: self.length], axis=1)
        total = ((first + second) % self.modulus)[:, None]
        return Batch(tokens, total, jnp.ones(total.shape, jnp.float32))


def _whole(even: Float[jax.Array, "*several"], count: int) -> Int[jax.Array, "*several"]:
    """Whole numbers 0 .. count − 1, each as likely, from numbers uniform in [0, 1)."""
    return jnp.minimum((even * count).astype(jnp.int32), count - 1)  # the product may round up to count
