"""Random-matrix baselines: mean and spread of each measure on Gaussian matrices and on products of Gaussians.

A rank means little by itself: a Gaussian matrix has one too. Draws are of singular values alone, through bidiagonal
and triangular factors of independent chi variables that have the same law as those of the full matrix. They come
from a fixed stream for each shape, so that a level is reproducible, and are kept for the process.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import scipy.linalg
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, positive, require, whole_number
from iclab.spectra.measures import ranks
from iclab.spectra.measures.units import moderate

__all__ = [
    "Measure", "Shape", "averaged_level", "distance_level", "gaussian_core", "level", "overlap_level",
    "procrustes_level",
]  # fmt: skip

Shape = tuple[int, int] | tuple[int, int, int]
Measure = str | Callable[[Float[np.ndarray, "value"]], float]
_STREAM, _PROCRUSTES_DRAWS = 20250417, 64


def level(shape: Validated[Shape], measure: Validated[Measure]) -> tuple[float, float]:
    """Mean and standard deviation of a measure over Gaussian matrices m × n, or products m × r by r × n.

    `measure` is a function of singular values, such as `measures.stable_rank` or a partial of one with its settings,
    or the name of a rank: effective_rank, energy_effective_rank, marginal_effective_rank (one value dropped),
    stable_rank, participation_ratio, nuclear_rank, energy_rank (nine tenths of the energy), numerical_rank.
    The variance of the entries does not matter. From 256 draws for up to 128 values, fewer for more, down to 16,
    where the spread is small itself: the error of the mean is the spread over the square root of that number.

    Raises ValueError for other shapes and names.

    Source: dumitriu2002matrix, beta-Laguerre model at beta 1; products derived in docs/derivations/spectra.
    """
    sizes = tuple(sorted(_sizes(shape)))  # the law does not depend on their order
    if isinstance(measure, str):
        return _named_level(sizes, measure)
    require(callable(measure), f"measure must be a name or a function; got {measure!r}.")
    found = np.array([measure(values) for values in _draws(sizes)], dtype=float)
    return float(np.mean(found)), float(np.std(found, ddof=1))


def averaged_level(
    shape: Validated[tuple[int, int, int]], measure: Validated[str], *, rotated: Validated[int]
) -> tuple[float, float]:
    """Mean and standard deviation of a rank of the offset-averaged circuit of Gaussian m × r queries and r × n keys.

    `rotated` of the r rows of a head have a rotary embedding. Otherwise as `level`.

    Raises ValueError for other names and for a number of rotated rows that is odd or above r.

    Source: derived in docs/derivations/spectra.
    """
    sizes = _sizes(shape)
    require(
        0 <= rotated <= sizes[1] and rotated % 2 == 0, f"rotated must be even, at most {sizes[1]}; got {rotated}."
    )
    return _averaged_level(sizes, measure, rotated)


def overlap_level(size: Validated[int], k: Validated[int]) -> tuple[float, float]:
    """Mean and standard deviation of the overlap of two random k-dimensional subspaces of a space of `size`.

    Raises ValueError for k outside 1 .. size.

    Source: derived in docs/derivations/spectra.
    """
    size, k = whole_number("size", size), whole_number("k", k)
    require(k <= size, f"k must be at most the size {size}; got {k}.")
    return k / size, _projected_spread(size, k, 1 / k)


def distance_level(
    size: Validated[int], rank: Validated[int], *, participation: Validated[float]
) -> tuple[float, float]:
    """Level and spread of the subspace distance of a given reference from a random row space of `rank` in `size`.

    sqrt(1 − rank/size), and the standard deviation for a reference of this participation ratio, to leading order in
    the spread.

    Raises ValueError for a rank outside 1 .. size − 1 and for a participation ratio outside 1 .. size.

    Source: derived in docs/derivations/spectra.
    """
    size, rank = whole_number("size", size), whole_number("rank", rank)
    require(rank < size, f"rank must be below the size {size}; got {rank}.")
    require(1 <= participation <= size, f"participation must be between 1 and {size}; got {participation!r}.")
    mean = float(np.sqrt(1 - rank / size))
    return mean, _projected_spread(size, rank, 1 / participation) / (2 * mean)


def procrustes_level(
    reference: Validated[Float[ArrayLike, "value"]], shape: Validated[Shape], *, norm_ratio: Validated[float] = 1.0
) -> tuple[float, float]:
    """Level and spread of the Procrustes distance to a reference from random matrices or products of this shape.

    `reference` has its singular values; `norm_ratio` is ‖random‖_F / ‖reference‖_F. For side="right", with the shape
    of the rotated matrix; for side="left" give the shape reversed. From 64 draws of the parts of the random matrix
    inside and outside the row space of the reference.

    Raises ValueError for values that are negative or all zero, a ratio that is not positive, and more values than n.

    Source: derived in docs/derivations/spectra.
    """
    values, _ = moderate(ranks.singular_values(np.asarray(reference, dtype=float)))
    sizes = _sizes(shape)
    outside = sizes[-1] - len(values)
    require(values[0] > 0 and outside >= 0, f"reference must hold 1 to {sizes[-1]} values, not all zero.")
    positive("norm_ratio", norm_ratio)
    share, found = values / np.linalg.norm(values), []
    rng = np.random.default_rng((_STREAM, *sizes))
    for _ in range(_PROCRUSTES_DRAWS):
        inside, size = _parts(rng, sizes, len(values), outside)
        along = np.sum(np.linalg.svd(share[:, None] * inside.T, compute_uv=False)) / size
        found.append(np.hypot(norm_ratio - along, np.sqrt(max(1 - along**2, 0.0))))
    unit, exponent = moderate(np.array(found))
    return float(np.ldexp(np.mean(unit), exponent)), float(np.ldexp(np.std(unit, ddof=1), exponent))


def _parts(
    rng: np.random.Generator, sizes: tuple[int, ...], inside: int, outside: int
) -> tuple[Float[np.ndarray, "row inside"], float]:
    """A random matrix or product on given columns, up to a rotation of its rows, and its whole norm."""
    if len(sizes) == 2:
        rows = rng.standard_normal((sizes[0], inside))
        rest = rng.chisquare(sizes[0] * outside) if outside else 0.0
        return rows, float(np.sqrt(np.sum(rows**2) + rest))
    many, inner = sizes[:2]
    first = _triangular(rng, many, inner) if many >= inner else rng.standard_normal((many, inner))
    rows = first @ rng.standard_normal((inner, inside))
    rest = _triangular(rng, outside, inner).T if outside >= inner else rng.standard_normal((inner, outside))
    return rows, float(np.sqrt(np.sum(rows**2) + np.sum((first @ rest) ** 2)))


def _projected_spread(size: int, rank: int, purity: float) -> float:
    """Standard deviation of tr(P S), P onto a random space of `rank`, S of trace 1 and tr S² = purity."""
    if size == 1:
        return 0.0
    variance = 2 * rank * (1 - rank / size) * max(purity - 1 / size, 0.0) / ((size - 1) * (size + 2))
    return float(np.sqrt(variance))


@lru_cache(maxsize=4096)
def _named_level(sizes: tuple[int, ...], measure: str) -> tuple[float, float]:
    if measure == "numerical_rank":
        return float(min(sizes)), 0.0  # full with probability 1
    return _summary(_draws(sizes), measure)


@lru_cache(maxsize=4096)
def _averaged_level(sizes: tuple[int, ...], measure: str, rotated: int) -> tuple[float, float]:
    if measure == "numerical_rank":
        return float(min(sizes)), 0.0
    return _summary(_averaged_draws(sizes, rotated), measure)


def _summary(draws: Float[np.ndarray, "draw value"], measure: str) -> tuple[float, float]:
    table = ranks.rank_measures(draws)
    require(measure in table, f"measure must be one of {', '.join(table)}, numerical_rank; got {measure!r}.")
    return float(np.mean(table[measure])), float(np.std(table[measure], ddof=1))


def _sizes(shape: Validated[Shape]) -> tuple[int, ...]:
    require(isinstance(shape, tuple | list), f"shape must be (m, n) or (m, r, n); got {shape!r}.")
    sizes = tuple(whole_number("every size of shape", size) for size in shape)
    require(len(sizes) in (2, 3), f"shape must be (m, n) or (m, r, n); got {shape!r}.")
    return sizes


@lru_cache(maxsize=64)
def _draws(sizes: tuple[int, ...]) -> Float[np.ndarray, "draw value"]:
    """Singular values of random matrices or products whose sizes are given from the smallest."""
    count = _count(sizes)
    rng = np.random.default_rng((_STREAM, *sizes))
    values = np.stack([_matrix(rng, *sizes) if len(sizes) == 2 else _product(rng, *sizes) for _ in range(count)])
    values.flags.writeable = False
    return values


@lru_cache(maxsize=64)
def _averaged_draws(sizes: tuple[int, ...], rotated: int) -> Float[np.ndarray, "draw value"]:
    """Singular values of D W_K with DᵀD the mean of a Gaussian Gram of r rows over the phases of its pairs.

    D has the root of half a chi² of 2 m for each of two rows of a pair, and a triangular factor on the others.
    """
    many, inner, columns = sizes
    rng = np.random.default_rng((_STREAM, *sizes, rotated))
    found = []
    for _ in range(_count((min(sizes),))):
        pair = np.repeat(np.sqrt(0.5 * rng.chisquare(2 * many, rotated // 2)), 2)
        rest = inner - rotated
        free = gaussian_core(rng, many, rest)
        key = gaussian_core(rng, columns, inner)
        core = np.concatenate([pair[:, None] * key.T[:rotated], free @ key.T[rotated:]])
        found.append(np.linalg.svd(core, compute_uv=False))
    values = np.stack(found)
    values.flags.writeable = False
    return values


def _count(sizes: tuple[int, ...]) -> int:
    return int(np.clip(256 * (128 / sizes[0]) ** 2, 16, 256))


def gaussian_core(rng: np.random.Generator, rows: int, columns: int) -> Float[np.ndarray, "_ columns"]:
    """A matrix with the law of the Gram of a Gaussian rows × columns."""
    return _triangular(rng, rows, columns) if rows >= columns else rng.standard_normal((rows, columns))


def _matrix(rng: np.random.Generator, few: int, many: int) -> Float[np.ndarray, "few"]:
    """Singular values of a few × many Gaussian, from its bidiagonal form B by the tridiagonal BᵀB."""
    diagonal = np.sqrt(rng.chisquare(np.arange(many, many - few, -1)))
    above = np.sqrt(rng.chisquare(np.arange(few - 1, 0, -1)))
    main = diagonal**2
    main[1:] += above**2
    squares = scipy.linalg.eigvalsh_tridiagonal(main, diagonal[:-1] * above)
    return np.sqrt(np.maximum(squares[::-1], 0.0))


def _product(rng: np.random.Generator, inner: int, first: int, second: int) -> Float[np.ndarray, "inner"]:
    """Singular values of first × inner by inner × second Gaussians, from their triangular factors."""
    core = _triangular(rng, first, inner) @ _triangular(rng, second, inner).T
    return np.linalg.svd(core, compute_uv=False)


def _triangular(rng: np.random.Generator, rows: int, columns: int) -> Float[np.ndarray, "columns columns"]:
    factor = np.triu(rng.standard_normal((columns, columns)), 1)
    factor[np.diag_indices(columns)] = np.sqrt(rng.chisquare(np.arange(rows, rows - columns, -1)))
    return factor
