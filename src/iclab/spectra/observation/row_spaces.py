"""Spectra of networks along training, from states in memory, and their null levels on random matrices."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.outcomes import Labeled, labeled
from iclab.spectra import checkpoints
from iclab.spectra.circuits import output_value, query_key, spectrum
from iclab.spectra.layouts import planned
from iclab.spectra.measures import null, participation_ratio, rank_measures, subspace_distance
from iclab.spectra.measures.subspaces import basis, overlap_of

if TYPE_CHECKING:
    from iclab.spectra.measures.factors import Matrix, Product

__all__ = ["LEADING", "MEASURES", "Kind", "curves", "head_circuits", "least_norms", "levels"]

Array = np.ndarray
LEADING = 4  # directions whose overlap is taken
MEASURES = ("effective_rank", "marginal_rank", "distance", "overlap")


class Kind(NamedTuple):
    """Matrices of one shape that are averaged over."""

    name: str
    shape: tuple[int, int] | tuple[int, int, int]  # as null.level takes it
    copies: int = 1


def levels(kinds: Sequence[Kind]) -> Labeled:
    """Null levels, less and plus one spread, of the means over random matrices of each kind."""
    found = [_levels(kind) for kind in kinds]
    return labeled({"matrix": None, "end": None}, **{name: [one[name] for one in found] for name in MEASURES})


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
    means = {name: [np.mean([one[name] for one in copies], axis=0) for copies in kinds] for name in MEASURES}
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
