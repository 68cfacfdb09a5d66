"""Where integer seeds become JAX keys."""

import operator
from typing import TYPE_CHECKING

import jax

from iclab.numerics import require

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray

GENERATOR = "threefry2x32"  # named, so that no setting of the process changes what a seed draws


def key_of(seed: int) -> "PRNGKeyArray":
    """The key of a seed, from the seed alone: more seeds never change what the old ones draw.

    Raises ValueError for a seed that is no whole number in 0 .. 2⁶³ − 1.
    """
    try:
        whole = not isinstance(seed, bool) and 0 <= operator.index(seed) < 2**63
    except TypeError:
        whole = False
    require(whole, f"seed must be a whole number from 0 to 2**63 - 1; got {seed!r}.")
    with jax.enable_x64(True):  # else seeds that differ by a multiple of 2³² would be the same
        return jax.random.key(operator.index(seed), impl=GENERATOR)
