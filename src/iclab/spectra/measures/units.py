"""Units in which squares and products of a matrix's entries are numbers: a power of two, taken out and put back."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float, Shaped

from iclab.numerics import require
from iclab.spectra.measures.factors import Matrix, Product

__all__ = ["frobenius", "in_units", "moderate", "out_of_units", "product_in_units"]

_FAR = 200  # power of two beyond which entries are rescaled; those of 32 bits and fewer never are


def in_units(x: Matrix) -> tuple[Matrix, int]:
    """The matrix over 2^e and e, which is 0 unless entries are so large or so small that their squares matter.

    Source: no formula; a power of two changes no digit.
    """
    return product_in_units(x) if isinstance(x, Product) else moderate(x)


def product_in_units(x: Product) -> tuple[Product, int]:
    """The product over 2^e and e, as in_units(): its factors are rescaled each on its own, and their powers add up.

    Source: no formula; a power of two changes no digit.
    """
    (left, one), (right, two) = moderate(x.left), moderate(x.right)
    return (replace(x, left=left, right=right) if one or two else x), one + two


def moderate(array: Shaped[np.ndarray, "*n"]) -> tuple[Shaped[np.ndarray, "*n"], int]:
    """An array over 2^e and e, as in_units().

    Source: no formula; a power of two changes no digit.
    """
    if array.dtype != np.float64 or not array.size:
        return array, 0
    largest = max(float(np.max(array)), -float(np.min(array)))
    exponent = int(np.frexp(largest)[1]) if np.isfinite(largest) and largest > 0 else 0
    return (np.ldexp(array, -exponent), exponent) if abs(exponent) > _FAR else (array, 0)


def frobenius(values: Float[np.ndarray, "value"]) -> float:
    """Norm of a matrix from its singular values, whose squares may be no numbers; inf beyond the range of numbers.

    Source: no formula; a power of two changes no digit.
    """
    unit, exponent = moderate(values)
    with np.errstate(over="ignore"):
        return float(np.ldexp(np.linalg.norm(unit), exponent))


def out_of_units(values: Float[np.ndarray, "*n"], exponent: int) -> Float[np.ndarray, "*n"]:
    """Values times 2^exponent. Raises ValueError where the largest is beyond the range of full precision.

    Source: no formula; a power of two changes no digit.
    """
    if exponent == 0:
        return values
    largest = float(np.max(values, initial=0.0))
    size = int(np.frexp(largest)[1]) + exponent
    require(
        largest == 0 or -1020 <= size <= 1024,
        f"x must have singular values between 1e-307 and 1.8e308; got about 1e{round(0.30103 * (size - 1))}. "
        "Multiply it by a constant: ranks, overlaps and distances do not depend on it.",
    )
    return np.ldexp(values, exponent)
