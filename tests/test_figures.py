"""Marks that the figures of all studies share."""

import itertools
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from iclab import figures
from iclab.outcomes import View
from iclab.studies import STUDIES
from iclab.studies.pretraining.sizes import Span
from tests.test_study import study


def named(low: float, high: float, base: int = 10) -> list[str]:
    """Numbers at the ticks of a log scale between two values."""

    def draw(figure: Figure) -> None:
        axes: Axes = figure.subplots()
        axes.set_yscale("log", base=base)
        axes.set_ylim(low, high)

    figure = figures.sketched(draw, size=(4.0, 3.0))
    figure.draw_without_rendering()
    axis = figure.axes[0].yaxis
    return [tick for minor in (False, True) for one in axis.get_ticklabels(minor=minor) if (tick := one.get_text())]


def test_short_log_scales_name_plain_numbers() -> None:
    assert {"1", "0.2"} <= set(named(0.15, 1.2))
    assert not any("mathdefault" in text for text in named(0.15, 1.2))


def test_short_scales_of_another_base_name_its_powers() -> None:
    assert {"8", "16", "32", "64", "128"} <= set(named(7, 140, base=2))


@pytest.mark.parametrize(("low", "high"), [(1e-4, 1e4), (1e-6, 5e-5), (2e6, 9e7)])
def test_long_log_scales_and_far_ones_name_powers_of_ten(low: float, high: float) -> None:
    assert all("10^" in text for text in named(low, high))


@pytest.mark.parametrize("numbers", [[200, 800], [0.3]])
def test_ticks_that_a_study_names_itself_stay(numbers: list[float]) -> None:
    def draw(figure: Figure) -> None:
        axes: Axes = figure.subplots()
        axes.set(xscale="log", xlim=(np.min(numbers) / 2, 2 * np.max(numbers)))
        axes.set_xticks(numbers, [f"at {number}" for number in numbers])

    figure = figures.sketched(draw, size=(4.0, 3.0))
    figure.draw_without_rendering()
    assert [one.get_text() for one in figure.axes[0].get_xticklabels()] == [f"at {number}" for number in numbers]


@pytest.mark.parametrize("count", [3, 7, 8, 20])
def test_every_item_has_a_color_of_its_own(count: int) -> None:
    colors, items = zip(*figures.colored(range(count), first=1), strict=True)
    assert items == tuple(range(count))
    assert len({*colors, figures.colors(1 + count)[0]}) == 1 + count


def test_few_items_have_the_colors_of_the_palette() -> None:
    assert [color for color, _ in figures.colored("ab", first=2)] == list(figures.COLORS[2:4])


@pytest.mark.parametrize(("asked", "empty"), [(0, ["", "simulation only:\nno seeds", ""]), (1, ["", "", ""])])
def test_panels_that_theory_alone_leaves_empty_say_so(asked: int, empty: list[str]) -> None:
    own = STUDIES["conservation"]
    case = replace(own.quick, steps=15, runs=2, transformer_steps=15)
    figure = figures.drawn(own, case, own.run(case, seeds=asked))
    names = {label.get_text() for label in figure.ends}
    shown = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert ["".join(text for text in texts if text not in names) for texts in shown] == empty


def test_one_seed_is_no_plural() -> None:
    assert [figures.seeds(xr.Dataset(coords={"seed": range(count)})) for count in (1, 2)] == ["1 seed", "2 seeds"]


def test_every_curve_that_was_asked_for_is_drawn_and_named() -> None:
    own = STUDIES["double-descent"]
    asked = tuple(float(alpha) for alpha in range(1, 10))  # more than there are colors
    few = Span(0.1, 10.0, 3)
    case = replace(own.quick, alpha=asked, tau=few, finite_tau=few, dimension=(4,), leverage_tau=(0.5,))
    figure = figures.drawn(own, case, own.run(case, seeds=0))
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert len(legend.get_texts()) == len(asked)


def curves(rows: int) -> np.ndarray:
    return np.arange(rows)[:, None] + np.linspace(0, 1, 5)


def test_theory_lies_over_every_simulated_mark() -> None:
    def draw(figure: Figure) -> None:
        axes: Axes = figure.subplots()
        figures.seed_lines(axes, range(5), curves(4))
        figures.seed_dots(axes, range(5), curves(2))
        figures.theory_line(axes, range(5), range(5), label="theory")

    (axes,) = figures.sketched(draw, size=(4.0, 3.0)).axes
    theory = [mark.get_zorder() for mark in axes.lines if mark.get_label() == "theory"]
    others = [mark.get_zorder() for mark in (*axes.lines, *axes.collections) if mark.get_label() != "theory"]
    assert len(others) == 4 + 1 + 1 + 2  # runs, their median and their band; dots
    assert min(theory) > max(others)


@pytest.mark.parametrize("mark", [figures.seed_lines, figures.theory_lines])
def test_the_median_of_seeds_rests_only_where_a_seed_does(mark: Any) -> None:
    def draw(figure: Figure) -> None:
        mark(figure.subplots(), range(5), np.array([[1, 1, 1, 0, 0]] * 3 + [[1, 0, 0, 0, 0]] * 3), label="median")

    (axes,) = figures.sketched(draw, size=(4.0, 3.0)).axes
    (median,) = (line for line in axes.lines if line.get_label() == "median")
    assert set(np.asarray(median.get_ydata())) == {0.0, 1.0}


def test_single_runs_can_be_told_from_all_other_marks_of_an_svg() -> None:
    def draw(figure: Figure) -> None:
        figures.seed_lines(figure.subplots(), range(5), curves(4))

    svg = figures.inline(figures.as_bytes(figures.sketched(draw, size=(4.0, 3.0)), "svg", name="a"), name="a")
    assert len(re.findall(r'id="a-runs-\d+"', svg)) == 4


def three_panels(figure: Figure) -> None:
    one, two, three = figure.subplots(1, 3, sharey=True, width_ratios=[2, 1, 1])
    for axes in (one, two, three):
        figures.theory_line(axes, range(5), range(5), label="a curve whose name is longer than a phone is wide")
        axes.set(title="a title of many words that is wider than its panel is", xlabel="x")
    one.set_ylabel("height")
    three.legend(fontsize=6, loc="center left", bbox_to_anchor=(1.0, 0.5))


def words(figure: Figure) -> list[Text]:
    """The texts of a figure, without those of ticks beyond the ends of their axis."""
    figure.draw_without_rendering()
    beyond = {
        label
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
        for label in (tick.label1, tick.label2)
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
    }
    texts = [one for one in figure.findobj(Text) if isinstance(one, Text) and one not in beyond]
    return [one for one in texts if one.get_text() and one.get_visible()]


def overlapping(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts of which one lies over the other by more than a pixel."""
    boxes = [(one.get_text(), one.get_window_extent().padded(-1)) for one in words(figure)]
    return [(a, b) for i, (a, one) in enumerate(boxes) for b, other in boxes[:i] if one.overlaps(other)]


@pytest.mark.parametrize("form", ["wide", "narrow"])
def test_panels_have_letters_and_their_words_fit_and_can_be_read(form: str) -> None:
    figure = figures.sketched(three_panels, size=(9.0, 3.0)) if form == "wide" else figures.stacked(three_panels)
    assert [axes.get_title(loc="left").split()[0] for axes in figure.axes] == [f"$\\bf{{{one}}}$" for one in "abc"]
    assert min(one.get_fontsize() for one in words(figure)) >= 8.5  # points: 11 pixels of 1/96 inch
    assert overlapping(figure) == []


def test_scales_of_colors_have_no_letters() -> None:
    def draw(figure: Figure) -> None:
        for axes in figure.subplots(1, 2):
            figure.colorbar(axes.imshow(np.eye(2)), ax=axes)

    titles = [axes.get_title(loc="left") for axes in figures.sketched(draw, size=(6.0, 3.0)).axes]
    assert titles == ["$\\bf{a}$", "$\\bf{b}$", "", ""]


def test_a_narrow_figure_has_its_panels_in_one_column_with_every_label() -> None:
    figure = figures.stacked(three_panels)
    figure.draw_without_rendering()
    assert figure.get_figwidth() * 96 <= 350  # pixels of a phone between its margins
    places = [axes.get_position() for axes in figure.axes]
    assert all(one.y0 > other.y1 for one, other in itertools.pairwise(places))
    assert [axes.get_ylabel() for axes in figure.axes] == ["height"] * 3
    box = figure.get_tightbbox()
    assert box.x0 >= -0.01
    assert box.x1 <= figure.get_figwidth() + 0.01


def test_narrow_figures_index_panels_as_wide_ones_do() -> None:
    def draw(figure: Figure) -> None:
        assert figure.subplots(2, 2).shape == (2, 2)
        assert figure.subplots(1, 3).shape == (3,)
        assert figure.subplots(1, 1, squeeze=False).shape == (1, 1)
        assert isinstance(figure.subplots(), Axes)
        assert list(figure.subplot_mosaic([["a", "b"], ["a", "."]])) == ["a", "b"]

    figures.stacked(draw)


def test_a_caption_says_in_the_words_of_its_study_what_is_drawn_and_names_every_kind_of_mark() -> None:
    def figure(view: View, figure: Figure) -> None:
        """Loss against
        time."""
        axes: Axes = figure.subplots()
        figures.theory_line(axes, view.theory.curve.time, view.theory.curve.loss)
        figures.seed_lines(axes, view.theory.curve.time, view.simulation.curve.loss.values)
        figures.dashed_line(axes, view.theory.curve.time, view.theory.curve.loss, color="k", label="another law")

    asked = study(figure=figure)
    sketch = figures.drawn(asked, asked.quick, asked.run(seeds=3))
    assert list(sketch.used) == ["theory", "band", "dashed"]
    words = ["Loss against time.", figures.MARKS["theory"], figures.MARKS["band"], "Dashed line: another law."]
    assert figures.caption(asked, sketch) == " ".join(words)


def test_names_at_the_ends_of_curves_do_not_overlap() -> None:
    def draw(figure: Figure) -> None:
        axes: Axes = figure.subplots()
        axes.set_ylim(0, 1)
        for i, height in enumerate((0.5, 0.2, 0.51, 0.5)):
            figures.theory_line(axes, [0, 1], [0, height])
            figures.end_label(axes, f"s = {i}", height)

    figure = figures.sketched(draw, size=(4.0, 3.0))
    assert overlapping(figure) == []
    assert {"s = 0", "s = 1", "s = 2", "s = 3"} <= {one.get_text() for one in words(figure)}
    box, width = figure.get_tightbbox(), figure.get_figwidth()
    assert box.x1 <= width + 0.01


def test_an_svg_takes_ink_and_paper_from_the_page() -> None:
    def draw(figure: Figure) -> None:
        figures.theory_line(figure.subplots(), range(5), range(5))

    svg = figures.inline(figures.as_bytes(figures.sketched(draw, size=(4.0, 3.0)), "svg", name="a"), name="a")
    assert "var(--ink, #222222)" in svg
    assert "var(--paper, #ffffff)" in svg
    assert ": #222222" not in svg
