"""Perceptrons on a few tokens, the smallest networks that grok."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from iclab.numerics import checks_its_fields, whole_number
from iclab.simulation.networks.parts import Parameters, drawn, looked_up

__all__ = ["Perceptron"]


@checks_its_fields
@dataclass(frozen=True)
class Perceptron:
    """One hidden layer of ReLU neurons on the concatenated embeddings of a few tokens; no biases.

    Raises ValueError for impossible sizes.
    """

    vocabulary: int  # different tokens
    outputs: int  # entries of the output
    length: int = 2  # tokens
    width: int = 64  # entries of an embedding
    hidden: int = 256  # neurons

    def __post_init__(self) -> None:
        for name in ("vocabulary", "outputs", "length", "width", "hidden"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))

    @property
    def shortest(self) -> int:
        """Tokens of every sequence."""
        return self.length

    @property
    def entries(self) -> int:
        """Numbers in the largest array that a sequence goes through."""
        return max(self.length * self.width, self.hidden, self.outputs)

    def start(self, key: jax.Array) -> Parameters:
        """A table of entries N(0, 1/width), matrices of entries N(0, 1/inputs)."""
        shapes = {
            "embed.weight": (self.vocabulary, self.width),
            "mlp_in.weight": (self.hidden, self.length * self.width),
            "mlp_out.weight": (self.outputs, self.hidden),
        }
        return drawn(tuple(shapes.items()), key)

    def forward(self, parameters: Parameters, tokens: jax.Array) -> jax.Array:
        """Outputs (context, 1, output).

        The contribution of a token to each neuron is looked up: there are fewer tokens than positions that hold them.
        """
        weights = parameters["mlp_in.weight"].reshape(self.hidden, self.length, self.width)
        added = jnp.einsum("tw,nlw->ltn", parameters["embed.weight"], weights)
        hidden = jax.nn.relu(sum(looked_up(added[at], tokens[:, at]) for at in range(self.length)))
        return (hidden @ parameters["mlp_out.weight"].T)[:, None]
