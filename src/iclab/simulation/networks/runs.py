"""Runs of networks from which only weights along training are kept, and the accuracy of these weights."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import PRNGKeyArray

from iclab.simulation.networks.parts import Network, Parameters
from iclab.simulation.networks.sizes import require_outputs
from iclab.simulation.networks.training import train
from iclab.simulation.sequences.batches import Batch, Data

__all__ = ["accuracy", "weights_along"]


def weights_along(
    config: Network,
    data: Data,
    *,
    steps: Iterable[int],
    optimizer: optax.GradientTransformation,
    key: PRNGKeyArray,
) -> list[Parameters]:
    """The weights of a run at each of the given steps. Raises as `train` does."""
    kept: list[Parameters] = []
    train(
        config,
        data,
        steps=steps,
        optimizer=optimizer,
        key=key,
        checkpoints=lambda step, state: kept.append(state["parameters"]),
    )
    return kept


def accuracy(config: Network, parameters: Mapping[str, Any], batch: Batch) -> float:
    """Fraction of positions that count at which the likeliest token is right.

    Raises ValueError where an intermediate array exceeds memory.
    """
    require_outputs(config, batch.tokens)
    return float(_accuracy(config, dict(parameters), batch))


@partial(jax.jit, static_argnums=0)
def _accuracy(config: Network, parameters: Parameters, batch: Batch) -> jax.Array:
    likeliest = jnp.argmax(config.forward(parameters, batch.tokens), axis=-1)
    return jnp.sum((likeliest == batch.target) * batch.weight) / jnp.sum(batch.weight)
