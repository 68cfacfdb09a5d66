"""What a model could do at its checkpoints: a table beside the spectra, joined on the exact step."""

import csv
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from iclab.numerics import require
from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.measures.changes import Change, change

_LARGEST = 64 * 2**20  # bytes of a table
_COLUMNS = 64


@dataclass(frozen=True)
class Behavior:
    """Numbers by step, as they stand in a table; nan where a cell is empty."""

    steps: tuple[int, ...]
    columns: Mapping[str, Float[np.ndarray, "row"]]


@dataclass(frozen=True)
class Joined:
    """Numbers on the steps of a series; nan where the table has no row for a step.

    `unmatched` are steps of the table without a checkpoint, `absent` checkpoints without a row.
    """

    columns: Mapping[str, Float[np.ndarray, "step"]]
    unmatched: tuple[int, ...]
    absent: tuple[int, ...]


def read(path: Path) -> Behavior:
    """The table of a CSV file with a column `step` and others of numbers.

    Raises ValueError, naming the row and the column, for a missing or repeated step and for what is no number.
    """
    require(path.is_file(), f"--behavior must be a CSV file; got {quoted(str(path))}.")
    require(path.stat().st_size <= _LARGEST, f"--behavior must have at most {_LARGEST:,} bytes.")
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            header, *rows = list(csv.reader(file)) or [[]]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"--behavior must be a CSV file in UTF-8; {quoted(path.name)} is not: {error}.") from None
    names = [name.strip() for name in header]
    require(
        names.count("step") == 1 and len(set(names)) == len(names) and 2 <= len(names) <= _COLUMNS,
        f"the first row of {quoted(path.name)} must name one column step and 1 to {_COLUMNS - 1} others, all "
        f"different; got {', '.join(quoted(name) for name in names[:8])}.",
    )
    filled = [(number, row) for number, row in enumerate(rows, start=2) if any(cell.strip() for cell in row)]
    require(bool(filled), f"{quoted(path.name)} must have a row of numbers; it has none.")
    for number, row in filled:
        require(len(row) == len(names), f"row {number} of {quoted(path.name)} must have {len(names)} cells.")
    table = {
        name: np.array([_number(row[column], number, name, path) for number, row in filled])
        for column, name in enumerate(names)
    }
    return Behavior(_steps(table.pop("step"), path), table)


def joined(behavior: Behavior, steps: Sequence[int]) -> Joined:
    """The numbers on these steps: only rows of exactly such a step count."""
    row = {step: index for index, step in enumerate(behavior.steps)}
    matching = [row.get(step) for step in steps]
    columns = {
        name: np.array([np.nan if index is None else values[index] for index in matching])
        for name, values in behavior.columns.items()
    }
    there = set(steps)
    return Joined(
        columns,
        tuple(step for step in behavior.steps if step not in there),
        tuple(dict.fromkeys(step for step in steps if step not in row)),
    )


def behavior_changes(joined: Joined | None, steps: np.ndarray) -> dict[str, Change]:
    """The change of each column of behavior; none where steps do not increase."""
    if joined is None or np.any(np.diff(steps) <= 0):
        return {}
    curves = {name: np.where(np.isfinite(values), values, np.nan) for name, values in joined.columns.items()}
    return {name: change(steps, values) for name, values in curves.items()}


def _number(cell: str, row: int, column: str, path: Path) -> float:
    text = cell.strip()
    try:
        return float(text) if text else math.nan
    except ValueError:
        raise ValueError(
            f"row {row}, column {quoted(column)} of {quoted(path.name)} must be a number; got "
            f"{quoted(text, longest=40)}."
        ) from None


def _steps(values: np.ndarray, path: Path) -> tuple[int, ...]:
    whole = np.isfinite(values) & (values >= 0) & (values < 2**53) & (values == np.floor(np.nan_to_num(values)))
    require(bool(whole.all()), f"column step of {quoted(path.name)} must hold whole numbers >= 0.")
    steps = tuple(int(step) for step in values)
    twice = next((step for step, count in Counter(steps).items() if count > 1), None)
    require(twice is None, f"column step of {quoted(path.name)} must name each step once; {twice} comes twice.")
    return steps
