"""Linear attention in full: one layer with weights and biases for queries, keys and values."""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from iclab.numerics import checks_its_fields, whole_number
from iclab.simulation.networks.parts import Parameters, drawn

__all__ = ["LinearAttention"]


@checks_its_fields
@dataclass(frozen=True)
class LinearAttention:
    """One head on real tokens that are not embedded; the query is the last of them and attends to all, itself too.

    Scores are q·k/√width, not normalized, and the value of a token is one number: of more entries
    only that one would be read out, and others would never be trained.

    Raises ValueError for impossible sizes.
    """

    length: int  # longest sequence
    features: int  # entries of a token
    width: int  # entries of a query

    def __post_init__(self) -> None:
        for name in ("length", "features", "width"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))

    @property
    def shortest(self) -> int:
        """Tokens of the shortest sequence."""
        return 1

    @property
    def entries(self) -> int:
        """Numbers in the largest array that a sequence goes through."""
        return self.length * max(self.features, self.width)

    def start(self, key: jax.Array) -> Parameters:
        """Weights of entries N(0, 1/features), biases of zero."""
        sizes = {"query": self.width, "key": self.width, "value": 1}
        weights = tuple((f"layers.0.attention.{part}.weight", (size, self.features)) for part, size in sizes.items())
        return drawn(weights, key) | {
            f"layers.0.attention.{part}.bias": jnp.zeros(size, jnp.float32) for part, size in sizes.items()
        }

    def forward(self, parameters: Parameters, tokens: jax.Array) -> jax.Array:
        """Outputs (context, 1, 1)."""

        def projected(rows: jax.Array, part: str) -> jax.Array:
            name = f"layers.0.attention.{part}"
            return rows @ parameters[f"{name}.weight"].T + parameters[f"{name}.bias"]

        contexts, length = tokens.shape[:2]
        rows = tokens.reshape(-1, self.features)
        query = projected(tokens[:, -1], "query") / np.float32(math.sqrt(self.width))
        key, value = (projected(rows, part).reshape(contexts, length, -1) for part in ("key", "value"))
        memory = jnp.sum(key * value, axis=1)
        return jnp.sum(query * memory, axis=-1)[:, None, None]
