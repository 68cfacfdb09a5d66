"""Layout of the rows of a residual stream: one for each position of a batch, or one for each token."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Float, Integer

from iclab.simulation.networks.parts import AnyArray, looked_up

__all__ = ["RowLayout"]


@dataclass(frozen=True)
class RowLayout:
    """Rows (context · position, entry), or (token · position, entry) with the token at each position of the batch.

    The latter are fewer where a batch has more contexts than there are tokens; matrices are then applied to them
    before they are looked up.
    """

    contexts: int
    length: int  # positions
    tokens: Integer[AnyArray, "context position"] | None = None

    def by_position(self, rows: Float[jax.Array, "row entry"]) -> Float[jax.Array, "context position entry"]:
        """The row of each position of each context."""
        if self.tokens is None:
            return rows.reshape(self.contexts, self.length, -1)
        by_token = rows.reshape(-1, self.length, rows.shape[-1])
        return looked_up(by_token, self.tokens, jnp.arange(self.length, dtype=jnp.int32))

    def last(self, rows: Float[jax.Array, "row entry"]) -> "tuple[Float[jax.Array, 'last entry'], RowLayout]":
        """The rows of the last position, and their layout."""
        tokens = None if self.tokens is None else self.tokens[:, -1:]
        return rows.reshape(-1, self.length, rows.shape[-1])[:, -1], RowLayout(self.contexts, 1, tokens)

    def added(
        self, rows: Float[jax.Array, "row entry"], table: Float[AnyArray, "longest entry"]
    ) -> Float[jax.Array, "row entry"]:
        """Rows plus the row of their position in a table."""
        by_position = rows.reshape(-1, self.length, rows.shape[-1]) + jnp.asarray(table)[: self.length]
        return by_position.reshape(rows.shape)
