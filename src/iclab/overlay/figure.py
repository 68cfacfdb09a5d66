"""The figure of a comparison: drawn training sets as a band, the run, and theory over both."""

from typing import TYPE_CHECKING

import numpy as np

from iclab import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from iclab.overlay.comparing import Comparison

__all__ = ["SIZE", "caption", "draw"]

SIZE = (7.0, 4.2)
EARLY = 0.3  # share of the clock at which all drops are done, below which it is shown by equal ratios
FEW = 40  # records that are shown one by one
RUN, SETS, APART = figures.COLORS[1], figures.COLORS[5], "#8a8f98"


def draw(comparison: "Comparison", figure: "Figure") -> None:
    """Mean squared error against the clock of the log; the time of theory on top."""
    axes, log = figure.subplots(), comparison.log
    figures.level_lines(axes, comparison.levels, label="levels of theory")
    if comparison.draws is not None:
        low, high = np.quantile(comparison.draws, [0.025, 0.975], axis=0)
        label = f"95 % of {len(comparison.draws)} drawn training sets"
        axes.fill_between(log.clock, low, high, color=SETS, alpha=0.35, lw=0, label=label, zorder=1.5)
    for i, (clock, loss) in enumerate(log.apart):
        taken = comparison.conventions.errors(loss)
        axes.plot(clock, taken, color=APART, lw=1, ls=":", label=None if i else "taken back by a restart", zorder=2)
    marks = "o" if len(log.clock) <= FEW else None
    axes.plot(log.clock, comparison.run, marker=marks, color=RUN, ms=3, lw=2.2, label="the run", zorder=2.2)
    if comparison.theory is not None:
        figures.theory_line(axes, log.clock, comparison.theory, label="theory from its start")
    _axes(comparison, axes)
    axes.legend()


def caption(comparison: "Comparison") -> str:
    """The caption: every mark that is in the figure."""
    parts = [f"Mean squared error of the run against its {comparison.log.name}, colored."]
    if comparison.theory is not None:
        parts.append("Solid line: gradient flow of the population loss from the start of the run.")
    if comparison.draws is not None:
        parts.append(
            f"Band: 95 % of {len(comparison.draws)} training sets of its size, descended on in the same way."
        )
    if comparison.log.apart:
        parts.append("Grey: records that a restart took back.")
    return " ".join([*parts, "Dotted lines: levels of theory."])


def _axes(comparison: "Comparison", axes: "Axes") -> None:
    log, run = comparison.log, comparison.run
    falling = log.clock[np.flatnonzero(run - run[-1] > 0.05 * np.ptp(run))]
    positive = log.clock[log.clock > 0]
    if np.max(falling, initial=0.0) < EARLY * log.clock[-1] and positive[-1] > 10 * positive[0]:
        axes.set_xscale("log")
        axes.set_xlim(positive[0], positive[-1])
    else:
        axes.set_xlim(0, log.clock[-1])
        figures.second_axis(axes, 1 / comparison.conventions.rate, "training time of theory  (units of $\\tau$)")
    axes.set_ylim(0, 1.05 * max(float(np.max(part)) for part in (run, comparison.levels)))
    axes.set(xlabel=f"{log.name} of the run", ylabel="mean squared error")
