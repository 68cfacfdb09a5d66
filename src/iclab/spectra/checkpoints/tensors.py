"""A stored tensor, read on demand."""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

__all__ = ["FLOATS", "INTEGERS", "PACKED", "PARTS", "Skipped", "Tensor", "no_numbers", "of_array"]

FLOATS = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
}
INTEGERS = {
    name: np.dtype(kind)
    for name, kind in {
        "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1",
        "BOOL": "?",
    }.items()
}  # fmt: skip
PACKED = "packed codes of 8 or fewer bits: their spectra mean nothing; dequantize the model and save it again"
PARTS = "parts of ZeRO-3; zero_to_fp32.py joins them"
_NAMES = {dtype: name for name, dtype in {**FLOATS, **INTEGERS}.items()}


@dataclass(frozen=True)
class Tensor:
    """A stored tensor; `array()` reads it in its stored dtype, mapped where the file allows.

    Two tensors of one `storage` are the same numbers under two names.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    load: Callable[[], np.ndarray] = field(repr=False, compare=False)
    storage: Hashable = None
    inner: int | None = None  # inner size of a tensor that is the product of two factors

    def array(self) -> np.ndarray:
        """Numbers of the tensor. Each call reads or maps anew, so that memory is freed with the array."""
        return self.load()

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all entries."""
        return self.size * self.dtype.itemsize

    @property
    def stored(self) -> str:
        """Short name of the dtype: F32, BF16, F8_E4M3, I64."""
        return _NAMES.get(self.dtype) or str(self.dtype)

    @property
    def floating(self) -> bool:
        """True for real numbers of a known format."""
        return self.stored in FLOATS


@dataclass(frozen=True)
class Skipped:
    """A tensor or a file that is not analyzed, with the reason."""

    name: str
    reason: str


def no_numbers(dtype: np.dtype) -> str:
    """Reason for which arrays of a type hold no real numbers, or an empty string."""
    if dtype.hasobject:
        return "Python objects, which only pickle could read: refused"
    return {"c": "complex numbers"}.get(dtype.kind, "" if dtype.kind not in "mMUS" else "text or dates, no numbers")


def of_array(name: str, array: np.ndarray) -> Tensor:
    """Tensor of an array in memory, in the order of bytes of this machine."""
    array = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    return Tensor(name, array.shape, array.dtype, lambda: array, _memory(array))


def _memory(array: np.ndarray) -> Hashable:
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype
