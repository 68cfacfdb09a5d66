"""Two-factor transformer on drawn tasks, contexts and queries in every combination: its gradient, flow and fit.

The prediction of the labels W x is p H q x with H = (1/N) Σ y xᵀ of the context, so its loss over any number of them
is a polynomial in p and q, of which a few means are the coefficients. Every task, with both signs, is combined with
every context and every query: a mean over combinations is a product of means, far closer to the population than one
over as many single triples.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, PRNGKeyArray
from scipy.integrate import solve_ivp

from iclab.numerics import require, whole_number
from iclab.problem import Regression
from iclab.simulation.keys import checked_key, generators_of

__all__ = ["SETTLED", "SWEEPS", "Combinations", "combined", "descent_direction", "flow", "least_weights"]

Array = np.ndarray
Matrices = Float[Array, "*batch D D"]
NUMBERS = 2**17  # drawn at once: more would leave the cache
SWEEPS = 5000  # of the two solutions in turn, at most
SETTLED = 1e-10  # relative change of a strength in one sweep at which they stop


class Combinations(NamedTuple):
    """Means over all combinations of what was drawn; tasks are diagonal, W = diag(w)."""

    second: Float[Array, "*batch D D D D"]  # ⟨H_bc H_de⟩
    signal: Float[Array, "*batch D D D"]  # ⟨w_a H_bc⟩
    query: Float[Array, "*batch D D"]  # ⟨x_a x_b⟩

    def at(self, place: int) -> "Combinations":
        """Those of one place of the first axis."""
        return Combinations(*(part[place] for part in self))


def combined(problem: Regression, sequences: Sequence[int], *, key: PRNGKeyArray) -> Combinations:
    """Combinations of the first P drawn contexts, for each P in `sequences`, with N P tasks and N P queries.

    Contexts are drawn token by token; labels of their examples carry the noise. Cost: N P D normal numbers, 2 N P D
    with noise, about 10 ns each, and D⁴ multiplications for each context.

    Raises ValueError for sizes below 1 and mixed context lengths.
    """
    lengths, sizes = problem.context_lengths, [whole_number("sequences", size) for size in sequences]
    require(len(lengths) == 1, f"context_length must be one number here; got {lengths}. Fit one at a time.")
    (length,), s = lengths, np.sqrt(problem.eigenvalues)
    for_contexts, for_tasks, for_queries = generators_of(jax.random.split(checked_key(key), 3))
    order, place = np.unique(sizes, return_inverse=True)
    parts, count = np.diff(order, prepend=0).tolist(), order.reshape(-1, 1, 1)
    contexts = [_context_sums(for_contexts, part, length, s, problem.noise) for part in parts]
    inputs, squares, noise = (np.cumsum(part, axis=0) / count for part in zip(*contexts, strict=True))
    tasks, query = (
        np.cumsum([_squares(rng, length * part, scale) for part in parts], axis=0) / (length * count)
        for rng, scale in ((for_tasks, np.sqrt(problem.task_spectrum)), (for_queries, s))
    )
    fourth, noise = (part.reshape(-1, *s.shape * 4) for part in (squares, noise))
    second = np.einsum("Pbd,Pbcde->Pbcde", tasks, fourth) + noise
    signal = np.einsum("Pab,Pbc->Pabc", tasks, inputs)
    return Combinations(*(part[place] for part in (second, signal, query)))


def _context_sums(
    rng: np.random.Generator, count: int, length: int, scale: Float[Array, "D"], noise: float
) -> tuple[Array, Array, Array]:
    """Sums over contexts of S = (1/N) Σ x xᵀ, of vec S vec Sᵀ, and of vec E vec Eᵀ with E = (1/N) Σ ε xᵀ."""
    size = len(scale)
    sums = np.zeros((size, size)), np.zeros((size**2, size**2)), np.zeros((size**2, size**2))
    block = max(1, NUMBERS // (length * size))
    for first in range(0, count, block):
        inputs = scale * rng.standard_normal((min(block, count - first), length, size))
        errors = np.sqrt(noise) * rng.standard_normal(inputs.shape) if noise > 0 else None
        covariance = np.matmul(inputs.transpose(0, 2, 1), inputs) / length
        rows = covariance.reshape(len(inputs), -1)
        sums[0][...] += covariance.sum(axis=0)
        sums[1][...] += rows.T @ rows
        if errors is not None:
            rows = (np.matmul(errors.transpose(0, 2, 1), inputs) / length).reshape(len(inputs), -1)
            sums[2][...] += rows.T @ rows
    return sums


def _squares(rng: np.random.Generator, count: int, scale: Float[Array, "D"]) -> Float[Array, "D D"]:
    """Sum of v vᵀ over drawn vectors, at D² numbers whatever their count: Bartlett's factor of a Wishart matrix."""
    size = len(scale)
    if count < size:
        factor = rng.standard_normal((size, count))
    else:
        factor = np.tril(rng.standard_normal((size, size)), -1)
        factor[np.diag_indices(size)] = np.sqrt(rng.chisquare(count - np.arange(size)))
    factor = scale[:, None] * factor
    return factor @ factor.T


def descent_direction(drawn: Combinations, p: Matrices, q: Matrices) -> tuple[Matrices, Matrices]:
    """Minus half the gradient of the loss in p and q."""
    size, (second, signal, query) = p.shape[-1], drawn
    pairs = second.swapaxes(-3, -2).reshape(*second.shape[:-4], size**2, size**2)  # (b, d) by (c, e)
    seen = q @ query
    passed = _vector(seen @ q.swapaxes(-1, -2))
    mixed = _vector(p.swapaxes(-1, -2) @ p)
    rows = np.matmul(pairs, passed[..., None]).reshape(p.shape)
    columns = np.matmul(pairs.swapaxes(-1, -2), mixed[..., None]).reshape(p.shape)
    driven = np.einsum("...abc,...ca->...ab", signal, seen)
    back = np.einsum("...abc,...ab->...ca", signal, p)
    return driven - p @ rows, back @ query - columns @ seen


def _vector(matrices: Matrices) -> Float[Array, "*batch n"]:
    return matrices.reshape(*matrices.shape[:-2], -1)


def flow(
    drawn: Combinations, *, start: tuple[Any, Any], time: Float[Array, "time"]
) -> tuple[Float[Array, "*batch time D D"], Float[Array, "*batch time D D"]]:
    """Value and key-query matrices along the gradient flow of the loss, at increasing times from 0.

    `start` holds p₀ and q₀, each a scalar (times the identity) or matrices (*batch, D, D), a run for each. Solved to
    about 1e-6. Raises ArithmeticError where the solver stops early.
    """
    eye = np.eye(drawn.query.shape[-1])
    parts = [np.asarray(part, dtype=float) for part in start]
    first = np.stack([part * eye if part.ndim < 2 else part for part in parts])

    def velocity(_: float, weights: Float[Array, "n"]) -> Float[Array, "n"]:
        return np.ravel(descent_direction(drawn, *weights.reshape(first.shape)))

    path = solve_ivp(velocity, (0.0, time[-1]), first.ravel(), "DOP853", time, rtol=1e-7, atol=1e-9)
    if not path.success:
        raise ArithmeticError(f"the flow stopped early: {path.message} Start from smaller weights.")
    p, q = np.moveaxis(path.y.T.reshape(len(time), *first.shape), 0, -3)
    return p, q


def least_weights(drawn: Combinations) -> tuple[Float[Array, "D"], Float[Array, "D"]]:
    """Diagonals (p, q) of least squared error: each is solved at the other until neither moves. Starts at p = q = 1.

    Raises ArithmeticError where the weights do not settle.
    """
    signal = np.einsum("aab,ba->ab", drawn.signal, drawn.query)
    curvature = np.einsum("abac,bc->abc", drawn.second, drawn.query)
    p, q = np.ones((2, len(signal)))
    strength = p * q
    for _ in range(SWEEPS):
        p = signal @ q / np.einsum("abc,b,c->a", curvature, q, q)
        q = np.linalg.solve(np.einsum("abc,a->bc", curvature, p**2), p @ signal)
        before, strength = strength, p * q
        if np.max(np.abs(strength - before)) <= SETTLED * np.max(np.abs(strength)):
            return p, q
    raise ArithmeticError(f"the weights did not settle within {SWEEPS} sweeps. Draw more sequences.")
