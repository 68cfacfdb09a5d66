"""Memory that a forward pass and its gradients take, estimated before any array exists."""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import jax

from iclab.simulation.memory import require_memory
from iclab.simulation.networks.parts import Network

__all__ = ["KEPT", "NAMES", "require_gradients", "require_outputs"]

KEPT = ("dot_general", "gather")  # operations whose results are stored; a compiler fuses most others into these
NAMES = "batch size, length and sizes of the network"


def require_outputs(config: Network, tokens: Any) -> None:
    """Raise ValueError where the largest array of a forward pass on these tokens does not fit in memory."""
    require_memory(NAMES, max(_sizes(config, tokens.shape, tokens.dtype), default=0), each=4)


def require_gradients(config: Network, tokens: Any, contexts: int) -> None:
    """Raise ValueError where the arrays that gradients need again do not fit, in chunks of so many contexts.

    Not less than half, and seldom less than a third, of what is taken.
    """
    require_memory(NAMES, sum(_sizes(config, (contexts, *tokens.shape[1:]), tokens.dtype)), each=4)


@lru_cache(maxsize=64)
def _sizes(config: Network, shape: tuple[int, ...], dtype: Any) -> tuple[int, ...]:
    """Numbers in each array that is stored."""
    weights = jax.eval_shape(config.start, jax.eval_shape(lambda: jax.random.key(0)))
    traced = jax.make_jaxpr(config.forward)(weights, jax.ShapeDtypeStruct(shape, dtype))
    return tuple(_stored(traced.jaxpr))


def _stored(program: Any) -> Iterator[int]:
    for step in program.eqns:
        inner = [getattr(part, "jaxpr", part) for part in step.params.values()]
        parts = [part for part in inner if hasattr(part, "eqns")]
        for part in parts:
            yield from _stored(part)
        if not parts and step.primitive.name in KEPT:
            yield from (math.prod(result.aval.shape) for result in step.outvars)
