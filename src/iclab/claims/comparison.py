"""Comparisons: a measured variable beside theory, entry by entry, in the unit of a claim."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from iclab.claims.judgement import ROUNDING, Deviations
from iclab.claims.paths import variable

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["ENTRIES", "PHYSICS", "SIZES", "Comparison", "Unit", "compared", "paired"]

ENTRIES = 50  # named entries of a claim; more records of a curve are thinned out evenly
SAME = 1e-9  # relative distance of two points that are one
PHYSICS = ("mode", "plateau", "drop", "rank", "point")  # axes whose entries are things of their own
SIZES = ("dimension", "sequences", "batch", "context_length", "steps", "rate")  # axes along which scatter differs

Array = np.ndarray
Unit = Literal["theory", "range", "mode", "one"]
"""The unit of deviations: the height of theory above its floor, the largest such height, that of the entries of the
same mode, or the unit of the variable."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Theory and measurement with a row for each seed, or one row, and a column for each entry."""

    theory: Float[Array, "rows entry"]
    measured: Float[Array, "seed entry"]
    floor: Float[Array, "rows entry"]
    labels: tuple[str, ...]
    places: dict[str, Array]  # of every entry along each axis, by its point or its number
    unit: Unit
    drawn: bool
    kept: Bool[Array, "seed entry"] | None = None  # seeds that say something of an entry; all, if not stated
    unstated: tuple[str, ...] = ()  # entries that are measured and of which theory says nothing

    @property
    def pool(self) -> Int[Array, "entry"]:
        """The number of the pool of every entry's scatter: one for each point of the sizes."""
        sizes = [self.places[axis] for axis in SIZES if axis in self.places]
        if not sizes:
            return np.zeros(len(self.labels), dtype=int)
        return np.unique(np.stack(sizes), axis=1, return_inverse=True)[1].reshape(-1)

    def under(self, theory: Float[Array, "rows entry"]) -> "Comparison":
        """The comparison of another theory with this one in the place of the measurement."""
        return replace(self, theory=theory, measured=self.theory, drawn=False, kept=None)

    def scale(self) -> Float[Array, "rows entry"]:
        """The unit of every entry."""
        height = abs(self.theory - self.floor)
        if self.unit in ("range", "mode"):
            largest, modes = np.where(np.isfinite(height), height, 0.0), np.zeros(height.shape[1])
            modes = self.places["mode"] if self.unit == "mode" else modes
            for one in np.unique(modes):
                largest[:, modes == one] = np.max(largest[:, modes == one], axis=1, keepdims=True)
            return largest
        return np.ones_like(height) if self.unit == "one" else height

    def values(self) -> Float[Array, "seed entry"]:
        """Deviations of the measurement from theory; 0 where both are the same infinity, NaN where only one comes.

        NaN too where theory has no height that a gap could be measured in.
        """
        gap, unit = self._gaps(), self.scale()
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return np.where(gap == 0, 0.0, gap / np.where(unit == 0, np.nan, unit))

    def unitless(self) -> Bool[Array, "entry"]:
        """True for entries with a gap and no unit; for all where theory has no height anywhere."""
        none = self.scale() == 0
        return np.any((none & (np.nan_to_num(self._gaps()) != 0)) | np.all(none), axis=0)

    def _gaps(self) -> Float[Array, "seed entry"]:
        with np.errstate(invalid="ignore", over="ignore"):
            gap = np.where(self.measured == self.theory, 0.0, self.measured - self.theory)
        return np.where(np.isinf(gap), np.nan, gap)

    def deviations(self, tolerance: float, *, numerical: float = ROUNDING) -> Deviations:
        """The deviations, to be judged."""
        pool, drawn, kept = self.pool, self.drawn, self.kept
        return Deviations(
            self.values(), self.labels, tolerance, numerical, pool=pool, drawn=drawn, kept=kept,
            unitless=self.unitless(), unstated=self.unstated,
        )  # fmt: skip


def compared(
    result: "xr.DataTree",
    measured: str,
    theory: str,
    *,
    floor: str | float = 0.0,
    unit: Unit = "theory",
    at: "dict[str, object] | None" = None,
    along: str | None = None,
    most: int = ENTRIES,
) -> Comparison:
    """The comparison of two variables of a result, "group/variable" or "witness/group/variable".

    Axes that both have are matched by their points; `at` selects points of axes. Entries run along the axis `along`
    first, which is kept whole; of the others at most so many are. Raises KeyError for a name that the result has not.
    """
    import xarray as xr

    known, found = variable(result, "theory", theory), variable(result, "simulation", measured)
    ground = variable(result, "theory", floor) if isinstance(floor, str) else xr.zeros_like(known) + floor
    chosen = [
        one.sel({axis: point for axis, point in (at or {}).items() if axis in one.dims})
        for one in (known, found, ground)
    ]
    return paired(*chosen, unit=unit, along=along, most=most)


def paired(
    known: "xr.DataArray",
    found: "xr.DataArray",
    ground: "xr.DataArray | None" = None,
    *,
    unit: Unit = "theory",
    along: str | None = None,
    most: int = ENTRIES,
) -> Comparison:
    """The comparison of theory and measurement as arrays, with the floor of theory, 0 by default."""
    import xarray as xr

    drawn = "seed" in found.dims
    ground = 0 * known if ground is None else ground
    found = _on_points(found, known)
    known, found, ground = xr.broadcast(*xr.align(known, found, ground, join="inner"))
    axes = sorted((axis for axis in found.dims if axis != "seed"), key=lambda axis: axis == along)
    kept = [found.sizes[axis] for axis in axes if axis != along]
    keep = [*_thinned(kept, most), *(np.arange(found.sizes[axis]) for axis in axes if axis == along)]
    chosen = dict(zip(axes, keep, strict=True))
    rows = [
        one.isel(chosen).expand_dims([] if "seed" in one.dims else ["seed"]).transpose("seed", *axes).values
        for one in (known, found, ground)
    ]
    table = [one.reshape(len(one), -1) for one in rows]
    labels, places = _entries(found.isel(chosen), axes)
    stated = ~np.isnan(table[0]).all(axis=0)  # entries of which theory says nothing are none
    if along is not None and stated.any():  # and points along an axis, for all of the others alike
        grid = stated.reshape(-1, found.sizes[along])
        stated = np.outer(grid.any(axis=1), grid.any(axis=0)).ravel()
    theory, measured, below = (one[:, stated] for one in table)
    own = {axis: one[stated] for axis, one in places.items()}
    told, silent = np.flatnonzero(stated), _silent(table, found.sizes[along] if along is not None else 1)
    return Comparison(
        theory, measured, below, tuple(labels[i] for i in told), own, unit, drawn,
        unstated=tuple(labels[i] for i in silent),
    )  # fmt: skip


def _on_points(found: "xr.DataArray", known: "xr.DataArray") -> "xr.DataArray":
    """The measurement on the points of theory, where these differ by rounding alone."""
    for axis in (axis for axis in found.dims if axis in known.coords and axis in found.coords):
        own, other = found[axis].values, known[axis].values
        if own.dtype.kind == other.dtype.kind == "f" and len(own) and len(other):
            nearest = other[np.argmin(abs(own[:, None] - other), axis=1)]
            found = found.assign_coords({axis: np.where(abs(own - nearest) <= SAME * abs(own), nearest, own)})
    return found


def _silent(table: Sequence[Float[Array, "rows entry"]], points: int) -> Int[Array, "_"]:
    """The first of every run of `points` entries that are measured somewhere and of which theory says nothing."""
    known, found = (~np.isnan(one).all(axis=0).reshape(-1, points) for one in table[:2])
    return points * np.flatnonzero(~known.any(axis=1) & found.any(axis=1))


def _thinned(sizes: Sequence[int], most: int) -> list[Int[Array, "_"]]:
    """Indices to keep along each axis: the longest axis is thinned out evenly until there are few enough entries."""
    counts = list(sizes)
    while np.prod(counts, initial=1) > most and max(counts) > 2:
        counts[int(np.argmax(counts))] -= 1
    return [
        np.unique(np.round(np.linspace(0, size - 1, count)).astype(int))
        for size, count in zip(sizes, counts, strict=True)
    ]


def _entries(array: "xr.DataArray", axes: Sequence[Hashable]) -> tuple[tuple[str, ...], dict[str, Array]]:
    """A label for every entry, and its place along each axis."""
    points = [array[axis].values if axis in array.coords else np.arange(1, array.sizes[axis] + 1) for axis in axes]
    grid = [one.reshape(-1) for one in np.meshgrid(*points, indexing="ij")]
    names = [str(axis).replace("_", " ") for axis in axes]
    count = int(np.prod([len(one) for one in points], initial=1))
    labels = [
        ", ".join(f"{name} {_text(one[i])}" for name, one in zip(names, grid, strict=True)) for i in range(count)
    ]
    return tuple(labels), {str(axis): one for axis, one in zip(axes, grid, strict=True)}


def _text(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float | np.floating) else str(value)
