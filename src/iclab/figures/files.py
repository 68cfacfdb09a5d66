"""Figures of studies, and figures as files: SVG, PDF, PNG, and SVG as an element of a page in its colors."""

import inspect
import io
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from iclab.figures import clocks, sizes
from iclab.figures.marks import MARKS
from iclab.figures.style import INK, STYLE
from iclab.numerics import one_of
from iclab.outcomes import View

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from iclab.figures.sketches import Column, Sketch
    from iclab.study import Study

__all__ = ["FORMS", "as_bytes", "caption", "drawn", "drawn_narrow", "inline", "sketched", "stacked"]

FORMS = {"svg": ("Date", "Creator"), "pdf": ("CreationDate",), "png": ("Software",)}
"""Forms of a file, and what of it would differ between two files of one figure."""

STAMPS = {"svg": "Source", "pdf": "Keywords", "png": "Comment"}
"""The place of a stamp in a file of each form."""

_PAGE = {INK: "--ink", "#000000": "--ink", "#ffffff": "--paper", "#777777": "--soft"}  # colors that a page sets


def drawn(study: "Study", case: Any, result: "xr.DataTree", *, clock: str = "time", size: str = "study") -> "Sketch":
    """The figure of a study for its result of a case, with the time of training told by a clock.

    Raises ValueError for a clock that the case does not have.
    """
    return sketched(_drawing(study, case, result, clock), size=study.preset(case).size, form=size)


def drawn_narrow(study: "Study", case: Any, result: "xr.DataTree", *, clock: str = "time") -> "Column":
    """The same figure with its panels in one column, as wide as a phone."""
    return stacked(_drawing(study, case, result, clock))


def sketched(draw: "Callable[[Figure], None]", *, size: tuple[float, float], form: str = "study") -> "Sketch":
    """A figure of this size in inches, or in the form of a slide, a column or a page, in the style of all figures."""
    return _finished(draw, lambda: sizes.folding(form, size), sizes.style_of(form, size))


def stacked(draw: "Callable[[Figure], None]") -> "Column":
    """The figure with its panels in one column, as wide as a phone, in the style of all figures."""
    from iclab.figures.sketches import Column

    return _finished(draw, Column)


def _finished(draw: "Callable[[Figure], None]", blank: Callable[[], Any], style: Mapping[Any, Any] = {}) -> Any:
    from matplotlib import rc_context

    with rc_context({**STYLE, **style}):
        figure = blank()
        draw(figure)
        figure.finish()
    return figure


def _drawing(study: "Study", case: Any, result: "xr.DataTree", clock: str) -> "Callable[[Figure], None]":
    units, view = study.clocks(case), View(case, result)
    one_of("clock", clock, units)

    def draw(figure: "Figure") -> None:
        study.figure(view, figure)
        clocks.told(figure, units, clock=clock)
        if not view.simulation:
            _say_what_is_missing(figure)

    return draw


def _say_what_is_missing(figure: "Figure") -> None:
    for axes in figure.axes:
        if axes.axison and not axes.has_data():
            axes.text(0.5, 0.5, "simulation only:\nno seeds", ha="center", va="center", transform=axes.transAxes)


def caption(study: "Study", figure: "Sketch") -> str:
    """The caption: the figure in the words of its study, and each kind of mark that is in it."""
    shown = inspect.cleandoc(study.figure.__doc__ or "").split("\n\n")[0].replace("\n", " ")
    named = (words.format(_labels(figure.used[mark])) for mark, words in MARKS.items() if mark in figure.used)
    return " ".join([shown, *named]).strip()


def _labels(labels: list[str]) -> str:
    """Labels of marks of one kind, where they are few."""
    return " and ".join(labels) if 0 < len(labels) < 3 else "as the legend, the title or words beside them say"


def as_bytes(figure: "Figure", form: str, *, name: str, stamp: str | None = None) -> bytes:
    """The figure as an "svg", "pdf" or "png" file; the same figure gives the same bytes.

    `name` is the salt of ids in an SVG; `stamp` is a word that stands in the file as it is.
    """
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({**STYLE, "svg.hashsalt": name}):
        said = dict.fromkeys(FORMS[form]) | ({STAMPS[form]: stamp} if stamp else {})
        figure.savefig(buffer, format=form, metadata=said, dpi=200)
    return buffer.getvalue()


def inline(svg: bytes, *, name: str) -> str:
    """An SVG file as an element of a page, in the page's own colors of ink and paper.

    Its ids begin with `name`, so that figures on one page keep apart; coordinates of paths have two decimals.
    """
    text = svg.decode()
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text[text.index("<svg") :], flags=re.S)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", text)
    for color, variable in _PAGE.items():
        text = re.sub(rf"(fill|stroke): {color}\b", rf"\1: var({variable}, {color})", text)
    return re.sub(r'(?<=\bd=")[^"]+', lambda path: re.sub(r"(\d+\.\d\d)\d+", r"\1", path[0]), text)
