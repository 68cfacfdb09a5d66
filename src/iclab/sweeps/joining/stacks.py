"""Arrays of all cells stacked on the grid of a sweep, one variable of an outcome at a time."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from iclab.numerics import require
from iclab.store.cells import Cell
from iclab.sweeps.grids.axes import Axis

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Stack", "group", "named", "single", "stacks_of"]

Stacks = dict[tuple[str, str], "Stack"]
"""Stacks by group and name."""


@dataclass
class Stack:
    """The arrays of one variable in all cells, and where they belong."""

    axes: tuple[str, ...]
    notes: dict[str, str]
    coordinate: bool
    places: list[int] = field(default_factory=list)
    arrays: list[np.ndarray] = field(default_factory=list)

    def filled(self, shape: tuple[int, ...], largest: tuple[int, ...]) -> np.ndarray:
        """All arrays on the grid; what is missing, or shorter than the longest, is NaN, or empty text."""
        alike = all(array.shape == largest for array in self.arrays)
        whole = alike and len(self.places) == math.prod(shape)
        kind = np.result_type(*{array.dtype for array in self.arrays})
        if not whole and kind.kind in "biu":
            kind = np.dtype(float)
        found = np.full((math.prod(shape), *largest), "" if kind.kind == "U" else 0 if whole else np.nan, kind)
        if alike:
            found[self.places] = np.stack(self.arrays)
        else:
            for place, array in zip(self.places, self.arrays, strict=True):
                found[(place, *map(slice, array.shape))] = array
        return found.reshape(*shape, *largest)

    def drop(self, axis: str) -> None:
        """Leave an axis of one point out."""
        if axis in self.inner:
            place = self.inner.index(axis)
            self.arrays = [np.squeeze(array, axis=place) for array in self.arrays]
            self.axes = tuple(one for one in self.axes if one != axis)

    @property
    def inner(self) -> tuple[str, ...]:
        """Its axes without that of seeds."""
        return tuple(axis for axis in self.axes if axis != "seed")

    @property
    def constant(self) -> bool:
        """True where all arrays are one."""
        first = self.arrays[0]
        return all(array is first or np.array_equal(array, first) for array in self.arrays)


def stacks_of(at: Sequence[tuple[int, Cell]], seeds: int) -> tuple[Stacks, dict[str, dict[str, Any]]]:
    """The arrays of every variable by group and name, and the attributes of each group."""
    forms: dict[str, Any] = {}
    stacks: Stacks = {}
    kinds: dict[str, dict[str, Any]] = {}
    for place, cell in at:
        if cell.form not in forms:
            forms[cell.form] = json.loads(cell.form)
        own, shared = iter(cell.own), iter(cell.shared)
        for path, attributes, variables in forms[cell.form]:
            kinds.setdefault(path, attributes)
            for name, axes, notes, coordinate in variables:
                seeded = "seed" in axes
                array = next(own if seeded else shared)
                if name == "seed":
                    continue
                inner = tuple(axis for axis in axes if axis != "seed")
                stack = stacks.setdefault(
                    (path, name), Stack(("seed", *inner) if seeded else inner, notes, coordinate)
                )
                require(stack.inner == inner, f"{path}/{name} must have the same axes in every cell of a sweep.")
                if seeded or not stack.places or stack.places[-1] != place // seeds:
                    stack.places.append(place if seeded else place // seeds)
                    stack.arrays.append(array)
    return stacks, kinds


def group(
    own: Mapping[str, Stack], kind: dict[str, Any], shape: tuple[int, ...], names: Sequence[str]
) -> "xr.Dataset":
    """One outcome on the grid. Points of an axis that differ between cells are a variable of their own."""
    import xarray as xr

    sizes: dict[str, int] = {}
    for stack in own.values():
        for array in stack.arrays:
            for axis, size in zip(stack.inner, array.shape, strict=True):
                sizes[axis] = max(size, sizes.get(axis, 0))
    moving = {name for name, stack in own.items() if stack.coordinate and not stack.constant}
    variables, coordinates = {}, {}
    for name, stack in own.items():
        if stack.coordinate and name not in moving:
            coordinates[name] = (name, stack.arrays[0], stack.notes)
            continue
        seeded = "seed" in stack.axes
        inner = [f"{axis}_place" if axis in moving else axis for axis in stack.inner]
        array = stack.filled(shape if seeded else shape[:-1], tuple(sizes[axis] for axis in stack.inner))
        variables[name] = ((*names, *(["seed"] if seeded else []), *inner), array, stack.notes)
    return xr.Dataset(variables, coordinates, attrs=kind)


def named(axes: Sequence[Axis], shape: tuple[int, ...], stacks: Stacks) -> list[str]:
    """A name for each axis of the grid: the last one of its first field, with "case." where an outcome has it too.

    An axis of an outcome that only repeats the one value that its cell has on the axis of the grid is dropped.
    """
    short = [axis.names[0].rpartition(".")[2] for axis in axes]
    taken = {"seed", *(name for _, name in stacks), *(axis for stack in stacks.values() for axis in stack.inner)}
    found = []
    for place, (axis, one) in enumerate(zip(axes, short, strict=True)):
        if one in taken and short.count(one) == 1 and _only_repeats(one, axis, place, shape, stacks):
            for at in [at for at, stack in stacks.items() if at[1] == one]:
                del stacks[at]
            for stack in stacks.values():
                stack.drop(one)
            found.append(one)
        else:
            whole = one if short.count(one) == 1 else axis.names[0]
            found.append(f"case.{axis.names[0]}" if whole in taken else whole)
    return found


def _only_repeats(name: str, axis: Axis, place: int, shape: tuple[int, ...], stacks: Stacks) -> bool:
    """True where every variable of that name is a coordinate of one point, the value of its cell on the axis."""
    own = [stack for (_, other), stack in stacks.items() if other == name]
    groups = {path for (path, other) in stacks if other == name}
    without = [stack for (path, _), stack in stacks.items() if name in stack.inner and path not in groups]
    values = [single(point[0]) for point in axis.points]
    return not without and all(
        stack.coordinate
        and stack.inner == (name,)
        and all(
            array.shape == (1,) and array[0] == values[np.unravel_index(at, shape)[place]]
            for at, array in zip(stack.places, stack.arrays, strict=True)
        )
        for stack in own
    )


def single(value: Any) -> Any:
    """The value; of several that are one alone, that one."""
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value
