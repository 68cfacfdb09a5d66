"""Gradient descent of layers of attention from recorded step to recorded step, by every route of `linear`.

One-pass SGD of other weights has a loop of its own, `one_pass`. This one is compiled once for each route and set of
shapes. Learning rate, data and step numbers are arguments: other values compile nothing anew.
"""

import operator
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Int

from iclab.attention import Layer
from iclab.numerics import Validated, positive, require
from iclab.outcomes import Trajectory
from iclab.simulation.waiting import Kept, kept, report

__all__ = ["Route", "Weights", "half_gradient", "not_diverged", "require_dimension", "trajectory"]

BLOCK = 32  # spans between two steps, that are computed without interruption
SPANS, SHORTEST = 600, 500  # of a long run: the least number of spans, unless they were shorter in steps

Array = np.ndarray
Weights = tuple[jax.Array | Array, ...]  # value (H, 1) or (H, D+1), then key_query, or key and query


class Route(NamedTuple):
    """Mean squared error, and the gradient of half of it, as functions of data, weights and step number."""

    loss: Callable[[Any, Weights, jax.Array], jax.Array]
    gradient: Callable[[Any, Weights, jax.Array], Weights]


def half_gradient(loss: Callable[[Any, Weights, jax.Array], jax.Array]) -> Route:
    """The route of a loss, with the gradient that JAX derives from it."""
    return Route(loss, jax.grad(lambda data, weights, step: loss(data, weights, step) / 2, argnums=1))


def trajectory(
    route: Route,
    data: Any,
    data_batch: tuple[int, ...],
    start: Layer,
    *,
    rate: Validated[float],
    steps: Validated[Iterable[int]],
) -> Trajectory:
    """Gradient descent from `start`, recorded at `steps`; all data have the leading axes `data_batch`.

    Raises ValueError for leading axes that do not pair, for a learning rate that is not positive and for steps that
    do not increase; ArithmeticError when the loss leaves the finite numbers.
    """
    positive("rate", rate)
    recorded = _step_numbers(steps)
    weights = _unpacked(start)
    start_batch = weights[-1].shape[:-3]
    require(
        start_batch == data_batch or not start_batch or not data_batch,
        "start must have the leading axes of the data, or only one of them have any; "
        f"got {start_batch} and {data_batch}.",
    )
    batch = start_batch or data_batch
    weights = tuple(
        _one_axis(np.broadcast_to(part, batch + part.shape[len(start_batch) :]), batch) for part in weights
    )
    if data_batch:
        data = jax.tree.map(lambda part: _one_axis(part, data_batch), data)
    with jax.enable_x64(True):
        loss, path = _in_blocks(route, 0 if data_batch else None, data, weights, float(rate), recorded)
    loss = loss.reshape(*batch, -1)
    _require_finite(loss, recorded, rate)
    path = tuple(part.reshape(*batch, *part.shape[1:]) for part in path)
    return Trajectory(rate * recorded, loss, _packed(path, start))


def _in_blocks(
    route: Route, data_axis: int | None, data: Any, weights: Weights, rate: float, recorded: Int[Array, "time"]
) -> tuple[Array, tuple[Array, ...]]:
    """Losses and weights at the recorded steps, computed some spans at a time: in between a run can be interrupted.

    Every block has as many spans, the last one with empty ones at its end, so that it is compiled once.
    """
    ends = _ends(recorded)
    begins, shown = np.concatenate([[0], ends[:-1]]), np.isin(ends, recorded)
    state = _kept(route, data_axis, data, weights, rate, recorded)
    reached = _resumed(state.load(), weights)
    data = jax.tree.map(jax.numpy.asarray, data)
    try:
        while reached.spans < len(ends):
            block = slice(reached.spans, reached.spans + BLOCK)
            empty = np.repeat(ends[-1], max(0, block.stop - len(ends)))
            spans = np.append(begins[block], empty), np.append(ends[block], empty)
            loss, path = jax.device_get(_descend(route, data_axis, data, reached.weights, rate, spans))
            own = np.flatnonzero(shown[block])
            piece = [part[:, own] for part in (loss, *path)]
            reached = _Reached(block.stop, tuple(part[:, -1] for part in path), [*reached.pieces, piece])
            report("step", int(ends[min(block.stop, len(ends)) - 1]), int(ends[-1]))
            state.save(reached.arrays)
    except BaseException:
        state.save(reached.arrays, now=True)
        raise
    state.done()
    loss, *path = reached.joined()
    return loss, tuple(path)


class _Reached(NamedTuple):
    """The state after some spans: weights there, and losses and weights at the recorded steps until then."""

    spans: int
    weights: Any
    pieces: list[list[Array]]

    def joined(self) -> list[Array]:
        return [np.concatenate(parts, axis=1) for parts in zip(*self.pieces, strict=True)]

    def arrays(self) -> list[Array]:
        return [np.array(self.spans), *map(np.asarray, self.weights), *self.joined()]


def _resumed(known: list[Array] | None, weights: Weights) -> _Reached:
    if known is None:
        return _Reached(0, weights, [])
    own = 1 + len(weights)
    return _Reached(int(known[0]), tuple(known[1:own]), [known[own:]])


def _ends(recorded: Int[Array, "time"]) -> Int[Array, "span"]:
    """Ends of the spans: the recorded steps and, in a long run, others in between."""
    piece = max(-(-int(recorded[-1]) // SPANS), SHORTEST)
    return np.union1d(recorded, np.arange(piece, recorded[-1], piece))


def _kept(
    route: Route, data_axis: int | None, data: Any, weights: Weights, rate: float, recorded: Int[Array, "time"]
) -> Kept:
    """The state of this run; none is kept of one that draws as it goes."""
    leaves = jax.tree.leaves(data)
    if any(jax.numpy.issubdtype(jax.numpy.result_type(leaf), jax.dtypes.prng_key) for leaf in leaves):
        return Kept(None)
    name = f"{route.loss.__module__}.{route.loss.__qualname__} {data_axis} {rate!r} {BLOCK}"
    return kept(name, lambda: [np.asarray(part) for part in (*leaves, *weights, recorded)])


@partial(jax.jit, static_argnames=("route", "data_axis"))
def _descend(
    route: Route,
    data_axis: int | None,
    data: Any,
    weights: Weights,
    rate: jax.Array,
    spans: tuple[jax.Array, jax.Array],
) -> tuple[jax.Array, Weights]:
    def alone(data: Any, weights: Weights) -> tuple[jax.Array, Weights]:
        def update(step: jax.Array, weights: Weights) -> Weights:
            gradient = route.gradient(data, weights, step)
            return jax.tree.map(lambda weight, change: weight - rate * change, weights, gradient)

        def record(weights: Weights, span: tuple[jax.Array, jax.Array]) -> tuple[Weights, tuple[jax.Array, Weights]]:
            weights = jax.lax.fori_loop(*span, update, weights)
            return weights, (route.loss(data, weights, span[1]), weights)

        return jax.lax.scan(record, weights, spans)[1]

    return jax.vmap(alone, in_axes=(data_axis, 0))(data, weights)


def require_dimension(start: Layer, dimension: int, of: str) -> None:
    """Raise ValueError unless the start takes inputs of this dimension."""
    require(
        start.dimension == dimension,
        f"start must have the dimension of the {of}, {dimension}; got {start.dimension}.",
    )


def _unpacked(layer: Layer) -> tuple[Array, ...]:
    value, *rest = (np.asarray(part, dtype=float) for part in vars(layer).values())
    require(
        all(bool(np.all(np.isfinite(part))) for part in (value, *rest)),
        "start must be finite; got NaN or infinity among its weights.",
    )
    return (value[..., None] if layer.restricted else value, *rest)


def _packed(weights: tuple[Array, ...], like: Layer) -> Layer:
    value, *rest = weights
    return type(like)(value[..., 0] if like.restricted else value, *rest)


def _one_axis(part: Any, batch: tuple[int, ...]) -> Any:
    return part.reshape(-1, *part.shape[len(batch) :])


def _step_numbers(steps: Validated[Iterable[int]]) -> Int[Array, "time"]:
    try:
        numbers = np.array([operator.index(step) for step in steps], dtype=np.int64)
    except TypeError:
        raise ValueError(f"steps must be whole numbers; got {steps!r}. Write range(0, 1001, 10), say.") from None
    require(
        len(numbers) > 0 and numbers[0] >= 0 and bool(np.all(np.diff(numbers) > 0)),
        f"steps must increase from 0 or more; got {steps!r}.",
    )
    return numbers


def not_diverged(weights: Array, rate: float | int) -> Array:
    """The trained weights. Raises ArithmeticError unless they are finite."""
    if not np.all(np.isfinite(weights)):
        raise ArithmeticError(
            f"trained weights are not finite: gradient descent diverged at learning rate {rate:.3g}. "
            "Use a smaller one."
        )
    return weights


def _require_finite(loss: Array, recorded: Array, rate: float | int) -> None:
    lost = ~np.isfinite(loss).reshape(-1, len(recorded)).all(axis=0)
    if lost.any():
        raise ArithmeticError(
            f"the loss is not finite at step {recorded[np.argmax(lost)]}: gradient descent diverged at "
            f"learning rate {rate:.3g}. Use a smaller one."
        )
