"""Separate attention whose heads are aligned with the modes: one scalar equation each, solved exactly.

A head that starts as value, key and query of one length v along one direction obeys dv/dt = g v² − h v⁵ and comes to
rest at v³ = g/h. Times are in units of τ, of the flow of −½∇L.
"""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import hyp2f1

from iclab.numerics import Validated, increasing_root, instance, nonnegative, numbers, require
from iclab.numerics.curves import rests_and_drops
from iclab.problem import Regression
from iclab.theory.dynamics.commuting import commuting_modes
from iclab.theory.dynamics.fixed_points import plateaus
from iclab.theory.population import Moments, best_loss, moments

__all__ = ["aligned_loss", "aligned_values", "entered_values", "half_drop_shift"]


def aligned_values(
    problem: Validated[Regression],
    initial: Validated[Float[ArrayLike, "mode"]],
    time: Validated[Float[ArrayLike, "*time"]],
) -> Float[np.ndarray, "*time mode"]:
    """Values of separate attention whose head d starts as value, key and query `initial[d]` along direction d.

    Such heads stay aligned and decouple: dv/dt = g v² − h v⁵, solved in implicit form. Exact for any start > 0;
    directions are those of the problem, largest input eigenvalue first.

    Raises ValueError for fewer heads than modes, initial <= 0 and negative times.

    Source: zhang2025training, eq. 21; implicit solution derived in docs/derivations/dynamics.
    """
    instance("problem", problem, Regression)
    g, h = _signal_and_curvature(problem)
    first = numbers("initial", initial)
    require(
        first.shape == g.shape,
        f"initial must hold one strength for each of the {len(g)} modes; got shape {first.shape}. With fewer heads "
        "than modes integrate separate_flow.",
    )
    require(bool(np.all(first > 0)), f"initial must be finite and > 0; got {initial!r}.")
    t = nonnegative("time", time)
    return np.stack([_aligned_value(*rates, t) for rates in zip(g, h, first, strict=True)], axis=-1)


def entered_values(
    problem: Validated[Regression],
    time: Validated[Float[ArrayLike, "time"]],
    loss: Validated[Float[ArrayLike, "time"]],
) -> Float[np.ndarray, "time mode"]:
    """Values of aligned heads, one for each mode, each entered so that it drops when a loss curve does.

    Modes drop in the order of their signal g. A head that blows up at T, half_drop_shift after half of its drop,
    starts with strength 1/(g T). Modes that the curve does not reach stay at zero. Directions as in aligned_values.

    Raises ValueError for negative times, for a loss with another shape, and for covariances that do not commute.

    Source: zhang2025training, eq. 21; times of entry derived in docs/derivations/dynamics.
    """
    instance("problem", problem, Regression)
    t, curve, law = nonnegative("time", time), numbers("loss", loss), moments(problem)
    require(t.ndim == 1 and curve.shape == t.shape, f"loss must have one entry for each time; got {curve.shape}.")
    signal, curvature = _signal_and_curvature(problem)
    drops, shifts = np.empty_like(signal), np.empty_like(signal)
    drops[np.argsort(-signal, kind="stable")] = rests_and_drops(t, curve, plateaus(law))[1]
    contribution = np.divide(signal**2, curvature, out=np.zeros_like(signal), where=curvature > 0)
    shifts[np.argsort(-contribution, kind="stable")] = half_drop_shift(law)
    reached = np.isfinite(drops) & (signal > 0)
    strengths = 1 / np.where(reached, signal * (drops - shifts), 1.0)
    return np.where(reached, aligned_values(problem, strengths, t), 0.0)


def aligned_loss(
    problem: Validated[Regression],
    initial: Validated[Float[ArrayLike, "mode"]],
    time: Validated[Float[ArrayLike, "*time"]],
) -> float | Float[np.ndarray, "*time"]:
    """Loss of separate attention with one aligned head for each mode: an exact staircase.

    As aligned_values: null loss − Σ (2 g v³ − h v⁶), which is the least loss + Σ h (v³ − g/h)².

    Source: zhang2025training, eqs. 19 and 21; derived in docs/derivations/dynamics.
    """
    instance("problem", problem, Regression)
    g, h = _signal_and_curvature(problem)
    cube = aligned_values(problem, initial, time) ** 3
    best = np.divide(g, h, out=np.zeros_like(g), where=h > 0)
    return best_loss(moments(problem)) + np.sum(h * (cube - best) ** 2, axis=-1)


def half_drop_shift(moments: Validated[Moments]) -> Float[np.ndarray, "mode"]:
    """Time from the blow-up of a head to half of its drop, negative, for each mode, largest contribution first.

    A small head whose signal stays as at its plateau blows up in finite time, see blow_up_times; half of
    its drop is done 1.2534 (h/g)^(1/3)/g before that. Limit of small starts. Units: τ; −inf for a mode of no
    contribution.

    Raises ValueError for covariances that do not commute.

    Source: derived in docs/derivations/dynamics.
    """
    instance("moments", moments, Moments)
    modes = commuting_modes(moments)
    half = np.cbrt(1 - np.sqrt(0.5))  # v/v* where (v/v*)³ = 1 − √½ and half of the loss is gone
    pace = modes.signal * np.cbrt(modes.best)
    return np.divide(_rising_clock(half), pace, out=np.full_like(pace, -np.inf), where=pace > 0)


def _signal_and_curvature(problem: Regression) -> tuple[np.ndarray, np.ndarray]:
    law = moments(problem)
    return np.diag(law.cross), np.diag(law.second) * np.diag(law.input_covariance)


def _aligned_value(g: float, h: float, first: float, t: Float[np.ndarray, "*time"]) -> Float[np.ndarray, "*time"]:
    """v(t) of dv/dt = g v² − h v⁵: the root of clock(v) = clock(first) + t on its side of the rest point."""
    if h == 0:
        return np.full_like(t, first)
    if g == 0:
        return (first**-4 + 4 * h * t) ** -0.25
    rest = np.cbrt(g / h)
    x0 = first / rest
    if x0 == 1:
        return np.full_like(t, first)
    clock, side = (_rising_clock, 1) if x0 < 1 else (_falling_clock, -1)
    start, end = np.full_like(t, x0), np.ones_like(t)
    elapsed = clock(start) + g * rest * t

    def late(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with np.errstate(divide="ignore"):
            return side * (clock(x) - elapsed), 1 / np.abs(x * (1 - x**3))

    return rest * increasing_root(late, np.minimum(start, end), np.maximum(start, end))


def _rising_clock(x: float | np.ndarray) -> float | np.ndarray:
    """P with dP/dx = 1/(x² (1 − x³)) below x = 1."""
    with np.errstate(divide="ignore"):
        return -1 / x + (0.5 * np.log1p(x + x * x) - np.log1p(-x) - np.sqrt(3) * _angle(x)) / 3


def _falling_clock(x: float | np.ndarray) -> float | np.ndarray:
    """∫ dx'/(x'² (x'³ − 1)) from x to infinity; the logarithms cancel where its series is short, far above 1."""
    u = 1 / x
    with np.errstate(divide="ignore"):
        near = -u + (0.5 * np.log1p(u + u * u) - np.log1p(-u) + np.sqrt(3) * _angle(u)) / 3
    return np.where(u < 0.5, u**4 / 4 * hyp2f1(1, 4 / 3, 7 / 3, np.minimum(u, 0.5) ** 3), near)


def _angle(x: float | np.ndarray) -> float | np.ndarray:
    return np.arctan(np.sqrt(3) * x / (2 + x))  # arctan((2x + 1)/√3) − π/6
