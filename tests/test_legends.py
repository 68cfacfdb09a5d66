"""Legends that cover no curve."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from iclab import figures
from iclab.figures import legends

HEIGHT = 3.0
CORNER = np.linspace(0.6, 1, 50)


def panel(draw: Callable[[Axes], object]) -> Figure:
    """A figure of one panel from 0 to 1, with a legend in its upper right corner."""

    def whole(figure: Figure) -> None:
        axes: Axes = figure.subplots()
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="x")
        draw(axes)
        axes.legend(loc="upper right")

    figure = figures.sketched(whole, size=(4.0, HEIGHT))
    figure.draw_without_rendering()
    return figure


def place(figure: Figure) -> tuple[float, float]:
    """The middle of the legend, in units of the panel."""
    (axes,) = figure.axes
    legend = axes.get_legend()
    assert legend is not None
    assert not legends.covers(axes, legend)
    box = legend.get_window_extent().transformed(axes.transAxes.inverted())
    return (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2


MARKS: dict[str, Callable[[Axes], object]] = {
    "line": lambda axes: axes.plot(CORNER, CORNER, label="a"),
    "line through the box, its points outside": lambda axes: axes.plot([0.4, 1], [0.9, 0.96], label="a"),
    "circles": lambda axes: axes.plot(CORNER, CORNER, "o", label="a"),
    "scatter": lambda axes: axes.scatter(CORNER, CORNER, label="a"),
    "error bars": lambda axes: axes.errorbar([0.95], [0.5], yerr=[0.45], label="a"),
    "band": lambda axes: axes.fill_between([0.5, 1], 0.1, 1, label="a"),
    "words": lambda axes: (axes.plot([], label="a"), axes.text(0.9, 0.93, "words")),
}


@pytest.mark.parametrize("mark", MARKS)
def test_a_legend_on_a_mark_moves_to_an_empty_corner(mark: str) -> None:
    figure = panel(MARKS[mark])
    x, y = place(figure)
    assert 0 < y < 1
    assert x < 0.5 or y < 0.5
    assert figure.get_figheight() == HEIGHT


@pytest.mark.parametrize(
    "draw",
    [
        lambda axes: axes.plot([0, 0.5], [0.5, 0.1], label="a"),
        lambda axes: axes.plot([0.1, 0.99], [0.5, 0.99], "o", ms=1, label="a"),
        lambda axes: (axes.axhline(0.93, label="a"), axes.axvspan(0.8, 1)),
    ],
    ids=["elsewhere", "only points, which a line would join through the box", "across the whole panel"],
)
def test_a_legend_that_covers_nothing_stays(draw: Callable[[Axes], object]) -> None:
    x, y = place(panel(draw))
    assert x > 0.75
    assert y > 0.85


def test_a_legend_without_a_place_moves_below_and_the_panel_keeps_its_size() -> None:
    def full(axes: Axes) -> None:
        for i in range(20):
            axes.plot([0, 1], [i / 19, i / 19], label="a" if i == 0 else None)

    def size(figure: Figure) -> float:
        return figure.axes[0].get_window_extent().height / figure.dpi

    figure, other = panel(full), panel(lambda axes: axes.plot([0, 1], [0.5, 0.5], label="a"))
    _, y = place(figure)
    assert y < 0
    assert figure.get_figheight() > HEIGHT
    assert size(figure) == pytest.approx(size(other), abs=0.1)  # inches; a gap comes beside the legend
    legend = figure.axes[0].get_legend()
    label = figure.axes[0].xaxis.get_label().get_window_extent()
    assert legend is not None
    assert legend.get_window_extent().y0 >= 0
    assert legend.get_window_extent().y1 <= label.y0 + 1  # pixels


def test_a_legend_keeps_the_color_of_its_paper_where_it_moves_below() -> None:
    def draw(figure: Figure) -> None:
        axes: Axes = figure.subplots()
        for i in range(20):
            axes.plot([0, 1], [i / 19, i / 19], color="w", label=None if i else "white")
        axes.legend(facecolor="#777777")

    (axes,) = figures.sketched(draw, size=(4.0, HEIGHT)).axes
    legend = axes.get_legend()
    assert legend is not None
    assert legend.get_window_extent().y1 < axes.bbox.y0
    assert to_hex(legend.get_frame().get_facecolor()) == "#777777"


def test_a_legend_below_takes_as_many_columns_as_fit() -> None:
    def columns(words: str) -> int:
        def draw(figure: Figure) -> None:
            axes: Axes = figure.subplots()
            for number in range(4):
                axes.plot([0, 1], label=f"{words} {number}")
            legends.below(figure, axes)

        figure = figures.sketched(draw, size=(4.0, 3.0))
        figure.draw_without_rendering()
        (legend,) = figure.legends
        assert legend.get_window_extent().width <= figure.bbox.width
        return len({round(text.get_window_extent().x0) for text in legend.get_texts()})

    assert columns("s =") == 4
    assert columns("exact fixed point, s =") == 2
