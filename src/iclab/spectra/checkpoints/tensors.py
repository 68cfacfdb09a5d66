"""A tensor that is stored somewhere and read when it is asked for."""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

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
PACKED = "packed codes of 8 or fewer bits: their spectra mean nothing; dequantise the model and save it again"
_NAMES = {dtype: name for name, dtype in {**FLOATS, **INTEGERS}.items()}


@dataclass(frozen=True)
class Tensor:
    """One stored tensor. `array()` gives it in the dtype it was stored in, mapped where the file allows.

    Two tensors of one `storage` are the same numbers under two names.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    load: Callable[[], np.ndarray] = field(repr=False, compare=False)
    storage: Hashable = None
    inner: int | None = None  # size between two factors whose product it is

    def array(self) -> np.ndarray:
        """The numbers. Each call reads or maps anew, so that memory is free once the array is."""
        return self.load()

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes it takes."""
        return self.size * self.dtype.itemsize

    @property
    def stored(self) -> str:
        """The dtype by its short name: F32, BF16, F8_E4M3, I64."""
        return _NAMES.get(self.dtype) or str(self.dtype)

    @property
    def floating(self) -> bool:
        """Whether it holds real numbers of a known format."""
        return self.stored in FLOATS


@dataclass(frozen=True)
class Skipped:
    """A tensor or a file that is not analysed, and why."""

    name: str
    reason: str


def of_array(name: str, array: np.ndarray) -> Tensor:
    """A tensor that is in memory."""
    return Tensor(name, array.shape, array.dtype, lambda: array, _memory(array))


def _memory(array: np.ndarray) -> Hashable:
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype
