"""Marks that the figures of all studies share."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclab import figures
from iclab.studies import STUDIES
from iclab.studies.pretraining.sizes import Span


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
    study = STUDIES["conservation"]
    case = replace(study.quick, steps=15, runs=2, transformer_steps=15)
    panels = figures.drawn(study, case, study.run(case, seeds=asked)).axes
    assert ["".join(text.get_text() for text in axes.texts) for axes in panels] == empty


def test_one_seed_is_no_plural() -> None:
    assert [figures.seeds(xr.Dataset(coords={"seed": range(count)})) for count in (1, 2)] == ["1 seed", "2 seeds"]


def test_every_curve_that_was_asked_for_is_drawn_and_named() -> None:
    study = STUDIES["double-descent"]
    asked = tuple(float(alpha) for alpha in range(1, 10))  # more than there are colors
    few = Span(0.1, 10.0, 3)
    case = replace(study.quick, alpha=asked, tau=few, finite_tau=few, dimension=(4,), leverage_tau=(0.5,))
    figure = figures.drawn(study, case, study.run(case, seeds=0))
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert len(legend.get_texts()) == len(asked)
