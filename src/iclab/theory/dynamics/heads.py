"""Heads that hold several modes: balanced weights at fixed points, and the reduced flow of a single head."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.attention import SeparateAttention
from iclab.numerics import Validated, checked_number, instance, numbers, require, whole_number
from iclab.outcomes import Trajectory
from iclab.theory.dynamics.commuting import commuting_modes
from iclab.theory.dynamics.fixed_points import checked_modes, fixed_point
from iclab.theory.integration import descend_flow, require_fall, squares
from iclab.theory.population import Moments, loss

__all__ = ["balanced_weights", "head_flow"]


def balanced_weights(
    moments: Validated[Moments], learned: Validated[Sequence[int]], *, heads: Validated[int], rank: Validated[int] = 1
) -> SeparateAttention:
    """Weights of separate attention at the fixed point that holds the modes `learned`, as a small start ends there.

    The modes are dealt to the heads in the order given, `rank` to each; heads left over are zero. Balanced:
    K Kᵀ = Q Qᵀ and value² = |K|² = |Q|² in each head, so value³ is the sum of the singular values s_r of the head's
    Γ, and pair r has key and query of length √(s_r/value). For commuting covariances s = g/h of each mode.

    Raises ValueError for more modes than heads × rank, and for modes that do not exist.

    Source: zhang2025training, eq. 20; rank and general covariances derived in docs/derivations/dynamics.
    """
    instance("moments", moments, Moments)
    held = checked_modes(moments, learned)
    require(
        len(held) <= whole_number("heads", heads) * whole_number("rank", rank),
        f"learned must hold at most heads × rank = {heads * rank} modes; got {len(held)}. Add heads or rank.",
    )
    value = np.zeros(heads)
    key, query = np.zeros((2, heads, rank, moments.dimension))
    for head, first in enumerate(range(0, len(held), rank)):
        share = held[first : first + rank]
        left, size, right = np.linalg.svd(fixed_point(moments, share))
        pairs = slice(len(share))
        value[head] = np.cbrt(np.sum(size[pairs]))
        length = np.sqrt(np.divide(size[pairs], value[head], out=np.zeros(len(share)), where=value[head] > 0))
        key[head, pairs] = length[:, None] * left.T[pairs]
        query[head, pairs] = length[:, None] * right[pairs]
    return SeparateAttention(value, key, query)


def head_flow(
    moments: Validated[Moments],
    value: Validated[float],
    strengths: Validated[Float[ArrayLike, "mode"]],
    time: Validated[Float[ArrayLike, "time"]],
) -> Trajectory:
    """Gradient flow of a single head whose key-query pair r lies along mode r with key and query of one length.

    D + 1 scalars: dv = Σ c² (g − h v c²), dc = v c (g − h v c²), c of length `strengths`, largest contribution first;
    a mode with strength 0 is not held and stays so. Exact on this manifold, which small starts approach. From v small
    the first pair escapes algebraically and the others then grow like exp(v g t), so that plateaus of rank R are
    visible at multiples of R modes. The weights returned are one head of rank D, pair r along mode r.

    Raises ValueError for covariances that do not commute, for a start that never moves, and for a grid that does
    not increase.

    Source: zhang2025training, section 4.3; reduction derived in docs/derivations/dynamics.
    """
    instance("moments", moments, Moments)
    modes = commuting_modes(moments)
    g, h = modes.signal, modes.curvature
    start = np.concatenate([[checked_number("value", value)], numbers("strengths", strengths)])
    require(
        start.shape == (moments.dimension + 1,),
        f"strengths must be one for each of the {moments.dimension} modes, 0 for a mode not held; got {strengths!r}.",
    )
    require(
        bool(np.any(start[1:])), "strengths must not all be 0; the flow never leaves such a start. Give one mode."
    )

    def velocity(state: np.ndarray) -> np.ndarray:
        v, c = state[0], state[1:]
        residual = c * (g - h * v * c**2)
        return np.concatenate([[c @ residual], v * residual])

    largest = np.max(np.abs(start), keepdims=True)  # v may pass zero, a strength never does
    v, c = start[0], start[1:]
    states = descend_flow(
        velocity, start, time, floor=np.concatenate([largest, np.abs(c)]), factors=3,
        leverage=squares(c**2, 2 * v * c), size=float(np.linalg.norm(modes.best)),
    )  # fmt: skip
    pairs = states[:, None, 1:, None] * modes.directions.T
    weights = SeparateAttention(states[:, :1], pairs, pairs)
    losses = np.asarray(loss(moments, weights.gamma()))
    require_fall(losses, height=moments.null_loss)
    return Trajectory(np.asarray(time, dtype=float), losses, weights)
