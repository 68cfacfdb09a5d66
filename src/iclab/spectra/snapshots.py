"""The spectra of one state of a model, and how far its circuits have turned since the state before."""

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial

import numpy as np

from iclab.numerics import require
from iclab.spectra import circuits
from iclab.spectra.factors import Matrix, slices
from iclab.spectra.layouts import Plan
from iclab.spectra.names import csv_cell
from iclab.spectra.ranks import rank_measures
from iclab.spectra.rounding import numerical_rank
from iclab.spectra.subspaces import Basis, Side, basis, overlap_of

SIDES: tuple[Side, Side] = ("left", "right")
LARGEST = 2**22  # numbers of a matrix outside attention that is decomposed


@dataclass(frozen=True)
class Place:
    """Which matrix of a model: a circuit of a head, or a tensor by its name. −1 where there is no layer or head."""

    matrix: str = ""
    layer: int = -1
    head: int = -1
    tower: str = ""


@dataclass(frozen=True)
class Row:
    """One number of one matrix at one step. Where the value is nan, status and reason say why."""

    step: int
    tower: str
    layer: int
    head: int
    matrix: str
    measure: str
    value: float
    gap: float
    norm: float
    status: str = "ok"
    reason: str = ""

    @classmethod
    def skipped(
        cls, step: int, place: Place, reason: str, *, norm: float = math.nan, status: str = "skipped"
    ) -> "Row":
        """The row of a matrix that has no measures."""
        where = (step, place.tower, place.layer, place.head, place.matrix)
        return cls(*where, "", math.nan, math.nan, norm, status, reason)


@dataclass(frozen=True)
class Snapshot:
    """The rows of one step, and the leading directions that the next is held against."""

    rows: tuple[Row, ...]
    bases: Mapping[tuple[Place, Side], Basis]


def snapshot(plan: Plan, step: int, *, k: int, before: Snapshot | None) -> Snapshot:
    """Ranks and norms of all circuits of a model, and their overlaps of k directions with the state before.

    Matrices outside attention are measured up to four million numbers; of larger ones there is the norm.
    """
    rows: list[Row] = []
    bases: dict[tuple[Place, Side], Basis] = {}
    for place, read in _matrices(plan):
        try:
            matrix = read()
            if isinstance(matrix, np.ndarray) and matrix.size > LARGEST:
                reason = f"more than {LARGEST} numbers: the norm alone is taken"
                rows.append(Row.skipped(step, place, reason, norm=_norm(matrix)))
                continue
            found = {side: basis(matrix, k=k, side=side) for side in SIDES}
            rank = numerical_rank(matrix)
        except ValueError as error:
            status = "nonfinite" if "finite" in str(error) else "skipped"
            rows.append(Row.skipped(step, place, str(error), status=status))
            continue
        earlier = {} if before is None else before.bases
        rows += _rows(step, place, found, rank, {side: earlier.get((place, side)) for side in SIDES})
        bases |= {(place, side): one for side, one in found.items()}
    return Snapshot(tuple(rows), bases)


def table(rows: tuple[Row, ...]) -> str:
    """Rows as CSV, with a line of names first; undefined numbers are empty, and no cell is a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(Row))
    for row in rows:
        writer.writerow(_cell(value) for value in vars(row).values())
    return text.getvalue()


def _matrices(plan: Plan) -> Iterator[tuple[Place, Callable[[], Matrix]]]:
    """Every matrix of a plan, a head at a time, and how it is read."""
    for tower, layer in plan.layers:
        weights = plan.attention(tower, layer)
        products = {"query_key": circuits.query_key, "output_value": circuits.output_value}
        if weights.rotary is not None:
            products["averaged_query_key"] = circuits.averaged_query_key
        for head in range(len(weights.query)):
            for name, product in products.items():
                yield Place(name, layer, head, tower), partial(product, {layer: weights}, layer, head)
    for matrix in plan.matrices:
        yield Place(matrix.name, matrix.layer, -1, matrix.tower), matrix.array


def _rows(
    step: int, place: Place, found: Mapping[Side, Basis], rank: int, earlier: Mapping[Side, Basis | None]
) -> Iterator[Row]:
    where = (step, place.tower, place.layer, place.head, place.matrix)
    values = found["right"].values
    norm = float(np.linalg.norm(values))
    zero = ("ok", "") if norm > 0 else ("degenerate", "a matrix of zeros")
    for measure, value in rank_measures(values).items():
        said = zero if norm == 0 or np.isfinite(value) else ("degenerate", "nothing above rounding is left")
        yield Row(*where, measure, float(value), math.nan, norm, *said)
    yield Row(*where, "numerical_rank", float(rank), math.nan, norm)
    for side, one in found.items():
        before = earlier[side]
        if before is not None:
            value = overlap_of(before, one)
            said = ("ok", "") if np.isfinite(value) else ("degenerate", "fewer directions than k above rounding")
            yield Row(*where, f"consecutive_overlap_{side}", value, one.gap, norm, *said)


def _norm(matrix: np.ndarray) -> float:
    size = math.sqrt(sum(float(np.sum(part**2)) for part in slices(matrix)))
    require(math.isfinite(size), "x must be finite; got NaN or infinite entries.")
    return size


def _cell(value: int | float | str) -> str:
    if isinstance(value, float):
        return f"{value:.9g}" if math.isfinite(value) else ""
    return csv_cell(value) if isinstance(value, str) else str(value)
