"""Cells: the answer for one seed of a case, taken out of a labeled result and put back into one."""

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from iclab.numerics import require
from iclab.provenance import origin_attributes, origins
from iclab.study import SCHEMA

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["AGREEMENT", "Cell", "cells_of", "gap", "tree_of"]

AGREEMENT = 1e-9  # relative gap that other processors and libraries may leave between two answers to the same cell


@dataclass(frozen=True, eq=False)
class Cell:
    """The answer for one seed of a case, as plain arrays. Without a seed it is theory alone."""

    case: str
    """The case as JSON."""
    seed: int | None
    seconds: float
    memory: float
    origin: Mapping[str, str]
    form: str
    """Groups and their variables as JSON: names, axes and notes, which are on the axis of seeds."""
    own: tuple[np.ndarray, ...]
    """Arrays on the axis of seeds, without it."""
    shared: tuple[np.ndarray, ...]
    """Arrays that no seed changes."""


def cells_of(result: "xr.DataTree") -> list[Cell]:
    """The cells of a result: one for each seed, or one without a seed where theory answered alone."""
    datasets = {node.path: node.to_dataset(inherit=False) for node in result.subtree if node.path != "/"}
    datasets = {path: dataset for path, dataset in datasets.items() if dataset.variables or dataset.attrs}
    variables = [variable for dataset in datasets.values() for variable in dataset.variables.values()]
    form = json.dumps([_group(path, dataset) for path, dataset in datasets.items()], default=_plain)
    shared = tuple(_array(variable.values) for variable in variables if "seed" not in variable.dims)
    stacks = [np.moveaxis(v.values, v.dims.index("seed"), 0) for v in variables if "seed" in v.dims]
    seeds = result.attrs["seeds"].tolist()
    alone = [(None, float("nan"), float("nan"))]
    counted = list(zip(seeds, result.attrs["seconds"].tolist(), result.attrs["memory"].tolist(), strict=True))
    made = origins(result.attrs, seeds or [0])
    return [
        Cell(
            result.attrs["case"], seed, seconds, memory, made[row], form,
            tuple(_array(stack[row]) for stack in stacks), shared,
        )
        for row, (seed, seconds, memory) in enumerate(counted or alone)
    ]  # fmt: skip


def tree_of(cells: Iterable[Cell], *, study: str, version: int) -> "xr.DataTree":
    """The labeled result of cells of one case, seeds in the order of their numbers.

    What no seed changes is that of the first seed. Where others differ from it by more than rounding, or were made
    with other groups, a UserWarning says so. Raises ValueError where arrays of two seeds do not fit together.
    """
    import xarray as xr

    ordered = sorted(cells, key=lambda cell: -1 if cell.seed is None else cell.seed)
    kinds = {(cell.form, id(cell.shared), *(array.shape for array in cell.own)): cell for cell in reversed(ordered)}
    for other in kinds.values():
        _require_fits(ordered[0], other, study)
    tables = [_table(cell, own=True) for cell in ordered]
    shared = _table(ordered[0], own=False)
    groups: dict[str, Any] = {"/": xr.Dataset(attrs=_attributes(ordered, study, version))}
    for path, attributes, variables in json.loads(ordered[0].form):
        data: dict[bool, dict[str, Any]] = {True: {}, False: {}}
        for name, axes, notes, coordinate in variables:
            if "seed" in axes:
                array = np.stack([table[path, name] for table in tables], axis=axes.index("seed"))
            else:
                array = shared[path, name]
            data[coordinate][name] = (axes, array, notes)
        groups[path] = xr.Dataset(data[False], data[True], attrs=attributes)
    return xr.DataTree.from_dict(groups)


def gap(one: Cell, other: Cell) -> float:
    """Largest gap between the arrays of two seeds, relative to the largest entry of each; infinite in shape."""
    return _apart(_table(one, own=True), _table(other, own=True))


def _require_fits(first: Cell, other: Cell, study: str) -> None:
    """Raise ValueError where two cells of a case have no result together, warn where their theory differs."""
    own = [{at: array.shape for at, array in _table(cell, own=True).items()} for cell in (first, other)]
    shared = [_table(cell, own=False) for cell in (first, other)]
    shapes = [{at: array.shape for at, array in table.items()} for table in shared]
    require(
        own[0] == own[1] and shapes[0] == shapes[1],
        f"seeds of one case must give arrays of one shape; seeds {first.seed} and {other.seed} of {study} do not. "
        "Raise the version of the study.",
    )
    if (apart := _apart(*shared)) > AGREEMENT:
        warnings.warn(
            f"{study}: theory made with seed {other.seed} differs from that of seed {first.seed}, which is shown, by "
            f"{apart:.2g} of its largest entry; other versions or processors made it",
            stacklevel=2,
        )


def _table(cell: Cell, *, own: bool) -> dict[tuple[str, str], np.ndarray]:
    """The arrays on the axis of seeds, or the others, by path and name."""
    places = [
        (path, name)
        for path, _, variables in json.loads(cell.form)
        for name, axes, _, _ in variables
        if ("seed" in axes) == own
    ]
    return dict(zip(places, cell.own if own else cell.shared, strict=True))


def _attributes(ordered: Sequence[Cell], study: str, version: int) -> dict[str, Any]:
    seeded = [cell for cell in ordered if cell.seed is not None]
    return {
        "study": study,
        "study_version": version,
        "case": ordered[0].case,
        "seeds": np.array([cell.seed for cell in seeded], dtype=int),
        "seconds": np.array([cell.seconds for cell in seeded], dtype=float),
        "memory": np.array([cell.memory for cell in seeded], dtype=float),
        "schema": SCHEMA,
        **origin_attributes([cell.origin for cell in ordered], [cell.seed or 0 for cell in ordered]),
    }


def _group(path: str, dataset: "xr.Dataset") -> list[Any]:
    variables = [
        [name, list(variable.dims), dict(variable.attrs), name in dataset.coords]
        for name, variable in dataset.variables.items()
    ]
    return [path, dict(dataset.attrs), variables]


def _array(values: Any) -> np.ndarray:
    """A whole array of plain numbers or text. Raises ValueError for any other objects."""
    array = np.array(values, order="C")
    if array.dtype.hasobject:
        require(
            all(isinstance(entry, str) for entry in array.flat),
            f"arrays must hold numbers or text; got {type(next(iter(array.flat))).__name__}.",
        )
        array = array.astype(str)
    return array


def _apart(one: Mapping[Any, np.ndarray], other: Mapping[Any, np.ndarray]) -> float:
    if one.keys() != other.keys():
        return float("inf")
    return max((_gap(one[at], other[at]) for at in one), default=0.0)


def _gap(one: np.ndarray, other: np.ndarray) -> float:
    if one.shape != other.shape:
        return float("inf")
    if one.dtype.kind not in "fciub" or other.dtype.kind not in "fciub":
        return 0.0 if np.array_equal(one, other) else float("inf")
    if np.array_equal(one, other, equal_nan=True):
        return 0.0
    known = np.isfinite(one) & np.isfinite(other)
    if not np.array_equal(one[~known], other[~known], equal_nan=True):
        return float("inf")
    wide = [np.abs(array[known].astype(complex)) for array in (one, other)]
    return float(np.max(np.abs(one[known].astype(complex) - other[known])) / max(map(np.max, wide)))


def _plain(value: Any) -> Any:
    return value.tolist()
