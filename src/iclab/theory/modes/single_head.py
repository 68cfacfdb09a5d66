"""One head with a scalar output, mode by mode: value u and diagonal key-query matrix U, prediction u hᵀ U x_q.

Here the modes share u, so that those learned early speed up the later ones: exact at any context length, since
a scalar value leaves nothing else to couple.
"""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, instance, numbers, pair, require
from iclab.outcomes import SingleHeadCurves
from iclab.problem import Regression
from iclab.theory.integration import descend_flow, require_fall, squares
from iclab.theory.modes.diagonal_tasks import PRECISION, checked_time, mode_start, mode_weights, start_floor

__all__ = ["single_head_flow", "single_head_limits", "single_head_loss"]


def single_head_limits(problem: Validated[Regression]) -> Float[np.ndarray, "mode"]:
    """Strengths u U at which one head settles: 1/((1 + 1/N) s + (tr Λ + noise)/N).

    Raises ValueError for tasks that are not standard and for several context lengths.

    Source: zhang2025training, eq. 11, as in its merged model; noise derived in docs/derivations/population.
    """
    s, length = _law(problem)
    return length / ((length + 1) * s + np.sum(s) + problem.noise)


def single_head_loss(
    problem: Validated[Regression],
    value: Validated[Float[ArrayLike, "*batch"]],
    key_query: Validated[Float[ArrayLike, "*batch mode"]],
) -> float | Float[np.ndarray, "*batch"]:
    """Mean squared error of one head, the query's label noise included: one output, so the noise counts once.

    Raises ValueError as single_head_limits(), and for weights that do not fit.

    Source: zhang2025training, eq. 12; noise derived in docs/derivations/population.
    """
    s, _ = _law(problem)
    strength = numbers("value", value)[..., None] * mode_weights("key_query", key_query, len(s))
    kept = strength / single_head_limits(problem)
    return np.sum(s * (1 + s * strength * (kept - 2)), axis=-1) + problem.noise


def single_head_flow(
    problem: Validated[Regression],
    *,
    start: Validated[tuple[float, ArrayLike]],
    time: Validated[Float[ArrayLike, "time"]],
) -> SingleHeadCurves:
    """Curves of one head under the flow −½∇L: dU = u s² (1 − u U/a∞), du = Σ s² U (1 − u U/a∞).

    `start` is (u₀, U₀), U₀ a scalar or one number per mode. u² − |U|² is conserved.

    Raises ValueError as single_head_limits(), and for starts or times that do not fit; ArithmeticError where the
    solver stops early.

    Source: zhang2025training, section 3 (merged key and query, one head); noise in docs/derivations/modes.
    """
    s, _ = _law(problem)
    first, matrix = pair("start", start)
    require(np.ndim(first) == 0, f"start must hold one value u0; got shape {np.shape(first)}.")
    _, matrix = mode_start((first, matrix), len(s))
    time, ends = checked_time(time), single_head_limits(problem)

    def velocity(weights: np.ndarray) -> np.ndarray:
        value, matrix = weights[0], weights[1:]
        residual = s**2 * (1 - value * matrix / ends)
        return np.concatenate([[matrix @ residual], value * residual])

    joined = np.concatenate([[float(first)], matrix])
    floor = start_floor(np.full(joined.size, np.max(np.abs(joined))))
    path = descend_flow(
        velocity, joined, time, tolerance=PRECISION, floor=floor, factors=2,
        leverage=squares(joined[0] * np.ones(len(s)), matrix), size=float(np.linalg.norm(ends)),
    )  # fmt: skip
    value, key_query = path[:, 0], path[:, 1:]
    loss = np.asarray(single_head_loss(problem, value, key_query))
    require_fall(loss, height=float(np.sum(s)) + problem.noise, tolerance=PRECISION)
    return SingleHeadCurves(time, value, key_query, value[:, None] * key_query, loss)


def _law(problem: Validated[Regression]) -> tuple[Float[np.ndarray, "mode"], int]:
    """Eigenvalues s and context length N of a problem with one length and standard tasks."""
    instance("problem", problem, Regression)
    require(
        len(problem.context_lengths) == 1 and set(problem.task_spectrum) == {1.0},
        f"problem must have one context length and standard tasks here; got lengths {problem.context_lengths} and "
        f"task_eigenvalues {problem.task_eigenvalues}. For others integrate theory.dynamics.merged_flow.",
    )
    return np.array(problem.eigenvalues), problem.context_lengths[0]
