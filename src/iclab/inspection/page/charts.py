"""The figures of the page: every text in them is drawn as it is, never read as a formula."""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from iclab.figures import COLORS, INK, as_bytes, colored, inline, sketched
from iclab.inspection.page.groups import Group, quantiles
from iclab.inspection.page.steps import StepAxis
from iclab.spectra.checkpoints.names import terminal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAPPED = ("effective_rank", "stable_rank", "overlap_with_final", "overlap_with_previous")
_LAYERS, _PANELS, _MATRICES = 48, 36, 6  # lines of layers, panels of layers, matrices with trajectories
COLUMNS = 3  # of behavior, that are drawn
_GREY, _WIDTH = "#8a929c", 10.0
Curves = Mapping[str, np.ndarray]


def curves(group: Group, axis: StepAxis, behavior: Curves, others: Mapping[str, Group], *, name: str) -> str:
    """Every measure against the step, the behavior below on the same axis."""
    shown = dict(list(behavior.items())[:COLUMNS])
    titles = [measure.replace("_", " ") for measure in group.measures]
    rows = -(-len(titles) // 2) + -(-len(shown) // 2)

    def draw(figure: "Figure") -> None:
        panels = _grid(figure, rows, 2)
        cells = panels.ravel()
        for axes, measure, title in zip(cells, group.measures, titles, strict=False):
            _titled(axes, title)
            _curve(axes, group, measure)
            for color, other in colored(others.values(), first=1):
                if measure in other.measures:
                    median = quantiles(other.values(measure), 0.5)[0]
                    axes.plot(other.steps, median, color=color, lw=1.4, ls=(0, (4, 2)), zorder=5)
        first = 2 * -(-len(titles) // 2)
        for axes, (title, values) in zip(cells[first:], shown.items(), strict=False):
            _titled(axes, f"behavior: {figure_text(title)}")
            there = np.isfinite(values)
            axes.plot(group.steps[there], values[there], color=COLORS[1], lw=1.4, marker=".", ms=3)
        for index in {len(titles), *range(first + len(shown), 2 * rows)} - {first}:
            if index < first or index >= first + len(shown):
                cells[index].axis("off")
        _share(axis, panels)

    return _svg(draw, (_WIDTH, 0.4 + 1.75 * rows), name)


def bands(group: Group, axis: StepAxis, measure: str, *, name: str) -> str:
    """One measure in every layer: its heads as quantile bands."""
    layers = even(group.layers, _PANELS)
    across = min(6, len(layers))
    rows = -(-len(layers) // across)

    def draw(figure: "Figure") -> None:
        panels = _grid(figure, rows, across, sharey=True, between=0.12)
        for axes, layer in zip(panels.ravel(), layers, strict=False):
            _titled(axes, f"layer {layer}")
            part = group.of_layer(layer)
            _levels(axes, part, measure)
            _bands(axes, part, measure)
        for axes in panels.ravel()[len(layers) :]:
            axes.axis("off")
        _share(axis, panels)

    return _svg(draw, (_WIDTH, 0.4 + 1.35 * rows), name)


def maps(group: Group, axis: StepAxis, *, name: str) -> str:
    """Layer × step heat maps of medians over heads."""
    measures = [measure for measure in MAPPED if measure in group.measures]
    rows = -(-len(measures) // 2)
    tall = min(3.4, 1.1 + 0.07 * len(group.layers))

    def draw(figure: "Figure") -> None:
        panels = _grid(figure, rows, 2, right=0.5)
        for axes, measure in zip(panels.ravel(), measures, strict=False):
            _titled(axes, measure.replace("_", " "))
            edges, values = axis.edges(group.steps), group.by_layer(measure)
            axes.set_facecolor("#e4e7eb")
            image = axes.pcolormesh(
                edges, np.arange(len(values) + 1) - 0.5, np.ma.masked_invalid(values), cmap="viridis", rasterized=True
            )
            figure.colorbar(image, ax=axes, pad=0.02, fraction=0.06)
            _layer_ticks(axes, group.layers)
        for axes in panels.ravel()[len(measures) :]:
            axes.axis("off")
        _share(axis, panels)

    return _svg(draw, (_WIDTH, 0.5 + tall * rows), name)


def trajectories(group: Group, axis: StepAxis, *, name: str) -> str:
    """Leading singular values of those matrices whose effective rank moved most."""
    matrices = moved(group)
    across = min(3, len(matrices))
    rows = -(-len(matrices) // across)

    def draw(figure: "Figure") -> None:
        from matplotlib import colormaps
        from matplotlib.ticker import NullLocator

        panels = _grid(figure, rows, across)
        for axes, series in zip(panels.ravel(), matrices, strict=False):
            where = [f"layer {series.layer}"] if series.layer is not None else []
            where += [f"head {series.head}"] if series.head is not None else [figure_text(series.matrix)]
            _titled(axes, ", ".join(where))
            values = group.leading(series)
            values = values[:, np.isfinite(values).any(axis=0)]
            colors = colormaps["cividis"](np.linspace(0, 0.9, max(values.shape[1], 1)))
            for column, color in zip(values.T, colors, strict=True):
                axes.plot(group.steps, column, color=color, lw=0.9)
            if values.size:
                axes.set_yscale("log")
                axes.yaxis.set_minor_locator(NullLocator())
        for axes in panels.ravel()[len(matrices) :]:
            axes.axis("off")
        _share(axis, panels)

    return _svg(draw, (_WIDTH, 0.4 + 1.9 * rows), name)


def moved(group: Group) -> list[Any]:
    """The matrices whose singular values are drawn: those whose effective rank, or norm, varies most for its size."""
    measure = "effective_rank" if "effective_rank" in group.measures else None
    values = group.values(measure) if measure else np.stack([series.norm[group.order] for series in group.matrices])
    low, middle, high = (
        np.array([part[0, 0] for part in (quantiles(row[:, None], share) for row in values)]) for share in (0, 0.5, 1)
    )
    range_ = np.divide(high - low, np.abs(middle), out=np.full(len(values), -1.0), where=np.abs(middle) > 0)
    range_ = np.where(np.isfinite(range_), range_, -1.0)
    shown = np.sort(np.argsort(-range_, kind="stable")[:_MATRICES])
    return [group.matrices[index] for index in shown]


def even(names: Sequence[int], most: int) -> list[int]:
    """At most so many, evenly chosen, with both ends."""
    if len(names) <= most:
        return list(names)
    return [names[index] for index in np.round(np.linspace(0, len(names) - 1, most)).astype(int)]


def figure_text(text: str, *, longest: int = 40) -> str:
    """A name for a figure: without control characters, its middle left out when it is long."""
    shown = text if len(text) <= longest else f"{text[: longest // 2]}…{text[-longest // 2 :]}"
    return terminal(shown)


def _curve(axes: "Axes", group: Group, measure: str) -> None:
    from matplotlib import colormaps

    _levels(axes, group, measure)
    _bands(axes, group, measure)
    rows = group.by_layer(measure)
    if len(rows) > 1:
        lines = even(range(len(rows)), _LAYERS)
        for position in lines:
            color = colormaps["viridis"](0.92 * position / (len(rows) - 1))
            axes.plot(group.steps, rows[position], color=color, lw=0.7, alpha=0.9, zorder=3)


def _bands(axes: "Axes", group: Group, measure: str) -> None:
    values = group.values(measure)
    low, lower, middle, upper, high = quantiles(values, 0, 0.25, 0.5, 0.75, 1)
    if len(values) > 1:
        axes.fill_between(group.steps, low, high, color=COLORS[5], alpha=0.18, lw=0, zorder=1)
        axes.fill_between(group.steps, lower, upper, color=COLORS[0], alpha=0.22, lw=0, zorder=2)
    axes.plot(group.steps, middle, color=INK, lw=1.5, zorder=4, marker="." if len(group.steps) < 3 else "")


def _levels(axes: "Axes", group: Group, measure: str) -> None:
    """What random matrices show: dashed, with two spreads on either side."""
    for level, spread in group.levels(measure)[:4]:
        axes.axhline(level, color=_GREY, lw=0.9, ls=(0, (5, 3)), zorder=1)
        if np.isfinite(spread):
            axes.axhspan(level - 2 * spread, level + 2 * spread, color=_GREY, alpha=0.2, lw=0, zorder=0)


def _grid(
    figure: "Figure", rows: int, across: int, *, sharey: bool = False, between: float = 0.55, right: float = 0.15
) -> np.ndarray:
    """Panels with margins in inches: a layout found by drawing everything twice would double the cost."""
    figure.set_layout_engine("none")
    width, height = figure.get_size_inches()
    inner = (width - 0.55 - right) / across - between, (height - 0.75) / rows - 0.36
    margins = {
        "left": 0.55 / width, "right": 1 - right / width, "bottom": 0.48 / height, "top": 1 - 0.27 / height,
        "wspace": between / inner[0], "hspace": 0.36 / inner[1],
    }  # fmt: skip
    return figure.subplots(rows, across, sharex=True, sharey=sharey, squeeze=False, gridspec_kw=margins)


def _layer_ticks(axes: "Axes", layers: Sequence[int]) -> None:
    positions = even(range(len(layers)), 6)
    axes.set_yticks(positions, [str(layers[position]) for position in positions])
    axes.set_ylabel("layer")
    axes.grid(visible=False)


def _share(axis: StepAxis, panels: np.ndarray) -> None:
    for axes in panels.ravel():
        if axes.axison:
            axis.apply(axes, labels=14 // panels.shape[1] + 1)
    for column in panels.T:  # panels above an empty cell need the labels it would have had
        shown = [axes for axes in column if axes.axison]
        if shown:
            shown[-1].tick_params(labelbottom=True)
            shown[-1].set_xlabel("training step")


def _titled(axes: "Axes", text: str) -> None:
    axes.set_title(text, parse_math=False)


def _svg(draw: "Callable[[Figure], None]", size: tuple[float, float], name: str) -> str:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # such a character is drawn as a box
        figure = sketched(draw, size=size)
        svg = as_bytes(figure, "svg", name=name)
    return re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", inline(svg, name=name), flags=re.S)
