"""Numerical rank: the directions of a matrix above the rounding of its stored type."""

import numpy as np
from jaxtyping import Float, Shaped
from numpy.typing import DTypeLike

from iclab.numerics import Validated
from iclab.spectra.measures.factors import Matrix, Product, float64, gram, matrix, numbers, precision
from iclab.spectra.measures.ranks import Ranked, over_largest, singular_values
from iclab.spectra.measures.spectrum import CONDITION, Gram, Spectrum, product_spectrum, spectrum_in_units
from iclab.spectra.measures.units import moderate, product_in_units

__all__ = ["factor_noise", "factor_rank", "numerical_rank", "product_rank", "reaches_rank", "tolerance"]

_EPS = float(np.finfo(float).eps)
_RESOLVED = 4 * np.sqrt(_EPS)  # relative size above which values of a Gram are no noise


def numerical_rank(
    x: Validated[Ranked], *, shape: tuple[int, int] | None = None, stored: DTypeLike | None = None
) -> int:
    """Number of singular values above the rounding of the type that the matrix was stored in.

    Counts σ > max(½ ε ‖x‖_F (1/√m + 1/√n), max(m, n) 2^-52 σ_max), ε the spacing near 1 of `stored`, by default
    of the dtype of x. For a product it is counted on each factor first, and is the least of those and of the
    product's own count in float64. Singular values need `shape` and `stored`.

    Raises ValueError where shape or stored is missing, and for types that are no floats.

    Source: derived in docs/derivations/spectra.
    """
    if isinstance(x, Product):
        product, _ = product_in_units(x)
        left, right = gram(product.left), gram(product.right.T, origin=product.right)
        return product_rank(product_spectrum(left, right, lambda: product), product, left, right)
    floor = 0.0
    if not isinstance(x, Spectrum) and numbers("x", x).ndim != 1:
        array = matrix("x", x)
        shape, stored, x = array.shape, array.dtype if stored is None else stored, spectrum_in_units(array)[0]
        floor = x.floor
    if shape is None or stored is None:
        raise ValueError(
            "shape and stored must come with singular values: the rule depends on both. Give the (rows, columns) "
            "and the dtype the matrix was stored in."
        )
    values, exponent = moderate(singular_values(x))
    floor = float(np.ldexp(floor, -exponent))
    return int(np.sum(values > max(tolerance(values, shape, stored), floor)))


def product_rank(whole: Spectrum, product: Product, left: Gram, right: Gram) -> int:
    """Numerical rank of a product from its spectrum and its Grams `gram(left)` and `gram(right.T)`.

    Where all values stand above `factor_noise` the factors need not be counted.

    Source: derived in docs/derivations/spectra.
    """
    own = int(np.sum(whole.values > max(product.shape) * _EPS * whole.values[0]))
    if own == 0 or whole.values[own - 1] > factor_noise(product, left[1], right[1]):
        return own
    one, two = _types(product)
    return min(own, factor_rank(product.left, left, one), factor_rank(product.right.T, right, two))


def factor_noise(product: Product, left: float, right: float) -> float:
    """Bound above which value k of the product implies that both factors, of these Frobenius norms, have rank k.

    σ_k(A B) <= ‖A‖ σ_k(B) and σ_k(A) ‖B‖: the rounding of each factor times the norm of the other.

    Source: derived in docs/derivations/spectra.
    """
    one, two = _types(product)
    return max(
        left * _rounding(right, right, product.right.shape, two),
        right * _rounding(left, left, product.left.shape, one),
    )


def factor_rank(factor: Shaped[np.ndarray, "m r"], small: Gram, stored: DTypeLike) -> int:
    """Numerical rank of a factor, from its Gram where that is accurate enough.

    Source: derived in docs/derivations/spectra.
    """
    values = np.sqrt(np.maximum(np.linalg.eigvalsh(small[0])[::-1], 0.0))
    limit = tolerance(values, factor.shape, stored)
    if limit > _RESOLVED * values[0] or values[-1] * CONDITION >= values[0]:
        return int(np.sum(values > limit))
    return numerical_rank(factor, stored=stored)


def tolerance(values: Float[np.ndarray, "value"], shape: tuple[int, ...], stored: DTypeLike) -> float:
    """Size up to which singular values of a matrix of this shape and stored type may be rounding noise.

    Source: derived in docs/derivations/spectra.
    """
    largest = float(values[0])
    return _rounding(largest * float(np.linalg.norm(over_largest(values))), largest, shape, stored)


def reaches_rank(x: Matrix, values: Float[np.ndarray, "value"], k: int) -> bool:
    """True where the numerical rank is at least k, from the singular values; of a product mostly without its factors.

    A value of the product above |left| times the rounding of right, and the other way round, shows that both reach k.

    Source: derived in docs/derivations/spectra.
    """
    if k > len(values) or values[k - 1] == 0:
        return False
    if not isinstance(x, Product):
        return bool(values[k - 1] > tolerance(values, x.shape, x.dtype))
    left, right = (float(np.linalg.norm(float64(factor))) for factor in x)
    return bool(values[k - 1] > factor_noise(x, left, right)) or numerical_rank(x) >= k


def _types(product: Product) -> tuple[DTypeLike, DTypeLike]:
    return product.stored or (product.left.dtype, product.right.dtype)


def _rounding(frobenius: float, largest: float, shape: tuple[int, ...], stored: DTypeLike) -> float:
    spread = 0.5 * sum(1 / np.sqrt(size) for size in shape)
    return float(max(precision(stored) * frobenius * spread, max(shape) * _EPS * largest))
