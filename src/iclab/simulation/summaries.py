"""Contexts as linear attention sees them, drawn at O(D) numbers each whatever their length.

Given its task, the labels of a context enter through Σ y² alone, a multiple of chi-square with N degrees of
freedom; given that, Σ y x is normal, narrower along the task than across it. Derived in docs/derivations/finite_size.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from iclab.numerics import checked, nonnegative, require, whole_number

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray

Array = np.ndarray


class Summaries(NamedTuple):
    """What a readout G needs of sequences: it answers x_qᵀ G g where y_q is right."""

    query: Any  # x_q, (*batch, D)
    features: Any  # g = [(D/N) Σ y x ; (1/N) Σ y²], (*batch, D+1)
    target: Any  # y_q, (*batch)


class SummaryLaw(NamedTuple):
    """How contexts come about given their tasks, as numbers that compiled functions take."""

    input_scale: Float[Array, "D"]  # standard deviations of √D x
    noise: Float[Array, ""]  # ρ
    length: Float[Array, ""]  # N


def summary_law(
    dimension: int, context_length: int, noise: float, input_eigenvalues: Sequence[float] | Array | None
) -> SummaryLaw:
    """The law of contexts of N examples with inputs N(0, diag(s)/D).

    Raises ValueError for a context length below 1, negative noise, and eigenvalues that are not D numbers >= 0.
    """
    length = whole_number("context_length", context_length)
    rho = checked("noise", noise, at_least=0.0, infinite=False, advice="It is a variance.")
    scale = np.sqrt(relative_eigenvalues("input_eigenvalues", input_eigenvalues, dimension))
    return SummaryLaw(scale, np.asarray(rho), np.asarray(float(length)))


def relative_eigenvalues(name: str, values: Sequence[float] | Array | None, dimension: int) -> Float[Array, "D"]:
    """The values as an array, ones for None. Raises ValueError with `name` unless they are D numbers >= 0."""
    if values is None:
        return np.ones(dimension)
    found = nonnegative(name, np.asarray(values))
    require(
        found.shape == (dimension,) and bool(np.any(found > 0)),
        f"{name} must be {dimension} numbers, one for each dimension, one of them positive; got {values!r}.",
    )
    return found


def draw_summaries(
    tasks: Float[Array, "*batch D"],
    context_length: int,
    *,
    noise: float = 0.0,
    input_eigenvalues: Sequence[float] | Array | None = None,
    key: "PRNGKeyArray",
) -> Summaries:
    """A query, features and target for each task: exactly the joint law of a context of N examples drawn one by one.

    Inputs are N(0, diag(s)/D), s = `input_eigenvalues`. Cost: 2D + 6 random numbers for each task, whatever N.

    Raises ValueError for tasks that are not finite, a context length below 1, negative noise, and eigenvalues that
    are not D numbers >= 0.
    """
    w = checked_tasks(tasks)
    law = summary_law(w.shape[-1], context_length, noise, input_eigenvalues)
    with jax.enable_x64(True):
        drawn = _drawn(w.reshape(-1, w.shape[-1]), law, key)
        return Summaries(*(np.asarray(part).reshape(*w.shape[:-1], *part.shape[1:]) for part in drawn))


def checked_tasks(tasks: Float[Array, "*batch D"]) -> Float[Array, "*batch D"]:
    """The tasks in float64. Raises ValueError unless they are finite vectors."""
    w = np.asarray(tasks, dtype=float)
    require(w.ndim >= 1 and w.size > 0, f"tasks must be vectors, of shape (..., D); got shape {w.shape}.")
    require(bool(np.all(np.isfinite(w))), "tasks must be finite; got NaN or infinity.")
    return w


def summarized(tasks: Float[jax.Array, "P D"], law: SummaryLaw, key: jax.Array) -> Summaries:
    """One sequence for each task, from within a compiled function and in the precision of the tasks."""
    count, d = tasks.shape
    rest, key = jax.random.split(key)
    normal = jax.random.normal(key, (count, 2 * d + 3), tasks.dtype)
    across, query, (error, *spread) = normal[:, :d], normal[:, d : 2 * d], normal[:, 2 * d :].T
    white = tasks * law.input_scale
    size = jnp.linalg.norm(white, axis=1)
    signal = size**2 / d
    variance = signal + law.noise
    chi_square = _chi_square(law.length, spread, rest)
    root = jnp.sqrt(variance * chi_square)  # of Σ y²
    direction = white / _positive(size)[:, None]
    narrowing = 1 - jnp.sqrt(law.noise / _positive(variance))
    pull = jnp.sqrt(signal) * chi_square - root * narrowing * jnp.sum(direction * across, axis=1)
    summary = (
        jnp.sqrt(jnp.asarray(d, tasks.dtype)) / law.length * (root[:, None] * across + pull[:, None] * direction)
    )
    x = query * law.input_scale / np.sqrt(d)
    features = jnp.concatenate([summary * law.input_scale, (root**2 / law.length)[:, None]], axis=1)
    target = jnp.sum(x * tasks, axis=1) + jnp.sqrt(law.noise) * error
    return Summaries(x.astype(tasks.dtype), features.astype(tasks.dtype), target.astype(tasks.dtype))


_drawn = jax.jit(summarized)


def _positive(value: jax.Array) -> jax.Array:
    return jnp.maximum(value, jnp.finfo(value.dtype).tiny)


def _chi_square(freedom: Any, spread: list[jax.Array], key: jax.Array) -> jax.Array:
    """Chi-square numbers by Marsaglia and Tsang's rejection, as many as `spread` holds pairs of normal numbers.

    A gamma number of shape a is one of shape a + 1 times U^(1/a), so that every N >= 1 takes one branch. Half the
    squared length of a normal pair stands for −ln U. It compiles several times faster than jax.random.gamma.
    """
    a = freedom / 2
    center = a + 2 / 3
    width = 1 / jnp.sqrt(9 * center)

    def propose(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        taken, count = state
        x, *pair = jax.random.normal(jax.random.fold_in(key, count), (3, *taken.shape), taken.dtype)
        cube = (1 + width * x) ** 3
        height = x**2 / 2 + center * (1 - cube + jnp.log(_positive(cube)))
        accepted = (cube > 0) & (-_exponential(pair) < height)
        return jnp.where((taken < 0) & accepted, center * cube, taken), count + 1

    none = jnp.full_like(spread[0], -1.0)
    gamma, _ = jax.lax.while_loop(lambda state: jnp.any(state[0] < 0), propose, (none, jnp.asarray(0)))
    return 2 * gamma * jnp.exp(-_exponential(spread) / a)


def _exponential(pair: list[jax.Array] | jax.Array) -> jax.Array:
    """Numbers of unit mean that fall off exponentially, from two normal ones each."""
    first, second = pair
    return (first**2 + second**2) / 2
