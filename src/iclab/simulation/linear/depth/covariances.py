"""Covariances S = XXᵀ/N of drawn contexts: all that the mean loss of a stack over tasks and noise knows of them."""

import numpy as np
from jaxtyping import Float, PRNGKeyArray

from iclab.numerics import Validated, require, whole_number
from iclab.problem import Regression
from iclab.simulation.keys import checked_key, generators_of
from iclab.simulation.memory import require_memory

__all__ = ["draw_covariances", "orbits"]

Array = np.ndarray


def draw_covariances(
    problem: Validated[Regression], contexts: Validated[int], *, key: PRNGKeyArray
) -> Float[Array, "M D D"]:
    """S of M drawn contexts.

    Raises ValueError for fewer than one context and for several context lengths.
    """
    count, lengths = whole_number("contexts", contexts), problem.context_lengths
    require(len(lengths) == 1, f"context_length must be one number here; got {lengths}. Draw one at a time.")
    shape = (count, lengths[0], problem.dimension)
    require_memory("contexts and context_length", 3.0 * np.prod(shape))
    (rng,) = generators_of(checked_key(key)[None])
    inputs = np.sqrt(problem.eigenvalues) * rng.standard_normal(shape)
    return np.matmul(inputs.transpose(0, 2, 1), inputs) / lengths[0]


def orbits(covariances: Validated[Float[Array, "M D D"]]) -> Float[Array, "M_D_D D D"]:
    """D² copies of each S, under D patterns of signs and D exchanges of entries: a sample that keeps scalars scalar.

    The signs are the rows of a Hadamard matrix, the exchanges i → i xor k. Together they are a group up to a sign
    that S does not see, and only multiples of 1 commute with it: gradient descent of whole matrices on white tasks
    never leaves scalars, to rounding. Spectra are those of the sample.

    Raises ValueError unless D is a power of two.
    """
    size = covariances.shape[-1]
    require(size & (size - 1) == 0, f"dimension must be a power of two for invariant samples; got {size}.")
    signs = np.ones((1, 1))
    while len(signs) < size:
        signs = np.block([[signs, signs], [signs, -signs]])
    places = np.arange(size) ^ np.arange(size)[:, None]
    copies = [sign[:, None] * covariances[:, place[:, None], place] * sign for sign in signs for place in places]
    return np.concatenate(copies)
