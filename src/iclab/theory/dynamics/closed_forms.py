"""Time course of merged attention from a small start: a formula for white problems, else D + 1 scalars.

Times are in units of τ, of the flow of −½∇L.
"""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import exprel, logit

from iclab.attention import MergedAttention, restricted_parts
from iclab.numerics import Validated, instance, nonnegative, numbers, require
from iclab.outcomes import Trajectory
from iclab.problem import Regression
from iclab.theory.dynamics.commuting import commuting_modes
from iclab.theory.integration import integrate
from iclab.theory.population import Moments, loss, moments

__all__ = ["growing_amplitude", "reduced_merged_flow", "white_drop_time", "white_merged_loss"]


def growing_amplitude(moments: Validated[Moments], start: Validated[MergedAttention]) -> float:
    """Amplitude w₀ of the growing mode at a small start: |value + key_query · B/|B|| / 2.

    Only this part of the start survives to the drop; the closed forms of merged attention take it as amplitude.

    Raises ValueError for a start that does not fit the problem and where nothing grows, B = 0.

    Source: zhang2025training, eq. 10, whose w_init it makes precise; derived in docs/derivations/dynamics.
    """
    instance("moments", moments, Moments)
    value, key_query = restricted_parts(start, MergedAttention, moments.dimension)
    length = np.linalg.norm(moments.cross)
    require(bool(length > 0), "moments must hold a signal; got B = 0, where no mode grows.")
    along = np.einsum("hij,ij->h", key_query, moments.cross / length)
    return float(np.linalg.norm(value + along) / 2)


def white_merged_loss(
    problem: Validated[Regression], amplitude: Validated[ArrayLike], time: Validated[Float[ArrayLike, "*n"]]
) -> float | Float[np.ndarray, "*n"]:
    """Loss of merged attention for white inputs and tasks, from a small start of this amplitude.

    Γ = σ(t) I with σ logistic: dσ/dt = 2√D (g − h σ) σ, σ(0) = amplitude²/√D, g = B_dd and h = C_dd λ. Exact from
    the aligned balanced start; from another small one the gap falls with the square of its size, see
    growing_amplitude. Any noise, task variance and context lengths. `amplitude` and `time` broadcast.

    Raises ValueError for inputs or tasks that are not white, for amplitude <= 0 and for negative times.

    Source: zhang2025training, eq. 10; noise and task variance derived in docs/derivations/dynamics.
    """
    instance("problem", problem, Regression)
    law, g, h = _white(problem)
    t, D = nonnegative("time", time), problem.dimension
    first = _amplitude(amplitude) ** 2 / np.sqrt(D)  # σ(0)
    rate = 2 * np.sqrt(D) * g
    held = 2 * np.sqrt(D) * h * t * exprel(-rate * t)  # h/g · (1 − exp(−rate t)), finite at g = 0
    strength = first / (np.exp(-rate * t) + first * held)
    return loss(law, strength[..., None, None] * np.eye(D))


def white_drop_time(
    problem: Validated[Regression],
    amplitude: Validated[ArrayLike],
    *,
    fraction: Validated[ArrayLike] = 0.5,
) -> float | Float[np.ndarray, "*n"]:
    """Time at which white merged attention has made this fraction of its loss drop.

    As white_merged_loss. `amplitude` and `fraction` broadcast. Units: τ.

    Raises ValueError also for a fraction outside (0, 1), and for a start beyond that fraction.

    Source: zhang2025training, eq. 10; derived in docs/derivations/dynamics.
    """
    instance("problem", problem, Regression)
    _, g, h = _white(problem)
    D, part = problem.dimension, numbers("fraction", fraction)
    require(bool(np.all((part > 0) & (part < 1))), f"fraction must lie between 0 and 1; got {fraction!r}.")
    require(g > 0, "task_eigenvalues must be positive for a drop; got zeros, for which the loss never falls.")
    reached = -np.expm1(0.5 * np.log1p(-part))  # 1 − √(1 − fraction), of the final strength g/h
    first = _amplitude(amplitude) ** 2 / np.sqrt(D) * h / g
    require(
        bool(np.all(first < reached)),
        f"amplitude must be small enough for the drop to lie ahead; got {amplitude!r}, which is past the fraction "
        f"{fraction!r} of it. Take a smaller start or a larger fraction.",
    )
    return (logit(reached) - logit(first)) / (2 * np.sqrt(D) * g)


def reduced_merged_flow(
    moments: Validated[Moments],
    amplitude: Validated[float],
    time: Validated[Float[ArrayLike, "time"]],
    *,
    tolerance: Validated[float] = 1e-9,
) -> Trajectory:
    """Merged attention from a small start of this amplitude, as D + 1 scalars.

    All heads of a small start align, and act as one whose value r and diagonal key-query b obey dr = Σ b f,
    db = r f with f = g − h r b, r(0) = |b(0)| = amplitude and b(0) along g. The weights returned are that one head.
    For commuting covariances; amplitude as of growing_amplitude, tolerance as of merged_flow. The gap to the flow of
    a small start falls in proportion to its size, for white problems with its square.

    Raises ValueError for covariances that do not commute, amplitude <= 0, and a grid that does not increase.

    Source: zhang2025training, section 3.2; reduction derived in docs/derivations/dynamics.
    """
    instance("moments", moments, Moments)
    modes = commuting_modes(moments)
    g, h, first = modes.signal, modes.curvature, _amplitude(amplitude)
    require(first.ndim == 0, f"amplitude must be one number; got shape {first.shape}. Flow one at a time.")
    require(bool(np.any(g)), "moments must hold a signal; got B = 0, where no mode grows.")

    def velocity(state: np.ndarray) -> np.ndarray:
        r, b = state[0], state[1:]
        f = g - h * r * b
        return np.concatenate([[b @ f], r * f])

    start = first * np.concatenate([[1.0], g / np.linalg.norm(g)])
    states = integrate(velocity, start, time, tolerance=tolerance, floor=float(first))
    maps = (modes.directions * states[:, None, 1:]) @ modes.directions.T
    weights = MergedAttention(states[:, :1], maps[:, None])
    return Trajectory(np.asarray(time, dtype=float), np.asarray(loss(moments, weights.gamma())), weights)


def _white(problem: Regression) -> tuple[Moments, float, float]:
    for name, spectrum in (("eigenvalues", problem.eigenvalues), ("task_eigenvalues", problem.task_spectrum)):
        require(
            max(spectrum) - min(spectrum) <= 1e-12 * max(spectrum),  # rounding of values meant to be equal
            f"{name} must all be equal, a white problem; got {spectrum}. For others use reduced_merged_flow.",
        )
    law = moments(problem)
    return law, float(law.cross[0, 0]), float(law.second[0, 0] * law.input_covariance[0, 0])


def _amplitude(amplitude: Validated[ArrayLike]) -> Float[np.ndarray, "*n"]:
    checked = numbers("amplitude", amplitude)
    require(
        bool(np.all(checked >= 1e-150)),  # its square must be a number
        f"amplitude must be finite and > 0; got {amplitude!r}. From zero the flow never moves, and below 1e-150 the "
        "square of the amplitude is no number.",
    )
    return checked
