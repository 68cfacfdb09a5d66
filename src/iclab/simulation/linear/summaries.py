"""Summaries of contexts, all that linear attention depends on, drawn at O(D) numbers each whatever the length.

Given its task, the labels of a context enter through Σ y² alone, a multiple of chi-square with N degrees of
freedom; given that, Σ y x is normal, narrower along the task than across it. Derived in docs/derivations/finite_size.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, PRNGKeyArray
from numpy.typing import ArrayLike

from iclab.numerics import Validated, magnitude, magnitude_number, numbers, require, whole_number
from iclab.simulation.keys import checked_key, generators_of

__all__ = [
    "RANGE", "Summaries", "SummaryLaw", "checked_tasks", "draw_summaries", "empty_summaries", "relative_eigenvalues",
    "summarize", "summary_law",
]  # fmt: skip

Array = np.ndarray
RANGE = 1e-20, 1e20  # of eigenvalues: float64 then holds the squares of all products of data


class Summaries(NamedTuple):
    """All that a readout G needs of sequences: its prediction is x_qᵀ G g, the label y_q."""

    query: Any  # x_q, (*batch, D)
    features: Any  # g = [(D/N) Σ y x ; (1/N) Σ y²], (*batch, D+1)
    target: Any  # y_q, (*batch)


class SummaryLaw(NamedTuple):
    """The law of contexts given their tasks."""

    input_scale: Float[Array, "D"]  # standard deviations of √D x
    noise: float  # ρ
    length: int  # N


def summary_law(
    dimension: int,
    context_length: Validated[int],
    noise: Validated[float],
    input_eigenvalues: Validated[ArrayLike | None],
) -> SummaryLaw:
    """The law of contexts of N examples with inputs N(0, diag(s)/D).

    Raises ValueError for a context length below 1, negative noise, and eigenvalues that are not D numbers >= 0.
    """
    length = whole_number("context_length", context_length)
    rho = magnitude_number("noise", noise, zero=True, advice="It is a variance.")
    scale = np.sqrt(relative_eigenvalues("input_eigenvalues", input_eigenvalues, dimension))
    return SummaryLaw(scale, rho, length)


def relative_eigenvalues(name: str, values: Validated[ArrayLike | None], dimension: int) -> Float[Array, "D"]:
    """The values as an array, ones for None. Raises ValueError unless they are D numbers, 0 or in RANGE."""
    if values is None:
        return np.ones(dimension)
    found = np.asarray(magnitude(name, values, zero=True, infinite=False, between=RANGE))
    require(
        found.shape == (dimension,) and bool(np.any(found > 0)),
        f"{name} must be {dimension} numbers, one for each dimension, one of them positive; got {values!r}.",
    )
    return found


def draw_summaries(
    tasks: Validated[ArrayLike],
    context_length: Validated[int],
    *,
    noise: Validated[float] = 0.0,
    input_eigenvalues: Validated[ArrayLike | None] = None,
    key: Validated[PRNGKeyArray],
) -> Summaries:
    """A query, features and target for each task: exactly the joint law of a context of N examples drawn one by one.

    Tasks have the shape (*batch, D) and inputs are N(0, diag(s)/D), s = `input_eigenvalues`. Cost: 2D + 2 random
    numbers for each task, whatever N.

    Raises ValueError for tasks that are not finite, a context length below 1, negative noise, and eigenvalues that
    are not D numbers >= 0.
    """
    w, (rng,) = checked_tasks(tasks), generators_of(checked_key(key)[None])
    law = summary_law(w.shape[-1], context_length, noise, input_eigenvalues)
    count, d = w.size // w.shape[-1], w.shape[-1]
    drawn = empty_summaries(count, d, "float64")
    summarize(w.reshape(count, d), law, rng, out=drawn)
    return Summaries(*(part.reshape((*w.shape[:-1], *part.shape[1:])) for part in drawn))


def empty_summaries(count: int, dimension: int, precision: str) -> Summaries:
    """Arrays for P sequences, not filled."""
    shapes = (count, dimension), (count, dimension + 1), (count,)
    return Summaries(*(np.empty(shape, precision) for shape in shapes))


def checked_tasks(tasks: Validated[ArrayLike]) -> Float[Array, "*batch D"]:
    """The tasks in float64. Raises ValueError unless they are vectors of numbers up to 1e20."""
    w = numbers("tasks", tasks)
    require(w.ndim >= 1 and w.size > 0, f"tasks must be vectors, of shape (..., D); got shape {w.shape}.")
    most = float(np.max(np.abs(w)))
    require(most <= RANGE[1], f"tasks must hold numbers up to {RANGE[1]:g}; got {most:g}. Take other units.")
    return w


def summarize(tasks: Float[Array, "P D"], law: SummaryLaw, rng: np.random.Generator, *, out: Summaries) -> None:
    """Draw a sequence of each task into given arrays."""
    count, d = tasks.shape
    query, across = rng.standard_normal((2, count, d))
    error, squares = rng.standard_normal(count), rng.chisquare(law.length, count)  # the latter of N normal numbers
    white = tasks * law.input_scale
    size = np.sqrt(_dots(white, white))
    variance = size**2 / d + law.noise
    root = np.sqrt(variance * squares)  # of Σ y²
    narrowing = 1 - np.sqrt(law.noise / _positive(variance))
    along = _dots(white, across) / _positive(size)
    weight = (size * squares / np.sqrt(d) - root * narrowing * along) / _positive(size)
    unit = np.sqrt(d) / law.length
    across *= (unit * root)[:, None]
    white *= (unit * weight)[:, None]
    across += white
    query *= law.input_scale / np.sqrt(d)
    out.query[...] = query
    np.multiply(across, law.input_scale, out=out.features[:, :d])
    np.divide(root**2, law.length, out=out.features[:, d])
    np.add(_dots(query, tasks), np.sqrt(law.noise) * error, out=out.target)


def _dots(first: Array, second: Array) -> Float[Array, "P"]:
    return np.einsum("pd,pd->p", first, second)


def _positive(value: Array) -> Array:
    return np.maximum(value, np.finfo(float).tiny)
