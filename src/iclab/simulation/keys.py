"""JAX keys from integer seeds, and generators of NumPy from keys."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Key, PRNGKeyArray

from iclab.numerics import Validated, require, whole_number

__all__ = ["GENERATOR", "checked_key", "checked_keys", "generators_of", "key_of"]

GENERATOR = "threefry2x32"  # named, so that no setting of the process changes what a seed draws


def key_of(seed: Validated[int]) -> PRNGKeyArray:
    """The key of a seed, from the seed alone: more seeds never change what earlier ones draw.

    Raises ValueError for a seed that is no whole number in 0 .. 2⁶³ − 1.
    """
    whole = whole_number("seed", seed, least=0)
    require(whole < 2**63, f"seed must be below 2**63; got {whole}.")
    with jax.enable_x64(True):  # else seeds that differ by a multiple of 2³² would be the same
        return jax.random.key(whole, impl=GENERATOR)


def checked_key(key: Any) -> PRNGKeyArray:
    """The key. Raises ValueError unless it is one key."""
    return _checked("key", key, 0, "one key")


def checked_keys(keys: Any) -> Key[jax.Array, "seed"]:
    """The keys. Raises ValueError unless they are a list of keys."""
    return _checked("keys", keys, 1, "a list of keys")


def _checked(name: str, value: Any, axes: int, what: str) -> Key[jax.Array, "..."]:
    holds = isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key) and value.ndim == axes
    got = f"{value.dtype} of shape {value.shape}" if isinstance(value, jax.Array) else type(value).__name__
    require(holds, f"{name} must be {what} made by jax.random.key or simulation.keys.key_of; got {got}.")
    return value


def generators_of(keys: Key[jax.Array, "seed"]) -> list[np.random.Generator]:
    """A generator of NumPy for each key, for draws that are the same on every device.

    On a CPU a normal number takes a third of the time that it takes in JAX, and nothing is compiled.
    """
    return [np.random.Generator(np.random.SFC64(words)) for words in np.asarray(jax.random.key_data(keys))]
