"""Clocks of training: axes that tell time in τ, in steps of the run, or in epochs of the published run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = ["LABELS", "TIME", "second_axis", "told"]

TIME = "training time $t$  (units of $\\tau$)"
_ROUND = (1.0, 2.0, 5.0)  # digits at which a log scale is marked
_INSIDE = 0.96  # part of an axis on which its numbers stay clear of the next panel
LABELS = {"time": TIME, "steps": "steps of the run", "published": "epochs of the published run"}


def told(figure: "Figure", units: Mapping[str, float], *, clock: str) -> None:
    """Panels whose axis is time tell it by a clock, and the first of them by a second clock at its top.

    `units` are the times that a unit of each clock takes. The second clock is τ, or for τ the last of the units.
    """
    panels = [axes for axes in figure.axes if axes.get_xlabel() == TIME]
    second = "time" if clock != "time" else list(units)[-1]
    for axes in panels:
        if clock != "time":
            _tell(axes.xaxis, units[clock], log=axes.get_xscale() == "log")
            axes.set_xlabel(LABELS[clock])
    if panels and second != clock:
        second_axis(panels[0], units[second], LABELS[second])


def second_axis(axes: "Axes", unit: float, label: str) -> None:
    """An axis at the top that counts another unit."""

    def counted(time: Any) -> Any:
        return time / unit

    def told_back(count: Any) -> Any:
        return count * unit

    top = axes.secondary_xaxis("top", functions=(counted, told_back))
    top.set_xlabel(label)
    log = axes.get_xscale() == "log"

    def numbered(count: float, _: object) -> str:
        clear = count <= counted(axes.get_xlim()[1]) * (1.0 if log else _INSIDE)
        return _number(count, log=log) if clear else ""

    top.xaxis.set_major_formatter(numbered)
    if log:
        from matplotlib.ticker import LogLocator, NullLocator

        top.xaxis.set_major_locator(LogLocator(subs=_ROUND))
        top.xaxis.set_minor_locator(NullLocator())


def _tell(axis: "Axis", unit: float, *, log: bool) -> None:
    """Ticks at round numbers of a unit, and these numbers beside them."""
    from matplotlib.ticker import AutoLocator, Locator, LogLocator, NullLocator

    within = LogLocator(subs=_ROUND) if log else AutoLocator()

    class Scaled(Locator):
        def __call__(self) -> Any:
            return self.tick_values(*axis.get_view_interval())

        def tick_values(self, vmin: float, vmax: float) -> Any:
            return unit * np.asarray(within.tick_values(vmin / unit, vmax / unit))

    within.set_axis(axis)
    axis.set_major_locator(Scaled())
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda time, _: _number(time / unit, log=log))


def _number(count: float, *, log: bool) -> str:
    if log and (count < 1e-2 or count >= 1e5):
        digit, _, power = f"{count:.0e}".partition("e")
        return f"${'' if digit == '1' else digit + '·'}10^{{{int(power)}}}$".replace("·", r" \cdot ")
    return f"{count:,.0f}" if abs(count - round(count)) < 1e-6 * max(1, abs(count)) else f"{count:.4g}"
