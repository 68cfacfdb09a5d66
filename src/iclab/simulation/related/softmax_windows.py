"""Softmax attention with a free key-query matrix, trained on random functions of inputs on the unit sphere."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float, PRNGKeyArray
from numpy.typing import ArrayLike

from iclab.numerics import Validated, positive, require, whole_number
from iclab.simulation.linear.loop import not_diverged
from iclab.simulation.linear.one_pass import normals
from iclab.simulation.related.loop import descended

__all__ = ["CLASSES", "WindowShape", "WindowTraining", "drawn_concentration", "drawn_errors", "trained", "windows"]

Array = np.ndarray
CLASSES = ("affine", "kinked", "projected")


class WindowShape(NamedTuple):
    """A class of functions, sizes, and the number of directions that projected functions depend on (0: all)."""

    functions: str
    dimension: int
    length: int
    batch: int
    seen: int = 0


class WindowTraining(NamedTuple):
    """Steps of training, the matrix at the start, and the largest learning rate of Adam, which falls as a cosine."""

    steps: int
    initial: float
    rate: float


def trained(
    shape: WindowShape, training: WindowTraining, *, noises: Validated[ArrayLike], key: PRNGKeyArray
) -> Float[Array, "noise D D"]:
    """Key-query matrices after training on fresh contexts, from a multiple of the identity, one for each noise.

    "affine": uᵀx + b with u uniform and b ~ N(0, 1); "kinked": l max(uᵀx, 0) + l' max(−uᵀx, 0) with l, l' ~ N(0, 1);
    "projected": aᵀx with a standard normal in the first `seen` directions. Labels of a context carry noise; that of
    the target, which no weights can lower, is left out: it would only blur the gradient.

    Raises ValueError for other classes, and for sizes and learning rates that are not positive; ArithmeticError if
    training diverges.
    """
    _require(shape)
    whole_number("steps", training.steps)
    positive("initial", training.initial)
    positive("rate", training.rate)
    with jax.enable_x64(True):
        found = _trained(shape, training.steps, training.initial, training.rate, np.asarray(noises, dtype=float), key)
        return not_diverged(np.asarray(found), training.rate)


def drawn_errors(
    shape: WindowShape, matrices: Float[Array, "noise D D"], *, noises: Validated[ArrayLike], blocks: Validated[int],
    key: PRNGKeyArray,
) -> Float[Array, "noise"]:  # fmt: skip
    """Mean square error against targets without noise, over blocks of fresh contexts, one matrix for each noise."""
    _require(shape)
    with jax.enable_x64(True):
        return np.asarray(_errors(shape, whole_number("blocks", blocks), matrices, np.asarray(noises, float), key))


def windows(
    shape: WindowShape, training: WindowTraining, *, noises: Validated[ArrayLike], blocks: Validated[int],
    key: PRNGKeyArray,
) -> dict[str, Float[Array, "noise"]]:  # fmt: skip
    """Trained matrices read as windows: scale, anisotropy and error on drawn functions.

    The `scale` is the mean of the diagonal, the `anisotropy` the share of the norm that is no multiple of the
    identity, and `drawn` the error against targets without noise.
    """
    for_training, for_test = jax.random.split(key)
    matrices = trained(shape, training, noises=noises, key=for_training)
    scale = np.trace(matrices, axis1=1, axis2=2) / shape.dimension
    rest = np.linalg.norm(matrices - scale[:, None, None] * np.eye(shape.dimension), axis=(1, 2))
    drawn = drawn_errors(shape, matrices, noises=noises, blocks=blocks, key=for_test)
    return {"scale": scale, "drawn": drawn, "anisotropy": rest / np.linalg.norm(matrices, axis=(1, 2))}


def drawn_concentration(
    matrix: Float[Array, "D D"], query: Float[Array, "D"], lengths: tuple[int, ...], *, examples: int,
    key: PRNGKeyArray,
) -> Float[Array, "length"]:  # fmt: skip
    """n Σ a² of the attention weights a in contexts of n inputs N(0, I), over `examples` in all for each length n."""
    with jax.enable_x64(True):
        folded = [jax.random.fold_in(key, length) for length in lengths]
        return np.array(
            [
                _concentration(length, max(1, examples // length), np.asarray(matrix) @ np.asarray(query), one)
                for length, one in zip(lengths, folded, strict=True)
            ]
        )


def _require(shape: WindowShape) -> None:
    require(shape.functions in CLASSES, f"functions must be one of {', '.join(CLASSES)}; got {shape.functions!r}.")
    whole_number("dimension", shape.dimension, least=2)
    whole_number("length", shape.length)
    whole_number("batch", shape.batch)
    require(0 <= shape.seen <= shape.dimension, f"seen must be at most {shape.dimension}; got {shape.seen}.")


@partial(jax.jit, static_argnums=(0, 1))
def _trained(
    shape: WindowShape, steps: int, initial: jax.Array, rate: jax.Array, noises: jax.Array, key: jax.Array
) -> jax.Array:
    optimizer = optax.adam(lambda count: rate * 0.5 * (1 + jnp.cos(jnp.pi * count / steps)))
    start = initial * jnp.broadcast_to(jnp.eye(shape.dimension), (len(noises), shape.dimension, shape.dimension))

    def loss(matrices: jax.Array, key: jax.Array) -> jax.Array:
        return jnp.sum(_squares(shape, matrices, noises, key))

    def gradient(matrices: jax.Array, step: jax.Array) -> jax.Array:
        return jax.grad(loss)(matrices, jax.random.fold_in(key, step))

    return descended(gradient, start, optimizer=optimizer, steps=steps)


@partial(jax.jit, static_argnums=(0, 1))
def _errors(shape: WindowShape, blocks: int, matrices: jax.Array, noises: jax.Array, key: jax.Array) -> jax.Array:
    def block(number: jax.Array) -> jax.Array:
        return _squares(shape, matrices, noises, jax.random.fold_in(key, number))

    return jnp.mean(jax.lax.map(block, jnp.arange(blocks)), axis=0)


def _squares(shape: WindowShape, matrices: jax.Array, noises: jax.Array, key: jax.Array) -> jax.Array:
    """Mean square error of each matrix on one batch of contexts, the same for all but for the size of the noise.

    Targets are without noise.
    """
    batch, tokens, size = shape.batch, shape.length + 1, shape.dimension
    points, direction, parts, ripple = normals(
        key, (batch, tokens, size), (batch, size), (2, batch, 1), (batch, shape.length)
    )
    points = points / jnp.linalg.norm(points, axis=-1, keepdims=True)
    clean = _functions(shape, points, direction, parts)
    labels = clean[:, :-1] + jnp.sqrt(noises)[:, None, None] * ripple
    scores = jnp.einsum("pnc,mcd,pd->mpn", points[:, :-1], matrices, points[:, -1])
    prediction = jnp.sum(jax.nn.softmax(scores, axis=-1) * labels, axis=-1)
    return jnp.mean((prediction - clean[:, -1]) ** 2, axis=-1)


def _functions(shape: WindowShape, points: jax.Array, direction: jax.Array, parts: jax.Array) -> jax.Array:
    if shape.functions == "projected":
        return jnp.einsum("pnc,pc->pn", points[..., : shape.seen], direction[:, : shape.seen])
    along = jnp.einsum("pnc,pc->pn", points, direction / jnp.linalg.norm(direction, axis=-1, keepdims=True))
    first, second = parts
    if shape.functions == "affine":
        return along + second
    return first * jnp.maximum(along, 0) + second * jnp.maximum(-along, 0)


@partial(jax.jit, static_argnums=(0, 1))
def _concentration(length: int, contexts: int, direction: jax.Array, key: jax.Array) -> jax.Array:
    scores = jax.random.normal(key, (contexts, length)) * jnp.linalg.norm(direction)  # xᵀMx_q is normal
    return length * jnp.mean(jnp.sum(jax.nn.softmax(scores, axis=-1) ** 2, axis=-1))
