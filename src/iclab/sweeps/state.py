"""The state of a sweep, from the files alone: which of its cells are done, failed or missing."""

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from iclab.store.part import Row
from iclab.store.parts import Parts
from iclab.study import case_json
from iclab.sweeps.failures import Failure, Failures
from iclab.sweeps.grids.plan import SweepPlan, case_number, cell_numbers, read_keys

__all__ = ["State"]


class _Digest(NamedTuple):
    """A part in few numbers."""

    numbers: np.ndarray
    time: float
    """Time at which it was written, by the clock of its disk."""
    bytes: int


@dataclass
class State:
    """Cells of a plan that are done or failed; `refresh` reads what is new."""

    folder: Path
    plan: SweepPlan
    keys: np.ndarray | None = None
    """Keys of the cases of a plan that is not written yet; by default from their file."""
    points: np.ndarray = field(init=False)
    """The key of each point: of its case, or of its values where there is none."""
    numbers: np.ndarray = field(init=False)
    """The key of each cell."""
    done: np.ndarray = field(init=False)
    failed: np.ndarray = field(init=False)
    impossible: np.ndarray = field(init=False)
    """Points of the grid that have no case."""
    failures: dict[int, Failure] = field(init=False, default_factory=dict)
    """Records by the key of the cell."""

    def __post_init__(self) -> None:
        self.points = read_keys(self.folder, self.plan) if self.keys is None else self.keys.copy()
        self.impossible = self.points == 0
        for point in np.flatnonzero(self.impossible):
            self.points[point] = self._number_of_values(int(point))
        self.numbers = cell_numbers(self.points[:, None], self.plan.numbers).ravel()
        self.done = np.zeros(len(self.numbers), bool)
        self.failed = np.zeros(len(self.numbers), bool)
        self._order = np.argsort(self.numbers, kind="stable")
        self._sorted = self.numbers[self._order]
        self._parts: dict[str, _Digest] = {}
        self._records: dict[str, list[Failure]] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read the parts and records that have come since, and forget those that are gone."""
        before = self._parts
        self._parts = Parts(self.folder, self.plan.study).index(_digest, before)
        new = [name for name in self._parts if name not in before]
        if before.keys() - self._parts.keys():
            self.done[:] = False
            new = list(self._parts)
        for name in new:
            self.done[self._cells(self._parts[name].numbers)] = True
        self._records = Failures(self.folder, self.plan.study).read(self._records)
        self.failures = {one.number: one for records in self._records.values() for one in records}
        self.failed[:] = False
        if self.failures:
            self.failed[self._cells(np.array(list(self.failures), np.uint64))] = True
            self.failed &= ~self.done  # results beat failures

    def missing(self, block: int) -> list[int]:
        """Cells of a block that are neither done nor failed."""
        first, last = self.plan.blocks[block]
        return (first + np.flatnonzero(~(self.done | self.failed)[first:last])).tolist()

    @property
    def left(self) -> int:
        """Number of cells that are neither done nor failed."""
        return int(np.count_nonzero(~(self.done | self.failed)))

    @property
    def bytes_of_cell(self) -> float:
        """Bytes that a cell takes in the parts; nan before there is one."""
        cells = sum(len(one.numbers) for one in self._parts.values())
        return sum(one.bytes for one in self._parts.values()) / cells if cells else float("nan")

    def reasons(self) -> list[Failure]:
        """The records of the cells that failed, in the order of the plan."""
        return [self.failures[int(number)] for number in self.numbers[self.failed]]

    def written(self) -> list[tuple[float, int]]:
        """Times at which parts with cells of the plan were written, oldest first, and the cells that each holds."""
        held = ((one.time, len(self._cells(one.numbers))) for one in self._parts.values())
        return sorted((time, count) for time, count in held if count)

    def _cells(self, numbers: np.ndarray) -> np.ndarray:
        """The cells that have these keys; two points of a grid may share a case."""
        first = np.searchsorted(self._sorted, numbers, "left")
        counts = np.searchsorted(self._sorted, numbers, "right") - first
        places = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        return self._order[places]

    def _number_of_values(self, point: int) -> int:
        """The key of a point that has no case: of what was asked."""
        text = json.dumps([case_json(self.plan.base), sorted(self.plan.values(point).items())], default=str)
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _digest(stat: os.stat_result, rows: list[Row]) -> _Digest:
    cases = {case: case_number(case) for case in {row.case for row in rows}}
    numbers = cell_numbers(np.array([cases[row.case] for row in rows], np.uint64), [row.seed for row in rows])
    return _Digest(numbers, stat.st_mtime, stat.st_size)
