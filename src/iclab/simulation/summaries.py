"""Contexts as linear attention sees them, drawn at O(D) numbers each whatever their length.

Given its task, the labels of a context enter through Σ y² alone, a multiple of chi-square with N degrees of
freedom; given that, Σ y x is normal, narrower along the task than across it. Derived in docs/derivations/finite_size.
"""

from collections.abc import Callable, Sequence
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

    Inputs are N(0, diag(s)/D), s = `input_eigenvalues`. Cost: 2D + 12 random numbers for each task, whatever N.

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


def summarized(
    choose: Callable[[jax.Array], jax.Array], columns: int, shape: tuple[int, int], law: SummaryLaw, key: jax.Array
) -> Summaries:
    """P sequences in D dimensions, `shape`, from within a compiled function.

    `choose` makes their tasks of `columns` normal numbers for each. All that is random comes from one draw, which
    takes a third of a second to compile; it is repeated where all proposals of a chi-square number are refused.
    """
    _, d = shape
    across, query, error, own, chi_square = _random(columns, shape, law, key)
    tasks = choose(own)
    white = tasks * law.input_scale
    size = jnp.linalg.norm(white, axis=1)
    signal = size**2 / d
    variance = signal + law.noise
    root = jnp.sqrt(variance * chi_square)  # of Σ y²
    direction = white / _positive(size)[:, None]
    narrowing = 1 - jnp.sqrt(law.noise / _positive(variance))
    pull = jnp.sqrt(signal) * chi_square - root * narrowing * jnp.sum(direction * across, axis=1)
    summary = np.sqrt(d) / law.length * (root[:, None] * across + pull[:, None] * direction)
    x = query * law.input_scale / np.sqrt(d)
    features = jnp.concatenate([summary * law.input_scale, (root**2 / law.length)[:, None]], axis=1)
    return Summaries(x, features, jnp.sum(x * tasks, axis=1) + jnp.sqrt(law.noise) * error)


@jax.jit
def _drawn(tasks: jax.Array, law: SummaryLaw, key: jax.Array) -> Summaries:
    return summarized(lambda _: tasks, 0, tasks.shape, law, key)


def _random(
    columns: int, shape: tuple[int, int], law: SummaryLaw, key: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    """Normal numbers for summaries, queries, label noise and tasks, and chi-square numbers of N degrees of freedom.

    The latter by Marsaglia and Tsang's rejection, three proposals to a draw. A gamma number of shape a is one of
    shape a + 1 times U^(1/a), so that every N >= 1 takes one branch. −ln U is half the square of a normal pair.
    """
    count, d = shape
    ends = np.cumsum([d, d, 1, columns, 2])
    a = law.length / 2
    center = a + 2 / 3
    width = 1 / jnp.sqrt(9 * center)

    def draw(state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        drawn, gamma, times = state
        fresh = jax.random.normal(jax.random.fold_in(key, times), (count, ends[-1] + 9), law.noise.dtype)
        fresh = jax.lax.optimization_barrier(fresh)  # else the compiler repeats the draw at every use
        for x, *pair in fresh[:, ends[-1] :].T.reshape(3, 3, count):
            cube = (1 + width * x) ** 3
            height = x**2 / 2 + center * (1 - cube + jnp.log(_positive(cube)))
            accepted = (gamma < 0) & (cube > 0) & (-_exponential(*pair) < height)
            gamma = jnp.where(accepted, center * cube, gamma)
        return jnp.where(times == 0, fresh[:, : ends[-1]], drawn), gamma, times + 1

    none = (jnp.zeros((count, ends[-1]), law.noise.dtype), jnp.full(count, -1.0, law.noise.dtype), jnp.asarray(0))
    drawn, gamma, _ = jax.lax.while_loop(lambda state: jnp.any(state[1] < 0), draw, none)
    across, query, error, own, pair = jnp.split(drawn, ends[:-1], axis=1)
    return across, query, error[:, 0], own, 2 * gamma * jnp.exp(-_exponential(*pair.T) / a)


def _positive(value: jax.Array) -> jax.Array:
    return jnp.maximum(value, jnp.finfo(value.dtype).tiny)


def _exponential(first: jax.Array, second: jax.Array) -> jax.Array:
    """Numbers of unit mean that fall off exponentially, from two normal ones each."""
    return (first**2 + second**2) / 2
