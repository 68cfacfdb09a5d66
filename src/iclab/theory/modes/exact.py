"""Diagonal two-factor transformer at finite context length, without approximation.

L = Σ m (s − 2 a s² + (1 + 1/N) a² s³) + D noise + (1/N) (Σ r p²)(Σ s² q²) with a = p q and r = m s + noise. The last
term couples the modes; the paper's law replaces it by a sum over modes, which holds where p is the same in all.
"""

import numpy as np
from jaxtyping import Float, Inexact
from numpy.typing import ArrayLike

from iclab.numerics import Validated, positive, whole_number
from iclab.outcomes import ModeCurves, ModeDescent
from iclab.theory.integration import descend_flow, require_fall, squares
from iclab.theory.modes.diagonal_tasks import (
    PRECISION,
    DiagonalTasks,
    checked_time,
    mode_start,
    mode_weights,
    require_diagonal_tasks,
    start_floor,
)

__all__ = [
    "balance_drift", "exact_descent", "exact_fixed_point", "exact_flow", "exact_gradient", "exact_least_loss",
    "exact_loss", "exact_product_loss",
]  # fmt: skip


def exact_loss(
    tasks: Validated[DiagonalTasks],
    value: Validated[Float[ArrayLike, "*batch mode"]],
    key_query: Validated[Float[ArrayLike, "*batch mode"]],
) -> float | Float[np.ndarray, "*batch"]:
    """Mean squared error of diagonal weights p, q, summed over outputs; the query's labels carry the noise too.

    Source: derived in docs/derivations/modes; at equal p it is twice eq. 14 of mainali2025exact.
    """
    require_diagonal_tasks(tasks)
    p, q = _weights(tasks, value, key_query)
    p_sum, q_sum = _weighted_squares(tasks, p, q)
    return _separable_loss(tasks, p * q) + p_sum * q_sum / tasks.context_length


def exact_gradient(
    tasks: Validated[DiagonalTasks],
    value: Validated[Float[ArrayLike, "*batch mode"]],
    key_query: Validated[Float[ArrayLike, "*batch mode"]],
) -> tuple[Float[np.ndarray, "*batch mode"], Float[np.ndarray, "*batch mode"]]:
    """(∂L/∂p, ∂L/∂q) of exact_loss(). The flow follows −½ of it.

    Source: derived in docs/derivations/modes.
    """
    require_diagonal_tasks(tasks)
    dp, dq = _descent(tasks, *_weights(tasks, value, key_query))
    return -2 * dp, -2 * dq


def exact_flow(
    tasks: Validated[DiagonalTasks],
    *,
    start: Validated[tuple[ArrayLike, ArrayLike]],
    time: Validated[Float[ArrayLike, "time"]],
    tolerance: Validated[float] = PRECISION,
) -> ModeCurves:
    """Mode curves of the exact gradient flow −½∇L at finite N: the modes compete through a shared term.

    `start` is (p₀, q₀), scalars or one per mode. Only the sum Σ (p² − q²) is conserved, see balance_drift(). Modes
    whose signal is smaller than the noise they add die, see exact_fixed_point(). Its steps are solved to `tolerance`,
    relative to a thousandth of the start where weights are smaller than that: at 1e-10 weights come to better than
    1e-6, worst while a mode escapes, the loss to 1e-9.

    Raises ValueError for starts or times that do not fit, ArithmeticError where the solver stops early.

    Source: derived in docs/derivations/modes; the limit N → ∞ is mainali2025exact, eq. 12.
    """
    require_diagonal_tasks(tasks)
    p, q = mode_start(start, tasks.modes)
    time = checked_time(time)
    path = descend_flow(
        lambda weights: np.concatenate(_descent(tasks, *np.split(weights, 2))),
        np.concatenate([p, q]),
        time,
        tolerance=tolerance,
        floor=start_floor(np.tile(np.maximum(np.abs(p), np.abs(q)), 2)),
        factors=2,
        leverage=squares(p, q),
        size=float(np.linalg.norm(exact_fixed_point(tasks))),
    )
    curves = _curves(tasks, time, *np.split(path, 2, axis=1))
    require_fall(curves.loss, height=float(exact_loss(tasks, 0 * p, 0 * q)), tolerance=tolerance)
    return curves


def exact_descent(
    tasks: Validated[DiagonalTasks],
    *,
    start: Validated[tuple[ArrayLike, ArrayLike]],
    rate: Validated[float],
    steps: Validated[int],
) -> ModeDescent:
    """Mode curves of gradient descent on the exact population loss, at steps 0 … steps; time = rate × step.

    `rate` is the learning rate η, acting on half the mean squared error. A step changes Σ (p² − q²) by rate²
    (|½∂L/∂p|² − |½∂L/∂q|²): conserved to first order in the rate. At a learning rate that is too large the weights
    grow, and are infinite after overflow; the outcome is then not stable.

    Raises ValueError for a rate that is not positive and for fewer than 0 steps.

    Source: derived in docs/derivations/modes.
    """
    require_diagonal_tasks(tasks)
    positive("rate", rate)
    steps = whole_number("steps", steps, least=0)
    path = np.empty((steps + 1, 2, tasks.modes))
    path[0] = mode_start(start, tasks.modes)
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(steps):
            path[step + 1] = path[step] + rate * np.array(_descent(tasks, *path[step]))
            if not np.all(np.isfinite(path[step + 1])):
                path[step + 1 :] = np.copysign(np.inf, path[step])
                break
        curves = _curves(tasks, rate * np.arange(steps + 1), path[:, 0], path[:, 1])
    # a run that oscillates around its minimum is too sharp at one of its turning points
    settled = bool(np.all(np.isfinite(path))) and rate * max(_sharpest(tasks, *last) for last in path[-2:]) < 2
    loss = np.where(np.isfinite(curves.loss), curves.loss, np.inf)
    return ModeDescent(**{**vars(curves), "loss": loss}, stable=settled)


def exact_fixed_point(tasks: Validated[DiagonalTasks]) -> Float[np.ndarray, "mode"]:
    """Strengths p q at the minimum of the exact loss; 0 for modes that are switched off.

    a = N/((N+1) s) (1 − √r T/(N m s)) with T = N Σ √r/(N + 1 + Σ r/(m s)), sums over the modes that are on. A mode is
    off when N m s <= √r T: its signal is smaller than the noise it adds. Where modes are on,
    q/p ∝ √r/s. Isotropic and noise-free it is N/((N + D + 1) s), the paper's limit; else it differs by O(1/N).

    Source: derived in docs/derivations/modes.
    """
    require_diagonal_tasks(tasks)
    length, s, r = tasks.context_length, tasks.eigenvalues, tasks.label_variances
    signal = tasks.task_second_moments * s
    learnable = signal > 0
    ratio = np.divide(signal, np.sqrt(r), out=np.zeros_like(s), where=learnable)
    order = np.argsort(-ratio, kind="stable")[: np.count_nonzero(learnable)]
    thresholds = length * np.cumsum(np.sqrt(r[order])) / (length + 1 + np.cumsum(r[order] / signal[order]))
    on = np.count_nonzero(length * ratio[order] > thresholds)
    strength = np.zeros_like(s)
    if on:
        kept = order[:on]
        root, inverse = np.sqrt(r[kept]), np.sqrt(r[kept]) / signal[kept]
        # 1 − √r T/(N m s) over one denominator: where noise is all, the two parts would cancel
        fraction = (length + 1 + (inverse - inverse[:, None]) @ root) / (length + 1 + root @ inverse)
        strength[kept] = length / ((length + 1) * s[kept]) * fraction
    return strength


def exact_product_loss(
    tasks: Validated[DiagonalTasks], strength: Validated[Float[ArrayLike, "*batch mode"]]
) -> float | Float[np.ndarray, "*batch"]:
    """Least exact loss of modes of given strengths, over all ways to split them into p and q.

    The coupling (Σ r p²)(Σ s² q²)/N is least at q/p ∝ √r/s, where it is (Σ √r s |a|)²/N: convex in the strengths, so
    exact_fixed_point() is the global minimum.

    Source: derived in docs/derivations/modes.
    """
    require_diagonal_tasks(tasks)
    strength = mode_weights("strength", strength, tasks.modes)
    shared = np.sum(np.sqrt(tasks.label_variances) * tasks.eigenvalues * np.abs(strength), axis=-1)
    return _separable_loss(tasks, strength) + shared**2 / tasks.context_length


def exact_least_loss(tasks: Validated[DiagonalTasks]) -> float:
    """Exact mean squared error at the end of training.

    Source: derived in docs/derivations/modes.
    """
    return float(exact_product_loss(tasks, exact_fixed_point(tasks)))


def balance_drift(
    tasks: Validated[DiagonalTasks],
    value: Validated[Float[ArrayLike, "*batch mode"]],
    key_query: Validated[Float[ArrayLike, "*batch mode"]],
) -> Float[np.ndarray, "*batch mode"]:
    """d(p² − q²)/dt of each mode under the exact flow, (2/N)(s² q² Σ r p² − r p² Σ s² q²): sums to zero.

    So Σ (p² − q²) is the conserved quantity; the balance of a single mode is conserved at leading order only.

    Source: derived in docs/derivations/modes; contrast mainali2025exact, eq. A.12, for single modes.
    """
    require_diagonal_tasks(tasks)
    p, q = _weights(tasks, value, key_query)
    p_sum, q_sum = _weighted_squares(tasks, p, q)
    weighted = (tasks.eigenvalues * q) ** 2 * p_sum[..., None] - tasks.label_variances * p**2 * q_sum[..., None]
    return 2 / tasks.context_length * weighted


def _weights(
    tasks: DiagonalTasks, value: Validated[ArrayLike], key_query: Validated[ArrayLike]
) -> tuple[np.ndarray, np.ndarray]:
    return mode_weights("value", value, tasks.modes), mode_weights("key_query", key_query, tasks.modes)


def _weighted_squares(
    tasks: DiagonalTasks, p: Inexact[np.ndarray, "*batch mode"], q: Inexact[np.ndarray, "*batch mode"]
) -> tuple[Inexact[np.ndarray, "*batch"], Inexact[np.ndarray, "*batch"]]:
    """Σ r p² and Σ s² q², the two factors through which the modes compete."""
    p_sum, q_sum = np.sum(tasks.label_variances * p**2, axis=-1), np.sum((tasks.eigenvalues * q) ** 2, axis=-1)
    return np.asarray(p_sum), np.asarray(q_sum)


def _separable_loss(tasks: DiagonalTasks, a: Float[np.ndarray, "*batch mode"]) -> float | Float[np.ndarray, "*batch"]:
    s, gain = tasks.eigenvalues, 1 + 1 / tasks.context_length
    own = tasks.task_second_moments * (s - 2 * a * s**2 + gain * a**2 * s**3)
    return np.sum(own, axis=-1) + tasks.modes * tasks.noise


def _descent(tasks: DiagonalTasks, p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    s, m, r, length = tasks.eigenvalues, tasks.task_second_moments, tasks.label_variances, tasks.context_length
    p_sum, q_sum = _weighted_squares(tasks, p, q)
    residual = m * s**2 * (1 - (1 + 1 / length) * p * q * s)
    return q * residual - r * p * q_sum[..., None] / length, p * residual - q * s**2 * p_sum[..., None] / length


def _sharpest(tasks: DiagonalTasks, p: np.ndarray, q: np.ndarray) -> float:
    """Largest curvature of half the loss, from imaginary steps: exact for a polynomial gradient."""
    tilted = np.concatenate([p, q]) + 1e-30j * np.eye(2 * tasks.modes)
    descent = np.concatenate(_descent(tasks, *np.split(tilted, 2, axis=1)), axis=1)
    return float(np.linalg.eigvalsh(-np.imag(descent) / 1e-30)[-1])


def _curves(tasks: DiagonalTasks, time: np.ndarray, p: np.ndarray, q: np.ndarray) -> ModeCurves:
    p_sum, q_sum = _weighted_squares(tasks, p, q)
    return ModeCurves.of(time, p, q, _separable_loss(tasks, p * q) + p_sum * q_sum / tasks.context_length)
