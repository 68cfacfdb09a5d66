"""Training dynamics of the two-factor linear transformer, mode by mode, to leading order in 1/N.

The transformer maps a context of tokens (x_n, W x_n), x ~ N(0, Λ), and a query x_q to p W Σ̂ q x_q, with
Σ̂ = (1/N) Σ x xᵀ; tasks W are diagonal in the eigenbasis of Λ. For diagonal p and q and long contexts the modes
decouple: τ dp/dt = q (1 − p q/a∞), τ dq/dt = p (1 − p q/a∞). The functions here solve that law. At finite
N it is off by O(1/N), which compounds: functions called `exact_` have no such error, nor do the full matrices
and the single head. Losses are summed over the outputs.
"""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import exprel

from iclab.numerics import Validated, checked, checked_number, numbers, require
from iclab.outcomes import ModeCurves
from iclab.theory.modes.diagonal_tasks import (
    DiagonalTasks,
    checked_mode,
    checked_time,
    mode_start,
    mode_weights,
    require_diagonal_tasks,
)

__all__ = [
    "balanced_law", "decayed_limits", "leading_order", "leading_order_loss", "limits", "mode_law", "paper_time",
    "time_constants", "time_to_fraction",
]  # fmt: skip


def paper_time(
    rate: Validated[ArrayLike], tasks: Validated[ArrayLike], steps: Validated[ArrayLike]
) -> float | np.ndarray:
    """Time t of a published step count: the paper sums the loss over its tasks, so t = rate × tasks × steps.

    Where the loss is averaged over tasks, as in the simulations here, use tasks = 1. Units of τ.

    Source: mainali2025exact, eq. 10 (τ_α = 1/(η P s_α²) in steps).
    """
    return numbers("rate", rate) * numbers("tasks", tasks) * numbers("steps", steps)


def time_constants(eigenvalues: Validated[Float[ArrayLike, "mode"]]) -> Float[np.ndarray, "mode"]:
    """τ_α = 1/s_α², the time in which a mode grows by the factor e from a small start. inf for s_α = 0.

    Source: mainali2025exact, eq. 10, with paper_time as the unit.
    """
    s = DiagonalTasks(eigenvalues, context_length=1).eigenvalues
    with np.errstate(divide="ignore"):
        return 1 / s**2


def limits(tasks: Validated[DiagonalTasks]) -> Float[np.ndarray, "mode"]:
    """Leading order: strengths a∞ = N/((N+1) s + tr Λ) at which the modes settle.

    The exact ones are exact_fixed_point(); the two agree for equal eigenvalues.

    Raises ValueError for noise and for pools of tasks, which the leading order leaves out.

    Source: mainali2025exact, eqs. 9 and 11.
    """
    _require_standard(tasks)
    s, length = tasks.eigenvalues, tasks.context_length
    return length / ((length + 1) * s + np.sum(s))


def mode_law(
    start: Validated[tuple[ArrayLike, ArrayLike]],
    limit: Validated[ArrayLike],
    time_constant: Validated[ArrayLike],
    time: Validated[ArrayLike],
) -> tuple[np.ndarray, np.ndarray]:
    """(p, q) at `time` of one decoupled mode from any start; broadcasts.

    With S = √(4 a∞² + (p₀² − q₀²)²), y = 2 a∞ + S and E = exp(−S t/(a∞ τ)), p + q grows and p − q shrinks by the
    factor G, G² = (y + m E + (p₀−q₀)² (1−E)) / (y E + m + (p₀+q₀)² (1−E)), m = (p₀² − q₀²)²/y: sums of positive
    terms, so balanced, unbalanced, negative and zero starts need no cases. Starts on p = −q end at the saddle
    (0, 0), all others at p q = a∞. An infinite time constant never moves.

    Raises ValueError for a limit or time constant that is not positive and for negative time.

    Source: mainali2025exact, eq. 12 (balanced: eq. 13); any start derived in docs/derivations/modes.
    """
    p, q, limit, tau = checked_mode(start, limit, time_constant)
    total, difference = np.abs(p + q), np.abs(p - q)
    balance = total * difference
    root = np.hypot(2 * limit, balance)
    phase = _phase(time, tau) * root / limit
    faded, left = np.exp(-phase / 2), np.sqrt(-np.expm1(-phase))
    upper = np.sqrt(2 * limit + root)
    lower = balance / upper
    grown = np.hypot(np.hypot(upper, lower * faded), difference * left)
    shrunk = np.hypot(np.hypot(upper * faded, lower), total * left)
    ahead = np.abs(p) >= np.abs(q)
    large, small = np.where(ahead, p, q), np.where(ahead, q, p)
    both = 2 * limit * (1 + 2 * limit / (root + balance))  # 2 a∞ + S − |p² − q²|
    gain = both * left**2 * (total + difference * (lower / upper)) / 2
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        growth, saddle = grown / shrunk, total == 0
        larger = np.copysign((np.where(saddle, 0.0, total * growth) + difference / growth) / 2, large)
        # the smaller weight is half a difference of these two, which would cancel: here it is a sum if p q >= 0
        lesser = (np.copysign(gain, large) + 2 * root * faded**2 * small) / (grown * shrunk)
        lesser = np.where(saddle, -larger, lesser)
    return np.where(ahead, larger, lesser), np.where(ahead, lesser, larger)


def balanced_law(
    start: Validated[ArrayLike],
    limit: Validated[ArrayLike],
    time_constant: Validated[ArrayLike],
    time: Validated[ArrayLike],
    *,
    decay: Validated[float] = 0.0,
) -> np.ndarray:
    """Strength a(t) of a balanced mode (p = q), a logistic curve, with L2 decay of p and q if given.

    τ da/dt = 2 a (1 − τ decay − a/a∞). The decay is per unit of time and per weight: a penalty decay·(|p|² + |q|²)
    on the mean squared error. Unbalanced modes lose their balance as p² − q² ∝ exp(−2 decay t).

    Raises ValueError for a negative start or decay and as mode_law().

    Source: mainali2025exact, eq. 13; decay derived in docs/derivations/modes.
    """
    start = numbers("start", start)
    require(bool(np.all(start >= 0)), "start must be >= 0, a strength p q with p = q; use mode_law() for others.")
    decay = checked_number("decay", decay, at_least=0.0)
    _, _, limit, tau = checked_mode((start, start), limit, time_constant)
    time = checked("time", time, at_least=0.0, infinite=False, advice="The ends are decayed_limits().")
    phase = 2 * _phase(time, tau)
    growth = phase - 2 * decay * time
    with np.errstate(over="ignore", invalid="ignore"):
        strength = start / (np.exp(-growth) + start / limit * phase * exprel(-growth))
    return np.where(start == 0, 0.0, strength)


def time_to_fraction(
    fraction: Validated[ArrayLike],
    start: Validated[tuple[ArrayLike, ArrayLike]],
    limit: Validated[ArrayLike],
    time_constant: Validated[ArrayLike],
) -> np.ndarray:
    """Time at which p q first reaches `fraction` of its limit; 0 if it starts there, inf if it never does.

    Balanced: (τ/2) ln[f (a∞ − a₀)/((1 − f) a₀)]. Sharp also for fractions close to 0 and to 1, and next to p = −q.

    Raises ValueError for a fraction outside (0, 1) and as mode_law().

    Source: mainali2025exact, eq. 13 inverted; any start derived in docs/derivations/modes.
    """
    fraction = numbers("fraction", fraction)
    require(bool(np.all((fraction > 0) & (fraction < 1))), f"fraction must lie between 0 and 1; got {fraction!s}.")
    p, q, limit, tau = checked_mode(start, limit, time_constant)
    (total, difference), strength, target = (np.abs(p + q), np.abs(p - q)), p * q, fraction * limit
    balance = total * difference  # |p² − q²|, which would cancel
    root, target_root = np.hypot(2 * limit, balance), np.hypot(2 * target, balance)
    target_square = 2 * target + target_root  # (p + q)² at the end, of which 2 a∞ + S is the limit
    target_left = 2 * limit * (1 - fraction) + 4 * limit**2 * (1 - fraction) * (1 + fraction) / (root + target_root)
    gone = np.hypot(total, balance / np.sqrt(2 * limit + root))  # its square would underflow at tiny starts
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ahead = 8 * root * (target - strength) * (target_square / (target_square + difference**2)) / target_left
        odds = ahead / gone / gone
        elapsed = np.where(odds < 1, np.log1p(odds), np.log(ahead) - 2 * np.log(gone) + np.log1p(1 / odds))
    return np.where(strength >= target, 0.0, np.where(gone == 0, np.inf, elapsed * tau * limit / root))


def leading_order(
    tasks: Validated[DiagonalTasks],
    *,
    start: Validated[tuple[ArrayLike, ArrayLike]],
    time: Validated[Float[ArrayLike, "time"]],
) -> ModeCurves:
    """The paper's mode curves: each mode follows mode_law() on its own. Leading order in 1/N.

    `start` is (p₀, q₀), scalars or one per mode. Off by O(1/N), compounding in time, unless all eigenvalues are
    equal and all modes start alike; exact_flow() has no such error. The loss is the paper's, twice its eq. 14.

    Raises ValueError as limits(), and for starts or times that do not fit.

    Source: mainali2025exact, eqs. 9 to 14.
    """
    _require_standard(tasks)
    p, q = mode_start(start, tasks.modes)
    time = checked_time(time)
    value, key_query = mode_law((p, q), limits(tasks), time_constants(tasks.eigenvalues), time[:, None])
    loss = np.asarray(leading_order_loss(tasks, value * key_query))
    return ModeCurves.of(time, value, key_query, loss)


def leading_order_loss(
    tasks: Validated[DiagonalTasks], strength: Validated[Float[ArrayLike, "*batch mode"]]
) -> float | Float[np.ndarray, "*batch"]:
    """The paper's mean squared error Σ s (s a²/a∞ − 2 s a + 1) of modes of strength a.

    Exact if p is the same in all modes, else off by O(1/N): see exact_loss().

    Raises ValueError as limits().

    Source: mainali2025exact, eq. 14, which has ½.
    """
    _require_standard(tasks)
    s, a = tasks.eigenvalues, mode_weights("strength", strength, tasks.modes)
    return np.sum(s * (s * a**2 / limits(tasks) - 2 * s * a + 1), axis=-1)


def decayed_limits(tasks: Validated[DiagonalTasks], *, decay: Validated[float]) -> Float[np.ndarray, "mode"]:
    """Leading order: balanced strengths max(0, 1 − decay/s²) a∞ under L2 decay; small modes die.

    The decay is per unit of time, as in balanced_law().

    Raises ValueError as limits(), and for a negative decay.

    Source: derived in docs/derivations/modes from mainali2025exact, eq. 12.
    """
    ends = limits(tasks)
    decay = checked_number("decay", decay, at_least=0.0)
    return np.maximum(0.0, 1 - decay * time_constants(tasks.eigenvalues)) * ends if decay else ends


def _require_standard(tasks: Validated[DiagonalTasks]) -> None:
    """Raise ValueError unless tasks are standard normal and labels free of noise, as leading order in 1/N assumes."""
    require_diagonal_tasks(tasks)
    require(
        tasks.noise == 0 and bool(np.all(tasks.task_second_moments == 1)),
        f"tasks must be standard normal and free of noise at leading order; got noise {tasks.noise:g} and "
        f"task_second_moments {tasks.task_second_moments.tolist()}. Use exact_flow() or exact_fixed_point().",
    )


def _phase(time: Validated[ArrayLike], tau: np.ndarray) -> float | np.ndarray:
    time = checked("time", time, at_least=0.0)
    return np.where(np.isinf(tau), 0.0, time / np.where(np.isinf(tau), 1.0, tau))
