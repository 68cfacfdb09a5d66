"""Types of Markov sequences: all sequences with the same transitions and the same end are one.

Chains have rows P_i ~ Dirichlet(α, …, α) and a first token that is uniform. Then the next token after counts n_ij and
the token i has the probability (n_ij + α)/(n_i + Sα), whatever the order, and the probabilities of types follow from
one position to the next. With a first token from the stationary law that would not be so: it tells of the chain.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.special import digamma, gammaln

from iclab.numerics import require

__all__ = ["MOST_COUNTS", "MarkovTypes", "markov_types"]

MOST_COUNTS = 4e7  # of transitions, in all types of one more token; ten seconds and a gigabyte for all positions


@dataclass(frozen=True)
class MarkovTypes:
    """Types of sequences of t tokens whose first is 0: transitions, last token, and the probability of each type."""

    transitions: Int[np.ndarray, "n S S"]
    last: Int[np.ndarray, "n"]
    chance: Float[np.ndarray, "n"]
    concentration: float

    @property
    def states(self) -> int:
        """S, the number of states."""
        return self.transitions.shape[-1]

    def next_law(self) -> Float[np.ndarray, "n S"]:
        """The law of the next token given the type: the bigram law."""
        row = self.transitions[np.arange(len(self.last)), self.last] + self.concentration
        return row / row.sum(axis=1, keepdims=True)

    def tokens(self) -> Int[np.ndarray, "n S"]:
        """Count of each token so far, the first and the last included."""
        return self.transitions.sum(axis=1) + np.eye(self.states, dtype=int)[0]

    def row_entropy(self) -> float:
        """Mean entropy in nats of the true row from which the next token is drawn."""
        row = self.transitions[np.arange(len(self.last)), self.last] + self.concentration
        total = row.sum(axis=1)
        each = digamma(total + 1) - np.sum(row / total[:, None] * digamma(row + 1), axis=1)
        return float(self.chance @ each)

    def log_mixture(self, times: int = 1) -> Float[np.ndarray, "n"]:
        """ln E_P of the probability of one such sequence given its first token, to the power `times`."""
        alpha, counts = self.concentration, times * self.transitions
        whole = self.states * alpha
        rows = gammaln(whole) - gammaln(whole + counts.sum(axis=-1))
        return np.sum(rows + np.sum(gammaln(alpha + counts) - gammaln(alpha), axis=-1), axis=-1)


def markov_types(states: int, length: int, concentration: float) -> Iterator[MarkovTypes]:
    """Types of 1, 2, …, `length` tokens, first token 0: the others follow by exchanging names.

    Raises ValueError once the next ones have more than 4e7 counts: beyond 35 tokens of three states.

    Source: whittle1955some (counts of sequences of a type, at two states); derived in docs/derivations/strategies.
    """
    none = np.zeros((1, states, states), np.int32)
    now = MarkovTypes(none, np.zeros(1, int), np.ones(1), concentration)
    yield now
    for tokens in range(2, length + 1):
        require(
            len(now.last) * states**3 <= MOST_COUNTS,
            f"length must be below {tokens} for exact sums at {states} states, {len(now.last):,} types of sequences "
            f"there; got {length}. Take sampled_markov_loss.",
        )
        now = _longer(now, length)
        yield now


def _longer(types: MarkovTypes, length: int) -> MarkovTypes:
    """Types with one token more, equal ones merged."""
    count, s = len(types.last), types.states
    old, new = np.repeat(np.arange(count), s), np.tile(np.arange(s), count)
    transitions = types.transitions[old]
    transitions[np.arange(count * s), types.last[old], new] += 1
    chance = (types.chance[:, None] * types.next_law()).ravel()
    keys = _keys(transitions.reshape(-1, s * s), new, length)
    order = np.lexsort(keys)
    first = np.flatnonzero(np.concatenate([[True], np.any(np.diff(keys[:, order]) != 0, axis=0)]))
    merged = np.add.reduceat(chance[order], first)
    kept = order[first]
    return MarkovTypes(transitions[kept], new[kept], merged, types.concentration)


def _keys(counts: Int[np.ndarray, "n cell"], last: Int[np.ndarray, "n"], length: int) -> Int[np.ndarray, "key n"]:
    """Whole numbers, as few as hold the counts and the last token, that agree where all of these do."""
    digits = max(1, int(62 / np.log2(max(length, counts.shape[1], 2) + 1)))
    columns = np.column_stack([counts, last])
    groups = [columns[:, i : i + digits] for i in range(0, columns.shape[1], digits)]
    base = max(length, counts.shape[1]) + 1
    return np.array([group @ (base ** np.arange(group.shape[1])) for group in groups])
