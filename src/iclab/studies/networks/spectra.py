"""Shared parts of the studies that watch spectra of networks: words, sizes of heads, panels."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.numerics import Whole, divides, require
from iclab.outcomes import vocabulary
from iclab.spectra.observation.row_spaces import LEADING
from iclab.study import Axes, Figure, View

__all__ = ["FADED", "NULL_LEVELS", "PANELS", "SPECTRA", "Heads", "first_above", "panels", "require_heads"]

Array = np.ndarray
Heads = Annotated[int, Whole(least=2)]
FADED = 1e-3  # share of its largest norm below which what is left of a matrix may be rounding noise
PANELS = (
    ("effective_rank", "effective rank"),
    ("marginal_rank", "rank without the leading value"),
    ("distance", "distance to the last state"),
    ("overlap", "overlap with state before"),
)
NULL_LEVELS = {f"theory/levels/{name}": "a null level, for comparison" for name, _ in PANELS}
SPECTRA = vocabulary(
    {
        "levels/distance": ("δ", "distance of the row space to another"),
        "levels/overlap": ("o", "overlap of leading directions"),
    },
    step=("s", "steps of training"),
    later=("s", "step of the later of two states"),
    effective_rank=("r", "effective rank"),
    marginal_rank=("r₁", "effective rank without the leading value"),
    distance=("δ", "distance of the row space to the last state"),
    overlap=("o", "overlap of leading directions with the state before"),
    norm=("n", "least norm over its own largest"),
    least_norm=("n", "least of all norms over their own largest"),
)


def first_above(curve: Float[Array, "step"], height: float, *, none: int) -> int:
    """Index of the first entry above a height, `none` where there is no such entry."""
    return int(np.argmax(curve > height)) if np.any(curve > height) else none


def require_heads(heads: int, width: int) -> None:
    """Raise ValueError unless heads divide the width and each has more entries than leading directions."""
    divides("heads", heads, "width", width)
    require(
        width > LEADING * heads,
        f"width must be above {LEADING} for each head, whose leading directions are compared; got {width}.",
    )


def panels(
    figure: Figure, view: View, names: Sequence[str], runs: Sequence[tuple[str, str, str]], *, scale: str
) -> Sequence[Axes]:
    """A row of panels for each kind of matrix, with null levels in gray; the first column is returned.

    `runs` are groups of the simulation, with color and label; `scale` is that of the steps, linear or log. A log
    scale begins at the first step after the start, and is linear before it.
    """
    axes = figure.subplots(len(names), 1 + len(PANELS), squeeze=False, sharex=True)
    level = view.theory.levels
    shown = runs if view.simulation else ()
    for row, matrix in enumerate(names):
        for panel, (name, title) in zip(axes[row, 1:], PANELS, strict=True):
            panel.axhspan(*level[name].values[row], color="#cccccc", lw=0, zorder=0)
            panel.set(title=f"{matrix}\n{title}")
            for group, color, _ in shown:
                found = view.simulation[group]
                along = found.later if name == "overlap" else found.step
                figures.seed_lines(panel, along, found[name].values[:, row], color=color)
    band = axes[0, 1].patches[:1]
    figure.legend(band, ["random matrices of the same shape, mean ± one spread"], loc="outside lower right")
    steps = [int(view.simulation[group].later[end]) for group, *_ in shown for end in (0, -1)]
    for panel in axes[-1]:
        panel.set_xlabel("steps of training")
        if scale == "log" and steps:
            first, decades = steps[0], range(int(np.ceil(np.log10(steps[0]))), int(np.log10(steps[-1])) + 1)
            panel.set_xscale("symlog", linthresh=first, linscale=0.5)
            panel.set_xticks([0, *(10**power for power in decades)])
            panel.minorticks_off()
            panel.set_xlabel(f"steps (log from {first} on)")
    return list(axes[:, 0])
