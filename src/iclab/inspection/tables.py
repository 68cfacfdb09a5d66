"""Results of observations as files: JSON, CSV, parquet. Undefined numbers are null."""

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from iclab.files import installing, written_whole
from iclab.spectra.checkpoints.names import csv_cell
from iclab.spectra.observation.dynamics import MatrixSeries, Row, SpectralDynamics

__all__ = [
    "Runs", "Writable", "columns", "defined", "identity", "json_numbers", "require_parquet", "rows", "stream_json",
    "write_csv", "write_json", "write_parquet",
]  # fmt: skip

Runs = Mapping[str, SpectralDynamics]
"""Observations by the name of their run; the table of one run has no column for it."""
_BATCH = 50_000  # rows in memory at a time


@runtime_checkable
class Writable(Protocol):
    """An object that takes text, such as an open file."""

    def write(self, text: str, /) -> Any:
        """Write the text."""


def columns(runs: Runs) -> tuple[str, ...]:
    """Columns of the table; several runs have a first column `run`."""
    return ("run", *Row._fields) if len(runs) > 1 else Row._fields


def rows(runs: Runs) -> Iterator[tuple[Any, ...]]:
    """Rows of the table, undefined numbers as None."""
    for name, dynamics in runs.items():
        front = (name,) if len(runs) > 1 else ()
        for row in dynamics.rows():
            yield (*front, *(defined(cell) for cell in row))


def defined(value: Any) -> Any:
    """The value, or None for a number that is nan or infinite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(path: Path, document: Mapping[str, Any], runs: Runs) -> None:
    """Write the document with singular values and table as its last entries, line by line."""
    with written_whole(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        stream_json(file, document, runs)


def stream_json(file: Writable, document: Mapping[str, Any], runs: Runs) -> None:
    """Write the document, the singular values and the table to an open file."""
    names = columns(runs)
    file.write(json.dumps(document, allow_nan=False)[:-1])
    _stream(file, "fans", _trajectories(runs))
    _stream(file, "table", (dict(zip(names, row, strict=True)) for row in rows(runs)))
    file.write("}\n")


def identity(series: MatrixSeries) -> dict[str, Any]:
    """Identity of a matrix."""
    return {"tower": series.tower, "layer": series.layer, "head": series.head, "matrix": series.matrix}


def json_numbers(values: Float[np.ndarray, "n"]) -> list[float | None]:
    """Numbers for JSON, undefined ones as None."""
    return [defined(value) for value in values.tolist()]


def _trajectories(runs: Runs) -> Iterator[dict[str, Any]]:
    """Leading singular values of each matrix at each step."""
    for name, dynamics in runs.items():
        for series in dynamics.matrices:
            yield {
                **({"run": name} if len(runs) > 1 else {}), **identity(series), "role": series.role,
                "shape": list(series.shape), "stored": series.stored, "notes": list(series.notes),
                "singular_values": [json_numbers(values) for values in series.leading],
            }  # fmt: skip


def _stream(file: Writable, name: str, entries: Iterable[Any]) -> None:
    """Write one more entry of an open JSON object: a list, line by line."""
    file.write(f', "{name}": [')
    for number, entry in enumerate(entries):
        file.write(",\n" if number else "\n")
        file.write(json.dumps(entry, allow_nan=False))
    file.write("]")


def write_csv(path: Path, runs: Runs) -> None:
    """Write the table; texts that a spreadsheet would take for formulas are quoted."""
    with written_whole(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        sheet = csv.writer(file)
        sheet.writerow(columns(runs))
        for row in rows(runs):
            sheet.writerow(
                ["" if cell is None else csv_cell(cell) if isinstance(cell, str) else cell for cell in row]
            )


def require_parquet() -> None:
    """Raise ImportError, with what to install, where parquet cannot be written."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise ImportError(
            f"--parquet needs pyarrow; it is not installed. Install it with {installing('parquet')}, or take --csv."
        ) from None


def write_parquet(path: Path, runs: Runs) -> None:
    """Write the table in typed columns. Raises ImportError, with what to install, without pyarrow."""
    require_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole, text = ("step", "layer", "head"), ("run", "tower", "matrix", "measure", "status", "reason")
    kinds = [
        (name, pa.int64() if name in whole else pa.string() if name in text else pa.float64())
        for name in columns(runs)
    ]
    schema = pa.schema(kinds)
    with written_whole(path) as temporary, pq.ParquetWriter(temporary, schema) as sheet:
        for batch in _batches(rows(runs)):
            parts = [_plain(column) for column in zip(*batch, strict=True)]
            arrays = [pa.array(part, kind) for part, (_, kind) in zip(parts, kinds, strict=True)]
            sheet.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _plain(column: Iterable[Any]) -> list[Any]:
    """Texts as valid UTF-8."""
    return [one.encode("utf-8", "backslashreplace").decode() if isinstance(one, str) else one for one in column]


def _batches(every: Iterator[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    while batch := list(islice(every, _BATCH)):
        yield batch
