"""Legends that cover no curve."""

from typing import TYPE_CHECKING, Any

import numpy as np

from iclab.figures.texts import settle

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.transforms import Bbox

__all__ = ["below", "clear", "covers"]

_PLACES: Any = range(1, 11)  # corners, then middles of the sides, then the middle, as Matplotlib counts them


def below(figure: "Figure", axes: "Axes") -> None:
    """The legend of one panel below all of them, where it covers no curve, in as many columns as fit."""
    handles, labels = axes.get_legend_handles_labels()
    _widest(figure, handles, labels, width=figure.bbox.width, loc="outside lower center")


def clear(figure: "Figure") -> None:
    """Legends that cover a mark move to an empty place of their panel, or below it where none is empty.

    The figure grows by the height that they take below, so that no panel shrinks for them.
    """
    legends = [(axes, legend) for axes in figure.axes if (legend := axes.get_legend())]
    if not legends:
        return
    settle(figure)
    crowded = [axes for axes, legend in legends if covers(axes, legend) and not _placed(axes, legend)]
    height = max((_moved_below(axes) for axes in crowded), default=0.0)
    figure.set_figheight(figure.get_figheight() + height)


def _placed(axes: "Axes", legend: "Legend") -> bool:
    """True where some place of the panel is empty; the legend then stands there."""
    for place in _PLACES:
        legend.set_loc(place)
        if not covers(axes, legend):
            return True
    return False


def covers(axes: "Axes", legend: "Legend") -> bool:
    """True where a legend lies over a mark of its panel. Lines and bands across the whole panel it may interrupt."""
    box = legend.get_window_extent()
    marks = [mark for mark in (*axes.lines, *axes.collections, *axes.patches) if mark.get_visible()]
    return any(_meets(mark, axes, box) for mark in marks) or any(
        text.get_visible() and box.overlaps(text.get_window_extent()) for text in axes.texts
    )


def _meets(mark: "Artist", axes: "Axes", box: "Bbox") -> bool:
    from matplotlib.collections import LineCollection, PathCollection, PolyCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if isinstance(mark, PathCollection):
        return _any_inside(mark.get_offset_transform().transform(mark.get_offsets()), box)
    if not all(mark.get_transform().contains_branch_seperately(axes.transData)):
        return False
    if isinstance(mark, LineCollection | PolyCollection):
        paths = mark.get_paths()
    elif isinstance(mark, Line2D | Patch):
        paths = [mark.get_path()]
    else:
        return False
    paths = [mark.get_transform().transform_path(path) for path in paths]
    if isinstance(mark, Line2D) and mark.get_linestyle() in ("None", "", " "):
        return any(_any_inside(path.vertices, box) for path in paths)
    return any(path.intersects_bbox(box, filled=isinstance(mark, PolyCollection | Patch)) for path in paths)


def _any_inside(points: Any, box: "Bbox") -> bool:
    points = np.ma.filled(np.ma.asarray(points, dtype=float), np.nan)
    return bool(np.any(np.all((points >= box.min) & (points <= box.max), axis=-1)))


def _moved_below(axes: "Axes") -> float:
    """The height in inches of a panel's legend, once it is below the labels of the axis."""
    from matplotlib.transforms import ScaledTranslation

    old = axes.get_legend()
    assert old is not None
    figure = axes.figure
    labels_end = axes.xaxis.get_tightbbox()
    depth = 0.0 if labels_end is None else (axes.bbox.y0 - labels_end.y0) / figure.dpi
    lowered = axes.transAxes + ScaledTranslation(0, -depth, figure.dpi_scale_trans)
    handles, labels = axes.get_legend_handles_labels()
    legend = _widest(
        axes,
        handles,
        labels,
        width=axes.bbox.width,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=lowered,
        title=old.get_title().get_text() or None,
        fontsize=old.get_texts()[0].get_fontsize(),
        title_fontsize=old.get_title().get_fontsize(),
        facecolor=old.get_frame().get_facecolor(),
    )
    return legend.get_window_extent().height / figure.dpi


def _widest(host: "Axes | Figure", handles: list, labels: list[str], *, width: float, **style: Any) -> "Legend":
    """A legend in as many columns as fit into a width in pixels."""
    for columns in range(min(len(labels), 4), 1, -1):
        legend = host.legend(handles, labels, ncols=columns, **style)
        if legend.get_window_extent().width <= width:
            return legend
        legend.remove()
    return host.legend(handles, labels, ncols=1, **style)
