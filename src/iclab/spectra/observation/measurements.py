"""Measurements of one layer of one checkpoint: its circuits head by head, and its whole matrices."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.spectra.circuits import averaged_query_key, head_spectra, output_value, query_key
from iclab.spectra.circuits.balance import Balance
from iclab.spectra.circuits.weights import AttentionWeights
from iclab.spectra.layouts import Matrix
from iclab.spectra.measures.factors import NotFinite, Product
from iclab.spectra.measures.ranks import rank_measures, stable_rank
from iclab.spectra.measures.rounding import numerical_rank
from iclab.spectra.measures.spectrum import Spectrum, leading_spectrum, spectrum
from iclab.spectra.measures.subspaces import Basis, basis, overlap_of, procrustes_distance, subspace_distance
from iclab.spectra.measures.units import frobenius
from iclab.spectra.observation.dynamics import Status
from iclab.spectra.observation.selection import DISTANCES, OVERLAPS, RANKS, Selection

__all__ = [
    "SLICES", "Comparison", "MatrixKey", "Measurement", "circuits", "failed", "of_heads", "of_matrix", "ranked",
]  # fmt: skip

_SKETCHED = 64  # leading values computed of a matrix whose Gram is too large
_WIDE = 1024  # short side of an embedding above which it is sketched
SLICES = 2**27  # bytes of the two float64 slices with which a Gram is formed


class MatrixKey(NamedTuple):
    """Identity of a matrix in a series."""

    tower: str
    layer: int | None
    head: int | None
    matrix: str


@dataclass(frozen=True)
class Measurement:
    """Measures of one matrix at one checkpoint; while `unranked`, the ranks of its `leading` values are missing."""

    key: MatrixKey
    role: str
    shape: tuple[int, ...] = ()
    stored: str = ""
    measures: Mapping[str, float] = field(default_factory=dict)
    leading: Float[np.ndarray, "value"] = field(default_factory=lambda: np.zeros(0))
    norm: float = np.nan
    gap: float = np.nan
    status: Status = "ok"
    reason: str = ""
    notes: tuple[str, ...] = ()
    rotated: int | None = None  # rows of a head with rotary embedding, of an averaged circuit
    unranked: bool = False
    level: tuple[float, float] = (np.nan, np.nan)  # null level of measures other than ranks, overlaps and distances


@dataclass
class Comparison:
    """Checkpoints that a layer is compared with: bases and matrices of the final one, bases of the previous one, and
    the balance of the first.

    While `learning`, measurements define the final checkpoint.
    """

    learning: bool = True
    final: dict[MatrixKey, Basis] = field(default_factory=dict)
    previous: dict[MatrixKey, Basis] = field(default_factory=dict)
    references: dict[MatrixKey, Product | np.ndarray] = field(default_factory=dict)
    first: Balance | None = None


def circuits(weights: AttentionWeights, head: int, *, fold: bool) -> dict[str, Callable[[], Product]]:
    """Functions that form the circuits of a head."""
    found = {"QK": partial(query_key, [weights], 0, head, fold=fold)}
    if weights.rotary is not None:
        found["QK averaged"] = partial(averaged_query_key, [weights], 0, head, fold=fold)
    return {**found, "OV": partial(output_value, [weights], 0, head, fold=fold)}


def of_heads(
    weights: AttentionWeights, tower: str, layer: int, selection: Selection, comparison: Comparison
) -> Iterator[Measurement]:
    """Measurements of the circuits of the selected heads, unranked; a failure for one with non-finite entries."""
    count = len(weights.query)
    heads = range(count) if selection.heads is None else [head for head in selection.heads if head < count]
    spectra = _together(weights, selection) if selection.heads is None else {}
    for head in heads:
        for name, circuit in circuits(weights, head, fold=selection.fold).items():
            key = MatrixKey(tower, layer, head, name)
            rotated = weights.rotary.dimensions if weights.rotary and name == "QK averaged" else None
            try:
                product = circuit()
                whole, rank = spectra.get((head, name)) or (spectrum(product), None)
                if "numerical_rank" not in selection.measures or rotated is not None:
                    rank = None  # that of QK bounds the averaged one
                elif rank is None:
                    rank = numerical_rank(product)
                shape = _circuit_shape(weights, name)
                yield _circuit_measurement(key, name, product, shape, whole, rank, selection, comparison, rotated)
            except (ValueError, np.linalg.LinAlgError) as error:
                comparison.previous.pop(key, None)
                yield failed(key, name, error, _circuit_shape(weights, name))


def of_matrix(matrix: Matrix, selection: Selection, comparison: Comparison, *, budget: float = np.inf) -> Measurement:
    """Measurement of a whole matrix, unranked; skipped above `max_elements`.

    Leading values alone where its Gram exceeds the `budget` in bytes.
    """
    layer = None if matrix.role in ("embed", "unembed") else matrix.layer
    key = MatrixKey(matrix.tower, layer, None, matrix.name)
    rows, columns = matrix.shape
    size = rows * columns
    if size > selection.max_elements:
        reason = f"{rows} × {columns} = {size:,} elements, more than max_elements {selection.max_elements:,}"
        return Measurement(key, matrix.role, matrix.shape, matrix.tensor.stored, status="skipped", reason=reason)
    try:
        array = matrix.array()
        if _sketched(matrix, budget):
            return _sketch(key, matrix.role, array, selection)
        return _matrix_measurement(key, matrix.role, array, matrix.sizes, selection, comparison)
    except (ValueError, np.linalg.LinAlgError) as error:
        comparison.previous.pop(key, None)
        return failed(key, matrix.role, error, matrix.shape)


def ranked(measurements: Iterable[Measurement], selection: Selection) -> list[Measurement]:
    """Measurements with their ranks, computed for all spectra of one length at once, which costs a fraction."""
    found = list(measurements)
    alike: dict[int, list[int]] = defaultdict(list)
    for index, measurement in enumerate(found):
        if measurement.unranked:
            alike[len(measurement.leading)].append(index)
    for indices in alike.values() if selection.any_of(RANKS) else ():
        table = rank_measures(np.stack([found[index].leading for index in indices]))
        for row, index in enumerate(indices):
            ranks = {name: float(values[row]) for name, values in table.items() if name in selection.measures}
            found[index] = replace(found[index], measures=ranks | dict(found[index].measures), unranked=False)
    return found


def failed(key: MatrixKey, role: str, error: Exception, shape: tuple[int, ...]) -> Measurement:
    """Measurement without numbers, with the reason."""
    status: Status = "nonfinite" if isinstance(error, NotFinite) else "skipped"
    return Measurement(key, role, shape, status=status, reason=str(error))


def _together(weights: AttentionWeights, selection: Selection) -> dict[tuple[int, str], tuple[Spectrum, int | None]]:
    """Spectra and ranks of all heads, each Gram formed once; fewer where an entry is not finite."""
    found: dict[tuple[int, str], tuple[Spectrum, int | None]] = {}
    try:
        for one in head_spectra([weights], 0, fold=selection.fold):
            found[one.head, "QK"] = one.query_key, one.query_key_rank
            found[one.head, "OV"] = one.output_value, one.output_value_rank
            if one.averaged_query_key is not None:
                found[one.head, "QK averaged"] = one.averaged_query_key, None
    except (ValueError, np.linalg.LinAlgError):
        pass  # heads that were not reached are measured one by one
    return found


def _circuit_measurement(
    key: MatrixKey,
    role: str,
    x: Product,
    shape: tuple[int, ...],
    whole: Spectrum,
    rank: int | None,
    selection: Selection,
    comparison: Comparison,
    rotated: int | None,
) -> Measurement:
    measures, width = {} if rank is None else {"numerical_rank": float(rank)}, np.nan
    if selection.of_subspaces:
        found, width = _compared(key, x, None, selection, comparison)
        measures |= found
    stored = "/".join(dict.fromkeys(str(np.dtype(one)) for one in x.stored or (x.left.dtype, x.right.dtype)))
    return Measurement(
        key, role, shape, stored, measures, whole.values, whole.frobenius, width,
        *_status(whole.frobenius), notes=x.notes, rotated=rotated, unranked=True,
    )  # fmt: skip


def _matrix_measurement(
    key: MatrixKey, role: str, array: np.ndarray, shape: tuple[int, ...], selection: Selection, comparison: Comparison
) -> Measurement:
    width, compared = np.nan, {}
    if selection.of_subspaces:
        now = basis(array, k=selection.leading)
        values, norm = now.values, frobenius(now.values)
        compared, width = _compared(key, array, now, selection, comparison)
    else:
        whole = spectrum(array)
        values, norm = whole.values, whole.frobenius
    if "numerical_rank" in selection.measures:
        compared["numerical_rank"] = float(numerical_rank(values, shape=array.shape, stored=array.dtype))
    return Measurement(
        key, role, shape, str(array.dtype), compared, values, norm, width, *_status(norm), unranked=True
    )  # fmt: skip


def _sketched(matrix: Matrix, budget: float) -> bool:
    short = min(matrix.shape)
    needs = 2 * 8 * short**2 + SLICES + matrix.tensor.nbytes
    return short > _SKETCHED and (
        (matrix.role in ("embed", "unembed") and short > _WIDE) or needs > max(budget, 2 * SLICES)
    )


def _sketch(key: MatrixKey, role: str, array: np.ndarray, selection: Selection) -> Measurement:
    whole = leading_spectrum(array, count=_SKETCHED)
    measures = {"stable_rank": stable_rank(whole)} if "stable_rank" in selection.measures else {}
    note = f"only {_SKETCHED} leading values, by randomized iteration: ranks that need all of them are left out"
    return Measurement(
        key, role, array.shape, str(array.dtype), measures, whole.values, whole.frobenius, np.nan,
        *_status(whole.frobenius), notes=(note,),
    )  # fmt: skip


def _status(norm: float) -> tuple[Status, str]:
    if norm == 0:
        return "degenerate", "zero matrix"
    return ("ok", "") if np.isfinite(norm) else ("nonfinite", "singular values beyond the range of numbers")


def _compared(
    key: MatrixKey, x: Product | np.ndarray, now: Basis | None, selection: Selection, comparison: Comparison
) -> tuple[dict[str, float], float]:
    """Measures against the final and the previous checkpoint, and the spectral gap after the leading directions."""
    found: dict[str, float] = {}
    width = np.nan
    if selection.any_of(OVERLAPS):
        now = basis(x, k=selection.leading) if now is None else now
        width = now.gap
        others = (comparison.final.get(key), comparison.previous.get(key))
        found |= {
            name: _overlap(now, other)
            for name, other in zip(OVERLAPS, others, strict=True)
            if name in selection.measures
        }
        (comparison.final if comparison.learning else comparison.previous)[key] = now
    if selection.any_of(DISTANCES):
        found |= _distances(x, comparison.references.get(key), selection)
        if comparison.learning:
            comparison.references[key] = x
    return found, width


def _overlap(one: Basis, other: Basis | None) -> float:
    if other is None:
        return np.nan
    alike = one.vectors is None or other.vectors is None or one.vectors.shape == other.vectors.shape
    return overlap_of(one, other) if alike else np.nan


def _distances(
    x: Product | np.ndarray, reference: Product | np.ndarray | None, selection: Selection
) -> dict[str, float]:
    found = {}
    if reference is None or x.shape[1] != reference.shape[1]:
        return dict.fromkeys((name for name in DISTANCES if name in selection.measures), np.nan)
    if "distance_to_final" in selection.measures:
        try:
            found["distance_to_final"] = subspace_distance(x, reference)
        except ValueError:  # full row rank: zero whatever the matrix is
            found["distance_to_final"] = np.nan
    if "procrustes_to_final" in selection.measures:
        found["procrustes_to_final"] = procrustes_distance(x, reference)
    return found


def _circuit_shape(weights: AttentionWeights, name: str) -> tuple[int, ...]:
    if name == "OV":
        return weights.output.shape[1], *weights.value.shape[1:]
    return weights.query.shape[2], *weights.key.shape[1:]
