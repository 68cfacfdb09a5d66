"""Hash, norm, non-finite entries and a sample of a tensor, from one pass over its numbers."""

import base64
import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int

from iclab.spectra.checkpoints.tensors import FLOATS, Tensor

__all__ = ["Content", "content", "sampled", "transposed"]

_CHUNK = 2**20  # numbers at a time
_SQUARES = 1e-280  # least sum of squares that no underflow has touched
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_MANY = {"BF16": 256, "F16": 256, "F8_E4M3": 4096, "F8_E5M2": 4096}  # numbers; 4 of wider formats
_WIDE = ("F64", "F32")
_SAMPLED, _LEAST = 128, 64  # entries of a sample, and the fewest of a matrix that has one
_EXPONENT = {"F64": 0x7FF << 52, "F32": 0xFF << 23, "F16": 0x1F << 10, "BF16": 0xFF << 7, "F8_E5M2": 0x1F << 2}


@dataclass(frozen=True)
class Content:
    """A summary of a tensor. Equal digests mean equal numbers of equal shape and type, with -0.0 = 0.0."""

    digest: str
    shape: tuple[int, ...]
    stored: str  # F32, BF16, ...
    norm: float  # Frobenius; nan where a number is not finite
    nonfinite: int = 0
    first_nonfinite: tuple[int, ...] | None = None
    nans: int = 0  # of the non-finite numbers; the others are infinities
    sample: str = ""  # some entries of a matrix, in base64; none where a number is not finite

    @property
    def zero(self) -> bool:
        """True where every number is zero."""
        return self.norm == 0

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    @property
    def many(self) -> bool:
        """True for a matrix of so many numbers that it cannot take an old value again while others move on.

        In 16 bits and fewer, updates are rounded away and numbers flicker between neighbors; vectors of gains and
        biases then return to what they were.
        """
        least = _MANY.get(self.stored, 4)
        return self.size >= least if len(self.shape) > 1 else self.size >= 8 * least and self.stored in _WIDE


def content(tensor: Tensor) -> Content:
    """Content of a tensor, read in chunks of 2^20 numbers."""
    total = hashlib.blake2b(f"{tensor.stored} {tensor.shape} ".encode(), digest_size=16)
    norm, bad, nans, first, read = 0.0, 0, 0, None, 0
    array = tensor.array()
    for chunk in _chunks(array):
        bits = chunk.view(_UNSIGNED[chunk.dtype.itemsize]) if tensor.floating else chunk
        if tensor.floating:
            bits = _unsigned_zero(bits)
        total.update(np.ascontiguousarray(bits).data)
        added = _norm(chunk)
        if not math.isfinite(added):  # nan, infinity or overflow
            broken = _not_finite(bits, tensor.stored)
            count = int(np.count_nonzero(broken))
            if count and first is None:
                first = read + int(np.argmax(broken))
            bad += count
            nans += int(np.count_nonzero(np.isnan(chunk[broken].astype(np.float64))))
        norm = math.hypot(norm, added)
        read += chunk.size
    where = None if first is None else tuple(int(index) for index in np.unravel_index(first, tensor.shape or (1,)))
    some = _sample(array, norm) if tensor.floating and not bad else ""
    return Content(total.hexdigest(), tensor.shape, tensor.stored, math.nan if bad else norm, bad, where, nans, some)


def sampled(text: str) -> Float[np.ndarray, "entry"]:
    """Entries of the sample of a content, over their root mean square in the whole tensor."""
    return np.frombuffer(base64.b64decode(text), "<f4").astype(np.float64)


def transposed(entries: Float[np.ndarray, "*step entry"]) -> Float[np.ndarray, "*step entry"]:
    """Sample of the transpose of a square matrix, from its own: each place comes with its mirror image."""
    return np.roll(entries, entries.shape[-1] // 2, axis=-1)


def _sample(array: np.ndarray, norm: float) -> str:
    """Entries of a matrix at the places of its shape; empty for fewer axes, few entries and a norm of 0."""
    if array.ndim < 2 or array.size < _LEAST or not 0 < norm < math.inf:
        return ""
    chosen = array[np.unravel_index(_places(array.shape), array.shape)].astype(np.float64)
    scaled = chosen / norm * math.sqrt(array.size)
    return base64.b64encode(scaled.astype("<f4").tobytes()).decode()


@lru_cache(maxsize=256)
def _places(shape: tuple[int, ...]) -> Int[np.ndarray, "entry"]:
    """Places of a sample in the flat array; of a square matrix, places and then their mirror images."""
    size, rng = math.prod(shape), np.random.default_rng(0)
    if len(shape) == 2 and shape[0] == shape[1]:
        rows, columns = np.unravel_index(rng.integers(0, size, _SAMPLED // 2), shape)
        return np.concatenate([rows * shape[1] + columns, columns * shape[1] + rows])
    return rng.integers(0, size, _SAMPLED) if size > _SAMPLED else np.arange(size)


def _chunks(array: np.ndarray) -> Iterator[np.ndarray]:
    """The numbers in the order of their index, in flat contiguous pieces."""
    if array.flags.c_contiguous or array.ndim < 2:
        flat = np.ascontiguousarray(array).reshape(-1) if array.ndim < 2 else array.reshape(-1)
        for start in range(0, flat.size, _CHUNK):
            yield flat[start : start + _CHUNK]
        return
    rows = max(1, _CHUNK // max(1, math.prod(array.shape[1:])))
    for start in range(0, len(array), rows):
        yield np.ascontiguousarray(array[start : start + rows]).reshape(-1)


def _unsigned_zero(bits: np.ndarray) -> np.ndarray:
    negative = bits == bits.dtype.type(1 << (8 * bits.dtype.itemsize - 1))
    return np.where(negative, bits.dtype.type(0), bits) if negative.any() else bits


def _not_finite(bits: np.ndarray, stored: str) -> np.ndarray:
    kind = bits.dtype.type
    if stored == "F8_E4M3":  # no infinity, one pattern that is no number
        return bits & kind(0x7F) == kind(0x7F)
    mask = kind(_EXPONENT[stored])
    return bits & mask == mask


def _norm(chunk: np.ndarray) -> float:
    """Root of the sum of squares, in units of the largest number where squares overflow or underflow."""
    if chunk.dtype not in FLOATS.values():
        return math.sqrt(np.count_nonzero(chunk))
    values = chunk.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        squares = float(values @ values)
        if _SQUARES < squares < math.inf or not values.size:
            return math.sqrt(squares)
        largest = float(np.max(np.abs(values)))
        if largest == 0 or not math.isfinite(largest):
            return largest
        scaled = values / largest
        return largest * math.sqrt(float(scaled @ scaled))
