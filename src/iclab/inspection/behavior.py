"""Behavior of a model at its checkpoints: a table of scores by step, joined with the spectra on the exact step."""

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from iclab.numerics import require
from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.measures.changes import Change, change

__all__ = ["Behavior", "Joined", "behavior_changes", "joined", "read"]

_LARGEST = 64 * 2**20  # bytes of a table
_COLUMNS = 64
_COUNTERS = ("step", "global_step", "_step", "trainer/global_step", "iteration", "iter")
_NO_BEHAVIOR = re.compile(r"wall time|_timestamp|_runtime|timestamp|.*__(?:MIN|MAX)", re.IGNORECASE)


@dataclass(frozen=True)
class Behavior:
    """Columns of numbers by step; nan for an empty cell."""

    steps: tuple[int, ...]
    columns: Mapping[str, Float[np.ndarray, "row"]]


@dataclass(frozen=True)
class Joined:
    """Columns on the steps of a series; nan where the table has no row for a step.

    `unmatched` are steps of the table without a checkpoint, `absent` are steps of checkpoints without a row.
    """

    columns: Mapping[str, Float[np.ndarray, "step"]]
    unmatched: tuple[int, ...]
    absent: tuple[int, ...]


def read(path: Path) -> Behavior:
    """Table of a CSV file with a column of steps and others of numbers.

    Files of common loggers are read as they are: the column may be called Step, global_step or _step, the rows of one
    step are joined, and times and the MIN and MAX of W&B are left out.

    Raises ValueError, naming the row and the column, for a missing step, for two values of one step and for a cell
    that is no number.
    """
    require(path.is_file(), f"--behavior must be a CSV file; got {quoted(str(path))}.")
    require(path.stat().st_size <= _LARGEST, f"--behavior must have at most {_LARGEST:,} bytes.")
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            header, *rows = list(csv.reader(file)) or [[]]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"--behavior must be a CSV file in UTF-8; {quoted(path.name)} is not: {error}.") from None
    names = [name.strip() for name in header]
    counter = _step_column(names, path)
    filled = [(number, row) for number, row in enumerate(rows, start=2) if any(cell.strip() for cell in row)]
    require(bool(filled), f"{quoted(path.name)} must have a row of numbers; it has none.")
    for number, row in filled:
        require(len(row) == len(names), f"row {number} of {quoted(path.name)} must have {len(names)} cells.")
    table = {
        name: np.array([_number(row[column], number, name, path) for number, row in filled])
        for column, name in enumerate(names)
        if name == counter or not _NO_BEHAVIOR.fullmatch(name)
    }
    steps = _steps(table.pop(counter), path)
    return _one_row_each(steps, table, [number for number, _ in filled], path)


def _step_column(names: list[str], path: Path) -> str:
    """The column that counts training steps."""
    exact = [name for name in names if name == "step"]
    counters = exact or [name for name in names if name.lower() in _COUNTERS]
    require(
        len(counters) == 1 and len(set(names)) == len(names) and 2 <= len(names) <= _COLUMNS,
        f"the first row of {quoted(path.name)} must name one column step and 1 to {_COLUMNS - 1} others, all "
        f"different; got {', '.join(quoted(name) for name in names[:8])}. Call the column of training steps "
        "step, and leave out what is no behavior.",
    )
    return counters[0]


def _one_row_each(
    steps: tuple[int, ...], table: Mapping[str, Float[np.ndarray, "row"]], numbers: Sequence[int], path: Path
) -> Behavior:
    """The table with one row for each step: loggers write training and validation into rows of their own."""
    place = {step: index for index, step in enumerate(dict.fromkeys(steps))}
    columns = {}
    for name, values in table.items():
        joint, owner = np.full(len(place), np.nan), {}
        for step, value, number in zip(steps, values, numbers, strict=True):
            if np.isnan(value):
                continue
            require(
                step not in owner or joint[place[step]] == value,
                f"column step of {quoted(path.name)} must name each step once, or leave cells empty; {step} comes "
                f"twice with a value of {quoted(name)}, in rows {owner.get(step)} and {number}. Keep one of them.",
            )
            joint[place[step]], owner[step] = value, number
        columns[name] = joint
    return Behavior(tuple(place), columns)


def joined(behavior: Behavior, steps: Sequence[int]) -> Joined:
    """Columns of the table on these steps; only rows with exactly such a step are used."""
    row = {step: index for index, step in enumerate(behavior.steps)}
    matching = [row.get(step) for step in steps]
    columns = {
        name: np.array([np.nan if index is None else values[index] for index in matching])
        for name, values in behavior.columns.items()
    }
    present = set(steps)
    return Joined(
        columns,
        tuple(step for step in behavior.steps if step not in present),
        tuple(dict.fromkeys(step for step in steps if step not in row)),
    )


def behavior_changes(joined: Joined | None, steps: np.ndarray) -> dict[str, Change]:
    """Change of each column of behavior; none where steps do not increase."""
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
            f"{quoted(text, longest=40)}. Leave out columns of text."
        ) from None


def _steps(values: np.ndarray, path: Path) -> tuple[int, ...]:
    whole = np.isfinite(values) & (values >= 0) & (values < 2**53) & (values == np.floor(np.nan_to_num(values)))
    require(bool(whole.all()), f"column step of {quoted(path.name)} must hold whole numbers >= 0.")
    return tuple(int(step) for step in values)
