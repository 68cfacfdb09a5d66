"""Matrices in their stored precision: an array, or a product kept as its two factors."""

from collections.abc import Iterator
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from jaxtyping import Float, Shaped
from numpy.typing import ArrayLike, DTypeLike

from iclab.numerics import Validated, checks_its_fields, require

__all__ = [
    "SLICE", "Matrix", "NotFinite", "Product", "float64", "gram", "matrix", "numbers", "precision",
    "require_finite", "slices", "triangle",
]  # fmt: skip

SLICE = 2**26  # bytes of float64 that are held at a time
_TALL, _SMALL = 2.0**400, 2.0**-400  # range of the trace of a Gram; outside it the matrix is rescaled


@checks_its_fields
@dataclass(frozen=True)
class Product:
    """left @ right, kept as factors: the query-key or output-value circuit of a head.

    `stored` has the dtype in which each factor was stored, by default that of the arrays. `notes` list terms of the
    circuit that the product leaves out or includes. Unpacks as `left, right = product`.
    """

    left: Shaped[np.ndarray, "m r"]
    right: Shaped[np.ndarray, "r n"]
    stored: tuple[DTypeLike, DTypeLike] | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        left, right = np.shape(self.left), np.shape(self.right)
        require(
            len(left) == len(right) == 2 and left[1] == right[0] and 0 not in left + right,
            f"left and right must be non-empty matrices that can be multiplied; got shapes {left} and {right}.",
        )

    def __iter__(self) -> Iterator[Shaped[np.ndarray, "_ _"]]:
        yield self.left
        yield self.right

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of left @ right."""
        return self.left.shape[0], self.right.shape[1]

    @property
    def precisions(self) -> tuple[float, float]:
        """Spacings near 1 of the stored dtypes of left and right."""
        left, right = self.stored or (self.left.dtype, self.right.dtype)
        return precision(left), precision(right)

    @property
    def T(self) -> "Product":
        """The transposed product."""
        stored = None if self.stored is None else (self.stored[1], self.stored[0])
        return Product(self.right.T, self.left.T, stored, self.notes)


Matrix = Shaped[np.ndarray, "m n"] | Product


def precision(dtype: DTypeLike) -> float:
    """Spacing of the numbers near 1 of a type: 2^-52, 2^-23, 2^-10, 2^-7, 2^-3 for f64, f32, f16, bf16, e4m3.

    Raises ValueError for types that are no floats: codes of a quantized matrix have no spectrum.
    """
    kind = np.dtype(dtype)
    try:
        found = ml_dtypes.finfo(kind)
    except (TypeError, ValueError):
        found = None
    if found is None or kind.kind == "c":
        raise ValueError(
            f"x must hold real floating-point numbers; got {kind}. Packed integer codes have no spectrum of their "
            "own: dequantize them first."
        )
    return float(found.eps)


def numbers(name: str, x: object) -> np.ndarray:
    """x as an array in its own precision.

    Raises ValueError for masked entries, which an array would lose, and for objects that NumPy cannot convert.
    """
    require(not np.ma.is_masked(x), f"{name} must not have masked entries; fill them or leave them out.")
    try:
        return np.asarray(x)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{name} must be an array of numbers; got {type(x).__name__} ({error}). Of a PyTorch tensor take "
            ".detach(), and of one in bfloat16 .float()."
        ) from None


def matrix(name: str, x: Validated[Shaped[ArrayLike, "m n"]]) -> Shaped[np.ndarray, "m n"]:
    """x as a non-empty matrix of floats in its own precision. Raises ValueError, which calls it `name`, otherwise."""
    array = numbers(name, x)
    require(array.ndim == 2 and array.size > 0, f"{name} must be a non-empty matrix; got shape {array.shape}.")
    if array.dtype in (np.int64, np.uint64):
        array = array.astype(np.float64)  # whole numbers written out; packed codes are narrower
    precision(array.dtype)
    return array


def float64(x: Validated[Shaped[ArrayLike, "*n"]]) -> Float[np.ndarray, "*n"]:
    """x in float64. Raises ValueError with the number and the index of entries that are not finite."""
    array = numbers("x", x)
    require(array.dtype.kind in "biufV", f"x must hold real numbers; got {array.dtype}.")
    array = array.astype(np.float64, copy=False)
    require_finite(array)
    return array


class NotFinite(ValueError):
    """Error for entries that are NaN or infinite."""


def require_finite(array: Shaped[np.ndarray, "*n"]) -> None:
    """Raise NotFinite, with the number and the first index of such entries, if any are NaN or infinite."""
    finite = np.isfinite(array)
    if not finite.all():
        first = tuple(int(i) for i in np.argwhere(~finite)[0])
        count = int(np.sum(~finite))
        raise NotFinite(
            f"x must be finite; got {count} NaN or infinite entries of {array.size}, the first at {first}. "
            "Leave this matrix out and look for what broke it."
        )


def triangle(x: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "_ n"]:
    """R of x = Q R, of at most n rows."""
    return np.asarray(np.linalg.qr(x, mode="r"))


def gram(
    factor: Shaped[np.ndarray, "m r"], *, origin: Shaped[np.ndarray, "_ _"] | None = None
) -> tuple[Float[np.ndarray, "r r"], float]:
    """G and c with factorᵀ factor = c² G, tr G = 1; c = 0 for a factor of zeros.

    In float64, by slices of at most 64 MiB. Raises ValueError for entries that are not finite, with their index
    in `origin`, the matrix that the factor may be the transpose of.
    """
    total, scale = _sum_of_grams(factor, 1.0), 1.0
    trace = float(np.trace(total))
    if not _SMALL < trace < _TALL:
        require_finite(factor if origin is None else origin)
        largest = max(float(np.max(np.abs(part))) for part in slices(factor))
        if largest == 0:
            return total, 0.0
        total, scale = _sum_of_grams(factor, largest), largest
        trace = float(np.trace(total))
    return total / trace, scale * float(np.sqrt(trace))


def _sum_of_grams(factor: Shaped[np.ndarray, "m r"], unit: float) -> Float[np.ndarray, "r r"]:
    total = np.zeros((factor.shape[1], factor.shape[1]))
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for part in slices(factor):
            rows = part if unit == 1.0 else part / unit
            total += rows.T @ rows
    return total


def slices(factor: Shaped[np.ndarray, "m r"]) -> Iterator[Float[np.ndarray, "_ r"]]:
    """Rows in float64, in slices of at most 64 MiB."""
    rows = max(1, SLICE // (8 * factor.shape[1]))
    for start in range(0, len(factor), rows):
        yield np.asarray(factor[start : start + rows], dtype=np.float64)
