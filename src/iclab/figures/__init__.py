"""Figures: marks that all studies share, legends that cover no curve, and figures as SVG and PDF."""

from iclab.figures.clocks import TIME
from iclab.figures.marks import (
    COLORS,
    INK,
    as_bytes,
    colored,
    colors,
    dashed_line,
    drawn,
    inline,
    level_lines,
    loss_axes,
    mean_points,
    pale,
    seed_dots,
    seed_lines,
    seeds,
    sketched,
    theory_line,
)

__all__ = [
    "COLORS", "INK", "TIME", "as_bytes", "colored", "colors", "dashed_line", "drawn", "inline",
    "level_lines", "loss_axes", "mean_points", "pale", "seed_dots", "seed_lines", "seeds", "sketched", "theory_line",
]  # fmt: skip
