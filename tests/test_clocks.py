"""Clocks of training, and sizes of figures: units of the reader on the axes, panels that fold into rows."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from iclab import figures
from iclab.figures.clocks import LABELS, TIME, told
from iclab.figures.sizes import SIZES
from iclab.problem import Regression
from iclab.studies import STUDIES
from iclab.studies.dynamics import abrupt_drop


def timed(*, scale: str = "linear") -> Figure:
    figure = Figure()
    for axes in figure.subplots(1, 2):
        axes.plot([1, 40], [1, 0])
        axes.set(xlabel=TIME, xlim=(1, 40), xscale=scale)
    return figure


def ticks(figure: Figure, place: int = 0) -> dict[str, float]:
    """Labels of the lower axis, and the times at which they stand."""
    axes = figure.axes[place]
    figure.draw_without_rendering()
    low, high = axes.get_xlim()
    shown = zip(axes.xaxis.get_ticklabels(), axes.xaxis.get_majorticklocs(), strict=True)
    return {label.get_text(): at for label, at in shown if low <= at <= high}


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_a_label_in_steps_stands_at_the_time_of_that_step(scale: str) -> None:
    figure = timed(scale=scale)
    told(figure, {"time": 1.0, "steps": 0.02}, clock="steps")
    for place in (0, 1):
        assert figure.axes[place].get_xlabel() == LABELS["steps"]
        shown = ticks(figure, place)
        assert len(shown) >= 3
        assert_allclose([0.02 * float(label.replace(",", "")) for label in shown], list(shown.values()))


def test_the_second_clock_stands_on_the_first_panel_alone() -> None:
    figure = timed()
    told(figure, {"time": 1.0, "steps": 0.02}, clock="time")
    first, second = figure.axes
    (top,) = first.child_axes
    assert top.get_xlabel() == LABELS["steps"]
    figure.draw_without_rendering()
    assert_allclose(top.get_xlim(), np.array(first.get_xlim()) / 0.02)
    assert second.child_axes == []
    assert first.get_xlabel() == TIME


def test_panels_without_time_and_cases_without_steps_are_left_as_they_are() -> None:
    figure = timed()
    figure.axes[0].set_xlabel("noise")
    told(figure, {"time": 1.0}, clock="time")
    assert [axes.child_axes for axes in figure.axes] == [[], []]
    assert [axes.get_xlabel() for axes in figure.axes] == ["noise", TIME]


def test_epochs_of_the_published_run_are_told_of_its_problem_alone() -> None:
    study = STUDIES["abrupt-drop"]
    own = replace(study.quick, problem=Regression((1.0, 0.5), context_length=31))
    rate = abrupt_drop.PUBLISHED.rate
    assert study.clocks(study.quick) == {"time": 1.0, "steps": rate, "published": rate}
    assert set(study.clocks(own)) == {"time", "steps"}
    assert set(STUDIES["ridge"].clocks(STUDIES["ridge"].quick)) == {"time"}
    result = study.run(replace(own, steps=20, heads=1), 0)
    with pytest.raises(ValueError, match="clock must be one of time, steps; got 'published'"):
        figures.drawn(study, own, result, clock="published")


@pytest.mark.parametrize(("size", "across"), [("column", 1), ("page", 2)])
def test_panels_fold_into_as_many_rows_as_a_narrow_figure_needs(size: str, across: int) -> None:
    def draw(figure: Figure) -> None:
        first, second, third = figure.subplots(1, 3, width_ratios=[2, 1, 1])
        assert first.get_position().y0 > third.get_position().y0
        assert (second.get_position().x0 > first.get_position().x0) == (across == 2)

    figure = figures.sketched(draw, size=(11.0, 3.6), form=size)
    width, row = SIZES[size] or (0.0, 0.0)
    assert_allclose(figure.get_size_inches(), (width, row * -(-3 // across)))
    assert sum(axes.get_visible() for axes in figure.axes) == 3


def test_a_mosaic_folds_too_and_one_panel_stays_one() -> None:
    def mosaic(figure: Figure) -> None:
        assert set(figure.subplot_mosaic([["a", "b"], ["a", "c"]], width_ratios=[1, 1])) == {"a", "b", "c"}

    figures.sketched(mosaic, size=(9.0, 4.0), form="column")
    figures.sketched(lambda figure: figure.subplots().plot([1, 2]), size=(9.0, 4.0), form="column")


def test_a_slide_has_the_shape_of_the_study_and_larger_type() -> None:
    def draw(figure: Figure) -> None:
        figure.subplots().set_title("title")

    own, slide = (figures.sketched(draw, size=(7.0, 3.5), form=form) for form in ("study", "slide"))
    width, height = slide.get_size_inches()
    assert_allclose(width / height, 2.0)
    assert width == pytest.approx(13.33)
    titles = [
        figure.axes[0].title.get_fontsize() or figure.axes[0]._left_title.get_fontsize() for figure in (own, slide)
    ]
    assert titles[1] / titles[0] == pytest.approx(13.33 / 7.0)


@pytest.mark.parametrize("form", ["svg", "pdf", "png"])
def test_a_stamp_stands_in_the_file_and_the_same_figure_gives_the_same_bytes(form: str) -> None:
    figure = figures.sketched(lambda figure: figure.subplots().plot([1, 2]), size=(3.0, 2.0))
    files = [figures.as_bytes(figure, form, name="x", stamp=stamp) for stamp in ("iclab-abc", "iclab-abc", None)]
    assert files[0] == files[1]
    assert b"iclab-abc" in files[0]
    assert b"iclab-abc" not in files[2]
