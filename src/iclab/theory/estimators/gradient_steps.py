"""Gradient descent on a context, the algorithm that linear attention can implement.

From w = 0, one step at learning rate η, which acts on ½·MSE of the context, predicts η hᵀ x_q: it is linear attention
with Γ = η I. With a preconditioner P it is Γ = Pᵀ: the best one is population.best_gamma.
"""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, instance, numbers, require, whole_number
from iclab.theory.population import Moments, best_gamma, loss

__all__ = ["descended", "one_step_loss", "one_step_preconditioner", "one_step_rate"]


def one_step_rate(moments: Validated[Moments]) -> float:
    """Best learning rate of a single step without preconditioner, on ½·MSE: tr B / tr CΛ.

    0 where labels do not depend on inputs.

    Source: vonoswald2023transformers, proposition 1 (the step is linear attention); derived in
    docs/derivations/rank_limited.
    """
    instance("moments", moments, Moments)
    size = float(np.sum(moments.second * moments.input_covariance))
    return float(np.trace(moments.cross)) / size if size > 0 else 0.0


def one_step_loss(moments: Validated[Moments]) -> float:
    """Loss of the best single step without preconditioner, noise of the query's label included.

    For white inputs and tasks it is the least loss of linear attention at any noise.

    Source: mahankali2024one, abstract (white inputs); derived in docs/derivations/rank_limited.
    """
    instance("moments", moments, Moments)
    return float(loss(moments, one_step_rate(moments) * np.eye(moments.dimension)))


def one_step_preconditioner(
    moments: Validated[Moments], *, rank: Validated[int | None] = None
) -> Float[np.ndarray, "D D"]:
    """Best preconditioner of a single step, of limited rank if given: the best Γ of linear attention, transposed.

    Raises ValueError for a rank outside 1..D.

    Source: ahn2023transformers, abstract; general covariances and rank derived in docs/derivations/population.
    """
    instance("moments", moments, Moments)
    return best_gamma(moments, rank=rank).T


def descended(
    inputs: Validated[Float[ArrayLike, "*batch N D"]],
    labels: Validated[Float[ArrayLike, "*batch N"]],
    query: Validated[Float[ArrayLike, "*batch D"]],
    *,
    preconditioner: Validated[Float[ArrayLike, "D D"] | Float[ArrayLike, "step D D"]],
    steps: Validated[int | None] = None,
) -> float | Float[np.ndarray, "*batch"]:
    """Predictions after several steps w ← w + P (1/N) Σ (y − wᵀx) x from w = 0 in each context.

    One preconditioner takes so many `steps`, as a looped layer of linear attention does; a list of them takes one
    step each, first to last, as a stack of layers does. One step with P is linear attention with Γ = Pᵀ; many steps
    of a small enough P end at least squares.

    Raises ValueError for shapes that do not fit each other, fewer than one step, and steps beside a list;
    ArithmeticError if it diverges.

    Source: vonoswald2023transformers, proposition 1 (a step); ahn2023transformers, abstract (preconditioned, L
    layers).
    """
    x, y, q = numbers("inputs", inputs), numbers("labels", labels), numbers("query", query)
    require(
        x.ndim >= 2 and y.shape == x.shape[:-1] and q.shape == (*x.shape[:-2], x.shape[-1]),
        f"inputs, labels and query must have shapes (..., N, D), (..., N), (..., D); got {x.shape}, {y.shape}, "
        f"{q.shape}.",
    )
    weights = np.zeros_like(q)
    with np.errstate(over="ignore", invalid="ignore"):
        for matrix in _preconditioners(preconditioner, steps, x.shape[-1]):
            residual = y - np.einsum("...nd,...d->...n", x, weights)
            weights = weights + np.einsum("...n,...nd,ed->...e", residual, x, matrix) / x.shape[-2]
        prediction = np.einsum("...d,...d->...", weights, q)
    if not np.all(np.isfinite(prediction)):
        raise ArithmeticError("gradient descent diverged in a context. Use a smaller preconditioner or fewer steps.")
    return prediction


def _preconditioners(
    preconditioner: Validated[ArrayLike], steps: Validated[int | None], size: int
) -> Iterable[Float[np.ndarray, "D D"]]:
    """The preconditioner of each step."""
    matrix = numbers("preconditioner", preconditioner)
    require(
        matrix.ndim in (2, 3) and matrix.shape[-2:] == (size, size) and len(matrix) > 0,
        f"preconditioner must have shape {(size, size)}, or be a list of such; got {matrix.shape}.",
    )
    if matrix.ndim == 2:
        return [matrix] * whole_number("steps", steps)  # pyright: ignore[reportArgumentType]
    require(steps is None, f"steps must be left out with a list of {len(matrix)} preconditioners; got {steps!r}.")
    return matrix
