"""Where the rows of a residual stream stand in a batch."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from iclab.simulation.networks.parts import looked_up


@dataclass(frozen=True)
class Places:
    """Rows (context · position, entry), or (token · position, entry) with the token that stands in each place.

    The latter are fewer where a batch has more contexts than there are tokens; matrices are then applied to them
    before they are looked up.
    """

    contexts: int
    length: int  # positions
    tokens: Int[jax.Array, "context position"] | None = None

    def standing(self, rows: Float[jax.Array, "row entry"]) -> Float[jax.Array, "context position entry"]:
        """The row of each place."""
        if self.tokens is None:
            return rows.reshape(self.contexts, self.length, -1)
        by_token = rows.reshape(-1, self.length, rows.shape[-1])
        return looked_up(by_token, self.tokens, jnp.arange(self.length, dtype=jnp.int32))

    def last(self, rows: Float[jax.Array, "row entry"]) -> "tuple[Float[jax.Array, 'row entry'], Places]":
        """The rows of the last position, and where those stand."""
        tokens = None if self.tokens is None else self.tokens[:, -1:]
        return rows.reshape(-1, self.length, rows.shape[-1])[:, -1], Places(self.contexts, 1, tokens)

    def added(
        self, rows: Float[jax.Array, "row entry"], table: Float[jax.Array, "position entry"]
    ) -> Float[jax.Array, "row entry"]:
        """Rows plus that of their position in a table."""
        by_position = rows.reshape(-1, self.length, rows.shape[-1]) + jnp.asarray(table)[: self.length]
        return by_position.reshape(rows.shape)
