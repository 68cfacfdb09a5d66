"""What the answers of a network take of memory, before any array is there."""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import jax

from iclab.simulation.memory import require_memory
from iclab.simulation.networks.parts import Network

KEPT = ("dot_general", "gather")  # what a compiler writes down; it fuses most other operations into these
NAMES = "batch size, length and sizes of the network"


def require_outputs(config: Network, tokens: Any) -> None:
    """Raises ValueError where the largest array on the way to the answers to tokens does not fit in memory."""
    require_memory(NAMES, max(_sizes(config, tokens.shape, tokens.dtype), default=0), each=4)


def require_gradients(config: Network, tokens: Any, contexts: int) -> None:
    """Raises ValueError where all that slopes need again does not fit, with so many contexts side by side.

    Not less than half, and seldom less than a third, of what is taken.
    """
    require_memory(NAMES, sum(_sizes(config, (contexts, *tokens.shape[1:]), tokens.dtype)), each=4)


@lru_cache(maxsize=64)
def _sizes(config: Network, shape: tuple[int, ...], dtype: Any) -> tuple[int, ...]:
    """Numbers in each array that is written down."""
    weights = jax.eval_shape(config.start, jax.eval_shape(lambda: jax.random.key(0)))
    traced = jax.make_jaxpr(config.forward)(weights, jax.ShapeDtypeStruct(shape, dtype))
    return tuple(_written(traced.jaxpr))


def _written(program: Any) -> Iterator[int]:
    for step in program.eqns:
        inner = [getattr(part, "jaxpr", part) for part in step.params.values()]
        parts = [part for part in inner if hasattr(part, "eqns")]
        for part in parts:
            yield from _written(part)
        if not parts and step.primitive.name in KEPT:
            yield from (math.prod(result.aval.shape) for result in step.outvars)
