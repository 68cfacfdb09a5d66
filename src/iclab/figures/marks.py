"""Marks that the figures of all studies share, and figures as SVG and PDF. Reads labeled results only."""

import io
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from iclab.figures import clocks, legends, sizes
from iclab.numerics import one_of
from iclab.outcomes import View

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from iclab.study import Study

__all__ = [
    "COLORS", "INK", "Item", "as_bytes", "colored", "colors", "dashed_line", "drawn", "inline",
    "level_lines", "loss_axes", "mean_points", "pale", "seed_dots", "seed_lines", "seeds", "sketched",
    "theory_line",
]  # fmt: skip

Item = TypeVar("Item")

# Okabe and Ito's palette: distinguishable with every kind of color vision.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442")
INK = "#222222"
_UNSIGNED = {"Date", "Creator", "CreationDate", "Software"}  # what Matplotlib would say of the moment and itself
_PIXELS = 200  # of a PNG, for each inch
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "legend.framealpha": 1,
    "legend.edgecolor": "none",
    "legend.fontsize": 8,
    "lines.solid_capstyle": "round",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


def drawn(study: "Study", case: Any, result: "xr.DataTree", *, clock: str = "time", size: str = "study") -> "Figure":
    """The figure of a study for its result of a case, with the time of training told by a clock.

    Raises ValueError for a clock that the case does not have.
    """
    units = study.clocks(case)
    one_of("clock", clock, units)
    view = View(case, result)

    def draw(figure: "Figure") -> None:
        study.figure(view, figure)
        clocks.told(figure, units, clock=clock)
        if not view.simulation:
            _say_what_is_missing(figure)

    return sketched(draw, size=study.preset(case).size, form=size)


def _say_what_is_missing(figure: "Figure") -> None:
    for axes in figure.axes:
        if axes.axison and not axes.has_data():
            axes.text(0.5, 0.5, "simulation only:\nno seeds", ha="center", va="center", transform=axes.transAxes)


def sketched(draw: "Callable[[Figure], None]", *, size: tuple[float, float], form: str = "study") -> "Figure":
    """A figure of this size in inches, or in the form of a slide, a column or a page, in the style of all figures."""
    from matplotlib import rc_context

    with rc_context(_STYLE | sizes.style_of(form, size)):
        figure = sizes.folding(form, size)
        draw(figure)
        for axes in figure.axes:
            _plain_numbers(axes)
        legends.clear(figure)
    return figure


def _plain_numbers(axes: "Axes") -> None:
    """Numbers as 0.2 and not as 2 × 10⁻¹ on log scales below two decades, which name more than powers."""
    from matplotlib.ticker import LogFormatterSciNotation

    class Plain(LogFormatterSciNotation):
        def __call__(self, x: float, pos: int | None = None) -> str:
            return f"{x:g}" if super().__call__(x, pos) else ""

    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        short = 1e-3 < low < high < min(100 * low, 1e5)
        if short and isinstance(axis.get_major_formatter(), LogFormatterSciNotation):
            base = axis.get_transform().base  # type: ignore[attr-defined]  # of log scales, which have this formatter
            axis.set_major_formatter(Plain(base))
            axis.set_minor_formatter(Plain(base))


def as_bytes(figure: "Figure", form: str, *, name: str, stamp: str | None = None) -> bytes:
    """The figure as a file, "svg", "pdf" or "png", always the same bytes. `name` is the salt of its ids.

    `stamp` is a word that stands in the file as it is, among what is said of it.
    """
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({**_STYLE, "svg.hashsalt": name}):
        said: dict[str, dict[str, str | None]] = {
            "svg": {"Date": None, "Creator": None, "Source": stamp},
            "pdf": {"CreationDate": None, "Keywords": stamp},
            "png": {"Software": None, "Comment": stamp},
        }
        said = {
            kind: {key: word for key, word in words.items() if word or key in _UNSIGNED}
            for kind, words in said.items()
        }
        figure.savefig(buffer, format=form, metadata=said[form], dpi=_PIXELS)
    return buffer.getvalue()


def inline(svg: bytes, *, name: str) -> str:
    """An SVG file as an element of a page; its ids begin with `name`, so that figures on one page keep apart."""
    text = svg.decode()
    return re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", text[text.index("<svg") :])


def colored(items: Iterable[Item], *, first: int = 0) -> Iterator[tuple[str, Item]]:
    """Each item with a color of its own."""
    known = list(items)
    return zip(colors(first + len(known))[first:], known, strict=True)


def colors(count: int) -> tuple[str, ...]:
    """So many different colors; beyond the palette a scale from dark to light, in which neighbours lie close."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    if count <= len(COLORS):
        return COLORS[:count]
    return tuple(to_hex(color) for color in colormaps["viridis"](np.linspace(0, 0.92, count)))


def pale(color: str) -> tuple[float, float, float]:
    """The color mixed with white, for the seeds behind a theory of that color."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(color)
    return (1 + red) / 2, (1 + green) / 2, (1 + blue) / 2


def theory_line(axes: "Axes", x: Any, y: Any, *, color: str = INK, label: str | None = None) -> None:
    """Theory: a solid line."""
    axes.plot(x, y, color=color, lw=1.6, zorder=2, label=label)


def seed_lines(axes: "Axes", x: Any, rows: Iterable, *, color: Any = COLORS[5], label: str | None = None) -> None:
    """Simulation: a thin line for each seed, on top of theory."""
    for i, row in enumerate(rows):
        axes.plot(x, row, color=color, lw=0.8, zorder=3, label=label if i == 0 else None)


def dashed_line(axes: "Axes", x: Any, y: Any, *, color: str, label: str | None = None) -> None:
    """A second curve beside a solid line of the same color: dashed, on top of it."""
    axes.plot(x, y, color=color, lw=1.2, ls=(0, (3, 2)), zorder=4, label=label)


def seed_dots(axes: "Axes", x: Any, rows: Iterable, *, color: Any = COLORS[5], label: str | None = None) -> None:
    """Simulation at a few points: an open circle for each seed, on top of theory."""
    for i, row in enumerate(rows):
        axes.plot(
            x,
            row,
            color=color,
            marker="o",
            ms=4,
            mfc="none",
            mew=0.8,
            ls="",
            zorder=5,
            label=label if i == 0 else None,
        )


def mean_points(
    axes: "Axes", x: Any, values: "xr.DataArray", *, color: str = COLORS[0], label: str | None = None
) -> None:
    """Simulation: means over seeds, with two standard errors where there are seeds for them."""
    count = values.sizes["seed"]
    error = 2 * values.std("seed", ddof=1) / np.sqrt(count) if count > 1 else None
    style: dict[str, Any] = {"fmt": "o", "ms": 4, "color": color, "lw": 1, "zorder": 3}
    axes.errorbar(x, values.mean("seed"), yerr=error, label=label, **style)


def level_lines(axes: "Axes", levels: Iterable[float], *, label: str | None = None) -> None:
    """Losses of plateaus: dotted lines across the panel."""
    for i, level in enumerate(np.asarray(levels)):
        axes.axhline(level, color="#777777", lw=0.8, ls=":", zorder=1, label=label if i == 0 else None)


def seeds(simulated: "xr.Dataset") -> str:
    """Number of seeds of a simulation, in words."""
    count = simulated.sizes["seed"]
    return f"{count} seed{'' if count == 1 else 's'}"


def loss_axes(axes: "Axes", *, title: str, scale: str = "linear") -> None:
    """Labels of a panel that shows loss against time, on a scale of time."""
    axes.set(title=title, xlabel=clocks.TIME, ylabel="mean squared error", xscale=scale)
