"""Where integer seeds become JAX keys, and keys generators of NumPy."""

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from iclab.numerics import require, whole_number

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray

GENERATOR = "threefry2x32"  # named, so that no setting of the process changes what a seed draws


def key_of(seed: int) -> "PRNGKeyArray":
    """The key of a seed, from the seed alone: more seeds never change what the old ones draw.

    Raises ValueError for a seed that is no whole number in 0 .. 2⁶³ − 1.
    """
    whole = whole_number("seed", seed, least=0)
    require(whole < 2**63, f"seed must be below 2**63; got {whole}.")
    with jax.enable_x64(True):  # else seeds that differ by a multiple of 2³² would be the same
        return jax.random.key(whole, impl=GENERATOR)


def checked_key(key: Any) -> "PRNGKeyArray":
    """The key. Raises ValueError unless it is one key."""
    return _checked("key", key, 0, "one key")


def checked_keys(keys: Any) -> "PRNGKeyArray":
    """The keys. Raises ValueError unless they are a list of keys."""
    return _checked("keys", keys, 1, "a list of keys")


def _checked(name: str, value: Any, axes: int, what: str) -> "PRNGKeyArray":
    holds = isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key) and value.ndim == axes
    came = f"{value.dtype} of shape {value.shape}" if isinstance(value, jax.Array) else type(value).__name__
    require(holds, f"{name} must be {what} made by jax.random.key or simulation.keys.key_of; got {came}.")
    return value


def generators_of(keys: "PRNGKeyArray") -> list[np.random.Generator]:
    """The generators of NumPy that a list of keys seeds, for what every device is to draw alike.

    On a CPU a normal number takes a third of the time that it takes in JAX, and nothing is compiled.
    """
    return [np.random.Generator(np.random.SFC64(words)) for words in np.asarray(jax.random.key_data(keys))]
