"""Spectra of networks along training, and their null levels, for studies that train networks.

Weights in memory are measured by the functions of `iclab.spectra` that observe checkpoints.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.numerics import Whole, divides, require
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.spectra import checkpoints
from iclab.spectra.circuits import output_value, query_key, spectrum
from iclab.spectra.layouts import planned
from iclab.spectra.measures import null, participation_ratio, rank_measures, subspace_distance
from iclab.spectra.measures.subspaces import basis, overlap_of
from iclab.study import Axes, Figure, View

if TYPE_CHECKING:
    from iclab.spectra.measures.factors import Matrix, Product

__all__ = [
    "FADED", "LEADING", "NULL_LEVELS", "PANELS", "SPECTRA", "Heads", "Kind", "curves", "first_above", "head_circuits",
    "least_norms", "levels", "panels", "require_heads",
]  # fmt: skip

Array = np.ndarray
Heads = Annotated[int, Whole(least=2)]
LEADING = 4  # directions whose overlap is taken
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


class Kind(NamedTuple):
    """Matrices of one shape that are averaged over."""

    name: str
    shape: tuple[int, int] | tuple[int, int, int]  # as null.level takes it
    copies: int = 1


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


def levels(kinds: Sequence[Kind]) -> Labeled:
    """Null levels, less and plus one spread, of the means over random matrices of each kind."""
    found = [_levels(kind) for kind in kinds]
    return labeled({"matrix": None, "end": None}, **{name: [one[name] for one in found] for name, _ in PANELS})


def _levels(kind: Kind) -> dict[str, tuple[float, float]]:
    size, (spread_over, _) = kind.shape[-1], null.level(kind.shape, participation_ratio)
    level = {
        "effective_rank": null.level(kind.shape, "effective_rank"),
        "marginal_rank": null.level(kind.shape, "marginal_effective_rank"),
        "distance": null.distance_level(size, min(kind.shape), participation=spread_over),
        "overlap": null.overlap_level(size, LEADING),
    }
    each = np.sqrt(kind.copies)
    return {name: (mean - spread / each, mean + spread / each) for name, (mean, spread) in level.items()}


def curves(steps: Sequence[int], matrices: "Sequence[Sequence[Sequence[Matrix]]]") -> Labeled:
    """Measurements of matrices (kind, copy, step) by their row spaces; transposed matrices by what they write.

    Means over the matrices of a kind. Distances are zero at the last step by construction.
    """
    kinds = [[_measurements(series) for series in copies] for copies in matrices]
    norm = np.array([_least([one["norm"] for one in copies]) for copies in kinds])
    means = {name: [np.mean([one[name] for one in copies], axis=0) for copies in kinds] for name, _ in PANELS}
    return labeled(
        {"step": steps, "later": steps[1:], "matrix": None},
        **{name: (("matrix", "later" if name == "overlap" else "step"), rows) for name, rows in means.items()},
        norm=(("matrix", "step"), norm),
        least_norm=float(np.min(norm)),
    )


def _measurements(series: "Sequence[Matrix]") -> dict[str, Float[Array, "_"]]:
    bases = [basis(one, k=LEADING) for one in series]
    values = np.array([one.values for one in bases])
    ranks = rank_measures(values)
    return {
        "effective_rank": ranks["effective_rank"],
        "marginal_rank": ranks["marginal_effective_rank"],
        "distance": np.array([subspace_distance(one, series[-1]) for one in series]),
        "overlap": np.array([overlap_of(*pair) for pair in pairwise(bases)]),
        "norm": np.linalg.norm(values, axis=1),
    }


def least_norms(copies: "Sequence[Sequence[Matrix]]") -> Float[Array, "step"]:
    """Norms of matrices (copy, step) over their own largest, the least of all copies at each step."""
    return _least([[spectrum(one).frobenius for one in series] for series in copies])


def _least(norms: Sequence[Sequence[float] | Array]) -> Float[Array, "step"]:
    table = np.asarray(norms)
    return np.min(table / np.max(table, axis=1, keepdims=True), axis=0)


def head_circuits(
    states: Sequence[Mapping[str, Any]], layer: int, *, heads: int
) -> "tuple[list[list[Product]], list[list[Product]]]":
    """Query-key and output-value circuits (head, step) of a layer, as read from checkpoints of such a network."""
    series = checkpoints.of_states(states, config={"model_type": "iclab", "heads": heads})
    read, each = [[planned(one.open()).attention("", layer)] for one in series], range(heads)
    attended = [[query_key(weights, 0, head) for weights in read] for head in each]
    return attended, [[output_value(weights, 0, head) for weights in read] for head in each]


def panels(
    figure: Figure, view: View, names: Sequence[str], runs: Sequence[tuple[str, str, str]], *, scale: str
) -> "Sequence[Axes]":
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
