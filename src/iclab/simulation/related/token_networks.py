"""Networks of one or two layers on contexts whose inputs and labels are separate tokens, trained with Adam.

Tokens x_1, y_1, …, x_D, y_D, x_q are embedded, with positions or not. Layer one is softmax attention with a residual;
layer two, where there is one, is linear attention over tokens up to its own, divided by their number, and gives the
output. Single precision: a second of training matters more here than the last digits of a loss.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import PRNGKeyArray

from iclab.numerics import Validated, positive, require, whole_number
from iclab.simulation.linear.loop import not_diverged
from iclab.simulation.related.loop import descended

__all__ = ["TokenLosses", "TokenNetwork", "TokenSizes", "trained_losses"]

WARM_UP, LARGEST = 100, 1.0  # steps of rising learning rate; norm to which gradients are clipped
POSITION = 1.0  # size of the entries of positions at the start
PAIRED, ALONE = 0.7, 0.3  # weights of the part of a position that is common to its pair, and of its own


class TokenNetwork(NamedTuple):
    """Layers, 1 or 2; a causal mask or none; embedded positions or none; the tokens that its loss is taken at.

    It is trained on the "query", on "all" inputs, or, "labeled", on the inputs of the context alone.
    """

    layers: int
    masked: bool
    positions: bool
    trained_on: str = "all"


class TokenSizes(NamedTuple):
    """Dimension of inputs, pairs of a context, width of the network, contexts of a batch."""

    dimension: int
    pairs: int
    width: int
    batch: int


class TokenLosses(NamedTuple):
    """Mean squared errors after training: at the query, and over all tokens that training took the loss at."""

    query: float
    training: float


def trained_losses(
    network: TokenNetwork,
    sizes: TokenSizes,
    *,
    steps: Validated[int],
    rate: Validated[float],
    tested: Validated[int],
    key: PRNGKeyArray,
) -> TokenLosses:
    """Losses on fresh contexts, `tested` batches of them, after training on others.

    Inputs N(0, I), tasks N(0, I/d), no label noise. The learning rate of Adam warms up and falls as a cosine.

    Raises ValueError for impossible networks and sizes, and for steps that do not outlast the warm-up;
    ArithmeticError if training diverges.
    """
    require(network.layers in (1, 2), f"layers must be 1 or 2; got {network.layers!r}.")
    require(
        network.trained_on in ("query", "all", "labeled"),
        f"trained_on must be query, all or labeled; got {network.trained_on!r}.",
    )
    for name, value in sizes._asdict().items():
        whole_number(name, value)
    whole_number("steps", steps, least=WARM_UP + 1)
    with jax.enable_x64(True):
        found = _losses(
            network, sizes, steps, whole_number("tested", tested), jnp.float32(positive("rate", rate)), key
        )
        return TokenLosses(*map(float, not_diverged(np.array(found), rate)))


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _losses(
    network: TokenNetwork, sizes: TokenSizes, steps: int, tested: int, rate: jax.Array, key: jax.Array
) -> tuple[jax.Array, jax.Array]:
    for_start, for_training, for_test = jax.random.split(key, 3)
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1.0, WARM_UP, steps)
    optimizer = optax.chain(optax.clip_by_global_norm(LARGEST), optax.adam(lambda count: rate * schedule(count)))
    weights = _start(network, sizes, for_start)

    def loss(weights: Any, key: jax.Array) -> jax.Array:
        return jnp.mean(_trained_part(network, _squares(network, sizes, weights, key)))

    def gradient(weights: Any, step: jax.Array) -> Any:
        return jax.grad(loss)(weights, jax.random.fold_in(for_training, step))

    weights = descended(gradient, weights, optimizer=optimizer, steps=steps)

    def test(number: jax.Array) -> tuple[jax.Array, jax.Array]:
        squares = _squares(network, sizes, weights, jax.random.fold_in(for_test, number))
        return jnp.mean(squares[:, -1]), jnp.mean(_trained_part(network, squares))

    query, training = jax.lax.map(test, jnp.arange(tested))
    return jnp.mean(query), jnp.mean(training)


def _trained_part(network: TokenNetwork, squares: jax.Array) -> jax.Array:
    part = {"query": slice(-1, None), "all": slice(None), "labeled": slice(None, -1)}[network.trained_on]
    return squares[:, part]


def _start(network: TokenNetwork, sizes: TokenSizes, key: jax.Array) -> dict[str, jax.Array]:
    tokens, width = 2 * sizes.pairs + 1, sizes.width
    normal = iter(
        jax.random.normal(one, shape, jnp.float32)
        for one, shape in zip(
            jax.random.split(key, 7),
            [
                (sizes.dimension + 1, width),
                (sizes.pairs + 1, width),
                (tokens, width),
                *[(width, width)] * 3,
                (width,),
            ],
            strict=True,
        )
    )
    embedding, pair, alone, key_query, value, second, readout = normal
    positions = PAIRED * jnp.repeat(pair, 2, axis=0)[:tokens] + ALONE * alone
    return {
        "embedding": embedding / np.sqrt(width).astype(np.float32) * 2,
        "positions": POSITION * positions * network.positions,
        "key_query": 0.05 * key_query,
        "value": value / np.sqrt(width).astype(np.float32),
        "second": 0.5 * second / np.sqrt(width).astype(np.float32),
        "readout": readout / np.sqrt(width).astype(np.float32),
    }


def _squares(network: TokenNetwork, sizes: TokenSizes, weights: dict[str, jax.Array], key: jax.Array) -> jax.Array:
    """Squared errors (context, input), the query last."""
    tokens, target = _contexts(sizes, key)
    state = tokens @ weights["embedding"]
    if network.positions:
        state = state + weights["positions"]
    causal = jnp.tril(jnp.ones((state.shape[1],) * 2, jnp.float32))
    scores = jnp.einsum("bic,bjc->bij", state @ weights["key_query"], state)
    scores = jnp.where(causal > 0, scores, -jnp.inf) if network.masked else scores
    state = state + jax.nn.softmax(scores, axis=-1) @ (state @ weights["value"])
    inputs = state[:, ::2]
    if network.layers == 1:
        return (target - inputs @ weights["readout"]) ** 2
    attention = causal[::2] / causal[::2].sum(1, keepdims=True)
    if not network.masked:
        attention = jnp.full_like(attention, 1 / attention.shape[1])
    scores = jnp.einsum("bic,bjc->bij", inputs @ weights["second"], state) * attention
    output = jnp.einsum("bij,bj->bi", scores, state @ weights["readout"])
    return (target - output) ** 2


def _contexts(sizes: TokenSizes, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Tokens (context, 2 D + 1, d + 1), the label of the query left out, and the labels of all inputs."""
    batch, pairs, dimension = sizes.batch, sizes.pairs, sizes.dimension
    normal = jax.random.normal(key, (batch, (pairs + 2) * dimension), jnp.float32)
    task, inputs = normal[:, :dimension], normal[:, dimension:].reshape(batch, pairs + 1, dimension)
    labels = jnp.einsum("bnd,bd->bn", inputs, task) / np.sqrt(dimension).astype(np.float32)
    tokens = jnp.zeros((batch, 2 * pairs + 1, dimension + 1), jnp.float32)
    tokens = tokens.at[:, ::2, :-1].set(inputs).at[:, 1::2, -1].set(labels[:, :-1])
    return tokens, labels
