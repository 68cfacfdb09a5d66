"""Arrays of a NumPy .npz file, each read on demand; pickled objects never."""

import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from iclab.numerics import require
from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.checkpoints.safetensors_file import check_names
from iclab.spectra.checkpoints.tensors import Skipped, Tensor, no_numbers
from iclab.spectra.checkpoints.zips import BROKEN, MEMORY, checked_members

__all__ = ["tensors"]


def tensors(path: Path, *, memory_limit: int = MEMORY) -> tuple[dict[str, Tensor], tuple[Skipped, ...]]:
    """Arrays by name, and the members that are none. Raises ValueError for an unsafe zip."""
    members = checked_members(path, memory_limit=memory_limit)
    names = [member.filename for member in members]
    check_names(path.name, names)
    require(len(set(names)) == len(names), f"names in {quoted(path.name)} must differ; one comes twice.")
    kept, skipped = {}, []
    with zipfile.ZipFile(path) as archive:
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name == member.filename:
                skipped.append(Skipped(name, "no array"))
                continue
            shape, dtype, start = _header(archive, member, path)
            reason = no_numbers(dtype)
            if reason:
                skipped.append(Skipped(name, reason))
            elif dtype.kind == "V":
                skipped.append(Skipped(name, f"stored as raw records of {dtype.itemsize} bytes; save it as float32"))
            else:
                require(
                    start + int(np.prod(shape, dtype=object)) * dtype.itemsize <= member.file_size,
                    f"{quoted(name)} in {quoted(path.name)} says shape {shape} in {member.file_size:,} bytes.",
                )
                load = partial(_array, path, member.filename)
                kept[name] = Tensor(name, shape, dtype.newbyteorder("="), load, (str(path), member.filename))
    return kept, tuple(skipped)


def _header(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> tuple[tuple[int, ...], np.dtype, int]:
    """Shape, type and offset of the numbers."""
    try:
        with archive.open(member) as file:
            version = np.lib.format.read_magic(file)
            readers: dict[Any, Any] = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }
            shape, _, dtype = readers[version](file)
            return shape, dtype, file.tell()
    except BROKEN as error:
        raise ValueError(
            f"{quoted(member.filename)} in {quoted(path.name)} must be a NumPy array; got {type(error).__name__}."
        ) from None


def _array(path: Path, member: str) -> np.ndarray:
    try:
        with zipfile.ZipFile(path) as archive, archive.open(member) as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
            return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    except BROKEN as error:
        raise ValueError(f"{quoted(member)} in {quoted(path.name)} is damaged: {type(error).__name__}.") from None
