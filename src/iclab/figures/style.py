"""The style of all figures: colors, ink, type, and the size of a panel on a narrow page."""

from typing import Any

__all__ = ["INK", "PALETTE", "PHONE", "STYLE"]

# Okabe and Ito's palette, distinguishable with every kind of color vision: of figures on paper, and of type and
# lines on a light page and on a dark one, where their contrast is 4.5 or more.
PALETTE = {
    "blue": ("#0072B2", "#0072b2", "#56b4e9"),
    "vermilion": ("#D55E00", "#b84c00", "#ff9d52"),
    "green": ("#009E73", "#00755a", "#3ecf9f"),
    "purple": ("#CC79A7", "#a04c88", "#e59fca"),
    "orange": ("#E69F00", "#8a5f00", "#f0c04a"),
    "sky": ("#56B4E9", "#1f6f9f", "#9ad4f5"),
    "yellow": ("#F0E442", "#6b6400", "#f0e442"),
}
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
