"""The band of single runs: mean and deviation of errors from draw to draw."""

from dataclasses import fields

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from iclab.numerics import Validated, require, whole_number
from iclab.outcomes import FittedErrors
from iclab.problem import Pretraining
from iclab.simulation.keys import checked_key
from iclab.simulation.pretraining.fitting import fit_each

__all__ = ["FEWEST", "MOST", "band"]

FEWEST = 32  # runs whose standard deviation is known to an eighth
MOST = 100_000  # to a quarter of a percent


def band(
    size: Validated[Pretraining], *, ridge: Validated[float], runs: Validated[int], key: Validated[PRNGKeyArray]
) -> tuple[FittedErrors, FittedErrors]:
    """Mean and standard deviation of the errors of single runs, each with its own pool and sequences.

    Raises ValueError for fewer than 32 runs and more than 100000, and as fit_each does.
    """
    count = whole_number("runs", runs, least=FEWEST)
    require(count <= MOST, f"runs must be at most {MOST}; got {count}. Fewer tell the band well.")
    keys = jax.random.split(checked_key(key), count)
    errors = [fit.errors() for fit in fit_each(size, ridge=ridge, keys=keys)]
    drawn = {entry.name: [getattr(one, entry.name) for one in errors] for entry in fields(FittedErrors)}
    mean = FittedErrors(**{name: float(np.mean(values)) for name, values in drawn.items()})
    return mean, FittedErrors(**{name: float(np.std(values, ddof=1)) for name, values in drawn.items()})
