"""Tensors of a safetensors file, mapped one at a time, with bfloat16 and 8-bit floats and without PyTorch."""

import json
import math
import mmap
import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from iclab.numerics import require
from iclab.spectra.checkpoints.names import LONGEST, quoted, terminal
from iclab.spectra.checkpoints.tensors import FLOATS, INTEGERS, Skipped, Tensor

__all__ = ["HEADER_BYTES", "TENSORS", "check_names", "tensors"]

HEADER_BYTES = 100_000_000
TENSORS = 1_000_000


def tensors(path: Path) -> tuple[dict[str, Tensor], tuple[Skipped, ...]]:
    """Tensors of the file by name, and those of formats that are not read.

    Raises ValueError for a file that is truncated, overlapping, too large in its header, or repeats a name.
    """
    start, header = _header(path)
    for name, entry in header.items():
        _check_entry(name, entry, path)
    try:
        with safe_open(path, framework="numpy"):  # checks offsets, shapes and length
            pass
    except SafetensorError as error:
        raise ValueError(
            f"{quoted(path.name)} must be a whole safetensors file; got: {terminal(str(error))[:200]}."
        ) from None
    header.pop("__metadata__", None)
    kept, skipped = {}, []
    for name, entry in header.items():
        dtype = {**FLOATS, **INTEGERS}.get(entry["dtype"])
        if dtype is None:
            reason = f"stored as {entry['dtype']}, which is not read; save it as float32, float16 or bfloat16"
            skipped.append(Skipped(name, reason))
            continue
        shape, offset = tuple(entry["shape"]), start + entry["data_offsets"][0]
        load = partial(_mapped, path, dtype, shape, offset)
        kept[name] = Tensor(name, shape, dtype, load, (str(path), offset, shape))
    return kept, tuple(skipped)


def _header(path: Path) -> tuple[int, dict[str, Any]]:
    """Offset of the data, and the header, read within its limits."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        require(
            size >= 8 and length <= min(size - 8, HEADER_BYTES),
            f"the header of {quoted(path.name)} must fit the file and {HEADER_BYTES:,} bytes; got {length:,} bytes "
            f"in a file of {size:,}. The file is truncated or not safetensors.",
        )
        text = file.read(length)
    try:
        header = json.loads(text, object_pairs_hook=_unrepeated)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise ValueError(f"the header of {quoted(path.name)} must be JSON; it is not. Is it safetensors?") from None
    require(isinstance(header, dict), f"the header of {quoted(path.name)} must be a JSON object; it is not.")
    check_names(path.name, header)
    return 8 + length, header


def _check_entry(name: str, entry: Any, path: Path) -> None:
    """Raise ValueError, naming the tensor, for an entry of a header that does not describe one."""
    if name == "__metadata__":
        return
    kinds = {"dtype": str, "shape": list, "data_offsets": list}
    lacks = [key for key, kind in kinds.items() if not (isinstance(entry, dict) and isinstance(entry.get(key), kind))]
    require(
        not lacks,
        f"{quoted(path.name)} must be a whole safetensors file; its header gives {quoted(name)} no "
        f"{', '.join(lacks)}. Save it again with safetensors.",
    )


def check_names(where: str, names: Any) -> None:
    """Raise ValueError for too many or too long names."""
    require(len(names) <= TENSORS, f"{quoted(where)} must hold at most {TENSORS:,} tensors; got {len(names):,}.")
    longest = max(names, key=len, default="")
    require(
        len(longest) <= LONGEST,
        f"names in {quoted(where)} must have at most {LONGEST} characters; got {len(longest)}: {quoted(longest)}.",
    )


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names: set[str] = set()
        twice = next(name for name, _ in pairs if name in names or names.add(name))
        raise ValueError(f"names in a file must differ; {quoted(twice)} comes twice.")
    return found


def _mapped(path: Path, dtype: np.dtype, shape: tuple[int, ...], offset: int) -> np.ndarray:
    """One tensor as a memory map of its own, whose pages are freed with the array."""
    count = math.prod(shape)
    if count == 0:
        return np.empty(shape, dtype)
    start = offset - offset % mmap.ALLOCATIONGRANULARITY
    handle = os.open(path, os.O_RDONLY)
    try:
        region = mmap.mmap(handle, offset - start + count * dtype.itemsize, access=mmap.ACCESS_READ, offset=start)
    finally:
        os.close(handle)
    return np.frombuffer(region, dtype, count, offset - start).reshape(shape)
