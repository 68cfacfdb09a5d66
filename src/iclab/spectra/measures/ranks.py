"""How many directions a matrix uses: ranks that are read off its singular values.

Each takes the singular values (one axis), a matrix (two axes) or a product of two factors, and answers alike for
c·x at any c. What is not defined, such as any of them for a matrix of zeros, is nan.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Shaped

from iclab.numerics import positive, require, share, whole_number
from iclab.spectra.measures.factors import Array, Matrix, Product, float64, numbers
from iclab.spectra.measures.spectrum import Spectrum, spectrum

Ranked = Matrix | Spectrum | Shaped[Array, "value"]
_EPS = float(np.finfo(float).eps)


def singular_values(x: Ranked) -> Float[Array, "value"]:
    """The singular values of x, largest first; x itself, sorted, where it has one axis.

    Raises ValueError for negative or non-finite values, for types that are no floats and for other shapes.
    """
    if isinstance(x, Spectrum):
        require(x.route != "randomized", "x must hold all singular values; got leading ones. Use `stable_rank`.")
        return x.values
    if isinstance(x, Product) or numbers("x", x).ndim != 1:
        return spectrum(x).values
    values = float64(x)
    least = float(np.min(values, initial=np.inf))
    require(
        values.size > 0 and least >= 0,
        f"singular values must be one or more and >= 0; got {len(values)}, least {least:g}.",
    )
    return -np.sort(-values)


def effective_rank(x: Ranked, *, power: float = 1, drop: int = 0) -> float:
    """exp of the entropy of p_i = σ_i^power / Σ σ^power, after the `drop` leading values are left out.

    power=1 is the usual one, power=2 weighs by energy and is steadier for weights stored in few bits, drop > 0 the
    marginalised one. Between 1 and the number of values. nan where what is left is zero or rounding noise.

    Raises ValueError for a power that is not positive or a drop that is no whole number >= 0.

    Source: roy2007effective, definition 1; mainali2025exact (marginalised); docs/derivations/spectra.
    """
    positive("power", power)
    return float(entropy_rank(singular_values(x), power, whole_number("drop", drop, least=0)))


def stable_rank(x: Ranked) -> float:
    """‖x‖_F² / ‖x‖₂². Leading values suffice.

    Source: definition in docs/derivations/spectra.
    """
    if isinstance(x, Spectrum) and x.route == "randomized":
        return (x.frobenius / float(x.values[0])) ** 2 if x.frobenius > 0 else np.nan
    return float(stable(singular_values(x)))


def participation_ratio(x: Ranked) -> float:
    """(Σ σ²)² / Σ σ⁴.

    Source: definition in docs/derivations/spectra.
    """
    return float(participation(singular_values(x)))


def nuclear_rank(x: Ranked) -> float:
    """(Σ σ)² / Σ σ².

    Source: definition in docs/derivations/spectra.
    """
    return float(nuclear(singular_values(x)))


def energy_rank(x: Ranked, *, fraction: float) -> float:
    """How many leading values hold the `fraction` of Σ σ².

    Raises ValueError for a fraction outside (0, 1].

    Source: definition in docs/derivations/spectra.
    """
    return float(energy(singular_values(x), share("fraction", fraction)))


def spectral_gap(x: Ranked, *, k: int) -> float:
    """(σ_k − σ_{k+1}) / σ_k with k counted from 1; values past the last are 0. nan where σ_k is 0 or not there.

    A subspace of k leading directions is as well defined as this is large.

    Raises ValueError for a k that is no whole number >= 1.

    Source: definition in docs/derivations/spectra.
    """
    return float(gap(singular_values(x), whole_number("k", k)))


def rank_measures(
    values: Float[Array, "*batch value"], *, drop: int = 1, fraction: float = 0.9
) -> dict[str, Float[Array, "*batch"]]:
    """Every rank along the last axis of singular values sorted from the largest, many spectra at once.

    Keys are the names of the functions; `energy_effective_rank` has power 2, `marginal_effective_rank` leaves out
    the `drop` leading values.

    Source: definitions in docs/derivations/spectra.
    """
    return {
        "effective_rank": entropy_rank(values, 1, 0),
        "energy_effective_rank": entropy_rank(values, 2, 0),
        "marginal_effective_rank": entropy_rank(values, 1, drop),
        "stable_rank": stable(values),
        "participation_ratio": participation(values),
        "nuclear_rank": nuclear(values),
        "energy_rank": energy(values, fraction),
    }


def entropy_rank(values: Float[Array, "*batch value"], power: float, drop: int) -> Float[Array, "*batch"]:
    """Effective ranks along the last axis."""
    kept = values[..., drop:]
    noise = values.shape[-1] * _EPS * values[..., :1]
    kept = np.where((drop > 0) & (kept <= noise), 0.0, kept)
    weight = over_largest(kept) ** power
    with np.errstate(divide="ignore", invalid="ignore"):
        share = weight / np.sum(weight, axis=-1, keepdims=True)
        entropy = -np.sum(np.where(share > 0, share * np.log(np.where(share > 0, share, 1.0)), 0.0), axis=-1)
    return np.where(np.sum(weight, axis=-1) > 0, np.exp(entropy), np.nan)


def stable(values: Float[Array, "*batch value"]) -> Float[Array, "*batch"]:
    """Stable ranks along the last axis."""
    return _or_nan(lambda s: np.sum(s**2, axis=-1), values)


def participation(values: Float[Array, "*batch value"]) -> Float[Array, "*batch"]:
    """Participation ratios along the last axis."""
    return _or_nan(lambda s: np.sum(s**2, axis=-1) ** 2 / np.sum(s**4, axis=-1), values)


def nuclear(values: Float[Array, "*batch value"]) -> Float[Array, "*batch"]:
    """Nuclear ranks along the last axis."""
    return _or_nan(lambda s: np.sum(s, axis=-1) ** 2 / np.sum(s**2, axis=-1), values)


def energy(values: Float[Array, "*batch value"], fraction: float) -> Float[Array, "*batch"]:
    """Energy ranks along the last axis."""

    def count(s: Float[Array, "*batch value"]) -> Float[Array, "*batch"]:
        held = np.cumsum(s**2, axis=-1)
        return 1.0 + np.sum(held < fraction * held[..., -1:] * (1 - 4 * _EPS), axis=-1)

    return _or_nan(count, values)


def gap(values: Float[Array, "*batch value"], k: int) -> Float[Array, "*batch"]:
    """Relative gaps after the k-th value along the last axis."""
    if k > values.shape[-1]:
        return np.full(values.shape[:-1], np.nan)
    last = values[..., k - 1]
    after = values[..., k] if k < values.shape[-1] else np.zeros_like(last)
    return np.divide(last - after, last, out=np.full(last.shape, np.nan), where=last > 0)


def over_largest(values: Float[Array, "*batch value"]) -> Float[Array, "*batch value"]:
    """Values over the largest, so that no power of them leaves the range of numbers; zeros stay zeros."""
    if values.shape[-1] == 0:
        return values
    largest = values[..., :1]
    return np.divide(values, largest, out=np.zeros_like(values), where=largest > 0)


def _or_nan(
    measure: Callable[[Float[Array, "*batch value"]], Float[Array, "*batch"]], values: Float[Array, "*batch value"]
) -> Float[Array, "*batch"]:
    """The measure of values over their largest, nan where all are zero."""
    with np.errstate(invalid="ignore"):
        return np.where(values[..., 0] > 0, measure(over_largest(values)), np.nan)
