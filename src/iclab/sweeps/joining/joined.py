"""One labeled dataset of a sweep: axes of the grid, then seeds, then the axes of each outcome.

/                  the axes and seeds as coordinates; question, base case and plans as attributes
/theory/NAME, …    the outcomes; numbers of cells that are missing or failed are NaN
/cells             of each cell: status, seconds, memory, and which of the listed origins made it
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from iclab import __version__
from iclab.numerics import require
from iclab.store.cells import Cell
from iclab.store.parts import Parts
from iclab.study import SCHEMA, case_json
from iclab.sweeps.grids.axes import Axis
from iclab.sweeps.grids.plan import SweepPlan, case_number, cell_numbers
from iclab.sweeps.joining.stacks import group, named, single, stacks_of
from iclab.sweeps.state import State

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["STATUS", "joined", "united"]

STATUS = ("missing", "done", "failed", "not asked")


def united(plans: Sequence[SweepPlan]) -> list[SweepPlan]:
    """Those plans, newest first, that make one grid with the first: of one study, base and fields of axes."""
    first = plans[0]
    return [plan for plan in plans if _kind(plan) == _kind(first)]


def joined(folder: Path, plans: Sequence[SweepPlan]) -> "xr.DataTree":
    """The dataset of all cells of plans that make one grid.

    Raises ValueError where nothing is done yet, and where groups of two cells do not fit one another.
    """
    grid = _Grid.of(plans)
    status, places, reasons = _asked(folder, plans, grid)
    parts = Parts(folder, plans[0].study)
    numbers = {}  # of each case, made once

    def number(case: str, seed: int | None) -> int:
        if case not in numbers:
            numbers[case] = np.array([case_number(case)], np.uint64)
        return int(cell_numbers(numbers[case], [seed])[0])

    cells = parts.chosen(lambda case, seed: number(case, seed) in places)
    require(bool(cells), f"{folder} must hold a finished cell of the sweep; there is none yet.")
    at = [(place, cell) for (case, seed), cell in cells.items() for place in places[number(case, seed)]]
    at.sort(key=lambda one: one[0])
    for place, _ in at:
        status.flat[place] = STATUS.index("done")
    return _tree(grid, plans, at, status, reasons)


@dataclass(frozen=True)
class _Grid:
    """The points of all plans together."""

    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]

    @classmethod
    def of(cls, plans: Sequence[SweepPlan]) -> "_Grid":
        axes = []
        for several in zip(*(plan.axes for plan in plans), strict=True):
            points = list(dict.fromkeys(point for axis in several for point in axis.points))
            numbers = all(_is_number(value) for point in points for value in point)
            axes.append(Axis(several[0].names, tuple(sorted(points) if numbers else points)))
        return cls(tuple(axes), tuple(sorted({seed for plan in plans for seed in plan.seeds})))

    @property
    def shape(self) -> tuple[int, ...]:
        return (*(len(axis) for axis in self.axes), max(1, len(self.seeds)))

    def place(self, plan: SweepPlan) -> np.ndarray:
        """The place of each cell of a plan among those of the grid."""
        along = [
            [own.points.index(point) for point in axis.points] for own, axis in zip(self.axes, plan.axes, strict=True)
        ]
        along.append([self.seeds.index(seed) for seed in plan.seeds] or [0])
        return np.ravel_multi_index(np.ix_(*along), self.shape).ravel()


def _asked(
    folder: Path, plans: Sequence[SweepPlan], grid: _Grid
) -> tuple[np.ndarray, dict[int, list[int]], np.ndarray | None]:
    """Status of each place of the grid, the places by the key of their cell, and the reasons of failures."""
    status = np.full(grid.shape, STATUS.index("not asked"), np.int8)
    places: dict[int, list[int]] = {}
    reasons: dict[int, str] = {}
    for plan in plans:
        state = State(folder, plan)
        of_plan = grid.place(plan)
        status.flat[of_plan] = np.where(state.failed, STATUS.index("failed"), STATUS.index("missing"))
        for cell, place in enumerate(of_plan.tolist()):
            number = int(state.numbers[cell])
            if place not in places.setdefault(number, []):
                places[number].append(place)
            if state.failed[cell]:
                reasons[place] = f"{state.failures[number].kind}: {state.failures[number].message}"
    if not reasons:
        return status, places, None
    text = np.full(grid.shape, "", dtype=object)
    for place, reason in reasons.items():
        text.flat[place] = reason
    return status, places, text.astype(str)


def _tree(
    grid: _Grid, plans: Sequence[SweepPlan], at: Sequence[tuple[int, Cell]], status: np.ndarray,
    reasons: np.ndarray | None,
) -> "xr.DataTree":  # fmt: skip
    import xarray as xr

    stacks, kinds = stacks_of(at, len(grid.seeds) or 1)
    names = named(grid.axes, grid.shape[:-1], stacks)
    dims = (*names, "seed") if grid.seeds else tuple(names)
    shape = grid.shape if grid.seeds else grid.shape[:-1]
    study = plans[0].study
    groups: dict[str, Any] = {"/": xr.Dataset(coords=_coordinates(grid, names), attrs={
        "study": study.name, "study_version": study.version, "schema": SCHEMA, "question": study.title,
        "base": case_json(plans[0].base), "preset": plans[0].preset, "plans": [plan.id for plan in plans],
        "axes": [axis.title for axis in grid.axes], "iclab": __version__,
    })}  # fmt: skip
    for path, kind in kinds.items():
        own = {name: stack for (of, name), stack in stacks.items() if of == path}
        groups[path] = group(own, kind, grid.shape, names)
    groups["cells"] = _cells_group(at, status.reshape(shape), reasons, dims)
    return xr.DataTree.from_dict(groups)


def _cells_group(
    at: Sequence[tuple[int, Cell]], status: np.ndarray, reasons: np.ndarray | None, dims: tuple[str, ...]
) -> "xr.Dataset":
    import xarray as xr

    origins: dict[str, int] = {}
    seconds, memory = np.full(status.shape, np.nan), np.full(status.shape, np.nan)
    made = np.full(status.shape, -1, np.int32)
    for place, cell in at:
        seconds.flat[place], memory.flat[place] = cell.seconds, cell.memory
        made.flat[place] = origins.setdefault(json.dumps(dict(cell.origin), sort_keys=True), len(origins))
    notes = {"flag_values": list(range(len(STATUS))), "flag_meanings": ", ".join(STATUS)}
    variables = {
        "status": (dims, status, {"long_name": "status of the cell", **notes}),
        "seconds": (dims, seconds, {"long_name": "time that the cell took", "units": "s"}),
        "memory": (dims, memory, {"long_name": "most memory that its process had held", "units": "byte"}),
        "origin": (dims, made, {"long_name": "number of the origin among those listed", "origins": list(origins)}),
    }
    if reasons is not None:
        variables["failure"] = (dims, reasons.reshape(status.shape), {"long_name": "why the cell failed"})
    return xr.Dataset(variables)


def _coordinates(grid: _Grid, names: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for axis, name in zip(grid.axes, names, strict=True):
        for place, whole in enumerate(axis.names):
            values = [single(point[place]) for point in axis.points]
            array = np.array(values if all(map(_is_number, values)) else list(map(_text, values)))
            found[name if place == 0 else whole] = (name, array, {"long_name": whole})
    if grid.seeds:
        found["seed"] = ("seed", np.array(grid.seeds))
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(plan: SweepPlan) -> tuple[object, ...]:
    fields = [axis.names for axis in plan.axes]
    return (
        plan.study.name,
        plan.study.version,
        plan.preset,
        case_json(plan.base),
        plan.stated,
        fields,
        bool(plan.seeds),
    )
