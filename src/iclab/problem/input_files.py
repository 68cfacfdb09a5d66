"""Files of inputs: rows of numbers as .npy, .npz, .csv, .parquet or .safetensors."""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Real

from iclab.files import installing
from iclab.numerics import Validated, require

__all__ = ["FORMATS", "read_inputs"]

FORMATS = (".npy", ".npz:NAME", ".csv", ".parquet", ".safetensors:NAME")


def read_inputs(path: Validated[str | Path]) -> Real[np.ndarray, "..."]:
    """The matrix in a file; after a colon stands the name of an array where a file holds several.

    Images and other arrays of more than two axes become a row for each entry of the first axis.

    Raises ValueError for other formats, for a pickle, for text among numbers and for a missing name, with those that
    there are; ImportError where Parquet is not installed; OSError for no file.
    """
    place, name = _place(str(path))
    reader = _READERS.get(place.suffix.lower())
    if reader is None:
        raise ValueError(f"inputs must be a file {', '.join(FORMATS)}; got {place.name}. Save the rows as .npy.")
    if not place.exists():
        raise FileNotFoundError(f"inputs must be a file that exists; got {place}.")
    array = np.asarray(reader(place, name))
    require(
        array.dtype.kind in "biuf" and array.ndim >= 1,
        f"{place.name} must hold real numbers; got {array.dtype} of shape {array.shape}.",
    )
    if array.ndim <= 2:
        return array
    rows = array.reshape(len(array), -1)
    warnings.warn(f"{place.name} of shape {array.shape} is read as {len(rows)} rows of {rows.shape[1]}", stacklevel=2)
    return rows


def _place(text: str) -> tuple[Path, str | None]:
    """The file, and the name behind a colon."""
    whole, (file, _, name) = Path(text), text.rpartition(":")
    return (whole, None) if whole.exists() or not file or "/" in name or "\\" in name else (Path(file), name)


def _npy(path: Path, name: str | None) -> np.ndarray:
    try:
        return np.load(path, allow_pickle=False, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{path.name} must be a NumPy array of numbers; got {_problem(error)}. Save it with np.save, as numbers."
        ) from None


def _problem(error: Exception) -> str:
    pickled = "pickle" in str(error).lower() or "object" in str(error).lower()
    return "a pickle, which could run code and is not opened" if pickled else str(error)


def _npz(path: Path, name: str | None) -> np.ndarray:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return arrays[_chosen(path, name, arrays.files)]
    except (ValueError, EOFError) as error:
        if "must name" in str(error):
            raise
        raise ValueError(f"{path.name} must hold NumPy arrays of numbers; got {_problem(error)}.") from None


def _csv(path: Path, name: str | None) -> np.ndarray:
    import pandas as pd

    with path.open(encoding="utf-8-sig", errors="replace") as file:
        first = file.readline().replace(";", ",").replace("\t", ",").strip().split(",")
    named = not all(map(_is_number, first))
    try:
        table = pd.read_csv(path, header=0 if named else None, sep=None, engine="python")
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(f"{path.name} must be a table of numbers; got: {error}.") from None
    return _of_table(path, table)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parquet(path: Path, name: str | None) -> np.ndarray:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise ImportError(
            f"reading {path.name} needs pyarrow; got {error}. Install it with {installing('parquet')}, or save the "
            "rows as .npy."
        ) from None
    return _of_table(path, parquet.read_table(path).to_pandas())


def _of_table(path: Path, table: Any) -> np.ndarray:
    texts = [str(column) for column in table.columns if table[column].dtype.kind not in "biuf"]
    require(
        not texts,
        f"{path.name} must hold numbers alone; columns {', '.join(texts[:5])} do not. Remove them.",
    )
    return table.to_numpy(dtype=float)


def _safetensors(path: Path, name: str | None) -> np.ndarray:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as tensors:
            return tensors.get_tensor(_chosen(path, name, list(tensors.keys())))
    except (SafetensorError, TypeError) as error:
        raise ValueError(
            f"{path.name} must be a safetensors file of numbers that NumPy has; got: {error}. Save it as float32."
        ) from None


def _chosen(path: Path, name: str | None, names: Iterable[str]) -> str:
    """The array that is meant."""
    known = sorted(names)
    if name is None and len(known) == 1:
        return known[0]
    listed = ", ".join(map(repr, known)) or "none"
    require(
        name in known,
        f"inputs must name an array of {path.name}, as {path.name}:NAME; got {name}. There are {listed}.",
    )
    assert name is not None
    return name


_READERS = {".npy": _npy, ".npz": _npz, ".csv": _csv, ".parquet": _parquet, ".safetensors": _safetensors}
