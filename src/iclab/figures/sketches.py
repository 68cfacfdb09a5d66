"""Figures of one style, as wide as a page or in one column for a phone, that show themselves in a notebook."""

import string
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from iclab.figures import legends, texts
from iclab.figures.style import PHONE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Column", "Sketch"]

LETTERS = 34  # in a line of a legend on a phone


class Sketch(Figure):
    """A figure that knows which kinds of marks it holds, and shows itself once in a notebook."""

    def __init__(self, *arguments: Any, **given: Any) -> None:
        super().__init__(*arguments, **given)
        self.used: dict[str, list[str]] = {}
        self.ends: list[Annotation] = []  # names at the right ends of curves

    def _repr_svg_(self) -> str:
        from iclab.figures.files import as_bytes

        return as_bytes(self, "svg", name="figure").decode()

    @property
    def panels(self) -> "list[Axes]":
        """The panels that show something, in order, without scales of colors."""
        shown = [axes for axes in self.axes if axes.get_visible() and axes.axison]
        return [axes for axes in shown if axes.get_label() != "<colorbar>"]

    def finish(self) -> None:
        """Complete the panels, once all is drawn."""
        for axes in self.axes:
            texts.plain_numbers(axes)
        texts.enlarge(self)
        if len(self.panels) > 1:
            for letter, axes in zip(string.ascii_lowercase, self.panels, strict=False):
                axes.set_title(f"$\\bf{{{letter}}}$  {axes.get_title(loc='left')}".rstrip())
        texts.wrap(self)
        for axes in self.panels:
            texts.part([label for label in self.ends if label.axes is axes])
        legends.clear(self)


class Column(Sketch):
    """A figure whose panels stand in one column, however a study places them: for narrow pages."""

    def __init__(self) -> None:
        super().__init__(figsize=PHONE, layout="constrained")
        self._rows: list[list[Axes]] = []

    def subplots(self, nrows: int = 1, ncols: int = 1, **style: Any) -> Any:
        """The panels, indexed as if they stood in rows and columns."""
        squeeze = style.get("squeeze", True)
        panels = self._column(nrows * ncols).reshape(nrows, ncols)
        self._rows = panels.tolist()
        for share in ("sharex", "sharey"):
            if style.get(share):
                for axes in panels.flat[1:]:
                    getattr(axes, share)(panels.flat[0])
        if not squeeze:
            return panels
        return panels.item() if panels.size == 1 else panels.squeeze()

    def subplot_mosaic(self, mosaic: Any, **_: Any) -> "dict[Any, Axes]":
        """The panels by name, in the order in which the rows of a mosaic name them."""
        names = [name for name in dict.fromkeys(name for row in mosaic for name in row) if name != "."]
        return dict(zip(names, self._column(len(names)).tolist(), strict=True))

    def finish(self) -> None:
        """Complete the panels: labels that neighbours shared are repeated, and empty panels take no place."""
        for first, *others in self._rows:
            for axes in others:
                axes.set_ylabel(
                    axes.get_ylabel() or first.get_ylabel() * axes.get_shared_y_axes().joined(axes, first)
                )
        places = [axes for axes in self.axes if axes.get_subplotspec() is not None]
        shown = [axes.get_visible() and (axes.axison or axes.get_legend() is not None) for axes in places]
        if places and not all(shown):
            grid = places[0].get_subplotspec()
            assert grid is not None
            grid.get_gridspec().set_height_ratios([1.0 if one else 0.01 for one in shown])
            self.set_size_inches(PHONE[0], PHONE[1] * sum(shown))
        for axes in places:
            _narrow_legend(axes)
        super().finish()

    def _column(self, count: int) -> np.ndarray:
        panels = np.asarray(super().subplots(count, 1, squeeze=False))
        self.set_size_inches(PHONE[0], PHONE[1] * count)
        return panels.reshape(-1)


def _narrow_legend(axes: "Axes") -> None:
    """Break long labels of a legend into lines, and take one from beside its panel into it."""
    legend = axes.get_legend()
    if legend is None:
        return
    for handle, text in zip(axes.get_legend_handles_labels()[0], legend.get_texts(), strict=False):
        text.set_text(textwrap.fill(text.get_text(), LETTERS))
        handle.set_label(text.get_text())
    if axes.axison and not np.allclose(legend.get_bbox_to_anchor().bounds, axes.bbox.bounds):
        legend.set_bbox_to_anchor(None)  # type: ignore[arg-type]  # None is that of the panel
        legend.set_loc("upper right")
