"""Full-matrix two-factor transformer at finite context length: its factors align with the inputs.

In the eigenbasis of the inputs L = const − 2 Σ m s² p_aa q_aa + Σ_b A_b K_b, where K_b = Σ_c q_bc² s_c,
C_b = Σ_a p_ab² and A_b = (1 + 1/N) m s² C_b + s Σ r C/N. Off-diagonal entries enter through their squares alone:
the flow damps them and lets none grow, so diagonal weights stay diagonal and attract all others.
"""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, numbers, pair, require
from iclab.outcomes import MatrixCurves
from iclab.theory.integration import descend_flow, require_fall, squares
from iclab.theory.modes.diagonal_tasks import (
    PRECISION,
    DiagonalTasks,
    checked_time,
    require_diagonal_tasks,
    start_floor,
)
from iclab.theory.modes.exact import exact_fixed_point

__all__ = ["matrix_flow", "matrix_gradient", "matrix_loss"]


def matrix_loss(
    tasks: Validated[DiagonalTasks],
    value: Validated[Float[ArrayLike, "*batch D D"]],
    key_query: Validated[Float[ArrayLike, "*batch D D"]],
) -> float | Float[np.ndarray, "*batch"]:
    """Mean squared error of full p and q, given in the eigenbasis of the inputs, summed over outputs.

    Source: derived in docs/derivations/modes; tasks and model as in mainali2025exact.
    """
    require_diagonal_tasks(tasks)
    return _loss(tasks, *_matrices(tasks, value, key_query))


def matrix_gradient(
    tasks: Validated[DiagonalTasks],
    value: Validated[Float[ArrayLike, "*batch D D"]],
    key_query: Validated[Float[ArrayLike, "*batch D D"]],
) -> tuple[Float[np.ndarray, "*batch D D"], Float[np.ndarray, "*batch D D"]]:
    """(∂L/∂p, ∂L/∂q) of matrix_loss(). The flow follows −½ of it.

    Source: derived in docs/derivations/modes.
    """
    require_diagonal_tasks(tasks)
    dp, dq = _descent(tasks, *_matrices(tasks, value, key_query))
    return -2 * dp, -2 * dq


def matrix_flow(
    tasks: Validated[DiagonalTasks],
    *,
    start: Validated[tuple[Float[ArrayLike, "D D"], Float[ArrayLike, "D D"]]],
    time: Validated[Float[ArrayLike, "time"]],
) -> MatrixCurves:
    """Curves of the exact gradient flow −½∇L from full matrices p₀, q₀ in the eigenbasis of the inputs.

    The norm off the diagonals falls at the rate of what has been learned; the balance |p|² − |q|² is conserved.

    Raises ValueError for starts or times that do not fit, ArithmeticError where the solver stops early.

    Source: derived in docs/derivations/modes; mainali2025exact assumes the alignment that follows here.
    """
    require_diagonal_tasks(tasks)
    p, q = _matrices(tasks, *pair("start", start))
    require(p.ndim == 2, f"start must be two D by D matrices; got {p.shape} and {q.shape}.")
    time = checked_time(time)
    shape = (-1, 2, tasks.modes, tasks.modes)
    path = descend_flow(
        lambda weights: np.ravel(_descent(tasks, *weights.reshape(shape)[0])),
        np.ravel([p, q]),
        time,
        tolerance=PRECISION,
        floor=start_floor(np.full(2 * p.size, max(np.max(np.abs(p)), np.max(np.abs(q))))),
        factors=2,
        leverage=squares(p, q),
        size=float(np.linalg.norm(exact_fixed_point(tasks))),
    )
    p, q = np.moveaxis(path.reshape(shape), 1, 0)
    loss = np.asarray(_loss(tasks, p, q))
    require_fall(loss, height=float(matrix_loss(tasks, 0 * p[0], 0 * q[0])), tolerance=PRECISION)
    return MatrixCurves(time, p, q, **MatrixCurves.readings(p, q), loss=loss)


def _matrices(
    tasks: DiagonalTasks, value: Validated[ArrayLike], key_query: Validated[ArrayLike]
) -> tuple[np.ndarray, np.ndarray]:
    p, q = numbers("value", value), numbers("key_query", key_query)
    shape = (tasks.modes, tasks.modes)
    require(
        p.shape[-2:] == shape and q.shape == p.shape,
        f"value and key_query must both end in shape {shape}; got {p.shape} and {q.shape}.",
    )
    return p, q


def _factors(tasks: DiagonalTasks, p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """K, the own gain (1 + 1/N) m s² of each row and A."""
    s, length = tasks.eigenvalues, tasks.context_length
    columns, rows = np.sum(p**2, axis=-2), np.sum(q**2 * s, axis=-1)
    own = (1 + 1 / length) * tasks.task_second_moments * s**2
    shared = np.sum(tasks.label_variances * columns, axis=-1, keepdims=True)
    return rows, own, own * columns + shared * s / length


def _loss(
    tasks: DiagonalTasks, p: Float[np.ndarray, "*batch D D"], q: Float[np.ndarray, "*batch D D"]
) -> float | Float[np.ndarray, "*batch"]:
    rows, _, weight = _factors(tasks, p, q)
    signal = tasks.task_second_moments * tasks.eigenvalues**2
    strength = np.einsum("...aa,...aa->...a", p, q)
    return np.sum(tasks.label_variances) + np.sum(weight * rows - 2 * signal * strength, axis=-1)


def _descent(tasks: DiagonalTasks, p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    s, diagonal = tasks.eigenvalues, np.eye(tasks.modes)
    rows, own, weight = _factors(tasks, p, q)
    signal = (tasks.task_second_moments * s**2)[:, None] * diagonal
    leak = np.sum(s * rows, axis=-1, keepdims=True) * tasks.label_variances / tasks.context_length
    damping = own * rows + leak
    return signal * q - p * damping[..., None, :], signal * p - q * weight[..., None] * s
