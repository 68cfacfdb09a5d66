"""Classification by patterns in context: one softmax layer with a ReLU network on top, trained with the hinge loss.

An input is a relevant pattern, which decides the label, plus a little of an irrelevant one. A task is a pair of
relevant patterns, the first for label +1, the second for −1; examples that carry neither have labels by chance.
"""

from functools import partial
from itertools import permutations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float, Int, PRNGKeyArray

from iclab.numerics import Validated, positive, share, whole_number
from iclab.simulation.linear.loop import not_diverged
from iclab.simulation.related.loop import descended

__all__ = [
    "BLOCK", "SCALES", "SLIGHT", "Patterns", "Tested", "Weights", "pruned", "ring_tasks", "start", "tested", "train",
]  # fmt: skip

Array = np.ndarray
BLOCK = 1000  # contexts in one batch of a test
SLIGHT = 0.5  # largest size of an irrelevant pattern
SCALES = {"key": 0.1, "query": 0.1, "value": 0.3, "hidden": 0.02}  # of the weights at the start


class Weights(NamedTuple):
    """Key, query and value matrices, and the hidden layer, whose output signs are fixed, half of each."""

    key: Float[Array, "R R"]
    query: Float[Array, "R R"]
    value: Float[Array, "R R"]
    hidden: Float[Array, "neuron R"]


class Patterns(NamedTuple):
    """Relevant and irrelevant patterns, one in a row, and tasks as pairs of rows of the relevant ones."""

    relevant: Float[Array, "pattern D"]
    irrelevant: Float[Array, "other D"]
    tasks: Int[Array, "task 2"]

    @classmethod
    def orthogonal(cls, relevant: int, others: int, strength: float, tasks: Int[Array, "task 2"]) -> "Patterns":
        """Orthogonal patterns, the relevant ones first, of norm `strength`; the others have norm 1."""
        basis = np.eye(relevant + others)
        return cls(strength * basis[:relevant], basis[relevant:], tasks)

    def summed(self, total: float) -> "Patterns":
        """Equal sums of neighboring relevant patterns, with coefficients that sum to `total`, and all their pairs."""
        count = len(self.relevant) // 2
        sums = total / 2 * (self.relevant[: 2 * count : 2] + self.relevant[1 : 2 * count : 2])
        return self._replace(relevant=sums, tasks=np.array(list(permutations(range(count), 2))))


class Tested(NamedTuple):
    """Means over test contexts: attention weight on the query's pattern, fraction of wrong signs, hinge loss."""

    attention: float
    error: float
    hinge: float


def ring_tasks(patterns: int) -> tuple[Int[Array, "pattern 2"], Int[Array, "other 2"]]:
    """Tasks of neighbors in a ring of relevant patterns, and all other ordered pairs."""
    ring = [(i, (i + 1) % patterns) for i in range(patterns)]
    return np.array(ring), np.array([pair for pair in permutations(range(patterns), 2) if pair not in ring])


def start(dimension: int, neurons: int, *, key: PRNGKeyArray) -> Weights:
    """Weights before training: multiples of the identity, and small normal entries of the hidden layer."""
    size = dimension + 1
    with jax.enable_x64(True):
        hidden = SCALES["hidden"] * np.asarray(jax.random.normal(key, (neurons, size), float))
    key_matrix, query, value = (SCALES[name] * np.eye(size) for name in ("key", "query", "value"))
    return Weights(key_matrix, query, value, hidden)


def train(
    weights: Weights,
    patterns: Patterns,
    *,
    relevant: Validated[float],
    length: Validated[int],
    batch: Validated[int],
    steps: Validated[int],
    rate: Validated[float],
    key: PRNGKeyArray,
) -> Weights:
    """Weights after one-pass SGD on the hinge loss; a fraction `relevant` of the examples matter.

    Raises ValueError for fractions outside (0, 1] and sizes and rates that are not positive; ArithmeticError if it
    diverges.
    """
    _require(relevant, length)
    positive("rate", rate)
    whole_number("batch", batch)
    with jax.enable_x64(True):
        trained = _train(length, batch, whole_number("steps", steps), weights, patterns, relevant, rate, key)
        return Weights(*(not_diverged(np.asarray(part), rate) for part in trained))


def tested(
    weights: Weights,
    patterns: Patterns,
    *,
    relevant: Validated[float],
    length: Validated[int],
    contexts: Validated[int],
    key: PRNGKeyArray,
) -> Tested:
    """Attention, error and hinge loss over drawn contexts of random tasks of the patterns.

    Raises ValueError as train, and for fewer contexts than a block holds.
    """
    _require(relevant, length)
    blocks = -(-whole_number("contexts", contexts, least=BLOCK) // BLOCK)
    with jax.enable_x64(True):
        return Tested(*map(float, _tested(length, blocks, weights, patterns, relevant, key)))


def pruned(weights: Weights, fraction: float, *, largest: bool) -> Weights:
    """Weights without a fraction of the hidden neurons, those of largest or of smallest norm."""
    order = np.argsort(np.linalg.norm(weights.hidden, axis=1))
    order = order[::-1] if largest else order
    hidden = weights.hidden.copy()
    hidden[order[: round(fraction * len(order))]] = 0.0
    return weights._replace(hidden=hidden)


def _require(relevant: Validated[float], length: Validated[int]) -> None:
    share("relevant", relevant)
    whole_number("length", length)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _train(
    length: int, batch: int, steps: int, weights: Any, patterns: Any, relevant: jax.Array, rate: jax.Array, key: Any
) -> Any:
    def loss(weights: Weights, key: jax.Array) -> jax.Array:
        return jnp.mean(_scored(weights, patterns, relevant, length, batch, key)[2])

    def gradient(weights: Weights, step: jax.Array) -> Weights:
        return jax.grad(loss)(weights, jax.random.fold_in(key, step))

    return descended(gradient, weights, optimizer=optax.sgd(rate), steps=steps)


@partial(jax.jit, static_argnums=(0, 1))
def _tested(length: int, blocks: int, weights: Any, patterns: Any, relevant: jax.Array, key: jax.Array) -> jax.Array:
    def block(number: jax.Array) -> jax.Array:
        parts = _scored(weights, patterns, relevant, length, BLOCK, jax.random.fold_in(key, number))
        return jnp.stack([jnp.mean(part) for part in parts])

    return jnp.mean(jax.lax.map(block, jnp.arange(blocks)), axis=0)


def _scored(
    weights: Weights, patterns: Patterns, relevant: jax.Array | float, length: int, batch: int, key: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Attention weight on the query's pattern, 1 for a wrong sign else 0, and hinge loss, for each context."""
    tokens, same, label = _contexts(patterns, relevant, length, batch, key)
    query = tokens[:, -1] @ weights.query.T @ weights.key
    attention = jax.nn.softmax(jnp.einsum("bic,bc->bi", tokens[:, :-1], query), axis=-1)
    attended = jnp.einsum("bi,bic->bc", attention, tokens[:, :-1]) @ weights.value.T
    neurons = len(weights.hidden)
    sign = jnp.where(jnp.arange(neurons) < neurons // 2, 1.0, -1.0) / neurons
    output = jax.nn.relu(attended @ weights.hidden.T) @ sign
    hinge = jnp.maximum(0.0, 1 - label * output)
    return jnp.sum(attention * same, axis=1), jnp.where(label * output > 0, 0.0, 1.0), hinge


def _contexts(
    patterns: Patterns, relevant: jax.Array | float, length: int, batch: int, key: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Tokens, the query last and without its label; True for examples of the query's pattern; the query's label."""
    uniform = jax.random.uniform(key, (batch, 5 * (length + 1) + 1))
    kind, other, chance, which, size = jnp.split(uniform[:, 1:], 5, axis=1)
    task = jnp.asarray(patterns.tasks)[(uniform[:, 0] * len(patterns.tasks)).astype(int)]
    query = kind[:, -1] < 0.5
    first = jnp.where(jnp.arange(length + 1) == length, query[:, None], kind < relevant / 2)
    second = jnp.where(jnp.arange(length + 1) == length, ~query[:, None], (kind >= relevant / 2) & (kind < relevant))
    low, high = jnp.min(task, axis=1, keepdims=True), jnp.max(task, axis=1, keepdims=True)
    rest = (other * (len(patterns.relevant) - 2)).astype(int)
    rest = rest + (rest >= low)
    rest = rest + (rest >= high)
    pattern = jnp.where(first, task[:, :1], jnp.where(second, task[:, 1:], rest))
    label = jnp.where(first, 1.0, jnp.where(second, -1.0, jnp.where(chance < 0.5, 1.0, -1.0)))
    slight = (which * len(patterns.irrelevant)).astype(int)
    inputs = (
        jnp.asarray(patterns.relevant)[pattern]
        + (SLIGHT * (2 * size - 1))[..., None] * jnp.asarray(patterns.irrelevant)[slight]
    )
    shown = label.at[:, -1].set(0.0)
    same = pattern[:, :-1] == pattern[:, -1:]
    return jnp.concatenate([inputs, shown[..., None]], axis=-1), same, label[:, -1]
