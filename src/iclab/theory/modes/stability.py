"""Stability of one decoupled mode: its fixed points under the flow, and a finite gradient-descent step."""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, numbers
from iclab.theory.modes.diagonal_tasks import checked_mode

__all__ = ["descent_step", "growth_rates", "largest_step"]


def descent_step(
    start: Validated[tuple[ArrayLike, ArrayLike]], limit: Validated[ArrayLike], step: Validated[ArrayLike]
) -> tuple[float | np.ndarray, float | np.ndarray]:
    """(p, q) after one gradient-descent step on a decoupled mode; step h = rate/τ = rate s².

    With e = 1 − p q/a∞ the balance p² − q² shrinks by exactly 1 − h² e², and a balanced strength grows by
    (1 + h e)²: conservation is a law of the flow alone.

    Source: derived in docs/derivations/modes from mainali2025exact, eq. 12.
    """
    p, q, limit, _ = checked_mode(start, limit, 1.0)
    change = numbers("step", step) * (1 - p * q / limit)
    return p + change * q, q + change * p


def largest_step(limit: Validated[ArrayLike], balance: Validated[ArrayLike] = 0.0) -> float | np.ndarray:
    """Bound on h = rate s² below which gradient descent settles on p q = a∞.

    2 a∞/√(4 a∞² + (p² − q²)²), 1 if balanced. Beyond it an unbalanced mode slides along the hyperbola to smaller |p²
    − q²| until it is stable; a balanced mode oscillates. Below half of it a balanced mode approaches from one side.

    Source: derived in docs/derivations/modes from mainali2025exact, eq. 12.
    """
    _, _, limit, _ = checked_mode((0.0, 0.0), limit, 1.0)
    return 2 * limit / np.hypot(2 * limit, numbers("balance", balance))


def growth_rates(
    start: Validated[tuple[ArrayLike, ArrayLike]], limit: Validated[ArrayLike], time_constant: Validated[ArrayLike]
) -> Float[np.ndarray, "*batch 2"]:
    """The two growth rates of small departures from (p, q), smaller first; they tell saddle from minimum.

    At (0, 0): ∓1/τ. On p q = a∞: −(p² + q²)/(a∞ τ) across and 0 along the hyperbola.

    Source: derived in docs/derivations/modes from mainali2025exact, eq. 12.
    """
    p, q, limit, tau = checked_mode(start, limit, time_constant)
    kept = p * q / limit
    steepness = (p**2 + q**2) / (2 * limit) + np.hypot((p - q) * (p + q) / (2 * limit), 1 - 2 * kept)
    # the larger of the two is a difference, which would cancel far from zero: their product has a closed form
    return np.stack([-steepness, (1 - kept) * (1 - 3 * kept) / steepness], axis=-1) / tau[..., None]
