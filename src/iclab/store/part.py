"""One part: cells of a study as bytes of an npz file, with a header in JSON and a digest of all that stands in it.

Arrays of cells that are alike in groups, shapes and types are stacked; what no seed changes stands once in each case.
"""

import errno
import hashlib
import io
import json
import math
import zipfile
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from iclab.numerics import require
from iclab.store.cells import Cell
from iclab.study import SCHEMA

__all__ = ["Broken", "Row", "header_of", "packed", "unpacked"]

_FORMAT = 1  # raised when a header changes its meaning


class Broken(ValueError):
    """Bytes that were read and are not what was written."""


def packed(cells: Sequence[Cell], *, study: str, version: int) -> bytes:
    """The part that holds these cells of a version of a study."""
    cases, origins, forms, blocks = _Numbers(), _Numbers(), _Numbers(), _Numbers()
    own: dict[int, list[Cell]] = {}
    shared: dict[int, dict[bytes, tuple[int, Cell]]] = {}
    rows = []
    for cell in cells:
        kinds = [[(array.dtype.str, array.shape) for array in arrays] for arrays in (cell.own, cell.shared)]
        form = forms.of(cell.form)
        block = blocks.of(json.dumps([form, kinds]))
        alike = own.setdefault(block, [])
        different = shared.setdefault(block, {})
        row, _ = different.setdefault(_digest(enumerate(cell.shared)), (len(different), cell))
        origin = origins.of(json.dumps(dict(cell.origin)))
        counts = [None if math.isnan(count) else count for count in (cell.seconds, cell.memory)]
        rows.append([cases.of(cell.case), cell.seed, *counts, origin, form, block, len(alike), row])
        alike.append(cell)
    arrays = {}
    for block, alike in own.items():
        once = [cell for _, cell in shared[block].values()]
        arrays |= _stacked(f"own-{block}", [cell.own for cell in alike])
        arrays |= _stacked(f"shared-{block}", [cell.shared for cell in once])
    header = {
        "format": _FORMAT, "study": study, "version": version, "schema": SCHEMA,
        "cases": cases.texts, "origins": [json.loads(origin) for origin in origins.texts], "forms": forms.texts,
        "counts": [[len(alike[0].own), len(alike[0].shared)] for alike in own.values()], "cells": rows,
    }  # fmt: skip
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    arrays["digest"] = np.frombuffer(_digest(sorted(arrays.items())), dtype=np.uint8)
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def unpacked(content: bytes) -> list[Cell]:
    """The cells of a part. Raises Broken for bytes that do not match their digest, ValueError for a later format."""
    arrays = _members(content)
    written = arrays.pop("digest", None)
    if "header" not in arrays or written is None or written.tobytes() != _digest(sorted(arrays.items())):
        raise Broken("its numbers do not match their digest")
    header = _checked(json.loads(arrays["header"].tobytes()))
    once: dict[tuple[int, int], tuple[np.ndarray, ...]] = {}
    cells = []
    for case, seed, seconds, memory, origin, form, block, row, shared in header["cells"]:
        own, alike = header["counts"][block]
        if (block, shared) not in once:
            once[block, shared] = tuple(arrays[f"shared-{block}-{i}"][shared] for i in range(alike))
        mine = tuple(arrays[f"own-{block}-{i}"][row] for i in range(own))
        made = header["cases"][case], seed, _number(seconds), _number(memory), header["origins"][origin]
        cells.append(Cell(*made, header["forms"][form], mine, once[block, shared]))
    return cells


class Row(NamedTuple):
    """A cell of a part, by the header alone."""

    case: str
    seed: int | None
    seconds: float
    memory: float


def header_of(file: Any) -> tuple[int, list[Row]]:
    """Schema of a part, and the rows of its cells, read from an open file. Raises Broken as `unpacked` does."""
    header = _checked(json.loads(_members(file, only="header")["header"].tobytes()))
    cases = header["cases"]
    return header["schema"], [
        Row(cases[case], seed, _number(seconds), _number(memory))
        for case, seed, seconds, memory, *_ in header["cells"]
    ]


def _stacked(name: str, rows: Sequence[tuple[np.ndarray, ...]]) -> dict[str, np.ndarray]:
    return {f"{name}-{i}": np.stack(stack) for i, stack in enumerate(zip(*rows, strict=True))}


class _Numbers:
    """Different texts, numbered as they come."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def of(self, text: str) -> int:
        return self._places.setdefault(text, len(self._places))

    @property
    def texts(self) -> list[str]:
        return list(self._places)


def _members(content: Any, only: str | None = None) -> dict[str, np.ndarray]:
    """Arrays of a zip file by name, each checked by its sum. Raises Broken for one that is damaged or cut."""
    file = io.BytesIO(content) if isinstance(content, bytes) else content
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist() if only is None else [f"{only}.npy"]
            return {name.removesuffix(".npy"): _read(archive, name) for name in names}
    except MemoryError:
        raise
    except OSError as error:
        if error.errno in (None, errno.EINVAL):  # a place before the beginning of the file
            raise Broken("it is damaged or cut short") from error
        raise
    except Exception as error:  # zip and npy raise errors of many kinds for bytes that are damaged
        raise Broken("it is damaged or cut short") from error


def _read(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    return np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)


def _checked(header: dict[str, Any]) -> dict[str, Any]:
    require(
        header["format"] <= _FORMAT,
        f"parts must be of format {_FORMAT} or earlier; got {header['format']}. Install the iclab that wrote it.",
    )
    return header


def _digest(arrays: Iterable[tuple[Any, np.ndarray]]) -> bytes:
    """SHA-256 over names, types, shapes and bytes."""
    total = hashlib.sha256()
    for name, array in arrays:
        total.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.digest()


def _number(counted: float | None) -> float:
    return float("nan") if counted is None else counted
