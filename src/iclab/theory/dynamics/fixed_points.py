"""Fixed points of the training dynamics, where gradient flow stalls, and the modes that they hold."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, instance, numbers, require, whole_number
from iclab.theory.population import Moments, modes

__all__ = ["checked_modes", "fixed_point", "plateau_prediction", "plateaus", "reachable"]


def plateaus(moments: Validated[Moments]) -> Float[np.ndarray, "plateau"]:
    """Losses of the fixed points that hold the modes of largest contribution, from none to all.

    A mode's contribution is the squared singular value of C^-1/2 B Λ^-1/2. Where signal and contribution order the
    modes alike these are the plateaus of gradient flow from a small start. The entry m is also the least loss at rank
    m. Units: squared label.

    Source: zhang2025training, eq. 19; general covariances derived in docs/derivations/dynamics.
    """
    instance("moments", moments, Moments)
    contribution = modes(moments).contribution
    fallen = moments.null_loss - np.concatenate([[0.0], np.cumsum(contribution)])
    if moments.floor is None:
        return fallen
    left = moments.floor + np.concatenate([np.cumsum(contribution[::-1])[::-1], [0.0]])
    return np.where(2 * left < moments.null_loss, left, fallen)  # the sum with the smaller rounding


def fixed_point(moments: Validated[Moments], learned: Validated[Sequence[int]]) -> Float[np.ndarray, "D D"]:
    """Γ of the fixed point that holds the modes `learned`, each at its best strength.

    Separate attention rests at every set of modes, merged attention at none and at all. Modes count from 0, largest
    contribution first; for identity task covariance that is the largest eigenvalue first. Modes of equal contribution
    and signal may be mixed by any rotation, so for white problems the fixed points form a continuum; this is one of
    them.

    Raises ValueError for modes that are no whole numbers in 0..D-1 or come twice.

    Source: zhang2025training, eq. 18; general covariances derived in docs/derivations/dynamics.
    """
    instance("moments", moments, Moments)
    return modes(moments).gamma(checked_modes(moments, learned))


def reachable(
    moments: Validated[Moments], heads: Validated[int], *, rank: Validated[int] = 1
) -> Iterator[tuple[int, ...]]:
    """Sets of modes that separate attention can hold, smallest first: at most heads × rank modes.

    Modes of no contribution are left out. With heads × rank >= D all 2^D sets come; with fewer the flow of a
    small start ends at the heads × rank modes it learned first, and the others stay unlearned.

    Raises ValueError for heads or a rank below 1.

    Source: zhang2025training, eq. 18; limited capacity derived in docs/derivations/dynamics.
    """
    instance("moments", moments, Moments)
    capacity = whole_number("heads", heads) * whole_number("rank", rank)
    learnable = np.flatnonzero(modes(moments).contribution).tolist()
    sizes = range(min(len(learnable), capacity) + 1)
    return itertools.chain.from_iterable(itertools.combinations(learnable, size) for size in sizes)


def plateau_prediction(
    moments: Validated[Moments],
    learned: Validated[Sequence[int]],
    inputs: Validated[Float[ArrayLike, "*batch N D"]],
    labels: Validated[Float[ArrayLike, "*batch N"]],
    query: Validated[Float[ArrayLike, "*batch D"]],
) -> float | Float[np.ndarray, "*batch"]:
    """Prediction of attention that holds the modes `learned`, for the query of a given context.

    hᵀ Γ x_q with h = (1/N) Σ y x: principal component regression in context on the population's eigenvectors, its
    coefficient on component d divided by the population variance λ_d and shrunk by 1 + (1 + (tr ΩΛ +
    noise)/(λω)_d)/N; for N → ∞ without shrinkage. The moments must be normalized by "length". Units: those of the
    labels.

    Raises ValueError for shapes that do not fit each other, and for modes that do not exist.

    Source: zhang2025training, eq. 22.
    """
    instance("moments", moments, Moments)
    inputs, labels, query = (
        numbers(name, array) for name, array in (("inputs", inputs), ("labels", labels), ("query", query))
    )
    size = moments.dimension
    require(
        inputs.ndim >= 2 and inputs.shape[-1] == size and inputs.shape[-2] >= 1,
        f"inputs must have shape (..., N, {size}); got {inputs.shape}.",
    )
    require(
        labels.shape == inputs.shape[:-1],
        f"labels must be one for each input, of shape {inputs.shape[:-1]}; got {labels.shape}.",
    )
    require(
        query.shape == (*inputs.shape[:-2], size),
        f"query must be one input for each context, of shape {(*inputs.shape[:-2], size)}; got {query.shape}.",
    )
    summary = np.einsum("...n,...nd->...d", labels, inputs) / inputs.shape[-2]
    return np.einsum("...i,ij,...j->...", summary, fixed_point(moments, learned), query)


def checked_modes(moments: Validated[Moments], learned: Validated[Sequence[int]]) -> tuple[int, ...]:
    """The modes as integers. Raises ValueError for a mode outside 0..D-1, for a fraction and for a repeat.

    Source: numbering of docs/derivations/dynamics.
    """
    instance("moments", moments, Moments)
    require(np.iterable(learned), f"learned must be a list of modes, counted from 0; got {learned!r}.")
    chosen = tuple(whole_number("learned", mode, least=0) for mode in learned)
    require(
        all(mode < moments.dimension for mode in chosen),
        f"learned must hold modes 0..{moments.dimension - 1}, counted from 0, largest contribution first; "
        f"got {learned!r}.",
    )
    require(len(set(chosen)) == len(chosen), f"learned must name each mode once; got {learned!r}.")
    return chosen
