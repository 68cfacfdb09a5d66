"""Training on a mixture of sequences that need the context and sequences that one fixed task solves.

A fraction p of the sequences has a fresh task w ~ N(0, Ω) each, which only the context reveals. The others share
one in-weight task w*, which the weights can store. The restricted layer cannot hold w*, and the restriction does
not survive training on such data, so this is about unrestricted layers: their prediction is ⟨T, φ⟩ with features
φ_abc = M_ab x_qc and the interaction T = Σ_heads a ⊗ B, and the loss is an exact quadratic in T.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.attention import Layer, MergedAttention
from iclab.numerics import Validated, instance, numbers, positive, require
from iclab.outcomes import Trajectory
from iclab.problem import Regression, checked_mixture
from iclab.theory.integration import integrate
from iclab.theory.tokens.moments import MixtureMoments, fixed_task, fresh_tasks, token_moments

__all__ = [
    "descend", "flow", "growth_rates", "in_context_test", "in_weight_test", "interaction", "loss",
    "mixture_moments",
]  # fmt: skip


def mixture_moments(
    problem: Validated[Regression],
    in_context_fraction: Validated[float],
    in_weight_task: Validated[Float[ArrayLike, "D"]],
    *,
    random_labels: bool = False,
) -> MixtureMoments:
    """Exact moments of a mixture: a fraction p of fresh tasks, the rest with the one task `in_weight_task`.

    All labels, of the context and of the query, are wᵀx + noise. With `random_labels` the in-weight sequences
    keep the query's label w*ᵀx_q + noise, but their context labels are independent N(0, 1) + noise, so that the
    context is uninformative. The published data have |w*| = √D and true labels for 0 < p ≤ 1; for p = 0, and in
    the in-weight test at any p, they have random ones: pass `random_labels=True` there.

    Closed form for D ≤ 12, at a cost and memory of D⁶: milliseconds at D = 4, a second and 33 MB at D = 12.
    Several context lengths are mixed evenly, each average over a context divided by its own length.

    Raises ValueError for a fraction outside [0, 1], a task that is not D finite numbers, or D above 12.

    Source: zhang2025training, in-context and in-weight data; derived in docs/derivations/mixture.
    """
    instance("problem", problem, Regression)
    task = np.array(checked_mixture(problem, in_context_fraction, in_weight_task))
    fixed = fixed_task(problem, task, random_labels=random_labels)
    return token_moments(problem, fresh_tasks(problem).mixed(fixed, in_context_fraction))


def in_context_test(problem: Validated[Regression]) -> MixtureMoments:
    """The law of the ICL test: every sequence has a fresh task. Its loss() is the ICL test loss.

    Source: zhang2025training, in-context and in-weight data; derived in docs/derivations/mixture.
    """
    instance("problem", problem, Regression)
    return mixture_moments(problem, 1.0, np.zeros(problem.dimension))


def in_weight_test(
    problem: Validated[Regression], in_weight_task: Validated[Float[ArrayLike, "D"]]
) -> MixtureMoments:
    """The law of the IWL test: random context labels, the query's label w*ᵀx_q. Its loss() is the IWL test loss.

    A layer that predicts from its weights succeeds; one that uses the context fails.

    Raises ValueError for a task that is not D finite numbers.

    Source: zhang2025training, in-context and in-weight data; derived in docs/derivations/mixture.
    """
    instance("problem", problem, Regression)
    return mixture_moments(problem, 0.0, in_weight_task, random_labels=True)


def interaction(weights: Validated[Layer]) -> Float[np.ndarray, "*batch token token D"]:
    """T = Σ_heads a ⊗ B, through which linear attention acts: prediction Σ T_abc M_ab x_qc.

    B is the key-query matrix of a merged head and Σ_r k qᵀ of a separate one. A restricted layer has Γ in
    T[D, :D] and zeros elsewhere.

    Raises ValueError for anything but a layer.

    Source: zhang2025training, eqs. 1 and 3.
    """
    instance("weights", weights, Layer)
    parts = vars(weights.unrestricted() if weights.restricted else weights).values()
    return np.einsum("...ha,...hbc->...abc" if len(parts) == 2 else "...ha,...hrb,...hrc->...abc", *parts)


def loss(
    moments: Validated[MixtureMoments], weights: Validated[Layer | Float[ArrayLike, "*batch token token D"]]
) -> float | Float[np.ndarray, "*batch"]:
    """Mean squared error of linear attention, given by its weights or by its interaction T.

    L = null_loss − 2⟨b, T⟩ + ⟨T, S T⟩, noise of the query's label included. Under the moments of another law,
    such as in_context_test() and in_weight_test(), it is the test loss of the same layer.

    Raises ValueError where the layer does not fit the moments.

    Source: zhang2025training, eq. 5; derived in docs/derivations/mixture.
    """
    instance("moments", moments, MixtureMoments)
    tensor = interaction(weights) if isinstance(weights, Layer) else numbers("weights", weights)
    shape = moments.cross.shape
    require(
        tensor.shape[-3:] == shape,
        f"weights must act through a tensor of shape {shape}, as the moments; got {tensor.shape}.",
    )
    flat = tensor.reshape(*tensor.shape[:-3], moments.cross.size)
    quadratic = np.sum(flat * (flat @ _matrix(moments)), axis=-1)
    return moments.null_loss - 2 * flat @ moments.cross.ravel() + quadratic


def growth_rates(moments: Validated[MixtureMoments]) -> Float[np.ndarray, "token"]:
    """Growth rates of a tiny start, in units of 1/τ, largest first.

    The singular values of b as a (D+1) × D(D+1) matrix: near the origin da/dt = b : B and dB/dt = a · b. For
    white inputs and N → ∞ they have a closed form, see the derivation.

    Source: zhang2025training, section 3.3 for p = 1; derived in docs/derivations/mixture.
    """
    instance("moments", moments, MixtureMoments)
    return np.linalg.svd(moments.cross.reshape(moments.dimension + 1, -1), compute_uv=False)


def flow(
    moments: Validated[MixtureMoments],
    start: Validated[MergedAttention],
    time: Validated[Float[ArrayLike, "time"]],
    *,
    tolerance: Validated[float] = 1e-9,
) -> Trajectory:
    """Gradient flow of an unrestricted merged layer on half the mean squared error, from `start` at time 0.

    da/dt = G : B and dB/dt = a · G for each head, with G = b − S T; times are in units of τ. `tolerance` is
    relative to each weight, or to the largest weight its head starts with.

    Raises ValueError for a start that is restricted, zero or not of the moments' dimension and for a grid that does
    not increase; ArithmeticError where the integration fails, with the time it reached.

    Source: zhang2025training, eq. 5; derived in docs/derivations/mixture.
    """
    instance("moments", moments, MixtureMoments)
    initial = _state(moments, start)
    states = integrate(
        lambda state: _velocity(moments, state.reshape(initial.shape)).ravel(),
        initial.ravel(),
        time,
        tolerance=tolerance,
        floor=np.repeat(np.max(np.abs(initial), axis=1), initial.shape[1]),
    )
    return _trajectory(moments, np.asarray(time, dtype=float), states.reshape(-1, *initial.shape))


def descend(
    moments: Validated[MixtureMoments],
    start: Validated[MergedAttention],
    steps: Validated[Sequence[int]],
    *,
    rate: Validated[float],
) -> Trajectory:
    """Gradient descent in steps of the flow, recorded after each of `steps`; time = rate × step.

    One step goes `rate`, the learning rate on half the mean squared error, along the velocity of the flow. Rates and
    weights of published runs have other units, see docs/derivations/published_units.

    Raises ValueError for a start as in flow(), a rate that is not positive and steps that are not increasing whole
    numbers >= 0; ArithmeticError when the descent diverges.

    Source: zhang2025training, in-context and in-weight figure; derived in docs/derivations/mixture.
    """
    instance("moments", moments, MixtureMoments)
    state = _state(moments, start)
    positive("rate", rate)
    recorded = np.asarray(steps)
    require(
        recorded.ndim == 1
        and recorded.size > 0
        and np.issubdtype(recorded.dtype, np.integer)
        and recorded[0] >= 0
        and bool(np.all(np.diff(recorded) > 0)),
        f"steps must be increasing whole numbers >= 0; got {steps}. The start is step 0.",
    )
    kept = []
    with np.errstate(over="ignore", invalid="ignore"):
        for count in np.diff(recorded, prepend=0):
            for _ in range(count):
                state = state + rate * _velocity(moments, state)
            kept.append(state)
    if not np.all(np.isfinite(state)):
        raise ArithmeticError(
            f"gradient descent diverged within {recorded[-1]} steps at learning rate {rate!r}. Lower the rate."
        )
    return _trajectory(moments, rate * recorded, np.stack(kept))


def _state(moments: MixtureMoments, start: MergedAttention) -> Float[np.ndarray, "head entry"]:
    """The weights of each head in one row: a, then B."""
    dimension = moments.dimension
    require(
        np.ndim(start.value) == 2 and not start.restricted and start.dimension == dimension,
        f"start must be one unrestricted layer, value (H, {dimension + 1}) and key_query (H, {dimension + 1}, "
        f"{dimension}); got {np.shape(start.value)} and {np.shape(start.key_query)}.",
    )
    state = np.concatenate([start.value, np.reshape(start.key_query, (start.heads, -1))], axis=1).astype(float)
    require(bool(np.all(np.isfinite(state))), "start must be finite; got NaN or infinity.")
    require(
        bool(np.any(state)),
        "start must not be exactly zero: the flow never leaves that fixed point. Give small random weights.",
    )
    return state


def _velocity(moments: MixtureMoments, state: Float[np.ndarray, "head entry"]) -> Float[np.ndarray, "head entry"]:
    rows = moments.dimension + 1
    value, key_query = state[:, :rows], state[:, rows:]
    residual = moments.cross.ravel() - _matrix(moments) @ (value.T @ key_query).ravel()
    residual = residual.reshape(rows, -1)
    return np.concatenate([key_query @ residual.T, value @ residual], axis=1)


def _trajectory(
    moments: MixtureMoments, time: Float[np.ndarray, "time"], states: Float[np.ndarray, "time head entry"]
) -> Trajectory:
    rows = moments.dimension + 1
    weights = MergedAttention(
        states[..., :rows], states[..., rows:].reshape(*states.shape[:-1], rows, moments.dimension)
    )
    return Trajectory(time, np.asarray(loss(moments, weights)), weights)


def _matrix(moments: MixtureMoments) -> Float[np.ndarray, "feature feature"]:
    """S with the three axes of each φ made one."""
    return moments.second.reshape(moments.cross.size, moments.cross.size)
