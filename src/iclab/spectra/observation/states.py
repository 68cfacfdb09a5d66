"""The spectra of one state of a model, and how far its circuits have turned since the state before."""

import csv
import io
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from iclab.spectra.checkpoints.names import csv_cell
from iclab.spectra.layouts import TensorPlan
from iclab.spectra.measures.factors import slices
from iclab.spectra.observation.dynamics import Row
from iclab.spectra.observation.measurements import (
    RANKS,
    Comparison,
    MatrixKey,
    Measurement,
    Selection,
    of_heads,
    of_matrix,
    ranked,
)

OVERLAP = "overlap_with_previous"
LARGEST = 2**22  # numbers of a matrix outside attention that is decomposed


def training_selection(k: int) -> Selection:
    """What is measured of a model in training: all ranks, and overlaps of k leading directions."""
    return Selection(measures=(*RANKS, OVERLAP), leading=k, max_elements=LARGEST)


def snapshot(plan: TensorPlan, step: int, asked: Selection, comparison: Comparison) -> list[Row]:
    """Ranks, norms and overlaps with the state before of all matrices; `comparison` then holds this state.

    Of matrices outside attention of more than four million numbers there is the norm alone. Levels on random
    matrices are left empty: `null.level` gives them, for they stay the same through training.
    """
    first = not comparison.previous
    measured = ranked(_measurements(plan, asked, comparison), asked)
    return [row for one in measured for row in _rows(step, one, first)]


def failure(step: int, reason: str) -> list[Row]:
    """The row of a state that could not be read."""
    return list(_rows(step, Measurement(MatrixKey("", None, None, ""), "", status="skipped", reason=reason), False))


def table(rows: Iterable[Row]) -> str:
    """Rows as CSV, with a line of names first; undefined numbers are empty, and no cell is a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Row._fields)
    for row in rows:
        writer.writerow(_cell(value) for value in row)
    return text.getvalue()


def _measurements(plan: TensorPlan, asked: Selection, comparison: Comparison) -> Iterator[Measurement]:
    for tower, layer in plan.layers:
        yield from of_heads(plan.attention(tower, layer), tower, layer, asked, comparison)
    for matrix in plan.matrices:
        measurement = of_matrix(matrix, asked, comparison)
        yield replace(measurement, norm=_norm(matrix.array())) if measurement.status == "skipped" else measurement


def _rows(step: int, measurement: Measurement, first: bool) -> Iterator[Row]:
    for measure, value in (measurement.measures or {"": math.nan}).items():
        status, reason, gap = measurement.status, measurement.reason, math.nan
        if measure == OVERLAP:
            gap = measurement.gap
        if status == "ok" and math.isnan(value):
            status = "degenerate"
            reason = "no state before it" if first and measure == OVERLAP else "too few directions above rounding"
        yield Row(step, *measurement.key, measure, value, math.nan, math.nan, gap, measurement.norm, status, reason)


def _norm(matrix: np.ndarray) -> float:
    return math.sqrt(sum(float(np.sum(part**2)) for part in slices(matrix)))


def _cell(value: int | float | str | None) -> str:
    if isinstance(value, float):
        return f"{value:.9g}" if math.isfinite(value) else ""
    return "" if value is None else csv_cell(str(value))
