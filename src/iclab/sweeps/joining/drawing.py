"""Curves and maps of a sweep: claims over the grid, and every number that a cell answers with alone."""

import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from iclab import figures
from iclab.sweeps.joining.verdicts import GridVerdicts

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["claim_drawing", "curves", "number_drawing"]

_LINES = 6  # values of the second axis that are told apart by color
Drawing = Callable[["Figure"], None]
_MARKS = {"holds": ("o", figures.COLORS[2]), "open": ("s", figures.INK), "does not hold": ("X", figures.COLORS[1])}


def claim_drawing(claim: GridVerdicts, tree: "xr.DataTree", names: Sequence[str]) -> Drawing:
    """The end of the interval over the grid, the bound, and the outcome at each point.

    One axis is a curve, two are a map; of further axes the first value is shown.
    """
    shown = (slice(None), slice(None), *(0 for _ in names[2:]))[: len(names)]
    values, asked, outcomes = (array[shown] for array in (claim.values, claim.asked, claim.outcomes))

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        x, label = _points(tree, names[0])
        if values.ndim == 1:
            axes.plot(x, values, color=figures.INK, lw=1, zorder=1)
            axes.plot(x, asked, "--", color=figures.COLORS[1], lw=1, label="asked")
            places, heights = (x,), values
        else:
            y, other = _points(tree, names[1])
            share = values / asked
            image = axes.pcolormesh(x, y, share.T, cmap="viridis", shading="nearest")
            figure.colorbar(image, ax=axes, label="interval end / asked")
            axes.set_ylabel(other)
            _scale(axes, "y", y)
            places, heights = tuple(grid.T for grid in np.meshgrid(x, y)), None
        for outcome, (mark, color) in _MARKS.items():
            here = outcomes == outcome
            if here.any():
                at = [place[here] for place in places] + ([heights[here]] if heights is not None else [])
                axes.plot(*at, mark, color=color, ms=5, mec="white", mew=0.5, label=outcome, ls="")
        axes.set(xlabel=label, title=textwrap.fill(claim.meaning, 60))
        if heights is not None:
            axes.set_ylabel(textwrap.fill(claim.measure, 36))
        _scale(axes, "x", x)
        axes.legend(fontsize=8)

    return draw


def curves(tree: "xr.DataTree", names: Sequence[str]) -> list[str]:
    """Paths GROUP/VARIABLE of the numbers that stand alone in each cell, simulated ones before those of theory."""
    found = []
    for witness in ("simulation", "theory"):
        for name, node in tree.children[witness].children.items() if witness in tree.children else ():
            for variable, array in node.to_dataset().data_vars.items():
                alone = set(array.dims) <= {*names, "seed"} and array.dtype.kind in "biuf"
                if alone and set(names) <= set(array.dims) and f"{name}/{variable}" not in found:
                    found.append(f"{name}/{variable}")
    return found


def number_drawing(path: str, tree: "xr.DataTree", names: Sequence[str]) -> Drawing:
    """A number over the first axis, a color for each value of the second: theory as a line, seeds as points.

    With many values on the second axis it is a map of simulation, or else of theory.
    """
    group, variable = path.split("/")
    witnesses = {
        witness: tree[f"{witness}/{group}"].to_dataset()[variable]
        for witness in ("theory", "simulation")
        if f"/{witness}/{group}" in tree.groups and variable in tree[f"{witness}/{group}"].to_dataset()
    }

    first = witnesses.get("simulation", witnesses.get("theory"))
    assert first is not None
    mean = first.mean("seed") if "seed" in first.dims else first
    title = f"{group}: {first.attrs.get('long_name') or variable}"
    symbol = first.attrs.get("symbol") or variable

    def lines(figure: "Figure") -> None:
        axes = figure.subplots()
        x, label = _points(tree, names[0])
        several: list[Any] = list(range(tree.sizes[names[1]])) if len(names) > 1 else [None]
        for color, line in figures.colored(several):
            at = dict.fromkeys(names[2:], 0) | ({} if line is None else {names[1]: line})
            told = None if line is None else f"{names[1]} = {_word(tree.coords[names[1]].values[line])}"
            if "theory" in witnesses:
                figures.theory_line(axes, x, witnesses["theory"].isel(at), color=color, label=told)
                told = None
            if "simulation" in witnesses:
                rows = witnesses["simulation"].isel(at)
                error = rows.std("seed", ddof=1) if rows.sizes.get("seed", 1) > 1 else None
                axes.errorbar(x, mean.isel(at), yerr=error, fmt="o", ms=4, color=color, label=told)
        axes.set(xlabel=label, ylabel=symbol, title=title)
        _scale(axes, "x", x)
        _scale(axes, "y", mean.values)
        if len(names) > 1:
            axes.legend(fontsize=8)

    def map_(figure: "Figure") -> None:
        axes = figure.subplots()
        (x, label), (y, other) = (_points(tree, name) for name in names[:2])
        heights = mean.isel(dict.fromkeys(names[2:], 0)).transpose(names[1], names[0]).values
        image = axes.pcolormesh(x, y, heights, cmap="viridis", shading="nearest", norm=_norm(heights))
        figure.colorbar(image, ax=axes, label=symbol)
        axes.set(xlabel=label, ylabel=other, title=title)
        _scale(axes, "x", x)
        _scale(axes, "y", y)

    return map_ if len(names) > 1 and tree.sizes[names[1]] > _LINES else lines


def _norm(heights: np.ndarray) -> Any:
    """A logarithmic scale of colors for positive numbers that span decades."""
    from matplotlib.colors import LogNorm

    known = heights[np.isfinite(heights)]
    wide = known.size and known.min() > 0 and known.max() > 20 * known.min()
    return LogNorm(known.min(), known.max()) if wide else None


def _points(tree: "xr.DataTree", name: str) -> tuple[np.ndarray, str]:
    """The places of an axis of the grid, and its label; words are numbered."""
    array = tree.coords[name]
    label = str(array.attrs.get("long_name", name))
    if array.dtype.kind in "US":
        return np.arange(array.size), f"{label}: {', '.join(f'{i} = {word}' for i, word in enumerate(array.values))}"
    return np.asarray(array.values, float), label


def _scale(axes: "Axes", which: str, points: np.ndarray) -> None:
    known = points[np.isfinite(points)]
    if known.size and known.min() > 0 and known.max() > 20 * known.min():
        axes.set(**{f"{which}scale": "log"})


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
