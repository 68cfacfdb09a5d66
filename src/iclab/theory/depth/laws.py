"""Laws of the spectrum of S/λ, the covariance of the inputs of a context in units of their variance.

A law is known through the recurrence of its orthogonal polynomials: L + 1 coefficients hold all that L layers can
learn of it. It carries α = N/D, which turns the noise ratio ρ/T into the noise that a spectrum feels, ρ/(T α).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from math import inf, isinf
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.linalg import eigh_tridiagonal

from iclab.numerics import Validated, magnitude_number, nonnegative, numbers, require, whole_number
from iclab.theory.depth.exact_moments import Recurrence, recurrence_of, wishart_moments
from iclab.theory.depth.lanczos import lanczos

__all__ = ["Discrete", "GaussRule", "SpectralLaw", "WhiteLimit", "Wishart", "spectrum", "white_limit", "wishart"]

Array = np.ndarray


class GaussRule(NamedTuple):
    """Nodes x and weights with which Σ weight f(x) is the mean of f, for polynomials up to twice their number − 1."""

    nodes: Float[Array, "node"]
    weights: Float[Array, "node"]


@dataclass(frozen=True, eq=False)
class SpectralLaw(ABC):
    """A law of the eigenvalues of S/λ with mean-one mass; `alpha` is N/D of the contexts that it describes."""

    alpha: float

    @property
    def points(self) -> int | float:
        """The number of different eigenvalues; infinite for a density."""
        return inf

    @property
    def floor(self) -> float:
        """The weight at 0: the excess that no number of layers goes below without noise."""
        return 0.0

    @abstractmethod
    def recurrence(self, degree: int) -> Recurrence:
        """Diagonal a_0..a_L and squared off-diagonal b_1..b_L of the Jacobi matrix, L = degree at most points − 1."""

    def rule(self, degree: int) -> GaussRule:
        """The Gauss rule with degree + 1 nodes, or all points of the law where it has no more."""
        diagonal, squares = self.recurrence(int(min(degree, self.points - 1)))
        nodes, vectors = eigh_tridiagonal(diagonal, np.sqrt(squares))
        return GaussRule(nodes, vectors[0] ** 2)

    def felt_noise(self, noise_ratio: Validated[float]) -> float:
        """The noise ρ/T over α, as it enters the loss of given layers.

        Raises ValueError for a negative ratio, and for noise where α is infinite.
        """
        ratio = magnitude_number("noise_ratio", noise_ratio, zero=True)
        require(
            ratio == 0 or not isinf(self.alpha),
            f"noise_ratio must be 0 where contexts are infinite, for noise is averaged out; got {ratio:g}. Give the "
            "law a finite alpha, N/D.",
        )
        return ratio / self.alpha


@dataclass(frozen=True)
class WhiteLimit(SpectralLaw):
    """The limit of white inputs: the Marchenko-Pastur law of ratio 1/α."""

    @property
    def points(self) -> int | float:
        """One where contexts are infinite."""
        return 1 if isinf(self.alpha) else inf

    @property
    def floor(self) -> float:
        """1 − α, where it is positive."""
        return max(0.0, 1 - self.alpha)

    def recurrence(self, degree: int) -> Recurrence:
        """a = 1, 1 + 1/α, 1 + 1/α, … and b = 1/α, 1/α, …."""
        return np.r_[1.0, np.full(degree, 1 + 1 / self.alpha)], np.full(degree, 1 / self.alpha)


@dataclass(frozen=True)
class Wishart(SpectralLaw):
    """The mean spectrum of white inputs at finite dimension and context length, exactly."""

    dimension: int
    context_length: int

    @property
    def floor(self) -> float:
        """1 − N/D, where it is positive: S has that share of zero eigenvalues."""
        return max(0.0, 1 - self.alpha)

    def recurrence(self, degree: int) -> Recurrence:
        """From exact moments; a second at degree 64."""
        return _wishart_recurrence(self.dimension, self.context_length, degree)


@lru_cache(maxsize=256)
def _wishart_recurrence(dimension: int, context_length: int, degree: int) -> Recurrence:
    return recurrence_of(wishart_moments(dimension, context_length, 2 * degree + 1))


@dataclass(frozen=True, eq=False)
class Discrete(SpectralLaw):
    """A law of finitely many points, as of one sample, or of a fixed spectrum in contexts without fluctuation."""

    values: Float[Array, "point"]
    weights: Float[Array, "point"]

    @property
    def points(self) -> int | float:
        """The number of different values with a weight."""
        return len(np.unique(self.values[self.weights > 0]))

    @property
    def floor(self) -> float:
        """The weight of the value 0."""
        return float(np.sum(self.weights[self.values == 0]))

    def recurrence(self, degree: int) -> Recurrence:
        """By Lanczos with full orthogonalization."""
        return _lanczos(self, degree)


@lru_cache(maxsize=64)
def _lanczos(law: Discrete, degree: int) -> Recurrence:
    return lanczos(law.values, law.weights, degree)


def white_limit(alpha: Validated[float]) -> WhiteLimit:
    """The law of S/λ for white inputs, N, D → ∞ at α = N/D.

    Raises ValueError for α that is not positive.

    Source: paquette2020universality, abstract (sample covariances); derived in docs/derivations/depth.
    """
    return WhiteLimit(magnitude_number("alpha", alpha, infinite=True))


def wishart(dimension: Validated[int], context_length: Validated[int]) -> Wishart:
    """The mean law of S/λ for white inputs at finite D and N, also N < D.

    Raises ValueError for sizes below 1.

    Source: derived in docs/derivations/depth.
    """
    size, length = whole_number("dimension", dimension), whole_number("context_length", context_length)
    return Wishart(length / size, size, length)


def spectrum(
    values: Validated[Float[ArrayLike, "point"]],
    weights: Validated[Float[ArrayLike, "point"] | None] = None,
    *,
    alpha: Validated[float] = inf,
) -> Discrete:
    """The law of given eigenvalues of S/λ with weights that are scaled to sum to 1; equal ones unless given.

    Eigenvalues of the covariances of a sample of contexts, taken together, give the exact theory of that sample.

    Raises ValueError for lists of other length, values or weights that are negative or not finite, and no weight.

    Source: derived in docs/derivations/depth.
    """
    points = nonnegative("values", values)
    shares = np.ones_like(points) if weights is None else nonnegative("weights", numbers("weights", weights))
    require(
        points.ndim == 1 and points.shape == shares.shape and len(points) > 0,
        f"values and weights must be two lists of one length; got shapes {points.shape} and {shares.shape}.",
    )
    total = float(np.sum(shares))
    require(total > 0, "weights must hold a positive one; got zeros only.")
    require(bool(np.any(points[shares > 0] > 0)), "values must hold a positive one with a weight; got zeros only.")
    return Discrete(magnitude_number("alpha", alpha, infinite=True), points, shares / total)
