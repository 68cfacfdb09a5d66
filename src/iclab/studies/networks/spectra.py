"""Spectra of networks along training, and their levels on random numbers, for studies that train networks.

All is measured by the functions of `iclab.spectra` that observe checkpoints; the weights come from memory instead of
files.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from iclab import figures
from iclab.outcomes import quantity
from iclab.spectra import checkpoints
from iclab.spectra.circuits import output_value, query_key, spectrum
from iclab.spectra.layouts import planned
from iclab.spectra.measures import null, participation_ratio, rank_measures, subspace_distance
from iclab.spectra.measures.subspaces import basis, overlap_of
from iclab.study import Axes, Figure, View

if TYPE_CHECKING:
    from iclab.spectra.measures.factors import Matrix, Product

Array = np.ndarray
LEADING = 4  # directions whose overlap is taken
FADED = 1e-3  # share of its largest norm below which what is left of a matrix may be rounding noise
PANELS = (
    ("effective_rank", "effective rank"),
    ("marginal_rank", "rank without the leading value"),
    ("distance", "distance to the last state"),
    ("overlap", "overlap with state before"),
)


class Kind(NamedTuple):
    """Matrices that are averaged over: how each is called, its shape as `null.level` takes it, how many there are."""

    name: str
    shape: tuple[int, int] | tuple[int, int, int]
    copies: int = 1


@dataclass(frozen=True)
class SpectralLevels:
    """What matrices of the same shapes read on random numbers: level less and plus one spread."""

    effective_rank: Float[Array, "matrix end"] = quantity("r", "matrix", "end", words="effective rank")
    marginal_rank: Float[Array, "matrix end"] = quantity(
        "r₁", "matrix", "end", words="effective rank without the leading value"
    )
    distance: Float[Array, "matrix end"] = quantity(
        "δ", "matrix", "end", words="distance of the row space to another"
    )
    overlap: Float[Array, "matrix end"] = quantity("o", "matrix", "end", words="overlap of leading directions")


@dataclass(frozen=True)
class SpectralCurves:
    """What matrices read along training, means over those of a kind."""

    step: Int[Array, "step"] = quantity("s", "step", words="steps of training")
    later: Int[Array, "later"] = quantity("s", "later", words="step of the later of two states")
    effective_rank: Float[Array, "matrix step"] = quantity("r", "matrix", "step", words="effective rank")
    marginal_rank: Float[Array, "matrix step"] = quantity(
        "r₁", "matrix", "step", words="effective rank without the leading value"
    )
    distance: Float[Array, "matrix step"] = quantity(
        "δ", "matrix", "step", words="distance of the row space to the last state"
    )
    overlap: Float[Array, "matrix later"] = quantity(
        "o", "matrix", "later", words="overlap of leading directions with the state before"
    )
    norm: Float[Array, "matrix step"] = quantity("n", "matrix", "step", words="least norm over its own largest")
    least_norm: float = quantity("n", words="least of all norms over their own largest")


def levels(kinds: Sequence[Kind]) -> SpectralLevels:
    """Levels of the means over random matrices of each kind, and their spreads."""
    found = [_levels(kind) for kind in kinds]
    return SpectralLevels(**{name: np.array([one[name] for one in found]) for name, _ in PANELS})


def _levels(kind: Kind) -> dict[str, tuple[float, float]]:
    size, rank = kind.shape[-1], min(kind.shape)
    spread_over, _ = null.level(kind.shape, participation_ratio)
    read = {
        "effective_rank": null.level(kind.shape, "effective_rank"),
        "marginal_rank": null.level(kind.shape, "marginal_effective_rank"),
        "distance": null.distance_level(size, rank, participation=spread_over),
        "overlap": null.overlap_level(size, LEADING),
    }
    each = np.sqrt(kind.copies)
    return {name: (level - spread / each, level + spread / each) for name, (level, spread) in read.items()}


def curves(steps: Sequence[int], matrices: "Sequence[Sequence[Sequence[Matrix]]]") -> SpectralCurves:
    """Readings of matrices (kind, copy, step), each as it reads its inputs; transposed, as it writes its outputs.

    Distances are zero at the last step by construction.
    """
    kinds = [[_readings(series) for series in copies] for copies in matrices]
    means = {
        name: np.array([np.mean([one[name] for one in copies], axis=0) for copies in kinds]) for name, _ in PANELS
    }
    norm = np.array([_least([one["norm"] for one in copies]) for copies in kinds])
    number = np.array(steps)
    return SpectralCurves(step=number, later=number[1:], **means, norm=norm, least_norm=float(np.min(norm)))


def _readings(series: "Sequence[Matrix]") -> dict[str, Float[Array, "_"]]:
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
    """Query-key and output-value circuits (head, step) of a layer, read as from the checkpoints of such a network."""
    config = {"model_type": "iclab", "heads": heads}
    series = checkpoints.of_states(states, config=config)
    read = [[planned(one.open()).attention("", layer)] for one in series]

    def along(circuit: "Callable[..., Product]") -> "list[list[Product]]":
        return [[circuit(weights, 0, head) for weights in read] for head in range(heads)]

    return along(query_key), along(output_value)


def panels(
    figure: Figure, view: View, names: Sequence[str], runs: Sequence[tuple[str, str, str]], *, scale: str
) -> "Sequence[Axes]":
    """A row of panels for each kind of matrix, with levels on random numbers in grey; the first column is returned.

    `runs` are groups of the simulation, with color and label; `scale` is that of the steps, linear or log. A scale
    that is log begins at the first step after the start, and is linear before it.
    """
    axes = figure.subplots(len(names), 1 + len(PANELS), squeeze=False, sharex=True)
    level = view.theory.levels
    shown = runs if view.simulation else ()
    for row, matrix in enumerate(names):
        for place, (name, title) in zip(axes[row, 1:], PANELS, strict=True):
            place.axhspan(*level[name].values[row], color="#cccccc", lw=0, zorder=0)
            place.set(title=f"{matrix}\n{title}")
            for group, color, _ in shown:
                found = view.simulation[group]
                along = found.later if name == "overlap" else found.step
                figures.seed_lines(place, along, found[name].values[:, row], color=color)
    band = axes[0, 1].patches[:1]
    figure.legend(band, ["random matrices of the same shape, mean ± one spread"], loc="outside lower right")
    steps = [int(view.simulation[group].later[end]) for group, *_ in shown for end in (0, -1)]
    for place in axes[-1]:
        place.set_xlabel("steps of training")
        if scale == "log" and steps:
            _log_steps(place, steps[0], steps[-1])
    return list(axes[:, 0])


def _log_steps(axes: Axes, first: int, last: int) -> None:
    """A scale of steps that is log from the first on and linear before it, so that the start is on it."""
    powers = range(int(np.ceil(np.log10(first))), int(np.log10(last)) + 1)
    axes.set_xscale("symlog", linthresh=first, linscale=0.5)
    axes.set_xticks([0, *(10**power for power in powers)])
    axes.minorticks_off()
    axes.set_xlabel(f"steps (log from {first} on)")
