"""Sizes of figures: that of the study, or that of a slide, a column or a page, in which panels fold into rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from iclab.figures.sketches import Sketch

__all__ = ["SIZES", "folding", "style_of"]

SIZES = {"study": None, "slide": (13.33, 7.5), "column": (3.4, 2.5), "page": (7.0, 2.9)}
"""Width in inches, with the height of the whole slide, and of a row of panels elsewhere."""

_NARROWEST = 2.9  # inches of a panel whose labels stay apart
_SMALL = 8.0  # points of type in a column or on a page


def style_of(size: str, own: tuple[float, float]) -> dict[Any, Any]:
    """Sizes of type in points: those of a figure as large as the study's own, larger on a slide."""
    if size in ("column", "page"):
        return {"font.size": _SMALL, "axes.titlesize": _SMALL, "legend.fontsize": _SMALL - 1}
    larger = 1.0 if size == "study" else max(1.0, _slide(own)[0] / own[0])
    return {"font.size": 9 * larger, "axes.titlesize": 9 * larger, "legend.fontsize": 8 * larger}


def folding(size: str, own: tuple[float, float]) -> "Sketch":
    """An empty figure of a size. In a column or on a page its panels stand in as many rows as they need."""
    from iclab.figures.sketches import Sketch

    if size not in ("column", "page"):
        return Sketch(figsize=own if size == "study" else _slide(own), layout="constrained")
    width, row = SIZES[size] or own
    across = max(1, int(width // _NARROWEST))

    class Folding(Sketch):
        def subplots(self, nrows: int = 1, ncols: int = 1, *, squeeze: bool = True, **style: Any) -> Any:
            if ncols > across:
                style = {name: value for name, value in style.items() if not name.endswith("_ratios")}
            count = nrows * ncols
            columns = min(across, ncols)
            rows = -(-count // columns)
            panels = super().subplots(rows, columns, squeeze=False, **style)
            for spare in panels.flat[count:]:
                spare.set_visible(False)
            self.set_size_inches(width, row * rows)
            shaped = panels.flat[:count].reshape(nrows, ncols)
            return shaped if not squeeze else shaped.item() if count == 1 else np.squeeze(shaped)

        def subplot_mosaic(self, mosaic: Any, **_: Any) -> Any:
            names = list(dict.fromkeys(name for line in mosaic for name in line))
            return dict(zip(names, np.ravel(self.subplots(1, len(names))), strict=True))

    return Folding(figsize=(width, row), layout="constrained")


def _slide(own: Sequence[float]) -> tuple[float, float]:
    """The largest figure of the shape of the study's own that fits on a slide."""
    larger = min(side / mine for side, mine in zip(SIZES["slide"] or own, own, strict=True))
    return own[0] * larger, own[1] * larger
