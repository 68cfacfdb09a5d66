"""Marks that the figures of all studies share: theory lies over what was simulated. Reads labeled results only."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from iclab.figures.style import INK, PALETTE

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

__all__ = [
    "COLORS", "MARKS", "Item", "colored", "colors", "dashed_line", "end_label", "level_lines", "level_spans",
    "loss_axes", "mean_points", "pale", "seed_dots", "seed_lines", "seeds", "theory_line", "theory_lines",
]  # fmt: skip

Item = TypeVar("Item")

COLORS = tuple(paper for paper, _, _ in PALETTE.values())

MARKS = {
    "theory": "Solid line: theory.",
    "starts": "Where each seed has a start of its own, the solid line of theory is the median over them.",
    "band": "Line in a band: median of the simulated seeds; band: from the least to the largest of them.",
    "lines": "Thin lines: simulation, one for each seed.",
    "dashed": "Dashed line: {}.",
    "dots": "Open circles: simulation, one for each seed.",
    "means": "Dots: means over seeds, with two standard errors.",
    "levels": "Dotted lines: {}.",
    "spans": "Grey bands: {}.",
}
"""The words of a caption about each kind of mark."""

FEW = 3  # seeds below which each is a line of its own


def colored(items: Iterable[Item], *, first: int = 0) -> Iterator[tuple[str, Item]]:
    """Each item with a color of its own."""
    known = list(items)
    return zip(colors(first + len(known))[first:], known, strict=True)


def colors(count: int) -> tuple[str, ...]:
    """So many different colors; beyond the palette a scale from dark to light, in which neighbours lie close."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    if count <= len(COLORS):
        return COLORS[:count]
    return tuple(to_hex(color) for color in colormaps["viridis"](np.linspace(0, 0.92, count)))


def pale(color: str) -> tuple[float, float, float, float]:
    """The color at half its strength, for the seeds behind a theory of that color."""
    from matplotlib.colors import to_rgba

    return to_rgba(color, 0.5)


def theory_line(axes: "Axes", x: Any, y: Any, *, color: str = INK, label: str | None = None) -> None:
    """Theory: a solid line over all that was simulated."""
    _used(axes, "theory")
    axes.plot(x, y, color=color, lw=1.6, zorder=3, label=label)


def theory_lines(axes: "Axes", x: Any, rows: Iterable, *, color: str = INK, label: str | None = None) -> None:
    """Theory from the start of each seed: the median as a solid line, with single starts thin below it."""
    curves = np.array([np.asarray(row) for row in rows])
    if len(curves) < FEW:
        for i, row in enumerate(curves):
            theory_line(axes, x, row, color=color, label=label if i == 0 else None)
        return
    _used(axes, "starts")
    _single_runs(axes, x, curves, color=color, zorder=2.5)
    axes.plot(x, _median(curves), color=color, lw=1.6, zorder=3, label=label)


def seed_lines(axes: "Axes", x: Any, rows: Iterable, *, color: Any = COLORS[5], label: str | None = None) -> None:
    """Simulation, below theory: the median over seeds in a band of all of them, with single runs thin.

    Fewer than three seeds are lines of their own.
    """
    curves = np.array([np.asarray(row, dtype=float) for row in rows])
    if len(curves) < FEW:
        _used(axes, "lines")
        for i, row in enumerate(curves):
            axes.plot(x, row, color=color, lw=1.0, zorder=2, label=label if i == 0 else None)
        return
    _used(axes, "band")
    strength = _strength(color)
    low, high = np.min(curves, axis=0), np.max(curves, axis=0)
    axes.fill_between(np.asarray(x), low, high, color=color, alpha=0.3 * strength, lw=0, zorder=1.5)
    _single_runs(axes, x, curves, color=color, zorder=1.8)
    axes.plot(x, _median(curves), color=color, lw=2.4, zorder=2, label=label)


def _median(curves: np.ndarray) -> np.ndarray:
    """The median over seeds; of an even number the lower one, so that no level is drawn at which no seed rests."""
    return np.quantile(curves, 0.5, axis=0, method="lower")


def _strength(color: Any) -> float:
    from matplotlib.colors import to_rgba

    return to_rgba(color)[3]


def _single_runs(axes: "Axes", x: Any, curves: np.ndarray, *, color: Any, zorder: float) -> None:
    """Thin lines that a page shows on demand: their names in the SVG begin with "runs"."""
    number = sum(len(each.lines) for each in axes.figure.axes)
    for i, row in enumerate(curves):
        axes.plot(x, row, color=color, lw=0.5, alpha=0.6 * _strength(color), zorder=zorder, gid=f"runs-{number + i}")


def dashed_line(axes: "Axes", x: Any, y: Any, *, color: str, label: str | None = None) -> None:
    """A second curve beside a solid line of the same color: dashed, on top of it."""
    _used(axes, "dashed", label)
    axes.plot(x, y, color=color, lw=1.2, ls=(0, (3, 2)), zorder=4, label=label)


def seed_dots(axes: "Axes", x: Any, rows: Iterable, *, color: Any = COLORS[5], label: str | None = None) -> None:
    """Simulation at a few points: an open circle for each seed, below theory."""
    _used(axes, "dots")
    style: dict[str, Any] = {"color": color, "marker": "o", "ms": 4, "mfc": "none", "mew": 0.8, "ls": "", "zorder": 2}
    for i, row in enumerate(rows):
        axes.plot(x, row, label=label if i == 0 else None, **style)


def mean_points(
    axes: "Axes", x: Any, values: "xr.DataArray", *, color: str = COLORS[0], label: str | None = None
) -> None:
    """Simulation, below theory: means over seeds, with two standard errors where there are seeds for them."""
    _used(axes, "means")
    count = values.sizes["seed"]
    error = 2 * values.std("seed", ddof=1) / np.sqrt(count) if count > 1 else None
    style: dict[str, Any] = {"fmt": "o", "ms": 4, "color": color, "lw": 1, "zorder": 2}
    axes.errorbar(x, values.mean("seed"), yerr=error, label=label, **style)


def level_lines(axes: "Axes", levels: Iterable[float], *, label: str | None = None) -> None:
    """Losses of plateaus: dotted lines across the panel."""
    _used(axes, "levels", label)
    for i, level in enumerate(np.asarray(levels)):
        axes.axhline(level, color="#777777", lw=0.8, ls=":", zorder=1, label=label if i == 0 else None)


def level_spans(axes: "Axes", low: Iterable[float], high: Iterable[float], *, label: str) -> None:
    """The intervals of levels: bands across the panel; those that are not known, or of no width, are left out."""
    ends = np.stack([np.asarray(low, dtype=float), np.asarray(high, dtype=float)], axis=1)
    known = ends[np.isfinite(ends).all(1) & (ends[:, 1] > ends[:, 0])]
    for i, (below, above) in enumerate(known):
        axes.axhspan(below, above, color="#777777", alpha=0.18, lw=0, zorder=0.5, label=label if i == 0 else None)
    if len(known):
        _used(axes, "spans", label)


def end_label(axes: "Axes", text: str, height: float, *, color: str = INK) -> None:
    """The name of a curve at its right end, in place of a legend; names that would overlap are moved apart."""
    label = axes.annotate(
        text, (1, height), (4, 0), xycoords=("axes fraction", "data"), textcoords="offset points", color=color,
        va="center", annotation_clip=False,
    )  # fmt: skip
    getattr(axes.figure, "ends", []).append(label)


def seeds(simulated: "xr.Dataset") -> str:
    """Number of seeds of a simulation, in words."""
    count = simulated.sizes["seed"]
    return f"{count} seed{'' if count == 1 else 's'}"


def loss_axes(axes: "Axes", *, title: str, scale: str = "linear") -> None:
    """Labels of a panel that shows loss against time, on a scale of time."""
    axes.set(title=title, xlabel="training time $t$  (units of $\\tau$)", ylabel="mean squared error", xscale=scale)


def _used(axes: "Axes", mark: str, label: str | None = None) -> None:
    """Note a kind of mark, for the caption, and the labels of its marks."""
    labels = getattr(axes.figure, "used", {}).setdefault(mark, [])
    if label and label not in labels:
        labels.append(label)
