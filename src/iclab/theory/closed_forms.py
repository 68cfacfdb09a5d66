"""Time courses that need no integration of a layer: a formula, a root, or D + 1 scalars.

White problems make merged attention logistic; aligned heads of separate attention decouple into one scalar each.
Times are in units of τ, of the flow of −½∇L.
"""

import numpy as np
from jaxtyping import Float
from scipy.special import exprel, hyp2f1, logit

from iclab.attention import MergedAttention
from iclab.numerics import increasing_root, require
from iclab.outcomes import Trajectory
from iclab.problem import Regression
from iclab.theory.commuting import commuting_modes
from iclab.theory.integration import integrate
from iclab.theory.population import Moments, loss, moments

Array = np.ndarray


def growing_amplitude(moments: Moments, start: MergedAttention) -> float:
    """w₀, the length at a small start of the mode that grows: |value + key_query · B/|B|| / 2.

    Only this part of the start survives to the drop; the closed forms of merged attention take it as amplitude.

    Raises ValueError for a start that does not fit the problem and where nothing grows, B = 0.

    Source: zhang2025training, eq. 10, whose w_init it makes precise; derived in docs/derivations/dynamics.
    """
    require(isinstance(start, MergedAttention), f"start must be a MergedAttention; got {type(start).__name__}.")
    require(
        start.restricted and np.ndim(start.value) == 1 and start.dimension == moments.dimension,
        f"start must be one restricted layer of dimension {moments.dimension}; got key_query of shape "
        f"{np.shape(start.key_query)}.",
    )
    length = np.linalg.norm(moments.cross)
    require(bool(length > 0), "moments must hold a signal; got B = 0, where no mode grows.")
    along = np.einsum("hij,ij->h", start.key_query, moments.cross / length)
    return float(np.linalg.norm(start.value + along) / 2)


def white_merged_loss(
    problem: Regression, amplitude: Float[Array, "*n"] | float, time: Float[Array, "*n"]
) -> Float[Array, "*n"]:
    """Loss of merged attention for white inputs and tasks, from a small start of this amplitude.

    Γ = σ(t) I with σ logistic: dσ/dt = 2√D (g − h σ) σ, σ(0) = amplitude²/√D, g = B_dd and h = C_dd λ. Exact from
    the aligned balanced start; from another small one the gap falls with the square of its size, see
    growing_amplitude. Any noise, task variance and context lengths. `amplitude` and `time` broadcast.

    Raises ValueError for inputs or tasks that are not white, for amplitude <= 0 and for negative times.

    Source: zhang2025training, eq. 10; noise and task variance derived in docs/derivations/dynamics.
    """
    law, g, h = _white(problem)
    t, D = _times(time), problem.dimension
    first = _amplitude(amplitude) ** 2 / np.sqrt(D)  # σ(0)
    rate = 2 * np.sqrt(D) * g
    held = 2 * np.sqrt(D) * h * t * exprel(-rate * t)  # h/g · (1 − exp(−rate t)), finite at g = 0
    strength = first / (np.exp(-rate * t) + first * held)
    return loss(law, strength[..., None, None] * np.eye(D))


def white_drop_time(
    problem: Regression, amplitude: Float[Array, "*n"] | float, *, fraction: Float[Array, "*n"] | float = 0.5
) -> Float[Array, "*n"]:
    """Time at which white merged attention has made this fraction of its loss drop.

    As white_merged_loss. `amplitude` and `fraction` broadcast. Units: τ.

    Raises ValueError also for a fraction outside (0, 1), and for a start that has it behind it already.

    Source: zhang2025training, eq. 10; derived in docs/derivations/dynamics.
    """
    _, g, h = _white(problem)
    D, part = problem.dimension, np.asarray(fraction, dtype=float)
    require(bool(np.all((part > 0) & (part < 1))), f"fraction must lie between 0 and 1; got {fraction!r}.")
    require(g > 0, "task_eigenvalues must be positive for a drop; got zeros, for which the loss never falls.")
    reached = -np.expm1(0.5 * np.log1p(-part))  # 1 − √(1 − fraction), of the final strength g/h
    first = _amplitude(amplitude) ** 2 / np.sqrt(D) * h / g
    require(
        bool(np.all(first < reached)),
        f"amplitude must start above the asked fraction of the drop; got {amplitude!r}, which has passed it. "
        "Take a smaller start or a larger fraction.",
    )
    return (logit(reached) - logit(first)) / (2 * np.sqrt(D) * g)


def reduced_merged_flow(moments: Moments, amplitude: float, time: Float[Array, "time"]) -> Trajectory:
    """Merged attention from a small start of this amplitude, as D + 1 scalars.

    All heads of a small start align, and act as one whose value r and diagonal key-query b obey dr = Σ b f,
    db = r f with f = g − h r b, r(0) = |b(0)| = amplitude and b(0) along g. The weights returned are that one head.
    For commuting covariances; amplitude as of growing_amplitude. The gap to the flow of a small start falls in
    proportion to its size, for white problems with its square.

    Raises ValueError for covariances that do not commute, amplitude <= 0, and a grid that does not increase.

    Source: zhang2025training, section 3.2; reduction derived in docs/derivations/dynamics.
    """
    modes = commuting_modes(moments)
    g, h, first = modes.force, modes.drag, float(_amplitude(amplitude))
    require(bool(np.any(g)), "moments must hold a signal; got B = 0, where no mode grows.")

    def slope(state: Array) -> Array:
        r, b = state[0], state[1:]
        f = g - h * r * b
        return np.concatenate([[b @ f], r * f])

    start = first * np.concatenate([[1.0], g / np.linalg.norm(g)])
    states = integrate(slope, start, time, floor=first)
    maps = (modes.directions * states[:, None, 1:]) @ modes.directions.T
    weights = MergedAttention(states[:, :1], maps[:, None])
    return Trajectory(np.asarray(time, dtype=float), loss(moments, weights.gamma()), weights)


def aligned_values(
    problem: Regression, initial: Float[Array, "mode"], time: Float[Array, "*time"]
) -> Float[Array, "*time mode"]:
    """Values of separate attention whose head d starts as value, key and query `initial[d]` along direction d.

    Such heads stay aligned and decouple: dv/dt = g v² − h v⁵, solved in implicit form. Exact for any start > 0;
    directions are those of the problem, largest input eigenvalue first.

    Raises ValueError for fewer heads than modes, initial <= 0 and negative times.

    Source: zhang2025training, eq. 21; implicit solution derived in docs/derivations/dynamics.
    """
    g, h = _aligned_rates(problem)
    first = np.asarray(initial, dtype=float)
    require(
        first.shape == g.shape,
        f"initial must hold one strength for each of the {len(g)} modes; got shape {first.shape}. With fewer heads "
        "than modes integrate separate_flow.",
    )
    require(bool(np.all(np.isfinite(first) & (first > 0))), f"initial must be finite and > 0; got {initial!r}.")
    t = _times(time)
    return np.stack([_aligned_value(*rates, t) for rates in zip(g, h, first, strict=True)], axis=-1)


def aligned_loss(
    problem: Regression, initial: Float[Array, "mode"], time: Float[Array, "*time"]
) -> Float[Array, "*time"]:
    """Loss of separate attention with one aligned head for each mode: an exact staircase.

    As aligned_values: null loss − Σ (2 g v³ − h v⁶).

    Source: zhang2025training, eqs. 19 and 21; derived in docs/derivations/dynamics.
    """
    g, h = _aligned_rates(problem)
    cube = aligned_values(problem, initial, time) ** 3
    return moments(problem).null_loss - np.sum((2 * g - h * cube) * cube, axis=-1)


def _aligned_rates(problem: Regression) -> tuple[Array, Array]:
    law = moments(problem)
    return np.diag(law.cross), np.diag(law.second) * np.diag(law.input_covariance)


def _aligned_value(g: float, h: float, first: float, t: Float[Array, "*time"]) -> Float[Array, "*time"]:
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

    def late(x: Array) -> tuple[Array, Array]:
        with np.errstate(divide="ignore"):
            return side * (clock(x) - elapsed), 1 / np.abs(x * (1 - x**3))

    return rest * increasing_root(late, np.minimum(start, end), np.maximum(start, end))


def _rising_clock(x: Array) -> Array:
    """P with dP/dx = 1/(x² (1 − x³)) below x = 1."""
    with np.errstate(divide="ignore"):
        return -1 / x + (0.5 * np.log1p(x + x * x) - np.log1p(-x) - np.sqrt(3) * _turn(x)) / 3


def _falling_clock(x: Array) -> Array:
    """∫ dx'/(x'² (x'³ − 1)) from x to infinity; the logarithms cancel where its series is short, far above 1."""
    u = 1 / x
    with np.errstate(divide="ignore"):
        near = -u + (0.5 * np.log1p(u + u * u) - np.log1p(-u) + np.sqrt(3) * _turn(u)) / 3
    return np.where(u < 0.5, u**4 / 4 * hyp2f1(1, 4 / 3, 7 / 3, np.minimum(u, 0.5) ** 3), near)


def _turn(x: Array) -> Array:
    return np.arctan(np.sqrt(3) * x / (2 + x))  # arctan((2x + 1)/√3) − π/6


def _white(problem: Regression) -> tuple[Moments, float, float]:
    for name, spectrum in (("eigenvalues", problem.eigenvalues), ("task_eigenvalues", problem.task_spectrum)):
        require(
            max(spectrum) - min(spectrum) <= 1e-12 * max(spectrum),  # rounding of values meant to be equal
            f"{name} must all be equal, a white problem; got {spectrum}. For others use reduced_merged_flow.",
        )
    law = moments(problem)
    return law, float(law.cross[0, 0]), float(law.second[0, 0] * law.input_covariance[0, 0])


def _amplitude(amplitude: Float[Array, "*n"] | float) -> Float[Array, "*n"]:
    checked = np.asarray(amplitude, dtype=float)
    require(
        bool(np.all(np.isfinite(checked) & (checked > 0))),
        f"amplitude must be finite and > 0; got {amplitude!r}. From zero the flow never moves.",
    )
    return checked


def _times(time: Float[Array, "*time"]) -> Float[Array, "*time"]:
    checked = np.asarray(time, dtype=float)
    require(bool(np.all(np.isfinite(checked) & (checked >= 0))), f"time must be finite and >= 0; got {time!r}.")
    return checked
