"""Singular values by the cheapest accurate route: small Grams where these are well conditioned, else QR."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Shaped
from numpy.typing import ArrayLike

from iclab.numerics import Validated, require, whole_number
from iclab.spectra.measures.factors import (
    SLICE,
    Matrix,
    Product,
    float64,
    gram,
    matrix,
    require_finite,
    slices,
    triangle,
)
from iclab.spectra.measures.units import moderate, out_of_units, product_in_units

__all__ = [
    "CONDITION", "Gram", "Spectrum", "leading_spectrum", "product_spectrum", "spectrum", "spectrum_in_units",
]  # fmt: skip

CONDITION = 1e6  # above it a Gram would lose more than 4 digits of the smallest value
Gram = tuple[Float[np.ndarray, "r r"], float]  # of trace 1, and the norm of the matrix
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Spectrum:
    """Singular values, largest first, the route of their computation, and the floor below which they are noise.

    `frobenius` is the norm of the whole matrix, also where there are only leading values.
    """

    values: Float[np.ndarray, "value"]
    route: Literal["gram", "qr", "svd", "randomized"]
    floor: float
    frobenius: float


def spectrum(x: Validated[Matrix]) -> Spectrum:
    """All singular values of a matrix, or of a product from its factors.

    A product takes two small Grams, a Cholesky factor and one symmetric eigenproblem of the inner size; a matrix
    the Gram of its short side. Where Cholesky fails, or the smallest value is less than 1e-6 of the bound on the
    largest, the route is QR of both factors of a product, or the decomposition of a matrix itself. A matrix of more
    than 64 MiB in float64 stays with its Gram, and values under the floor, 1.5e-8 of the largest, are noise.

    Raises ValueError for entries that are not finite, for types that are no floats, for empty matrices and for
    values beyond the range of numbers.

    Source: derived in docs/derivations/spectra.
    """
    found, exponent = spectrum_in_units(x)
    return _out_of_units(found, exponent)


def spectrum_in_units(x: Validated[Matrix]) -> tuple[Spectrum, int]:
    """The spectrum over 2^e and e, which is 0 unless squares of the entries are no numbers. Raises as spectrum().

    Source: derived in docs/derivations/spectra.
    """
    if isinstance(x, Product):
        for name, factor in (("left", x.left), ("right", x.right)):
            matrix(name, factor)
        product, exponent = product_in_units(x)
        left, right = gram(product.left), gram(product.right.T, origin=product.right)
        return product_spectrum(left, right, lambda: product), exponent
    array, exponent = moderate(matrix("x", x))
    return _matrix_spectrum(array), exponent


def _matrix_spectrum(array: Shaped[np.ndarray, "m n"]) -> Spectrum:
    short = array if array.shape[0] >= array.shape[1] else array.T
    small, scale = gram(short, origin=array)
    values = np.sqrt(np.maximum(np.linalg.eigvalsh(small)[::-1], 0.0))
    if values[-1] * CONDITION >= values[0] or scale == 0 or short.size * 8 > SLICE:
        return Spectrum(scale * values, "gram", np.sqrt(_EPS) * scale * float(values[0]), scale)
    values = _svdvals(float64(short) / scale)
    return Spectrum(scale * values, "svd", len(short) * _EPS * scale * float(values[0]), scale)


def product_spectrum(left: Gram, right: Gram, product: Callable[[], Product]) -> Spectrum:
    """Spectrum of a product from its Grams `gram(left)` and `gram(right.T)`, for heads that share a key.

    `product` is called for the factors only where Grams are not accurate enough. Raises ValueError where the
    product of the norms is beyond the range of numbers.

    Source: derived in docs/derivations/spectra.
    """
    (one, a), (two, b) = left, right
    if a == 0 or b == 0:
        factors = product()
        return Spectrum(np.zeros(min(*factors.shape, len(one))), "gram", 0.0, 0.0)
    out_of_units(np.array([a]), int(np.frexp(b)[1]))
    bound = float(np.sqrt(np.linalg.norm(one, 1) * np.linalg.norm(two, 1)))  # of the largest value
    frobenius = a * b * float(np.sqrt(max(np.sum(one * two), 0.0)))
    core = _symmetric_core(one, two)
    if core is not None:
        values = np.sqrt(np.maximum(np.linalg.eigvalsh(core)[::-1], 0.0))
        if values[-1] * CONDITION >= bound:
            return Spectrum(a * b * values, "gram", np.sqrt(_EPS) * a * b * bound, frobenius)
    factors = product()
    first = triangle(float64(factors.left) / a)
    second = triangle(float64(factors.right).T / b)
    values = _svdvals(first @ second.T)
    frobenius = a * b * float(np.linalg.norm(values))
    return Spectrum(a * b * values, "qr", max(factors.shape) * _EPS * a * b * bound, frobenius)


def leading_spectrum(
    x: Validated[Shaped[ArrayLike, "m n"]], *, count: Validated[int], iterations: Validated[int] = 2
) -> Spectrum:
    """Leading singular values of a large matrix, such as an embedding, by randomized subspace iteration.

    Lower bounds, sharp where the spectrum decays: the relative error of value k is of the order of
    (σ_{count + 17}/σ_k)^(4 iterations + 2), for the sketch has 16 extra columns.
    The matrix is read in slices, twice an iteration and twice more; the sketch is always the same. `floor` is the
    last value returned: those below are not computed.

    Raises ValueError for a count outside 1 .. min(m, n), for entries that are not finite and for types that are no
    floats.

    Source: halko2011finding, algorithms 4.4 and 5.1.
    """
    array = matrix("x", x)
    require_finite(array)
    array, exponent = moderate(array)
    count = whole_number("count", count)
    require(count <= min(array.shape), f"count must be at most {min(array.shape)}; got {count}.")
    width = min(count + 16, min(array.shape))
    sketch = np.random.default_rng(0).standard_normal((array.shape[1], width))
    basis = np.linalg.qr(_times(array, sketch))[0]
    for _ in range(whole_number("iterations", iterations, least=0)):
        sketch = np.linalg.qr(_times(array.T, basis))[0]
        basis = np.linalg.qr(_times(array, sketch))[0]
    values = _svdvals(_times(array.T, basis))[:count]
    size = float(np.sqrt(sum(float(np.sum(part**2)) for part in slices(array))))
    return _out_of_units(Spectrum(values, "randomized", float(values[-1]), size), exponent)


def _out_of_units(found: Spectrum, exponent: int) -> Spectrum:
    if exponent == 0:
        return found
    ends = out_of_units(np.array([found.floor, found.frobenius]), exponent)
    return Spectrum(out_of_units(found.values, exponent), found.route, float(ends[0]), float(ends[1]))


def _symmetric_core(
    left: Float[np.ndarray, "r r"], right: Float[np.ndarray, "r r"]
) -> Float[np.ndarray, "r r"] | None:
    """Lᵀ right L with left = L Lᵀ, whose eigenvalues are the squared singular values; None where Cholesky fails."""
    try:
        factor = np.linalg.cholesky(left)
    except np.linalg.LinAlgError:
        return None
    return factor.T @ right @ factor


def _svdvals(array: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "value"]:
    return np.linalg.svd(array, compute_uv=False)


def _times(array: Shaped[np.ndarray, "m n"], vectors: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "m k"]:
    return np.concatenate([part @ vectors for part in slices(array)])
