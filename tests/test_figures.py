"""Marks that the figures of all studies share."""

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclab import figures


def named(low: float, high: float) -> list[str]:
    """Numbers at the ticks of a log scale between two values."""

    def draw(figure: Figure) -> None:
        figure.subplots().set(yscale="log", ylim=(low, high))

    figure = figures.sketched(draw, size=(4.0, 3.0))
    figure.draw_without_rendering()
    axis = figure.axes[0].yaxis
    return [tick for minor in (False, True) for one in axis.get_ticklabels(minor=minor) if (tick := one.get_text())]


def test_short_log_scales_name_plain_numbers() -> None:
    assert {"1", "0.2"} <= set(named(0.15, 1.2))
    assert not any("mathdefault" in text for text in named(0.15, 1.2))


def test_long_log_scales_name_powers_of_ten() -> None:
    assert all("mathdefault{10^" in text for text in named(1e-4, 1e4))


@pytest.mark.parametrize("numbers", [[200, 800], [0.3]])
def test_ticks_that_a_study_names_itself_stay(numbers: list[float]) -> None:
    def draw(figure: Figure) -> None:
        axes: Axes = figure.subplots()
        axes.set(xscale="log", xlim=(np.min(numbers) / 2, 2 * np.max(numbers)))
        axes.set_xticks(numbers, [f"at {number}" for number in numbers])

    figure = figures.sketched(draw, size=(4.0, 3.0))
    figure.draw_without_rendering()
    assert [one.get_text() for one in figure.axes[0].get_xticklabels()] == [f"at {number}" for number in numbers]
