"""The one loop that trains networks: compiled once, stopped at stated steps, resumed where it stopped.

Batch and step belong together: step s draws with a key of its own, so a run that was stopped and resumed goes
through the numbers of one that was not.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypedDict

import jax
import jax.numpy as jnp
import numpy as np
import optax

from iclab.numerics import require, whole_number
from iclab.simulation.network_parts import Network, Parameters

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray


class Batch(NamedTuple):
    """Tokens, what is to be answered, and how much each position counts."""

    tokens: jax.Array  # (context, position), or (context, position, feature)
    target: jax.Array  # (context, position): the next token, or a real number
    weight: jax.Array  # (context, position)


class Data(Protocol):
    """What a network trains on: frozen and hashable, with all randomness from keys."""

    @property
    def loss(self) -> str:
        """Either "cross-entropy" or "square"."""
        ...

    def fixed(self, key: jax.Array) -> Any:
        """What is drawn once: a pool of tasks, a set of sequences, a split."""
        ...

    def batch(self, fixed: Any, key: jax.Array) -> Batch:
        """The contexts of one step."""
        ...


class State(TypedDict):
    """A network in training: all that the rest of the run depends on, and the loss of its last batch."""

    step: int
    parameters: Parameters
    optimizer: Any
    loss: float


class Roles(NamedTuple):
    """The keys of a run: for its start, for what its data draw once, for its batches."""

    start: jax.Array
    fixed: jax.Array
    batches: jax.Array


def roles(key: "PRNGKeyArray") -> Roles:
    """The keys of the run that `train` makes of a key."""
    return Roles(*jax.random.split(key, 3))


def train(
    config: Network,
    data: Data,
    *,
    steps: int | Iterable[int],
    optimizer: optax.GradientTransformation,
    key: "PRNGKeyArray",
    checkpoints: Callable[[int, State], None] | None = None,
    resume: State | None = None,
) -> State:
    """Train a network and return its last state, in NumPy.

    `steps` counts the steps, or names those at which `checkpoints(step, state)` is called; the last one ends the run
    and 0 is the start. With `resume`, a state of the same run, the run goes on from there and `checkpoints` is
    called for later steps alone; all numbers are those of a run that was never stopped, bit by bit on one machine.
    Network, data and optimizer are compiled into the loop: another one compiles anew, so build an optimizer once.

    Raises ValueError for steps that do not increase or lie before the resumed one; ArithmeticError, which says the
    step, when the loss leaves the finite numbers: what was handed to `checkpoints` before stays good.
    """
    keys = roles(key)
    recorded = _recorded(steps, -1 if resume is None else resume["step"])
    if resume is None:
        parameters = jax.tree.map(jnp.asarray, config.start(keys.start))
        memory, step, loss = optimizer.init(parameters), 0, float("nan")
    else:
        parameters, memory = jax.tree.map(jnp.asarray, (resume["parameters"], resume["optimizer"]))
        step, loss = resume["step"], resume["loss"]
    fixed = data.fixed(keys.fixed)
    state = State(step=step, parameters=parameters, optimizer=memory, loss=loss)
    for stop in recorded:
        if stop > step:
            begun = (jnp.int32(step), jnp.float32(0.0), parameters, memory)
            reached, last, parameters, memory = _advance(config, data, optimizer, fixed, keys.batches, begun, stop)
            step = int(reached)
            _require_finite(step, float(last), parameters)
            loss = float(last)
        state = State(step=step, parameters=_numpy(parameters), optimizer=_numpy(memory), loss=loss)
        if checkpoints is not None:
            checkpoints(step, state)
    return state


def batch_loss(config: Network, kind: str, parameters: Parameters, batch: Batch) -> jax.Array:
    """Mean over what counts: of squares, or of minus the log probability of the next token, in nats."""
    outputs = config.answer(parameters, batch.tokens)
    if kind == "square":
        each = (outputs[..., 0] - batch.target) ** 2
    else:
        each = optax.softmax_cross_entropy_with_integer_labels(outputs, batch.target)
    return jnp.sum(each * batch.weight) / jnp.sum(batch.weight)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _advance(
    config: Network, data: Data, optimizer: Any, fixed: Any, key: jax.Array, begun: tuple, stop: jax.Array
) -> tuple:
    def unfinished(state: tuple) -> jax.Array:
        return (state[0] < stop) & jnp.isfinite(state[1])

    def update(state: tuple) -> tuple:
        step, _, parameters, memory = state
        batch = data.batch(fixed, jax.random.fold_in(key, step))
        loss, slope = jax.value_and_grad(lambda parts: batch_loss(config, data.loss, parts, batch))(parameters)
        change, memory = optimizer.update(slope, memory, parameters)
        return step + 1, loss, optax.apply_updates(parameters, change), memory

    return jax.lax.while_loop(unfinished, update, begun)


def _numpy(tree: Any) -> Any:
    return jax.tree.map(np.asarray, tree)


def _recorded(steps: int | Iterable[int], after: int) -> list[int]:
    """The step numbers to stop at, those after the resumed one."""
    if isinstance(steps, int | np.integer):
        numbers = [whole_number("steps", steps)]
    else:
        numbers = [whole_number("steps", step, least=0) for step in steps]
    increasing = all(early < late for early, late in itertools.pairwise(numbers))
    require(bool(numbers) and increasing, f"steps must increase and be there; got {numbers}.")
    require(
        numbers[-1] > after,
        f"steps must go beyond the step that is resumed; got {numbers[-1]} after step {after}.",
    )
    return [number for number in numbers if number > after]


def _require_finite(step: int, loss: float, parameters: Mapping[str, Any]) -> None:
    finite = np.isfinite(loss) and all(bool(jnp.all(jnp.isfinite(part))) for part in parameters.values())
    if not finite:
        raise ArithmeticError(
            f"training left the finite numbers at step {step}: its loss is {loss:g}. Use a smaller rate, or more "
            "steps of warming up; checkpoints of earlier steps are good."
        )
