"""Diagonal two-factor transformer at finite context length, without approximation.

L = Σ m (s − 2 a s² + (1 + 1/N) a² s³) + D noise + (1/N) (Σ r p²)(Σ s² q²) with a = p q and r = m s + noise. The last
term couples the modes; the paper's law replaces it by a sum over modes, which holds where p is the same in all.
"""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import positive, whole_number
from iclab.outcomes import ModeCurves, ModeDescent
from iclab.theory.integration import integrate
from iclab.theory.modes.diagonal_tasks import (
    PRECISION,
    DiagonalTasks,
    checked_time,
    diagonal_tasks,
    mode_start,
    mode_weights,
    start_floor,
)

Array = np.ndarray


def exact_loss(
    value: Float[Array, "*batch mode"],
    key_query: Float[Array, "*batch mode"],
    eigenvalues: Float[Array, "mode"],
    context_length: int,
    *,
    noise: float = 0.0,
    task_second_moments: Float[Array, "mode"] | None = None,
) -> Float[Array, "*batch"]:
    """Mean squared error of diagonal weights p, q, summed over outputs; the query's labels carry the noise too.

    Source: derived in docs/derivations/modes; at equal p it is twice eq. 14 of mainali2025exact.
    """
    model = diagonal_tasks(eigenvalues, context_length, noise=noise, task_second_moments=task_second_moments)
    p, q = _weights(model, value, key_query)
    drive, drag = _weighted_squares(model, p, q)
    return _separable_loss(model, p * q) + drive * drag / model.context_length


def exact_gradient(
    value: Float[Array, "*batch mode"],
    key_query: Float[Array, "*batch mode"],
    eigenvalues: Float[Array, "mode"],
    context_length: int,
    *,
    noise: float = 0.0,
    task_second_moments: Float[Array, "mode"] | None = None,
) -> tuple[Float[Array, "*batch mode"], Float[Array, "*batch mode"]]:
    """(∂L/∂p, ∂L/∂q) of exact_loss(). The flow follows −½ of it.

    Source: derived in docs/derivations/modes.
    """
    model = diagonal_tasks(eigenvalues, context_length, noise=noise, task_second_moments=task_second_moments)
    dp, dq = _descent(model, *_weights(model, value, key_query))
    return -2 * dp, -2 * dq


def exact_flow(
    eigenvalues: Float[Array, "mode"],
    context_length: int,
    *,
    start: tuple[ArrayLike, ArrayLike],
    time: Float[Array, "time"],
    noise: float = 0.0,
    task_second_moments: Float[Array, "mode"] | None = None,
) -> ModeCurves:
    """Mode curves of the exact gradient flow −½∇L at finite N: the modes compete through a shared term.

    `start` is (p₀, q₀), scalars or one per mode. Only the sum Σ (p² − q²) is conserved, see balance_drift(). Modes
    that cannot pay for their noise die, see exact_fixed_point(). Solved to about 1e-10, relative to the start
    where weights are smaller than that.

    Raises ValueError for starts or times that do not fit, ArithmeticError where the solver stops early.

    Source: derived in docs/derivations/modes; the limit N → ∞ is mainali2025exact, eq. 12.
    """
    model = diagonal_tasks(eigenvalues, context_length, noise=noise, task_second_moments=task_second_moments)
    p, q = mode_start(start, model.modes)
    time = checked_time(time)
    path = integrate(
        lambda weights: np.concatenate(_descent(model, *np.split(weights, 2))),
        np.concatenate([p, q]),
        time,
        tolerance=PRECISION,
        floor=start_floor(np.tile(np.maximum(np.abs(p), np.abs(q)), 2)),
    )
    return _curves(model, time, *np.split(path, 2, axis=1))


def exact_descent(
    eigenvalues: Float[Array, "mode"],
    context_length: int,
    *,
    start: tuple[ArrayLike, ArrayLike],
    rate: float,
    steps: int,
    noise: float = 0.0,
    task_second_moments: Float[Array, "mode"] | None = None,
) -> ModeDescent:
    """Mode curves of gradient descent on the exact population loss, at steps 0 … steps; time = rate × step.

    A step changes Σ (p² − q²) by rate² (|½∂L/∂p|² − |½∂L/∂q|²): conserved to first order in the rate. At a rate that
    is too large the weights grow, and are infinite after overflow; the outcome is then marked as not stable.

    Raises ValueError for a rate that is not positive and for fewer than 0 steps.

    Source: derived in docs/derivations/modes.
    """
    model = diagonal_tasks(eigenvalues, context_length, noise=noise, task_second_moments=task_second_moments)
    positive("rate", rate)
    steps = whole_number("steps", steps, least=0)
    path = np.empty((steps + 1, 2, model.modes))
    path[0] = mode_start(start, model.modes)
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(steps):
            path[step + 1] = path[step] + rate * np.array(_descent(model, *path[step]))
            if not np.all(np.isfinite(path[step + 1])):
                path[step + 1 :] = np.copysign(np.inf, path[step])
                break
        curves = _curves(model, rate * np.arange(steps + 1), path[:, 0], path[:, 1])
    # of a run that swings around its minimum one turning point is too sharp
    settled = bool(np.all(np.isfinite(path))) and rate * max(_sharpest(model, *last) for last in path[-2:]) < 2
    loss = np.where(np.isfinite(curves.loss), curves.loss, np.inf)
    return ModeDescent(**{**vars(curves), "loss": loss}, stable=settled)


def exact_fixed_point(
    eigenvalues: Float[Array, "mode"],
    context_length: int,
    *,
    noise: float = 0.0,
    task_second_moments: Float[Array, "mode"] | None = None,
) -> Float[Array, "mode"]:
    """Strengths p q at the minimum of the exact loss; 0 for modes that are switched off.

    a = N/((N+1) s) (1 − √r T/(N m s)) with T = N Σ √r/(N + 1 + Σ r/(m s)), sums over the modes that are on. A mode is
    off when N m s <= √r T: its signal does not pay for the noise it lets through. Where modes are on,
    q/p ∝ √r/s. Isotropic and noise-free it is N/((N + D + 1) s), the paper's limit; else it differs by O(1/N).

    Source: derived in docs/derivations/modes.
    """
    model = diagonal_tasks(eigenvalues, context_length, noise=noise, task_second_moments=task_second_moments)
    length, s, r = model.context_length, model.eigenvalues, model.label_variances
    signal = model.task_second_moments * s
    learnable = signal > 0
    worth = np.divide(signal, np.sqrt(r), out=np.zeros_like(s), where=learnable)
    order = np.argsort(-worth, kind="stable")[: np.count_nonzero(learnable)]
    thresholds = length * np.cumsum(np.sqrt(r[order])) / (length + 1 + np.cumsum(r[order] / signal[order]))
    on = np.count_nonzero(length * worth[order] > thresholds)
    strength = np.zeros_like(s)
    if on:
        kept = order[:on]
        root, price = np.sqrt(r[kept]), np.sqrt(r[kept]) / signal[kept]
        # 1 − √r T/(N m s) over one denominator: where noise is all, the two parts would cancel
        share = (length + 1 + (price - price[:, None]) @ root) / (length + 1 + root @ price)
        strength[kept] = length / ((length + 1) * s[kept]) * share
    return strength


def exact_product_loss(
    strength: Float[Array, "*batch mode"],
    eigenvalues: Float[Array, "mode"],
    context_length: int,
    *,
    noise: float = 0.0,
    task_second_moments: Float[Array, "mode"] | None = None,
) -> Float[Array, "*batch"]:
    """Least exact loss of modes of given strengths, over all ways to split them into p and q.

    The coupling (Σ r p²)(Σ s² q²)/N is least at q/p ∝ √r/s, where it is (Σ √r s |a|)²/N: convex in the strengths, so
    exact_fixed_point() is the global minimum.

    Source: derived in docs/derivations/modes.
    """
    model = diagonal_tasks(eigenvalues, context_length, noise=noise, task_second_moments=task_second_moments)
    strength = mode_weights("strength", strength, model.modes)
    shared = np.sum(np.sqrt(model.label_variances) * model.eigenvalues * np.abs(strength), axis=-1)
    return _separable_loss(model, strength) + shared**2 / model.context_length


def exact_least_loss(
    eigenvalues: Float[Array, "mode"],
    context_length: int,
    *,
    noise: float = 0.0,
    task_second_moments: Float[Array, "mode"] | None = None,
) -> float:
    """Exact mean squared error that training ends at.

    Source: derived in docs/derivations/modes.
    """
    strength = exact_fixed_point(eigenvalues, context_length, noise=noise, task_second_moments=task_second_moments)
    least = exact_product_loss(
        strength, eigenvalues, context_length, noise=noise, task_second_moments=task_second_moments
    )
    return float(least)


def balance_drift(
    value: Float[Array, "*batch mode"],
    key_query: Float[Array, "*batch mode"],
    eigenvalues: Float[Array, "mode"],
    context_length: int,
    *,
    noise: float = 0.0,
    task_second_moments: Float[Array, "mode"] | None = None,
) -> Float[Array, "*batch mode"]:
    """d(p² − q²)/dt of each mode under the exact flow, (2/N)(s² q² Σ r p² − r p² Σ s² q²): sums to zero.

    So Σ (p² − q²) is the conserved quantity; the balance of a single mode is conserved at leading order only.

    Source: derived in docs/derivations/modes; contrast mainali2025exact, eq. A.12, for single modes.
    """
    model = diagonal_tasks(eigenvalues, context_length, noise=noise, task_second_moments=task_second_moments)
    p, q = _weights(model, value, key_query)
    drive, drag = _weighted_squares(model, p, q)
    weighted = (model.eigenvalues * q) ** 2 * drive[..., None] - model.label_variances * p**2 * drag[..., None]
    return 2 / model.context_length * weighted


def _weights(model: DiagonalTasks, value: Array, key_query: Array) -> tuple[Array, Array]:
    return mode_weights("value", value, model.modes), mode_weights("key_query", key_query, model.modes)


def _weighted_squares(model: DiagonalTasks, p: Array, q: Array) -> tuple[Array, Array]:
    return np.sum(model.label_variances * p**2, axis=-1), np.sum((model.eigenvalues * q) ** 2, axis=-1)


def _separable_loss(model: DiagonalTasks, a: Array) -> Array:
    s, gain = model.eigenvalues, 1 + 1 / model.context_length
    own = model.task_second_moments * (s - 2 * a * s**2 + gain * a**2 * s**3)
    return np.sum(own, axis=-1) + model.modes * model.noise


def _descent(model: DiagonalTasks, p: Array, q: Array) -> tuple[Array, Array]:
    s, m, r, length = model.eigenvalues, model.task_second_moments, model.label_variances, model.context_length
    drive, drag = _weighted_squares(model, p, q)
    push = m * s**2 * (1 - (1 + 1 / length) * p * q * s)
    return q * push - r * p * drag[..., None] / length, p * push - q * s**2 * drive[..., None] / length


def _sharpest(model: DiagonalTasks, p: Array, q: Array) -> float:
    """Largest curvature of half the loss, from imaginary steps: exact for a polynomial gradient."""
    tilted = np.concatenate([p, q]) + 1e-30j * np.eye(2 * model.modes)
    descent = np.concatenate(_descent(model, *np.split(tilted, 2, axis=1)), axis=1)
    return float(np.linalg.eigvalsh(-np.imag(descent) / 1e-30)[-1])


def _curves(model: DiagonalTasks, time: Array, p: Array, q: Array) -> ModeCurves:
    drive, drag = _weighted_squares(model, p, q)
    return ModeCurves.of(time, p, q, _separable_loss(model, p * q) + drive * drag / model.context_length)
