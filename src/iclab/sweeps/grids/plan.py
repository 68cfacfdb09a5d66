"""Plans of sweeps: the values of every axis, the seeds, the blocks and their order, written once and never changed.

    DIR/plans/ID.json       the plan; ID is a hash of study, version, base, axes and seeds
    DIR/plans/ID.keys.npy   a key of 8 bytes for the case of each point of the grid, 0 where there is no such case

No worker makes an axis anew: each reads its values here.
"""

import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from iclab.files import content_of, link_whole
from iclab.numerics import require
from iclab.study import SCHEMA, Study, case_json
from iclab.sweeps.grids.axes import Axis
from iclab.sweeps.grids.fields import case_from, changed, fitted, found
from iclab.sweeps.grids.sources import place_of, reference, source

__all__ = ["SweepPlan", "case_number", "cell_numbers", "plan_of", "plans_in", "read_keys", "read_plan"]

_FORMAT = 1  # raised when a plan changes its meaning
Blocks = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class SweepPlan:
    """A grid of cases with seeds, cut into blocks: everything that a worker needs to know."""

    study: Study = field(compare=False)
    preset: str
    base: Any
    """The case whose fields the axes change, before what follows from its problem is settled."""
    stated: frozenset[str]
    """Fields that the base states, at the top of the case."""
    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    """None: theory alone."""
    blocks: Blocks = ()
    """First cell of each block and the cell after its last, dearest first."""

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits that name study, version, base, axes and seeds."""
        axes = [[axis.names, axis.points] for axis in self.axes]
        content = json.dumps([
            self.study.name, self.study.version, SCHEMA, self.preset, case_json(self.base), sorted(self.stated), axes,
            self.seeds,
        ])  # fmt: skip
        return hashlib.sha256(content.encode()).hexdigest()[:12]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of points along each axis."""
        return tuple(len(axis) for axis in self.axes)

    @property
    def points(self) -> int:
        """Number of points of the grid."""
        return int(np.prod(self.shape, dtype=int))

    @property
    def numbers(self) -> tuple[int | None, ...]:
        """The seed of each cell of a case; None for theory alone."""
        return self.seeds or (None,)

    @property
    def cells(self) -> int:
        """Number of cells: points of the grid × seeds."""
        return self.points * len(self.numbers)

    def values(self, point: int) -> dict[str, Any]:
        """The values of all fields on axes at a point of the grid, counted in the order of rows."""
        places = np.unravel_index(point, self.shape) if self.axes else ()
        return {
            name: value
            for axis, place in zip(self.axes, places, strict=True)
            for name, value in zip(axis.names, axis.points[int(place)], strict=True)
        }

    def case(self, point: int) -> Any:
        """The case at a point of the grid. Raises ValueError as the case does, for values outside its domain."""
        return self._case(self.values(point))

    def cell(self, number: int) -> tuple[int, int | None]:
        """Point and seed of a cell."""
        point, place = divmod(number, len(self.numbers))
        return point, self.numbers[place]

    def cases(self) -> Iterator[Any]:
        """The case of each point in order, or the error that it raises."""
        for point in product(*(axis.points for axis in self.axes)):
            names = (name for axis in self.axes for name in axis.names)
            values = dict(zip(names, (value for part in point for value in part), strict=True))
            try:
                yield self._case(values)
            except (ValueError, ArithmeticError, TypeError) as error:
                yield error

    def keys(self) -> np.ndarray:
        """A key for the case of each point, 0 where there is none. Raises ValueError where no point has a case."""
        found, first = np.zeros(self.points, np.uint64), None
        for point, case in enumerate(self.cases()):
            if isinstance(case, Exception):
                first = first or case
            else:
                found[point] = case_number(case_json(case))
        require(bool(found.any()), f"no cell of this grid can be computed: {first}")
        return found

    def _case(self, values: Mapping[str, Any]) -> Any:
        case = changed(self.base, values)
        stated = self.stated | {name.partition(".")[0] for name in values}
        return self.study.settled(case, stated, like=self.study.preset(self.preset).case)

    def write(self, folder: Path, keys: np.ndarray) -> None:
        """Write the plan, unless it stands there. Raises OSError where the folder cannot be written."""
        buffer = io.BytesIO()
        np.save(buffer, keys)
        link_whole(_keys_path(folder, self.id), buffer.getvalue(), workspace=folder / "tmp")
        link_whole(_path(folder, self.id), self._json().encode(), workspace=folder / "tmp")

    def renew(self, folder: Path) -> None:
        """Count as the newest plan of a folder again."""
        os.utime(_path(folder, self.id))

    def _json(self) -> str:
        content = {
            "format": _FORMAT, "study": self.study.name, "version": self.study.version, "schema": SCHEMA,
            "source": reference(self.study), "kind": place_of(type(self.base)), "preset": self.preset,
            "base": json.loads(case_json(self.base)), "stated": sorted(self.stated),
            "axes": [{"fields": axis.names, "points": axis.points} for axis in self.axes],
            "seeds": self.seeds, "blocks": self.blocks,
        }  # fmt: skip
        return json.dumps(content)


def plan_of(
    study: Study,
    axes: Sequence[Axis],
    seeds: Sequence[int],
    *,
    preset: str = "quick",
    base: Mapping[str, Any] | None = None,
) -> SweepPlan:
    """The plan of a grid around a preset with other values of some fields, not yet cut into blocks.

    Raises ValueError for a field that is not there, one that stands twice, and values of another kind.
    """
    like = study.preset(preset).case
    own = {found(like, name): value for name, value in (base or {}).items()}
    named = [name for axis in axes for name in axis.names]
    axes = tuple(_fitted(like, Axis(tuple(found(like, name) for name in axis.names), axis.points)) for axis in axes)
    whole = [name for axis in axes for name in axis.names]
    for name, short in zip(whole, named, strict=True):
        require(name not in own, f"{name} must be an axis or have one value; got both. Leave one of them out.")
        require(whole.count(name) == 1, f"an axis must stand once; got {short} for {name}, which has one.")
    stated = frozenset(name.partition(".")[0] for name in own)
    return SweepPlan(study, preset, changed(like, own), stated, axes, tuple(seeds))


def plans_in(folder: Path) -> list[str]:
    """The names of the plans in a folder, newest first."""
    dated = {path: path.stat().st_mtime_ns for path in (folder / "plans").glob("*.json")}
    return [path.stem for path in sorted(dated, key=lambda path: (dated[path], path.stem), reverse=True)]


def read_plan(folder: Path, name: str | None = None, *, study: Study | None = None) -> SweepPlan:
    """A plan of a folder, the newest one by default; its study is found by name or handed in.

    Raises ValueError where there is none, for a plan of another version of the study, and for a study that cannot be
    found here.
    """
    known = plans_in(folder)
    require(bool(known), f"{folder} must hold a sweep; there is no plan in it. Begin one with `iclab sweep`.")
    name = known[0] if name is None else name
    require(name in known, f"plan must be one of {', '.join(known)}; got {name!r}.")
    plain = json.loads(content_of(_path(folder, name)))
    require(
        plain["format"] <= _FORMAT,
        f"plans must be of format {_FORMAT} or earlier; got {plain['format']}. Install the iclab that wrote it.",
    )
    if study is None:
        require(
            plain["source"] != "",
            f"the study {plain['study']!r} of plan {name} must be found by other processes; it was handed over from "
            "a script or notebook. Put it into a module, or compute there.",
        )
        study = source(plain["source"], version=plain["version"], case=plain["kind"])
    require(
        (study.version, SCHEMA) == (plain["version"], plain["schema"]),
        f"plan {name} must be of version {study.version} of {study.name}, as installed here; got version "
        f"{plain['version']}. What it computed is kept, and not used; begin it again with `iclab sweep`.",
    )
    like = study.preset(plain["preset"]).case
    axes = tuple(
        _fitted(like, Axis(tuple(axis["fields"]), tuple(map(tuple, axis["points"])))) for axis in plain["axes"]
    )
    base = case_from(like, plain["base"])
    blocks = tuple((first, last) for first, last in plain["blocks"])
    return SweepPlan(study, plain["preset"], base, frozenset(plain["stated"]), axes, tuple(plain["seeds"]), blocks)


def _fitted(like: Any, axis: Axis) -> Axis:
    """The axis with values in the types of its fields, which must then still differ."""
    points = (zip(axis.names, point, strict=True) for point in axis.points)
    return Axis(axis.names, tuple(tuple(fitted(like, name, value) for name, value in point) for point in points))


def _path(folder: Path, name: str) -> Path:
    return folder / "plans" / f"{name}.json"


def _keys_path(folder: Path, name: str) -> Path:
    return folder / "plans" / f"{name}.keys.npy"


def read_keys(folder: Path, plan: SweepPlan) -> np.ndarray:
    """The keys of the cases of a plan, from their file."""
    return np.load(io.BytesIO(content_of(_keys_path(folder, plan.id))), allow_pickle=False)


def case_number(case: str) -> int:
    """The key of a case, given as JSON: 64 bits, never 0."""
    return int.from_bytes(hashlib.blake2b(case.encode(), digest_size=8).digest(), "little") or 1


def cell_numbers(cases: np.ndarray, seeds: Sequence[int | None]) -> np.ndarray:
    """Keys (case, seed) of cells from those of their cases, broadcast against the seeds."""
    steps = np.array([0 if seed is None else seed + 1 for seed in seeds], np.uint64)
    return cases + steps * np.uint64(0x9E3779B97F4A7C15)  # spreads seeds over all 64 bits
