"""The figure of a comparison: drawn training sets as a band, the run, and theory over both."""

from typing import TYPE_CHECKING

import numpy as np

from iclab import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from iclab.overlay.comparing import Comparison

__all__ = ["SIZE", "draw"]

SIZE = (7.0, 4.0)
SLOW = 0.3  # share of the clock at which the last drop comes, below which the clock is shown by equal ratios
APART = "#8a8f98"


def draw(comparison: "Comparison", figure: "Figure") -> None:
    """Mean squared error against the clock of the log; the time of theory on top."""
    axes, log = figure.subplots(), comparison.log
    figures.level_lines(axes, comparison.levels, label="levels of theory")
    if comparison.draws is not None:
        low, high = np.quantile(comparison.draws, [0.025, 0.975], axis=0)
        label = f"95 % of {len(comparison.draws)} drawn training sets"
        axes.fill_between(log.clock, low, high, color=figures.COLORS[5], alpha=0.35, lw=0, label=label, zorder=1)
    for i, (clock, loss) in enumerate(log.apart):
        taken = comparison.conventions.errors(loss)
        axes.plot(clock, taken, color=APART, lw=1, ls=":", label=None if i else "before a restart", zorder=2)
    marks = "o" if len(log.clock) <= 40 else None
    axes.plot(log.clock, comparison.run, marker=marks, color=figures.COLORS[1], ms=3, lw=1.8, label="run", zorder=3)
    if comparison.theory is not None:
        axes.plot(log.clock, comparison.theory, color=figures.INK, lw=1.4, ls=(0, (5, 2)), label="theory", zorder=4)
    _axes(comparison, axes)
    axes.legend()


def _axes(comparison: "Comparison", axes: "Axes") -> None:
    log, run = comparison.log, comparison.run
    settled = log.clock[np.flatnonzero(run - run[-1] > 0.05 * np.ptp(run))]
    late = float(np.max(settled, initial=0.0)) / log.clock[-1]
    positive = log.clock[log.clock > 0]
    if late < SLOW and positive[-1] > 10 * positive[0]:
        axes.set_xscale("log")
        axes.set_xlim(positive[0], positive[-1])
    else:
        axes.set_xlim(0, log.clock[-1])
        figures.epoch_axis(axes, 1 / comparison.conventions.rate, label="training time of theory  (units of $\\tau$)")
    top = max(float(np.max(part)) for part in (run, comparison.levels))
    axes.set_ylim(0, 1.05 * top)
    axes.set(xlabel=f"{log.name} of the run", ylabel="mean squared error")
