"""Training of the related networks: so many steps of an optimizer along a gradient, in one compiled loop."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

__all__ = ["Weights", "descended"]

Weights = Any
"""A tree of arrays."""


def descended(
    gradient: Callable[[Weights, jax.Array], Weights],
    start: Weights,
    *,
    optimizer: optax.GradientTransformation,
    steps: int,
) -> Weights:
    """The last weights of training from a start, from within a compiled function.

    `gradient(weights, step)` has the structure of the weights; what it draws, it draws from the number of the step.
    """

    def update(step: jax.Array, state: tuple[Weights, Any]) -> tuple[Weights, Any]:
        weights, memory = state
        change, memory = optimizer.update(gradient(weights, step), memory)
        return optax.apply_updates(weights, change), memory

    weights = jax.tree.map(jnp.asarray, start)
    return jax.lax.fori_loop(0, steps, update, (weights, optimizer.init(weights)))[0]
