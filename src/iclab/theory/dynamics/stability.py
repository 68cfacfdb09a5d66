"""Stability of fixed points: directions of negative curvature, and the order in which modes are learned."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from iclab.numerics import Validated, instance, require, whole_number
from iclab.theory.dynamics.fixed_points import checked_modes
from iclab.theory.population import Moments, modes

__all__ = ["Stability", "growth", "merged_stability", "rotations", "stability"]


@dataclass(frozen=True)
class Stability:
    """Directions in which a fixed point is left.

    `negative` counts the directions in weight space along which the loss curves down. A fixed point without any is
    a `degenerate` saddle if more remains to be learned, left only at the third order in the weights of an unused
    head, and a minimum if not.
    """

    negative: int
    degenerate: bool


def growth(moments: Validated[Moments]) -> Float[np.ndarray, "mode"]:
    """Signal g of each mode, the growth rate of a small head along it while unlearned; largest contribution first.

    ⟨B, Γ_d⟩/|Γ_d|, with Γ_d the fixed point that holds mode d alone; λ² ω where the covariances commute. A small
    start first learns the unlearned mode of largest growth. Where the covariances do not commute the fastest
    direction is the first singular pair of −½∇L, which grows at least as fast. 0 for a mode of no contribution.

    Source: derived in docs/derivations/dynamics.
    """
    instance("moments", moments, Moments)
    found = modes(moments)
    sizes = np.linalg.norm(found.left, axis=0) * np.linalg.norm(found.right, axis=0)
    return np.divide(found.contribution, sizes, out=np.zeros_like(sizes), where=sizes > 0)


def stability(
    moments: Validated[Moments], learned: Validated[Sequence[int]], *, rank: Validated[int] = 1
) -> Stability:
    """Stability of separate attention where it holds the modes `learned`, balanced and with a head unused.

    Loss curves down (i) from each learned mode towards each unlearned one of larger contribution, to which its head
    rotates, and (ii) from each spare key-query pair of an active head towards each unlearned mode that contributes;
    active heads hold `rank` modes each, the last of them what is left. Unused heads add no curvature.

    Raises ValueError for modes that do not exist and for a rank below 1.

    Source: derived in docs/derivations/dynamics.
    """
    instance("moments", moments, Moments)
    held = list(checked_modes(moments, learned))
    contribution = modes(moments).contribution
    learnable = contribution > 0
    unlearned = np.setdiff1d(np.flatnonzero(learnable), held)
    active = [mode for mode in held if learnable[mode]]
    outdone = sum(int(np.sum(_exceeds(contribution[unlearned], contribution[mode]))) for mode in active)
    spare = -len(active) % whole_number("rank", rank)
    negative = outdone + spare * len(unlearned)
    return Stability(negative, degenerate=len(unlearned) > 0 and negative == 0)


def merged_stability(
    moments: Validated[Moments], learned: Validated[Sequence[int]], *, heads: Validated[int]
) -> Stability:
    """Stability of merged attention at one of its two fixed points: Γ = 0 with all weights 0, or the minimum.

    At zero each of the heads has one direction of negative curvature, of value with key-query along B; the minimum
    has none.

    Raises ValueError for modes that are neither none nor all that contribute, and for heads below 1.

    Source: zhang2025training, section 3.1; count derived in docs/derivations/dynamics.
    """
    instance("moments", moments, Moments)
    number = whole_number("heads", heads)
    held = set(checked_modes(moments, learned))
    learnable = set(np.flatnonzero(modes(moments).contribution).tolist())
    require(
        not held & learnable or learnable <= held,
        f"learned must be no modes or all for merged attention; got {tuple(learned)!r}. "
        "It has no fixed point in between.",
    )
    return Stability(0 if learnable <= held else number, degenerate=False)


def rotations(moments: Validated[Moments], learned: Validated[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Sets of modes that rotating heads reach from `learned`: one mode exchanged for one of larger contribution.

    Each is a lower fixed point. Where signal and contribution order the modes alike there are none on the way of a
    small start; where they do not, the flow may stall at them too, beside the plateaus of the leading modes.

    Raises ValueError for modes that do not exist.

    Source: derived in docs/derivations/dynamics.
    """
    instance("moments", moments, Moments)
    held = checked_modes(moments, learned)
    contribution = modes(moments).contribution
    unlearned = [mode for mode in range(moments.dimension) if mode not in held]
    return tuple(
        tuple(sorted({*held, gained} - {lost}))
        for lost in held
        for gained in unlearned
        if _exceeds(np.asarray(contribution[gained]), contribution[lost])
    )


def _exceeds(contribution: Float[np.ndarray, "*n"], other: float) -> Bool[np.ndarray, "*n"]:
    """True where a contribution exceeds another by more than the rounding of a singular value."""
    return np.asarray(contribution > other + 1e-12 * max(np.max(contribution, initial=0.0), other))
