"""Training of Transformers, Perceptrons and custom networks: compiled once, stopped at stated steps, resumable.

Batch and step belong together: step s draws with a key of its own, so a run that was stopped and resumed goes
through the numbers of one that was not.
"""

import contextlib
import inspect
import itertools
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypedDict

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import PRNGKeyArray

from iclab.numerics import Validated, checked_number, require, whole_number
from iclab.simulation.keys import checked_key
from iclab.simulation.memory import exhaustion_reported
from iclab.simulation.networks.checks import (
    check_batch,
    checked_data,
    checked_network,
    checked_parameters,
    checked_shapes,
)
from iclab.simulation.networks.parts import LARGEST, Network, Parameters
from iclab.simulation.networks.sizes import require_gradients
from iclab.simulation.sequences.batches import Batch, Data
from iclab.simulation.waiting import report

__all__ = ["CACHE", "LAST", "Roles", "State", "batch_loss", "checked_loss", "roles", "train"]

LAST = 2**31 - 1  # the largest step that 32 bits count
STRETCH = 64  # steps of the first compiled stretch of a run
PATIENCE = 0.5  # seconds that a stretch is to last, or more
CACHE = 2**19  # bytes of the largest array of a chunk of a batch, on a CPU


class State(TypedDict):
    """A network in training: all that the rest of the run depends on, and the loss of its last batch.

    The state of an optimizer is a tree of arrays, or its leaves in their order, as they are on disk.
    """

    step: int
    parameters: Parameters
    optimizer: Any
    loss: float


class Roles(NamedTuple):
    """The keys of a run: for its start, for the part of its data that is drawn once, for its batches."""

    start: jax.Array
    fixed: jax.Array
    batches: jax.Array


def roles(key: PRNGKeyArray) -> Roles:
    """The keys of the run that `train` makes of a key."""
    return Roles(*jax.random.split(key, 3))


def train(
    config: Validated[Network],
    data: Validated[Data],
    *,
    steps: Validated[int | Iterable[int]],
    optimizer: Validated[optax.GradientTransformation],
    key: Validated[PRNGKeyArray],
    checkpoints: Validated[Callable[[int, State], None] | None] = None,
    resume: Validated[State | None] = None,
) -> State:
    """Train a network and return its last state, in NumPy.

    `steps` counts the steps, or names those at which `checkpoints(step, state)` is called; the last one ends the run
    and 0 is the start. With `resume`, a state of the same run, the run continues from there and `checkpoints` is
    called for later steps alone, for none where the run has ended; all numbers are those of a run that was never
    stopped, bit by bit on one machine. Network, data and optimizer are compiled into the loop: another one compiles
    anew, so build an optimizer once.

    Raises ValueError for steps that do not increase or lie before the resumed one, for data, a state or an optimizer
    that do not belong to the network, for sizes beyond memory, and for tokens out of range; ArithmeticError, with
    the step, when the loss leaves the finite numbers or a weight exceeds 1e15: states handed to `checkpoints` before
    remain valid.
    """
    with jax.enable_x64(False), exhaustion_reported():  # single precision, whatever the setting
        return _trained(
            checked_network(config), checked_data(data), steps, optimizer, checked_key(key), checkpoints, resume
        )


def _trained(
    config: Network, data: Data, steps: Any, optimizer: Any, key: PRNGKeyArray, checkpoints: Any, resume: Any
) -> State:
    _check_checkpoints(checkpoints)
    keys = roles(key)
    fixed = data.fixed(keys.fixed)
    batch = checked_shapes(config, data, fixed)
    require_gradients(config, batch.tokens, _chunk_size(config, len(batch.tokens)))
    _check_optimizer(config, optimizer)
    state = _begun(config, optimizer, keys) if resume is None else _resumed(config, optimizer, resume)
    step, loss = state["step"], state["loss"]
    parameters, memory = state["parameters"], state["optimizer"]

    def here() -> State:
        return State(step=step, parameters=_numpy(parameters), optimizer=_numpy(memory), loss=loss)

    stops = _recorded(steps, -1 if resume is None else step)
    for stop in stops:
        if stop > step:
            step, loss, parameters, memory = _reached(
                partial(_advance, config, data, optimizer, fixed, keys.batches), step, stop, parameters, memory,
                last_of_all=stops[-1],
            )  # fmt: skip
            if not _finite(loss, parameters):
                check_batch(config, data, data.batch(fixed, jax.random.fold_in(keys.batches, step - 1)))
                raise ArithmeticError(
                    f"training left the finite numbers at step {step}: its loss is {loss:g}. Use a smaller "
                    "learning rate, or a longer warm-up; checkpoints of earlier steps are valid."
                )
        if checkpoints is not None:
            checkpoints(step, here())
    return here()


def _reached(
    advance: Callable[[tuple, int], tuple], step: int, stop: int, parameters: Any, memory: Any, *, last_of_all: int
) -> tuple[int, float, Any, Any]:
    """Step, loss, weights and optimizer state at a stop, or where the loss has left the finite numbers.

    Nothing interrupts a compiled loop, so that it runs in stretches, longer ones where they are quick.
    """
    stretch, loss = STRETCH, 0.0
    while step < stop and np.isfinite(loss):
        began = time.monotonic()
        begun = (jnp.int32(step), jnp.float32(0.0), parameters, memory)
        reached, last, parameters, memory = advance(begun, min(stop, step + stretch))
        step, loss = int(reached), float(last)
        report("step", step, last_of_all)
        if time.monotonic() - began < PATIENCE:
            stretch *= 2
    return step, loss, parameters, memory


def _begun(config: Network, optimizer: Any, keys: Roles) -> State:
    parameters = config.start(keys.start)
    return State(step=0, parameters=parameters, optimizer=optimizer.init(parameters), loss=float("nan"))


def _resumed(config: Network, optimizer: Any, resume: Any) -> State:
    """The state to continue from. Raises ValueError unless it belongs to the network and the optimizer."""
    require(
        isinstance(resume, Mapping) and resume.keys() >= State.__annotations__.keys(),
        f"resume must be a State with {', '.join(State.__annotations__)}; got {type(resume).__name__}.",
    )
    parameters = {name: jnp.asarray(part) for name, part in checked_parameters(config, resume["parameters"]).items()}
    blank = jax.eval_shape(optimizer.init, parameters)
    try:
        leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(resume["optimizer"])]
    except TypeError:
        raise ValueError("the state of the resumed optimizer must be arrays of numbers; it is not.") from None
    kinds = [[(leaf.shape, leaf.dtype) for leaf in every] for every in (jax.tree.leaves(blank), leaves)]
    require(
        kinds[0] == kinds[1],
        "the state of the resumed optimizer must fit the optimizer; it is that of another one. "
        "Resume with the optimizer that the run began with.",
    )
    memory = jax.tree.unflatten(jax.tree.structure(blank), leaves)
    step = whole_number("the step of resume", resume["step"], least=0)
    loss = checked_loss("the loss of resume", resume["loss"])
    return State(step=step, parameters=parameters, optimizer=memory, loss=loss)


def checked_loss(name: str, loss: Any) -> float:
    """The loss of a last batch, NaN before any. Raises ValueError, with its name, unless it is one number."""
    none = isinstance(loss, float) and np.isnan(loss)
    return float("nan") if none else checked_number(name, loss, infinite=True)


def batch_loss(config: Network, kind: str, parameters: Parameters, batch: Batch) -> jax.Array:
    """Mean over the positions that count, of squared errors or of minus the log probability of targets, in nats."""
    return _weighted_sum(config, kind, parameters, batch) / jnp.sum(batch.weight)


def _weighted_sum(config: Network, kind: str, parameters: Parameters, batch: Batch) -> jax.Array:
    outputs = config.forward(parameters, batch.tokens)
    if kind == "square":
        each = (outputs[..., 0] - batch.target) ** 2
    else:
        negative = batch.target < 0  # would count from the end
        labels = jnp.where(negative, outputs.shape[-1], batch.target)
        each = optax.softmax_cross_entropy_with_integer_labels(outputs, labels)
    return jnp.sum(each * batch.weight)


def _loss_and_gradient(
    config: Network, kind: str, parameters: Parameters, batch: Batch
) -> tuple[jax.Array, Parameters]:
    """The loss and its gradient, summed over chunks of the batch: arrays that fit the cache save a third of time."""
    contexts = len(batch.tokens)
    size = _chunk_size(config, contexts)
    chunks = jax.tree.map(lambda array: array.reshape(contexts // size, size, *array.shape[1:]), batch)

    def add(sums: tuple, chunk: Batch) -> tuple[tuple, None]:
        found = jax.value_and_grad(lambda weights: _weighted_sum(config, kind, weights, chunk))(parameters)
        return jax.tree.map(jnp.add, sums, found), None

    nothing = (jnp.float32(0.0), jax.tree.map(jnp.zeros_like, parameters))
    sums, _ = jax.lax.scan(add, nothing, chunks)
    total = jnp.sum(batch.weight)
    return jax.tree.map(lambda part: part / total, sums)


def _chunk_size(config: Network, contexts: int) -> int:
    """Contexts of a chunk: as many as fit the cache, and all where their number has no such divisor."""
    most = max(CACHE // (4 * config.entries), 1)
    if contexts <= most or jax.default_backend() != "cpu":
        return contexts
    size = next(size for size in range(most, 0, -1) if contexts % size == 0)
    return size if 2 * size > most else contexts


@partial(jax.jit, static_argnums=(0, 1, 2))
def _advance(
    config: Network, data: Data, optimizer: Any, fixed: Any, key: jax.Array, begun: tuple, stop: jax.Array
) -> tuple:
    def unfinished(state: tuple) -> jax.Array:
        return (state[0] < stop) & jnp.isfinite(state[1])

    def update(state: tuple) -> tuple:
        step, _, parameters, memory = state
        batch = data.batch(fixed, jax.random.fold_in(key, step))
        loss, gradient = _loss_and_gradient(config, data.loss, parameters, batch)
        change, memory = optimizer.update(gradient, memory, parameters)
        return step + 1, loss, optax.apply_updates(parameters, change), memory

    return jax.lax.while_loop(unfinished, update, begun)


def _numpy(tree: Any) -> Any:
    return jax.tree.map(np.asarray, tree)


def _check_optimizer(config: Network, optimizer: Any) -> None:
    """Raise ValueError unless it is an optimizer that needs gradients alone and whose state is numbers."""
    require(
        callable(getattr(optimizer, "init", None)) and callable(getattr(optimizer, "update", None)),
        f"optimizer must be one of optax, such as optax.adam(1e-3); got {type(optimizer).__name__}.",
    )

    def stepped(weights: Any) -> tuple[Any, Any]:
        change, memory = optimizer.update(weights, optimizer.init(weights), weights)
        return optax.apply_updates(weights, change), memory

    weights = jax.eval_shape(config.start, jax.eval_shape(lambda: jax.random.key(0)))
    try:
        _, memory = jax.eval_shape(stepped, weights)
    except (TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"optimizer must change weights by their gradients alone; it does not: {reason}") from None
    keys = [leaf for leaf in jax.tree.leaves(memory) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)]
    require(not keys, "the state of the optimizer must be numbers alone; it has a random key, which no file holds.")


def _check_checkpoints(checkpoints: Any) -> None:
    accepts = callable(checkpoints)
    if accepts:
        with contextlib.suppress(ValueError):  # built-in functions may have no signature
            try:
                inspect.signature(checkpoints).bind(0, None)
            except TypeError:
                accepts = False
    require(
        checkpoints is None or accepts,
        f"checkpoints must be a function of step and state; got {type(checkpoints).__name__}.",
    )


def _recorded(steps: Any, after: int) -> list[int]:
    """The step numbers to stop at, those after the resumed one."""
    if np.iterable(steps):
        numbers = [whole_number("steps", step, least=0) for step in steps]
    else:
        numbers = [whole_number("steps", steps)]
    increasing = all(early < late for early, late in itertools.pairwise(numbers))
    require(bool(numbers) and increasing, f"steps must increase and be there; got {numbers}.")
    require(
        numbers[-1] >= after,
        f"steps must not end before the step that is resumed; got {numbers[-1]} after step {after}.",
    )
    require(numbers[-1] <= LAST, f"steps must be at most {LAST}; got {numbers[-1]}.")
    return [number for number in numbers if number > after]


def _finite(loss: float, parameters: Mapping[str, Any]) -> bool:
    return bool(np.isfinite(loss)) and all(bool(jnp.max(jnp.abs(part)) <= LARGEST) for part in parameters.values())
