"""Functions that contexts of regression follow, each determined by a vector, its task.

For inputs N(0, I/D) the labels have mean 0 and variance 1 over tasks and inputs in every class.
"""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Float

from iclab.numerics import checks_its_fields, require, whole_number

__all__ = ["EXACT", "Linear", "SparseLinear", "TwoLayer"]

EXACT = "highest"  # precision of products, which some devices would otherwise round to 10 bits


@dataclass(frozen=True)
class Linear:
    """wᵀx with tasks w ~ N(0, I)."""

    def normals(self, dimension: int) -> int:
        """Normal numbers that a task is made of."""
        return dimension

    def tasks(self, normal: Float[jax.Array, "task normals"]) -> Float[jax.Array, "task D"]:
        """A task from each row of standard normal numbers."""
        return normal

    def values(self, tasks: Float[jax.Array, "P D"], inputs: Float[jax.Array, "P n D"]) -> Float[jax.Array, "P n"]:
        """The function of each task at its own inputs."""
        return jnp.einsum("pnd,pd->pn", inputs, tasks, precision=EXACT)


@checks_its_fields
@dataclass(frozen=True)
class SparseLinear(Linear):
    """wᵀx with tasks of few non-zero entries, at random positions and N(0, D/s).

    Raises ValueError for fewer than one, and for tasks of fewer entries.
    """

    nonzero: int = 3  # s, entries of a task that are not 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "nonzero", whole_number("nonzero", self.nonzero))

    def normals(self, dimension: int) -> int:
        """Normal numbers that a task is made of: entries, and as many whose ranks choose those that are kept."""
        require(self.nonzero <= dimension, f"nonzero must be at most the dimension, {dimension}; got {self.nonzero}.")
        return 2 * dimension

    def tasks(self, normal: Float[jax.Array, "task normals"]) -> Float[jax.Array, "task D"]:
        """A task from each row of standard normal numbers."""
        entries, ranked = jnp.split(normal, 2, axis=1)
        kept = jnp.argsort(ranked, axis=1) < self.nonzero
        return jnp.where(kept, math.sqrt(entries.shape[1] / self.nonzero) * entries, 0.0)


@checks_its_fields
@dataclass(frozen=True)
class TwoLayer:
    """√(2/r) Σ v max(0, uᵀx) over r hidden neurons, all weights u and v of a task being N(0, 1).

    Raises ValueError for fewer than one neuron.
    """

    hidden: int = 100  # r, neurons

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", whole_number("hidden", self.hidden))

    def normals(self, dimension: int) -> int:
        """Normal numbers that a task is made of."""
        return self.hidden * (dimension + 1)

    def tasks(self, normal: Float[jax.Array, "task normals"]) -> Float[jax.Array, "task entry"]:
        """A task from each row of standard normal numbers."""
        return normal

    def values(
        self, tasks: Float[jax.Array, "P entry"], inputs: Float[jax.Array, "P n D"]
    ) -> Float[jax.Array, "P n"]:
        """The function of each task at its own inputs."""
        weights = tasks.reshape(len(tasks), self.hidden, -1)
        neurons = jnp.einsum("pnd,prd->pnr", inputs, weights[..., :-1], precision=EXACT)
        output = jnp.einsum("pnr,pr->pn", jax.nn.relu(neurons), weights[..., -1], precision=EXACT)
        return math.sqrt(2 / self.hidden) * output
