"""Covariances of random functions on the sphere, expanded in spherical harmonics."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from iclab.numerics import Validated, Values, numbers, require
from iclab.theory.softmax.attention_weights import Angles, angles

__all__ = ["Kernel", "Spectrum", "log_counts", "pair_gaps", "spectrum", "zonal_harmonics"]

MOST_HARMONICS = 1200.0  # log of their number in a degree; values of more are not numbers, and no kernel needs them

Kernel = Callable[[Float[np.ndarray, "*n"]], Values]


@dataclass(frozen=True)
class Spectrum:
    """A covariance k of the cosine: eigenvalues of its degrees, and harmonics at the nodes of the angle.

    `gap` is k(1) − k at the nodes. A row of `harmonics` is a zonal function of mean square one; k has the value
    Σ eigenvalue · √count · harmonic.
    """

    at: Angles
    height: float
    gap: Float[np.ndarray, "node"]
    eigenvalues: Float[np.ndarray, "degree"]
    harmonics: Float[np.ndarray, "degree node"]


def spectrum(kernel: Validated[Kernel], dimension: int, nodes: int) -> Spectrum:
    """The expansion of a kernel at a number of nodes, with half as many degrees.

    Raises ValueError for a kernel that does not return one finite number for each cosine, or has a negative
    eigenvalue.

    Source: derived in docs/derivations/softmax_window.
    """
    require(callable(kernel), f"kernel must be a function of an array of cosines; got {type(kernel).__name__}.")
    at = angles(dimension, nodes)
    values, height = (numbers("kernel's values", kernel(cosines)) for cosines in (at.cosine, np.ones(1)))
    require(
        values.shape == at.cosine.shape and height.shape == (1,),
        "kernel must return a finite number for each cosine; got something else. It takes an array.",
    )
    degrees = int(np.sum(log_counts(dimension, nodes // 2) <= MOST_HARMONICS))
    harmonics = zonal_harmonics(at.cosine, dimension, degrees)
    counts = np.exp(0.5 * log_counts(dimension, degrees))
    eigenvalues = harmonics @ (at.weight * values) / counts
    require(
        bool(np.all(eigenvalues >= -1e-10 * abs(height[0]))),
        f"kernel must be a covariance on the sphere; got the eigenvalue {eigenvalues.min():.3g}.",
    )
    return Spectrum(at, float(height[0]), height[0] - values, eigenvalues, harmonics)


def pair_gaps(law: Spectrum, one: Float[np.ndarray, "s node"], other: Float[np.ndarray, "s node"]) -> float:
    """Σ over rows of the average of k(1) − k(t) − k(t') + k(xᵀx') over pairs of points, t from a row of each.

    Source: derived in docs/derivations/softmax_window.
    """
    total, gaps = one.sum(axis=1), one @ law.gap
    total_other, gaps_other = other.sum(axis=1), other @ law.gap
    spread = ((one @ law.harmonics.T) * (other @ law.harmonics.T)) @ law.eigenvalues
    return float(np.sum(total * gaps_other + gaps * total_other - law.height * total * total_other + spread))


def zonal_harmonics(
    cosine: Float[np.ndarray, "node"], dimension: int, degrees: int
) -> Float[np.ndarray, "degree node"]:
    """Zonal functions of degree 0, 1, … with mean square one on the sphere.

    Source: derived in docs/derivations/softmax_window.
    """
    rows = np.ones((max(degrees, 2), len(cosine)))
    rows[1] = cosine
    for degree in range(1, degrees - 1):
        ahead = (2 * degree + dimension - 2) * cosine * rows[degree] - degree * rows[degree - 1]
        rows[degree + 1] = ahead / (degree + dimension - 2)
    return rows[:degrees] * np.exp(0.5 * log_counts(dimension, degrees))[:, None]


def log_counts(dimension: int, degrees: int) -> Float[np.ndarray, "degree"]:
    """Logarithm of the number of harmonics of each degree.

    Source: derived in docs/derivations/softmax_window.
    """
    degree = np.arange(1, degrees)
    choices = gammaln(degree + dimension - 2) - gammaln(degree) - gammaln(dimension - 1)
    return np.concatenate([[0.0], np.log((2 * degree + dimension - 2) / degree) + choices])
