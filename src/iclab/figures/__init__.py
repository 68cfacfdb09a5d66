"""Figures: marks that all studies share, legends that cover no curve, and figures as files."""

from iclab.figures.clocks import TIME, second_axis
from iclab.figures.files import FORMS, as_bytes, caption, drawn, drawn_narrow, inline, sketched, stacked
from iclab.figures.marks import (
    COLORS,
    MARKS,
    colored,
    colors,
    dashed_line,
    end_label,
    level_lines,
    level_spans,
    loss_axes,
    mean_points,
    pale,
    seed_dots,
    seed_lines,
    seeds,
    theory_line,
    theory_lines,
)
from iclab.figures.style import INK, PALETTE

__all__ = [
    "COLORS", "FORMS", "INK", "MARKS", "PALETTE", "TIME", "as_bytes", "caption", "colored", "colors", "dashed_line",
    "drawn", "drawn_narrow", "end_label", "inline", "level_lines", "level_spans", "loss_axes", "mean_points", "pale",
    "second_axis", "seed_dots", "seed_lines", "seeds", "sketched", "stacked", "theory_line", "theory_lines",
]  # fmt: skip
