"""Leading singular subspaces of matrices: overlaps, angles, and distances after alignment.

side="right" takes the row space (the input directions of the matrix), side="left" the column space (its output
directions); the left value is the right one of the transposed matrix. Products of two factors are never formed: all
is computed from a core of as many rows as the product has rank, with the same row Gram.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import scipy.linalg
from jaxtyping import Float, Shaped
from numpy.typing import ArrayLike

from iclab.numerics import Validated, increasing_grid, require, whole_number
from iclab.spectra.measures.eigen import leading_vectors
from iclab.spectra.measures.factors import Matrix, Product, float64, gram, matrix, numbers, triangle
from iclab.spectra.measures.ranks import gap
from iclab.spectra.measures.rounding import numerical_rank, reaches_rank
from iclab.spectra.measures.units import in_units, moderate

__all__ = [
    "Basis", "Side", "basis", "consecutive_overlaps", "overlap_of", "principal_angles", "procrustes_distance",
    "subspace_distance", "subspace_overlap", "turnover",
]  # fmt: skip

Side = Literal["left", "right"]
_BEYOND = 200  # power of two of a ratio whose square is still a number, and 1 beside it rounding
_STEEP = 1e-3  # relative size down to which singular vectors from a Gram are orthogonal to eps/1e-6


@dataclass(frozen=True)
class Basis:
    """The k leading singular directions of a matrix on one side, in columns, and the values that go with all.

    `vectors` is None where the matrix has fewer than k directions above rounding. `gap` measures how well the
    subspace is defined. Values alone are inf or 0 where they are beyond the range of numbers.
    """

    vectors: Float[np.ndarray, "n k"] | None
    values: Float[np.ndarray, "value"]
    gap: float


def basis(x: Validated[Matrix], *, k: Validated[int], side: Validated[Side] = "right") -> Basis:
    """The k leading directions of a matrix or product, for comparison with many others.

    Raises ValueError for a k that is no whole number >= 1, an unknown side, and entries that are not finite.

    Source: derived in docs/derivations/spectra.
    """
    k = whole_number("k", k)
    given, exponent = in_units(_sided("x", x, side))
    rows = _core(given)
    values, vectors = _decomposed(rows, min(k, *rows.shape))
    with np.errstate(over="ignore", under="ignore"):
        size = np.ldexp(values, exponent)
    return Basis(vectors if reaches_rank(given, values, k) else None, size, float(gap(values, k)))


def overlap_of(one: Basis, other: Basis) -> float:
    """(1/k) ‖V₁ᵀ V₂‖_F² of two bases of equally many directions; nan where one of them is not defined.

    Source: derived in docs/derivations/spectra.
    """
    if one.vectors is None or other.vectors is None:
        return np.nan
    require(
        one.vectors.shape == other.vectors.shape,
        f"both bases must hold as many directions of one space; got {one.vectors.shape} and {other.vectors.shape}.",
    )
    return float(np.sum((one.vectors.T @ other.vectors) ** 2) / one.vectors.shape[1])


def subspace_overlap(
    a: Validated[Matrix], b: Validated[Matrix], *, k: Validated[int], side: Validated[Side] = "right"
) -> float:
    """(1/k) ‖V_aᵀ V_b‖_F² of the k leading singular directions: 1 for the same subspace, k/n by chance.

    Invariant under scale, sign, and rotation within the subspace. nan where k exceeds the numerical rank of
    either. Where the gap after σ_k is small the subspace itself is not well defined: see `spectral_gap`.

    Raises ValueError for matrices of different size on that side.

    Source: definition in docs/derivations/spectra.
    """
    _require_same_space(a, b, side)
    return overlap_of(basis(a, k=k, side=side), basis(b, k=k, side=side))


def consecutive_overlaps(
    series: Sequence[Validated[Matrix]], *, k: Validated[int], side: Validated[Side] = "right"
) -> Float[np.ndarray, "pair"]:
    """Overlap of each matrix with the one before it.

    Source: definition in docs/derivations/spectra.
    """
    bases = [basis(x, k=k, side=side) for x in series]
    return np.array([overlap_of(before, after) for before, after in pairwise(bases)])


def turnover(
    overlaps: Float[np.ndarray, "pair"], steps: Validated[Float[ArrayLike, "step"]]
) -> Float[np.ndarray, "pair"]:
    """Rate of rotation of a subspace: (1 − consecutive overlap) for each unit of log(1 + step).

    Raises ValueError unless there is one step more than overlaps and steps increase.

    Source: definition in docs/derivations/spectra.
    """
    grid = np.log1p(increasing_grid("steps", steps))
    require(
        len(grid) == len(overlaps) + 1, f"steps must be one more than overlaps; got {len(grid)} and {len(overlaps)}."
    )
    return (1 - np.asarray(overlaps, dtype=float)) / np.diff(grid)


def principal_angles(
    a: Validated[Shaped[np.ndarray, "n p"]], b: Validated[Shaped[np.ndarray, "n q"]]
) -> Float[np.ndarray, "angle"]:
    """Angles between two column spaces in radians, smallest first; below 45° from their sines, sharp when tiny.

    As many as the smaller numerical rank; none where a matrix is zero.

    Raises ValueError unless both have as many rows.

    Source: bjorck1973numerical, cosine and sine formulas; ranks derived in docs/derivations/spectra.
    """
    _require_same_space(a, b, "left")
    wide, narrow = sorted((_columns("a", a), _columns("b", b)), key=lambda q: -q.shape[1])
    if narrow.shape[1] == 0:
        return np.zeros(0)
    inner = wide.T @ narrow
    cosine = np.clip(scipy.linalg.svdvals(inner), 0.0, 1.0)[: narrow.shape[1]]
    sine = np.clip(scipy.linalg.svdvals(narrow - wide @ inner)[::-1], 0.0, 1.0)
    return np.where(cosine**2 > 0.5, np.arcsin(sine), np.arccos(cosine))


def subspace_distance(
    a: Validated[Matrix],
    reference: Validated[Matrix],
    *,
    side: Validated[Side] = "right",
    rank: Validated[int] | None = None,
) -> float:
    """min_A ‖A a − reference‖_F / ‖reference‖_F: the share of the reference outside the row space of a.

    Unchanged by any invertible A on a, and by scale. side="left" takes min_A ‖a A − reference‖. The row space is
    that of the numerical rank in the stored precision, or of the `rank` leading directions. nan for a reference of
    zeros or a rank that a does not have; sqrt(1 − rank/n) by chance.

    Raises ValueError where the row space is the whole space, for the distance is then zero whatever a is.

    Source: mainali2025exact, subspace distance; normalization and rank in docs/derivations/spectra.
    """
    _require_same_space(a, reference, side)
    (row, _), (given, _) = in_units(_sided("a", a, side)), in_units(_sided("reference", reference, side))
    target = _core(given)
    have = numerical_rank(row)
    kept = have if rank is None else whole_number("rank", rank)
    require(
        kept < row.shape[1],
        f"a must have a rank below {row.shape[1]}, the size of its {side} space; got {kept}. The distance would be "
        "zero whatever a is: take a head instead of a sum of heads, the other side, or fewer directions with rank=.",
    )
    largest = float(np.max(np.abs(target)))
    if largest == 0 or kept > have:
        return np.nan
    if kept == 0:
        return 1.0
    target = target / largest  # squares of large or tiny entries would overflow or underflow
    target = target / np.linalg.norm(target)
    vectors = _decomposed(_core(row), kept)[1]
    return float(np.linalg.norm(target - (target @ vectors) @ vectors.T))


def procrustes_distance(
    a: Validated[Matrix], reference: Validated[Matrix], *, side: Validated[Side] = "right"
) -> float:
    """min over orthogonal A of ‖A a − reference‖_F / ‖reference‖_F; side="left" rotates from the right.

    Unlike the subspace distance it depends on singular values and scale. nan for a reference of zeros, inf beyond the
    range of numbers.

    Raises ValueError for matrices of different size on that side.

    Source: definition in docs/derivations/spectra.
    """
    _require_same_space(a, reference, side)
    (one, power), (two, other) = in_units(_sided("a", a, side)), in_units(_sided("reference", reference, side))
    rows, target = _core(one), _core(two)
    largest = float(np.max(np.abs(target)))
    if largest == 0:
        return np.nan
    size = float(np.linalg.norm(target / largest))
    rows, target = rows / largest / size, target / largest / size
    if power - other > _BEYOND:  # the reference is rounding beside a
        with np.errstate(over="ignore"):
            return float(np.ldexp(np.linalg.norm(rows), power - other))
    rows = np.ldexp(rows, power - other) if power != other else rows
    height = max(len(rows), len(target))
    rows, target = (np.pad(part, ((0, height - len(part)), (0, 0))) for part in (rows, target))
    left, _, right = scipy.linalg.svd(target @ rows.T, full_matrices=False)
    return float(np.linalg.norm(left @ (right @ rows) - target))


def _sided(name: str, x: Validated[Matrix], side: Validated[Side]) -> Matrix:
    require(side in ("left", "right"), f"side must be 'left' or 'right'; got {side!r}.")
    given = x if isinstance(x, Product) else matrix(name, x)
    return given if side == "right" else given.T


def _require_same_space(a: Validated[Matrix], b: Validated[Matrix], side: Validated[Side]) -> None:
    require(side in ("left", "right"), f"side must be 'left' or 'right'; got {side!r}.")
    axis = 1 if side == "right" else 0
    sizes = [(x if isinstance(x, Product) else numbers(name, x)).shape for name, x in (("a", a), ("b", b))]
    require(
        len(sizes[0]) == len(sizes[1]) == 2 and sizes[0][axis] == sizes[1][axis],
        f"both matrices must have the same size on the {side} side; got shapes {sizes[0]} and {sizes[1]}.",
    )


def _core(x: Matrix) -> Float[np.ndarray, "r n"]:
    """C of no more rows than columns, nor than an inner size, with CᵀC = xᵀx."""
    if isinstance(x, Product):
        rows = _triangle_of(np.asarray(x.left)) @ float64(x.right)
        return rows if len(rows) <= rows.shape[1] else triangle(rows)
    rows = float64(x)
    return rows if len(rows) <= rows.shape[1] else triangle(rows)


def _triangle_of(left: Shaped[np.ndarray, "m r"]) -> Float[np.ndarray, "_ r"]:
    """R with RᵀR = leftᵀ left: by Cholesky where the columns are not near dependent, else by QR."""
    small, scale = gram(left)
    try:
        factor = np.linalg.cholesky(small).T
    except np.linalg.LinAlgError:
        return triangle(float64(left))
    steps = np.diag(factor)
    return scale * factor if np.min(steps) > _STEEP * np.max(steps) else triangle(float64(left))


def _decomposed(
    rows: Float[np.ndarray, "r n"], k: int
) -> tuple[Float[np.ndarray, "value"], Float[np.ndarray, "n k"]]:
    """All singular values of a matrix of r <= n rows, and its k leading right vectors in columns."""
    small, scale = gram(rows.T, origin=rows)
    squares, turn = leading_vectors(small, k)
    values = np.sqrt(np.maximum(squares[::-1], 0.0))
    if values[k - 1] > _STEEP * values[0] and values[-1] > _STEEP**2 * values[0]:
        vectors = turn[:, ::-1].T @ rows / (scale * values[:k, None])
        return scale * values, vectors.T
    if len(rows) < rows.shape[1]:
        turn, small = np.linalg.qr(rows.T)
        left, values, _ = scipy.linalg.svd(small, full_matrices=False)
        return values, turn @ left[:, :k]
    _, values, right = scipy.linalg.svd(rows, full_matrices=False)
    return values, right[:k].T


def _columns(name: str, x: Shaped[np.ndarray, "n p"]) -> Float[np.ndarray, "n r"]:
    """An orthonormal basis of the column space, of the numerical rank."""
    array, _ = moderate(matrix(name, x))
    kept = numerical_rank(array)
    return _decomposed(_core(array.T), max(kept, 1))[1][:, :kept]
