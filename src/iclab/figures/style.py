"""The style of all figures: ink, type, and the size of a panel on a narrow page."""

from typing import Any

__all__ = ["INK", "PHONE", "STYLE"]

INK = "#222222"
PHONE = (3.6, 2.9)  # inches of a panel in one column: 346 pixels of a page
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "text.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.framealpha": 1,
    "legend.edgecolor": "none",
    "legend.fontsize": 8.5,
    "legend.title_fontsize": 8.5,
    "lines.solid_capstyle": "round",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}
