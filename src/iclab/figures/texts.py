"""Text of figures: large enough to be read, in lines that fit their panel, plain numbers on short log scales."""

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation, Text

__all__ = ["LEAST", "enlarge", "part", "plain_numbers", "settle", "wrap"]

LEAST = 8.5  # points of the smallest type: 11 pixels of a page, on which an inch has 96


def enlarge(figure: "Figure") -> None:
    """Bring all type to a size that can be read."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        if isinstance(text, Text) and float(text.get_fontsize()) < LEAST:
            text.set_fontsize(LEAST)


def settle(figure: "Figure") -> None:
    """Bring panels to their places, as drawing the figure would; it takes half as long."""
    engine = figure.get_layout_engine()
    if engine is None:
        figure.draw_without_rendering()
        return
    with contextlib.suppress(ValueError):  # of panels that collapse, which drawing passes over too
        engine.execute(figure)


def wrap(figure: "Figure") -> None:
    """Break titles and labels of axes that are longer than their panel into lines."""
    settle(figure)
    for axes in figure.axes:
        width, height = axes.bbox.width, axes.bbox.height
        left = axes.get_tightbbox()
        aside = 0.0 if left is None else min(max(axes.bbox.x0 - left.x0, 0.0), 60.0)
        tops = [child for child in axes.child_axes if child.xaxis.get_label().get_text()]
        parts = [(axes._left_title, width), (axes.title, width), (axes.xaxis.label, width + aside)]  # type: ignore[attr-defined]
        parts += [(axes.yaxis.label, height), *((top.xaxis.label, width + aside) for top in tops)]
        for text, limit in parts:
            _broken(text, limit, along=1 if text is axes.yaxis.label else 0)


def _broken(text: "Text", limit: float, *, along: int) -> None:
    """Break a text at spaces outside formulas until each line fits a limit in pixels."""
    words = _words(text.get_text())
    if len(words) < 2 or _extent(text, along) <= limit:
        return
    lines = [words[0]]
    for word in words[1:]:
        text.set_text(f"{lines[-1]} {word}")
        if _extent(text, along) <= limit:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    text.set_text("\n".join(lines))


def _words(text: str) -> list[str]:
    """Words of a text, with formulas whole, and the letter of a panel, which two spaces follow, with the first."""
    found: list[str] = []
    for piece in text.split(" "):
        if found and (found[-1].count("$") % 2 or not piece or found[-1].endswith(" ") or not found[-1]):
            found[-1] += f" {piece}"
        else:
            found.append(piece)
    return found


def _extent(text: "Text", along: int) -> float:
    box = text.get_window_extent()
    return box.height if along else box.width


def part(labels: "Sequence[Annotation]") -> None:
    """Move labels at the right end of a panel up until none overlaps the one below it."""
    top, dpi = -np.inf, labels[0].axes.figure.dpi if labels and labels[0].axes else 72
    for label in sorted(labels, key=lambda one: one.xy[1]):
        box = label.get_window_extent()
        shift = max(0.0, top - box.y0)
        x, y = label.xyann
        label.xyann = (x, y + shift * 72 / dpi)
        top = box.y1 + shift


def plain_numbers(axes: "Axes") -> None:
    """Numbers as 0.2 and not as 2 × 10⁻¹ on log scales below two decades, which name more than powers."""
    from matplotlib.ticker import LogFormatterSciNotation

    class Plain(LogFormatterSciNotation):
        def __call__(self, x: float, pos: int | None = None) -> str:
            return f"{x:g}" if super().__call__(x, pos) else ""

    scales: Any = ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim()))
    for axis, (low, high) in scales:
        short = 1e-3 < low < high < min(100 * low, 1e5)
        if short and isinstance(axis.get_major_formatter(), LogFormatterSciNotation):
            base = axis.get_transform().base  # of log scales, which have this formatter
            axis.set_major_formatter(Plain(base))
            axis.set_minor_formatter(Plain(base))
