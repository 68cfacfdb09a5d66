"""Seconds, memory and disk of a sweep before it starts, as ranges; and its blocks, cut by them.

Predicted from the study's own estimate of its seconds, else from the cells of this study that the store holds, else
from a pilot of the cheapest and the dearest cell, which is kept.
"""

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from iclab.numerics import require
from iclab.store import Store, fresh
from iclab.store.part import Row
from iclab.store.parts import Parts
from iclab.sweeps.grids.plan import Blocks, SweepPlan
from iclab.sweeps.limits import within

__all__ = ["BLOCK", "Cost", "blocks_of", "fitted_seconds", "free_memory", "predicted", "require_memory"]

BLOCK = 30.0  # seconds that a block should take
MOST = 1024  # cells of a block
_SHARE = 32  # blocks at least, where there are cells for them, so that workers end together
_ROWS = 20_000  # cells that a fit rests on at most


@dataclass(frozen=True)
class Cost:
    """Seconds and memory that the cells of a plan are expected to take."""

    seconds: np.ndarray
    """Of one cell at each point of the grid."""
    between: tuple[float, float]
    """Factors on them that cover the truth, as far as is known."""
    memory: tuple[float, float]
    """Bytes that a process holds at most; nan where it is not known."""
    source: str

    def hours(self, cells: Sequence[int], seeds: int) -> tuple[float, float]:
        """Hours on one core for these cells, least and most."""
        total = float(np.sum(self.seconds[np.asarray(cells, int) // seeds])) / 3600
        return total * self.between[0], total * self.between[1]


def predicted(folder: Path, plan: SweepPlan, *, timeout: float | None = None) -> Cost:
    """The cost of a plan. A pilot is computed, and kept, where nothing else tells, each cell within the timeout."""
    own = plan.study.preset(plan.preset).seconds
    rows = _history(folder, plan)
    memory = _memory(rows)
    if own is not None:
        seconds = [math.nan if isinstance(case, Exception) else own(case) for case in plan.cases()]
        return Cost(_filled(np.array(seconds)), (0.5, 2.0), memory, "the study's own estimate")
    if len(rows) < 3:
        rows = _pilot(folder, plan, timeout)
        memory = _memory(rows)
    if not rows:
        return Cost(np.full(plan.points, math.nan), (1.0, 1.0), memory, "nothing: no cell was computed yet")
    seconds, spread = fitted_seconds(plan, rows)
    return Cost(seconds, (1 / spread, spread), memory, f"{len(rows):,} cells of the store")


def blocks_of(plan: SweepPlan, seconds: np.ndarray) -> Blocks:
    """Blocks of some 30 s and 1 to 1024 cells, dearest first; all seeds of a case are together where they fit."""
    seeds = len(plan.numbers)
    most = min(MOST, max(1, math.ceil(plan.cells / _SHARE)))
    each = np.where(np.isfinite(seconds), np.maximum(seconds, 1e-6), 1.0)
    ends: list[tuple[float, int, int]] = []
    first, spent, dearest = 0, 0.0, 0.0

    def close(last: int) -> None:
        nonlocal first, spent, dearest
        if last > first:
            ends.append((dearest, first, last))
        first, spent, dearest = last, 0.0, 0.0

    for point, cost in enumerate(each.tolist()):
        begin = point * seeds
        if seeds > most or seeds * cost > BLOCK:
            close(begin)
            size = min(most, max(1, int(BLOCK // cost)))
            for place in range(begin, begin + seeds, size):
                first, dearest = place, cost
                close(min(place + size, begin + seeds))
            continue
        if spent + seeds * cost > BLOCK or begin + seeds - first > most:
            close(begin)
        spent, dearest = spent + seeds * cost, max(dearest, cost)
    close(plan.cells)
    return tuple((begin, end) for _, begin, end in sorted(ends, key=lambda one: (-one[0], one[1])))


def require_memory(cost: Cost, *, processes: int, available: float) -> None:
    """Raise ValueError where so many processes certainly need more memory than there is."""
    least = cost.memory[0] * processes
    require(
        not least > available,
        f"{processes} processes must fit into memory; they need {least / 1e9:.2g} GB at least of "
        f"{available / 1e9:.2g} GB. Compute with fewer, or on a larger machine.",
    )


def free_memory() -> float:
    """Bytes of memory that this machine or container has."""
    sizes = [float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))] if hasattr(os, "sysconf") else []
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            sizes.append(float(Path(path).read_text()))
        except (OSError, ValueError):
            continue
    return min(sizes, default=math.inf)


def _history(folder: Path, plan: SweepPlan) -> list[Row]:
    """Cells of the study in the store that took the same witnesses."""
    alone = not plan.seeds

    def chosen(_: os.stat_result, rows: list[Row]) -> list[Row]:
        return [row for row in rows if (row.seed is None) == alone and row.seconds > 0]

    found = [row for rows in Parts(folder, plan.study).index(chosen, {}).values() for row in rows]
    return found[:: math.ceil(len(found) / _ROWS)] if found else []


def _pilot(folder: Path, plan: SweepPlan, timeout: float | None) -> list[Row]:
    """The cheapest and the dearest cell by the size of the values, and one more when all is loaded; they are kept."""
    sizes = _features(plan).sum(axis=1)
    seed = plan.numbers[0]
    kept: list[Row] = []
    with Store(folder).buffer(plan.study) as buffer:
        for point in dict.fromkeys(
            [int(np.argmin(sizes)), int(np.argmax(sizes)), int(np.argsort(sizes)[1 % len(sizes)])]
        ):
            try:
                with within(timeout):
                    cell = fresh(plan.study, plan.case(point), seed)
            except ImportError:
                raise
            except Exception:  # the worker records it
                continue
            buffer.keep([cell])
            kept.append(Row(cell.case, seed, cell.seconds, cell.memory))
    return kept[1:] or kept  # the first one loads libraries too


def fitted_seconds(plan: SweepPlan, rows: Sequence[Row]) -> tuple[np.ndarray, float]:
    """Seconds at each point, a product of powers of the values fitted to the rows, and the factor they scatter by."""
    names = [name for axis in plan.axes for name in axis.names]
    known = np.array([[_log(_at(json.loads(row.case), name)) for name in names] for row in rows]).reshape(
        len(rows), -1
    )
    times = np.log([row.seconds for row in rows])
    center = known.mean(axis=0)
    moving = np.ptp(known, axis=0) > 0
    powers = np.zeros(len(names))
    if moving.any() and len(rows) > moving.sum():
        design = (known - center)[:, moving]
        shrunk = np.vstack([design, 1e-3 * np.eye(design.shape[1])])
        asked = np.append(times - times.mean(), np.zeros(moving.sum()))
        powers[moving] = np.linalg.lstsq(shrunk, asked, rcond=None)[0]
    level = np.median(times - (known - center) @ powers)
    rest = times - level - (known - center) @ powers
    spread = max(1.2, math.exp(2 * float(np.std(rest)))) if len(rows) > 3 else 2.0
    points = _features(plan)
    return np.exp(level + (points - center) @ powers), min(spread, 10.0)


def _features(plan: SweepPlan) -> np.ndarray:
    """Logarithms of the values on all axes at each point; what is no positive number counts as 0."""
    columns = []
    for place, axis in enumerate(plan.axes):
        for field in range(len(axis.names)):
            logs = np.array([_log(point[field]) for point in axis.points])
            shape = [-1 if other == place else 1 for other in range(len(plan.axes))]
            columns.append(np.broadcast_to(logs.reshape(shape), plan.shape).ravel())
    return np.stack(columns, axis=1) if columns else np.zeros((plan.points, 1))


def _log(value: object) -> float:
    if isinstance(value, list | tuple):
        return sum(map(_log, value)) / max(1, len(value)) + math.log(max(1, len(value)))
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        return 0.0
    return math.log(value)


def _at(case: dict, name: str) -> object:
    value: object = case
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _memory(rows: Sequence[Row]) -> tuple[float, float]:
    held = [row.memory for row in rows if row.memory > 0]
    return (float(np.median(held)), 1.5 * max(held)) if held else (math.nan, math.nan)


def _filled(seconds: np.ndarray) -> np.ndarray:
    known = seconds[np.isfinite(seconds)]
    return np.where(np.isfinite(seconds), seconds, np.median(known) if len(known) else 1.0)
