"""Means over the seeds that count in an entry, and their scatter."""

import numpy as np
from jaxtyping import Bool, Float, Int

__all__ = ["over_seeds"]

Array = np.ndarray


def over_seeds(
    values: Float[Array, "seed *entry"], kept: Bool[Array, "seed *entry"] | None = None
) -> tuple[Float[Array, "*entry"], Float[Array, "*entry"], Int[Array, "*entry"]]:
    """Mean, standard deviation and number of the seeds that are kept; all by default. One seed has no scatter.

    An entry that is NaN in a seed that counts is NaN.
    """
    kept = np.ones(values.shape, dtype=bool) if kept is None else kept
    count = np.sum(kept, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):  # an infinite deviation has no scatter
        mean = np.sum(np.where(kept, values, 0.0), axis=0) / count
        squares = np.sum(np.where(kept, (values - mean) ** 2, 0.0), axis=0)
    return mean, np.where(count > 1, np.sqrt(squares / np.maximum(count - 1, 1)), 0.0), count
