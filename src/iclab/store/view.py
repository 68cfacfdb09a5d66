"""The view of a case: one netCDF file that users open, whole in memory before any of it is written or trusted.

HDF5 is handed bytes and never a file: it takes no lock, and a full disk or a folder without locks cannot reach it.
"""

import hashlib
import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from iclab.files import content_of, reworded, written_whole
from iclab.study import SCHEMA

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["described", "digest", "netcdf", "peek", "read", "write"]

_FOREIGN = "it was not written by this version of iclab"


def write(result: "xr.DataTree", path: Path, *, parts: str = "") -> None:
    """Write a result whole or not at all, with the digest of the list of parts that it was made of.

    Raises OSError where the folder cannot be written.
    """
    content = netcdf(result, parts=parts)
    try:
        with written_whole(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise reworded(
            error, f"{path} must be writable; writing it failed ({error.strerror}). What was stored before is kept."
        ) from error


def netcdf(result: "xr.DataTree", *, parts: str = "") -> bytes:
    """A result as the bytes of a netCDF file, with its digest and that of the list of parts that it was made of."""
    stamped = result.copy()
    stamped.attrs = {**result.attrs, "digest": digest(result), "parts": parts}
    content = stamped.to_netcdf(engine="h5netcdf")
    assert content is not None
    return bytes(content)


def read(path: Path) -> "xr.DataTree":
    """A stored result, whole in memory.

    Raises OSError for a file that cannot be opened now, ValueError for one that is cut short, damaged or foreign.
    """
    import xarray as xr

    content = content_of(path)
    try:
        with xr.open_datatree(io.BytesIO(content), engine="h5netcdf") as opened:
            result = opened.load().copy(deep=True)
    except MemoryError:
        raise
    except Exception as error:  # HDF5 and xarray raise errors of many kinds for bytes that are damaged
        raise ValueError(_reason(error)) from error
    attributes = dict(result.attrs)
    if attributes.get("schema") != SCHEMA or "digest" not in attributes:
        raise ValueError(_FOREIGN)
    kept = attributes.pop("digest")
    attributes.pop("parts", None)
    for name in ("seeds", "seconds"):
        attributes[name] = np.atleast_1d(attributes[name])
    attributes["memory"] = np.atleast_1d(attributes.get("memory", np.full(len(attributes["seeds"]), np.nan)))
    result.attrs = attributes
    if digest(result) != kept:
        raise ValueError("its numbers do not match their digest")
    return result


def peek(path: Path) -> tuple[list[int], str]:
    """Seeds of a view, and the digest of the list of parts that it was made of; of attributes alone, and unchecked.

    Raises errors as `read` does.
    """
    import h5py

    content = content_of(path)
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            attributes = dict(file.attrs)
        seeds = attributes["seeds"]
        none = isinstance(seeds, h5py.Empty)
        return [] if none else np.atleast_1d(np.asarray(seeds)).tolist(), str(attributes.get("parts", ""))
    except MemoryError:
        raise
    except KeyError as error:
        raise ValueError(_FOREIGN) from error
    except Exception as error:  # as above
        raise ValueError(_reason(error)) from error


def described(path: Path) -> tuple[str, int, str, list[int]]:
    """Study, version, case as JSON, and seeds of a view. Raises errors as `read` does."""
    result = read(path)
    seeds = [int(seed) for seed in result.attrs["seeds"]]
    return str(result.attrs["study"]), int(result.attrs["study_version"]), str(result.attrs["case"]), seeds


def digest(result: "xr.DataTree") -> str:
    """SHA-256 over the case and every array, names and types included: equal results have equal digests."""
    total = hashlib.sha256(f"{result.attrs['study']} {result.attrs['study_version']} {result.attrs['case']}".encode())
    for node in result.subtree:
        for name, array in sorted(node.to_dataset(inherit=False).variables.items()):
            values = np.ascontiguousarray(array.values)
            total.update(f"{node.path} {name} {array.dims} {values.shape} {values.dtype.str}".encode())
            total.update(values.tobytes())
    return total.hexdigest()


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
