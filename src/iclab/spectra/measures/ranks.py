"""Effective numbers of directions of a matrix: ranks, from its singular values.

Each takes the singular values (one axis), a matrix (two axes) or a product of two factors, and is the same for c·x at
any c. Undefined ranks, such as those of a matrix of zeros, are nan.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Shaped

from iclab.numerics import Validated, Values, positive, require, share, whole_number
from iclab.spectra.measures.factors import Matrix, Product, float64, numbers
from iclab.spectra.measures.spectrum import Spectrum, spectrum_in_units
from iclab.spectra.measures.units import out_of_units

__all__ = [
    "Ranked", "effective_rank", "energy", "energy_rank", "entropy_rank", "gap", "nuclear", "nuclear_rank",
    "over_largest", "participation", "participation_ratio", "rank_measures", "singular_values", "spectral_gap",
    "stable", "stable_rank",
]  # fmt: skip

Ranked = Matrix | Spectrum | Shaped[np.ndarray, "value"]
_EPS = float(np.finfo(float).eps)


def singular_values(x: Validated[Ranked]) -> Float[np.ndarray, "value"]:
    """Singular values of x, largest first; x itself, sorted, where it has one axis.

    Raises ValueError for negative or non-finite values, for types that are no floats, for other shapes and for values
    beyond the range of numbers.
    """
    return out_of_units(*_in_units(x))


def _in_units(x: Validated[Ranked]) -> tuple[Float[np.ndarray, "value"], int]:
    """Singular values over 2^e and e, which is 0 unless squares of the entries are no numbers."""
    if isinstance(x, Spectrum):
        require(x.route != "randomized", "x must hold all singular values; got leading ones. Use `stable_rank`.")
        return x.values, 0
    if isinstance(x, Product) or numbers("x", x).ndim != 1:
        found, exponent = spectrum_in_units(x)
        return found.values, exponent
    values = float64(x)
    least = float(np.min(values, initial=np.inf))
    require(
        values.size > 0 and least >= 0,
        f"singular values must be one or more and >= 0; got {len(values)}, least {least:g}.",
    )
    return -np.sort(-values), 0


def effective_rank(x: Validated[Ranked], *, power: Validated[float] = 1, drop: Validated[int] = 0) -> float:
    """exp of the entropy of p_i = σ_i^power / Σ σ^power, after the `drop` leading values are left out.

    power=1 is the usual one, power=2 weights by energy and is more robust for weights stored in few bits, drop > 0 is
    the marginalized one. Between 1 and the number of values. nan where what is left is zero or rounding noise.

    Raises ValueError for a power that is not positive or a drop that is no whole number >= 0.

    Source: roy2007effective, definition 1; mainali2025exact (marginalized); docs/derivations/spectra.
    """
    positive("power", power)
    return float(entropy_rank(_in_units(x)[0], power, whole_number("drop", drop, least=0)))


def stable_rank(x: Validated[Ranked]) -> float:
    """‖x‖_F² / ‖x‖₂². Leading values suffice.

    Source: definition in docs/derivations/spectra.
    """
    if isinstance(x, Spectrum) and x.route == "randomized":
        return (x.frobenius / float(x.values[0])) ** 2 if x.frobenius > 0 else np.nan
    return float(stable(_in_units(x)[0]))


def participation_ratio(x: Validated[Ranked]) -> float:
    """(Σ σ²)² / Σ σ⁴.

    Source: definition in docs/derivations/spectra.
    """
    return float(participation(_in_units(x)[0]))


def nuclear_rank(x: Validated[Ranked]) -> float:
    """(Σ σ)² / Σ σ².

    Source: definition in docs/derivations/spectra.
    """
    return float(nuclear(_in_units(x)[0]))


def energy_rank(x: Validated[Ranked], *, fraction: Validated[float]) -> float:
    """Least number of leading values with the `fraction` of Σ σ².

    Raises ValueError for a fraction outside (0, 1].

    Source: definition in docs/derivations/spectra.
    """
    return float(energy(_in_units(x)[0], share("fraction", fraction)))


def spectral_gap(x: Validated[Ranked], *, k: Validated[int]) -> float:
    """(σ_k − σ_{k+1}) / σ_k with k counted from 1; values past the last are 0. nan where σ_k is 0 or does not exist.

    A subspace of k leading directions is as well defined as this is large.

    Raises ValueError for a k that is no whole number >= 1.

    Source: definition in docs/derivations/spectra.
    """
    return float(gap(_in_units(x)[0], whole_number("k", k)))


def rank_measures(
    values: Float[np.ndarray, "*batch value"], *, drop: int = 1, fraction: float = 0.9
) -> dict[str, Float[np.ndarray, "*batch"]]:
    """All ranks along the last axis of singular values sorted from the largest, many spectra at once.

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


def entropy_rank(
    values: Float[np.ndarray, "*batch value"], power: int | float, drop: int
) -> Float[np.ndarray, "*batch"]:
    """Effective ranks along the last axis."""
    kept = values[..., drop:]
    noise = values.shape[-1] * _EPS * values[..., :1]
    kept = np.where((drop > 0) & (kept <= noise), 0.0, kept)
    weight = over_largest(kept) ** power
    with np.errstate(divide="ignore", invalid="ignore"):
        share = weight / np.sum(weight, axis=-1, keepdims=True)
        entropy = -np.sum(np.where(share > 0, share * np.log(np.where(share > 0, share, 1.0)), 0.0), axis=-1)
    return np.where(np.sum(weight, axis=-1) > 0, np.exp(entropy), np.nan)


def stable(values: Float[np.ndarray, "*batch value"]) -> Float[np.ndarray, "*batch"]:
    """Stable ranks along the last axis."""
    return _or_nan(lambda s: np.sum(s**2, axis=-1), values)


def participation(values: Float[np.ndarray, "*batch value"]) -> Float[np.ndarray, "*batch"]:
    """Participation ratios along the last axis."""
    return _or_nan(lambda s: np.sum(s**2, axis=-1) ** 2 / np.sum(s**4, axis=-1), values)


def nuclear(values: Float[np.ndarray, "*batch value"]) -> Float[np.ndarray, "*batch"]:
    """Nuclear ranks along the last axis."""
    return _or_nan(lambda s: np.sum(s, axis=-1) ** 2 / np.sum(s**2, axis=-1), values)


def energy(values: Float[np.ndarray, "*batch value"], fraction: float) -> Float[np.ndarray, "*batch"]:
    """Energy ranks along the last axis."""

    def count(s: Float[np.ndarray, "*batch value"]) -> Values:
        held = np.cumsum(s**2, axis=-1)
        return 1.0 + np.sum(held < fraction * held[..., -1:] * (1 - 4 * _EPS), axis=-1)

    return _or_nan(count, values)


def gap(values: Float[np.ndarray, "*batch value"], k: int) -> Float[np.ndarray, "*batch"]:
    """Relative gaps after the k-th value along the last axis."""
    if k > values.shape[-1]:
        return np.full(values.shape[:-1], np.nan)
    last = values[..., k - 1]
    after = values[..., k] if k < values.shape[-1] else np.zeros_like(last)
    return np.divide(last - after, last, out=np.full(last.shape, np.nan), where=last > 0)


def over_largest(values: Float[np.ndarray, "*batch value"]) -> Float[np.ndarray, "*batch value"]:
    """Values over the largest, so that no power overflows or underflows; zeros stay zeros."""
    if values.shape[-1] == 0:
        return values
    largest = values[..., :1]
    return np.divide(values, largest, out=np.zeros_like(values), where=largest > 0)


def _or_nan(
    measure: Callable[[Float[np.ndarray, "*batch value"]], Values],
    values: Float[np.ndarray, "*batch value"],
) -> Float[np.ndarray, "*batch"]:
    """A measure of values over their largest, nan where all are zero."""
    with np.errstate(invalid="ignore"):
        return np.where(values[..., 0] > 0, measure(over_largest(values)), np.nan)
