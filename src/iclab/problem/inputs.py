"""The covariance of inputs, measured on rows of data: its spectrum, and what sampling leaves open of it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, checked_covariance, numbers, one_of, require

__all__ = ["SHRINKAGES", "InputSample", "given_covariance", "measured_inputs", "shrunk"]

Array = np.ndarray
SHRINKAGES = ("none", "linear")
"""none: the covariance of the rows. linear: moved towards a multiple of the identity, by Ledoit and Wolf (2004)."""
DRAWS = 200  # resampled spectra
FEWEST = 20
LARGEST = 1e150  # of an entry
WORK = 2e10  # multiplications that resampling may take
GROUP_BYTES = 2e8  # that covariances of groups of rows may take
MANY, MOST = 1000, 2000  # dimensions up to which fourth moments, and directions, are kept
FEW = 10  # rows for each dimension below which a spectrum is said to be spread out
TAILS = 0.5  # mean excess kurtosis from which on tails are said to be heavy
SURE = 5.0  # standard errors


@dataclass(frozen=True, eq=False)
class InputSample:
    """The covariance of inputs in its own directions, largest variance first.

    `spectra` are those of rows that were drawn again with replacement; none where the covariance was given, or is too
    large. `fourth` is E[|x|² x xᵀ] in these directions, which normal inputs have as 2Λ² + tr(Λ) Λ. `notes` are
    sentences about what the rows leave open.
    """

    eigenvalues: Float[Array, "D"]
    directions: Float[Array, "D D"] | None = None  # in the columns; none where they are too many
    rows: int | None = None
    spectra: Float[Array, "draw D"] | None = None
    fourth: Float[Array, "D D"] | None = None
    centered: bool = True
    shrinkage: str = "none"
    weight: float = 0.0  # of the identity in the shrinkage
    notes: tuple[str, ...] = ()


def measured_inputs(
    inputs: Validated[Float[ArrayLike, "row D"]], *, centered: bool = True, shrinkage: Validated[str] = "none",
    seed: int = 0,
) -> InputSample:  # fmt: skip
    """The covariance of rows of data, less their mean if `centered`, with a named shrinkage.

    Rows are drawn again with replacement, in groups where there are many, and each time the spectrum is taken anew:
    the sampling error needs no law of the inputs. Cost: one covariance, and one decomposition of D × D numbers for
    each of up to 200 draws, fewer above D = 460 and none above 1000.

    Raises ValueError for anything but a matrix of finite numbers with two rows or more, one of which differs.
    """
    one_of("shrinkage", shrinkage, SHRINKAGES)
    rows = numbers("inputs", inputs)
    require(
        rows.ndim == 2 and rows.shape[0] >= 2 and rows.shape[1] >= 1,
        f"inputs must be a matrix with an example in each row, two rows or more; got shape {rows.shape}. One row has "
        "no covariance.",
    )
    largest = float(np.max(np.abs(rows)))
    require(
        largest < LARGEST,
        f"inputs must have squares that double precision holds, entries below {LARGEST:g}; got {largest:.3g}. "
        "Rescale them.",
    )
    mean = rows.mean(axis=0)
    rows = rows - mean if centered else rows
    require(bool(np.any(rows)), "inputs must vary; got rows that are all the same. Give others, or uncentered ones.")
    count, size = rows.shape
    freedom = count - 1 if centered else count
    values, directions = _spectrum(rows, freedom)
    weight = _linear_weight(rows, values) if shrinkage == "linear" else 0.0
    notes = [] if centered else _mean_notes(mean, values, count)
    notes += _few_notes(count, size, shrinkage)
    spectra = _resampled(rows, freedom, centered, seed)
    scores = rows @ directions if directions is not None and size <= MANY else None
    fourth = None if scores is None else np.einsum("r,ri,rj->ij", np.sum(scores**2, axis=1), scores, scores) / count
    notes += [] if scores is None else _tail_notes(scores, values)
    return InputSample(
        shrunk(values, weight), directions, count, None if spectra is None else shrunk(spectra, weight), fourth,
        centered, shrinkage, weight, tuple(notes),
    )  # fmt: skip


def given_covariance(covariance: Validated[Float[ArrayLike, "D D"]]) -> InputSample:
    """A covariance that is known, in its own directions.

    Raises ValueError for a matrix that is not symmetric positive semidefinite.
    """
    given = np.asarray(covariance)
    if given.dtype == np.float32 and given.ndim == 2 and given.shape[0] == given.shape[1]:
        given = _rounded(given.astype(float))
    matrix = checked_covariance("covariance", given)
    values, directions = np.linalg.eigh(matrix)
    return InputSample(np.maximum(values[::-1], 0.0), directions[:, ::-1])


def _rounded(matrix: Float[Array, "D D"]) -> Float[Array, "D D"]:
    """A covariance in single precision without what rounding has done to it; any other matrix as it is."""
    rounding = 1e-6 * np.max(np.abs(matrix), initial=0.0)
    if not np.all(np.abs(matrix - matrix.T) <= rounding):
        return matrix
    values, directions = np.linalg.eigh((matrix + matrix.T) / 2)
    return matrix if values[0] < -rounding else (directions * np.maximum(values, 0.0)) @ directions.T


def shrunk(eigenvalues: Float[Array, "*draw D"], weight: float) -> Float[Array, "*draw D"]:
    """Eigenvalues moved towards their mean by a share `weight`."""
    return (1 - weight) * eigenvalues + weight * np.mean(eigenvalues, axis=-1, keepdims=True)


def _spectrum(rows: Float[Array, "row D"], freedom: int) -> tuple[Float[Array, "D"], Float[Array, "D D"] | None]:
    """Eigenvalues, largest first, and directions. With few rows of many dimensions from their singular values."""
    count, size = rows.shape
    if 2 * count > size > MOST:
        return np.maximum(np.linalg.eigvalsh(rows.T @ rows / freedom)[::-1], 0.0), None
    if 2 * count > size:
        values, directions = np.linalg.eigh(rows.T @ rows / freedom)
        return np.maximum(values[::-1], 0.0), directions[:, ::-1]
    values = np.zeros(size)
    if size > MOST:
        singular, directions = np.linalg.svd(rows, compute_uv=False), None
    else:
        _, singular, directions = np.linalg.svd(rows)
        directions = directions.T
    values[: len(singular)] = singular**2 / freedom
    return values, directions


def _linear_weight(rows: Float[Array, "row D"], values: Float[Array, "D"]) -> float:
    """Weight of the identity that minimizes the expected squared error, estimated from the rows."""
    count, size = rows.shape
    spread = float(np.sum((values - values.mean()) ** 2)) / size
    noise = float(np.sum(np.sum(rows**2, axis=1) ** 2) / count - np.sum(values**2)) / (count * size)
    return min(1.0, max(noise, 0.0) / spread) if spread > 0 else 1.0


def _resampled(rows: Float[Array, "row D"], freedom: int, centered: bool, seed: int) -> Float[Array, "draw D"] | None:
    """Spectra of rows drawn again, or of groups of rows where the rows are many; none where they take too long."""
    count, size = rows.shape
    draws = int(min(DRAWS, WORK / size**3))
    if draws < FEWEST or 2 * count <= size:
        return None
    groups = (
        count if draws * count * size**2 <= WORK else max(FEWEST, int(min(count, 200, GROUP_BYTES / 8 / size**2)))
    )
    rng = np.random.default_rng(seed)
    chances = rng.multinomial(groups, np.full(groups, 1 / groups), size=draws).astype(float)
    if groups == count:
        matrices = (_weighted(rows, weights, centered) * count / freedom for weights in chances)
    else:
        parts = np.array_split(rows[rng.permutation(count)], groups)
        second = np.array([part.T @ part / len(part) for part in parts])
        means = np.array([part.mean(axis=0) for part in parts])
        matrices = (
            (np.tensordot(weights, second, 1) / groups - centered * _square(weights @ means / groups))
            * count
            / freedom
            for weights in chances
        )
    return np.array([np.maximum(np.linalg.eigvalsh(matrix)[::-1], 0.0) for matrix in matrices])


def _weighted(rows: Float[Array, "row D"], weights: Float[Array, "row"], centered: bool) -> Float[Array, "D D"]:
    count = len(rows)
    return rows.T @ (weights[:, None] * rows) / count - centered * _square(weights @ rows / count)


def _square(mean: Float[Array, "D"]) -> Float[Array, "D D"]:
    return np.multiply.outer(mean, mean)


def _mean_notes(mean: Float[Array, "D"], values: Float[Array, "D"], count: int) -> list[str]:
    share = float(mean @ mean / np.sum(values))
    if share * count < SURE**2:
        return []
    return [
        f"the mean of the inputs makes {100 * share:.2g} % of their second moment, and theory has none: center them"
    ]


def _few_notes(count: int, size: int, shrinkage: str) -> list[str]:
    if count >= FEW * size:
        return []
    edge = np.sqrt(size / count)
    spread = (
        f"equal variances would seem to lie between {max(1 - edge, 0) ** 2:.2g} and {(1 + edge) ** 2:.2g} times them"
    )
    remedy = "" if shrinkage == "linear" else "; shrinkage 'linear' moves them back"
    return [f"{count} rows for {size} dimensions are few: {spread}{remedy}"]


def _tail_notes(scores: Float[Array, "row D"], values: Float[Array, "D"]) -> list[str]:
    """Kurtosis of the directions, weighted by their variance."""
    count, known = len(scores), values > 1e-12 * values[0]
    about = scores[:, known] - np.mean(scores[:, known], axis=0)
    excess = np.mean(about**4, axis=0) / np.mean(about**2, axis=0) ** 2 - 3
    shares = values[known] / np.sum(values[known])
    mean, error = float(shares @ excess), float(np.sqrt(24 / count * np.sum(shares**2)))
    if abs(mean) < max(TAILS, SURE * error):
        return []
    kind = "heavier" if mean > 0 else "lighter"
    return [f"tails of the inputs are {kind} than normal ones, excess kurtosis {mean:.2g}: theory has normal inputs"]
