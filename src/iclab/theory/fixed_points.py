"""Fixed points of the training dynamics: where gradient flow stalls, and what has been learned there."""

import operator
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from iclab.numerics import require
from iclab.theory.population import Moments, modes

Array = np.ndarray


def plateaus(moments: Moments) -> Float[Array, "plateau"]:
    """Losses of the fixed points that hold the most worthy modes, from none to all.

    Each mode is worth the squared singular value of C^-1/2 B Λ^-1/2. Where growth and worth order the modes alike
    these are the plateaus of gradient flow from a small start. The entry m is also the least loss at rank m.
    Units: squared label.

    Source: zhang2025training, eq. 19; general covariances derived in docs/derivations/dynamics.
    """
    return moments.null_loss - np.concatenate([[0.0], np.cumsum(modes(moments).worth)])


def fixed_point(moments: Moments, learned: Sequence[int]) -> Float[Array, "D D"]:
    """Γ of the fixed point that holds the modes `learned`, each at its best.

    Separate attention rests at every set of modes, merged attention at none and at all. Modes count from 0, most
    worth first; for identity task covariance that is the largest eigenvalue first.

    Raises ValueError for modes that are no whole numbers in 0..D-1 or come twice.

    Source: zhang2025training, eq. 18; general covariances derived in docs/derivations/dynamics.
    """
    return modes(moments).gamma(checked_modes(moments, learned))


def checked_modes(moments: Moments, learned: Sequence[int]) -> tuple[int, ...]:
    """The modes as integers. Raises ValueError for a mode outside 0..D-1, for a fraction and for a repeat."""
    try:
        chosen = tuple(operator.index(mode) for mode in learned)
    except TypeError:
        raise ValueError(f"learned must be whole mode numbers, counted from 0; got {learned!r}.") from None
    require(
        all(0 <= mode < moments.dimension for mode in chosen),
        f"learned must hold modes 0..{moments.dimension - 1}, counted from 0, most worth first; got {learned!r}.",
    )
    require(len(set(chosen)) == len(chosen), f"learned must name each mode once; got {learned!r}.")
    return chosen
