"""Population gradient flow of linear attention, with merged and with separate key and query.

Both follow τ dW/dt = −½ ∂L/∂W from a restricted start; on the population loss such a layer stays restricted.
Times are in units of τ. With the residual F = B − C Γ Λ on Γ, a merged head moves by dv = ⟨U, F⟩, dU = v F and a
separate head by dv = Σ kᵀ F q, dk = v F q, dq = v Fᵀ k.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np
from jaxtyping import Float, Inexact
from numpy.typing import ArrayLike

from iclab.attention import Layer, MergedAttention, SeparateAttention, restricted_parts
from iclab.numerics import Validated, checked_number, instance, numbers, require
from iclab.outcomes import Trajectory
from iclab.theory.integration import descend_flow, require_fall
from iclab.theory.population import Moments, best_gamma, loss

__all__ = ["merged_flow", "separate_flow"]


def merged_flow(
    moments: Validated[Moments],
    start: Validated[MergedAttention],
    time: Validated[Float[ArrayLike, "time"]],
    *,
    decay: Validated[float] = 0.0,
    time_constants: Validated[Sequence[float]] = (1.0, 1.0),
    tolerance: Validated[float] = 1e-9,
) -> Trajectory:
    """Gradient flow of a restricted merged layer from `start` at time 0.

    Any heads, covariances, noise and context lengths. `decay` is the weight decay γ of the loss L + γ|W|²;
    `time_constants` are those of value and key_query in units of τ. `tolerance` is relative to each weight, or to
    the largest weight its head starts with; the error of the trajectory is proportional to it. From a large start,
    which makes the flow stiff, it is relative to Γ.

    Raises ValueError for a start that does not fit, is unrestricted or never moves and for a grid that does not
    increase; ArithmeticError where the integration fails, with the time it reached, and from a start so large that
    the weights in double precision no longer say what the loss is.

    Source: zhang2025training, eqs. 5 and 9; general moments derived in docs/derivations/dynamics.
    """
    instance("moments", moments, Moments)
    value, key_query = restricted_parts(start, MergedAttention, moments.dimension)
    heads, size = len(value), moments.dimension

    def velocity(state: np.ndarray) -> np.ndarray:
        value, maps = state[:heads], state[heads:].reshape(heads, -1)
        residual = _residual(moments, (value @ maps).reshape(size, size)).ravel()
        out = np.empty_like(state)
        np.matmul(maps, residual, out=out[:heads])
        np.multiply(value[:, None], residual, out=out[heads:].reshape(heads, -1))
        return out

    return _flow(moments, velocity, MergedAttention, (value, key_query), time, decay, time_constants, tolerance)


def separate_flow(
    moments: Validated[Moments],
    start: Validated[SeparateAttention],
    time: Validated[Float[ArrayLike, "time"]],
    *,
    decay: Validated[float] = 0.0,
    time_constants: Validated[Sequence[float]] = (1.0, 1.0, 1.0),
    tolerance: Validated[float] = 1e-9,
) -> Trajectory:
    """Gradient flow of a restricted separate layer from `start` at time 0.

    As merged_flow, for any heads and rank; `time_constants` are those of value, key and query in units of τ.

    Raises ValueError for a start that does not fit, is unrestricted or never moves and for a grid that does not
    increase; ArithmeticError where the integration fails, with the time it reached.

    Source: zhang2025training, eqs. 5 and 14; general moments and rank derived in docs/derivations/dynamics.
    """
    instance("moments", moments, Moments)
    value, key, query = restricted_parts(start, SeparateAttention, moments.dimension)
    heads, rank, size = query.shape

    def velocity(state: np.ndarray) -> np.ndarray:
        key, query = state[heads:].reshape(2, heads * rank, size)
        strength = np.repeat(state[:heads], rank)[:, None]
        residual = _residual(moments, (strength * key).T @ query)
        along_key = key @ residual
        out = np.empty_like(state)
        np.sum((along_key * query).reshape(heads, -1), axis=1, out=out[:heads])
        change = out[heads:].reshape(2, heads * rank, size)
        np.multiply(strength, query @ residual.T, out=change[0])
        np.multiply(strength, along_key, out=change[1])
        return out

    return _flow(moments, velocity, SeparateAttention, (value, key, query), time, decay, time_constants, tolerance)


def _residual(moments: Moments, gamma: Inexact[np.ndarray, "*batch D D"]) -> Inexact[np.ndarray, "*batch D D"]:
    return moments.cross - moments.second @ gamma @ moments.input_covariance


def _flow(
    moments: Moments,
    velocity: Callable[[np.ndarray], np.ndarray],
    kind: type[Layer],
    parts: tuple[np.ndarray, ...],
    time: Validated[Float[ArrayLike, "time"]],
    decay: Validated[float],
    time_constants: Validated[Sequence[float]],
    tolerance: Validated[float],
) -> Trajectory:
    speed = np.repeat(_speeds(kind, time_constants), [part.size for part in parts])
    checked_number("decay", decay, at_least=0.0)
    state = np.concatenate([part.ravel() for part in parts])
    with np.errstate(over="ignore", invalid="ignore"):
        moves = bool(np.any(velocity(state)))
    require(
        moves,
        "start must move; got weights whose gradients all vanish, as at zero, and the flow never leaves them. "
        "Draw small random weights.",
    )
    floor = np.concatenate([np.repeat(_head_sizes(parts), part[0].size) for part in parts])
    states = descend_flow(
        lambda state: speed * (velocity(state) - decay * state), state, time, tolerance=tolerance, floor=floor,
        factors=len(parts), leverage=_leverage(parts), size=float(np.linalg.norm(best_gamma(moments))),
    )  # fmt: skip
    ends = np.cumsum([part.size for part in parts])[:-1]
    pieces = np.split(states, ends, axis=1)
    weights = kind(*(piece.reshape(-1, *part.shape) for piece, part in zip(pieces, parts, strict=True)))
    losses = np.asarray(loss(moments, weights.gamma()))
    require_fall(
        losses + decay * np.sum(states**2, axis=1), height=moments.null_loss, tolerance=tolerance,
        blur=_blur(moments, weights),
    )  # fmt: skip
    return Trajectory(np.asarray(time, dtype=float), losses, weights)


def _leverage(parts: tuple[np.ndarray, ...]) -> float:
    """Bound on |∂Γ/∂W|²: a change of one factor of a head is multiplied by the norms of its others."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.array([np.sum(part.reshape(len(part), -1) ** 2, axis=1) for part in parts])
        others = [np.prod(np.delete(squares, part, axis=0), axis=0) for part in range(len(squares))]
        return float(np.nan_to_num(np.sum(others), nan=np.inf))


def _blur(moments: Moments, weights: Layer) -> Float[np.ndarray, "time"]:
    """Change of the loss by the rounding of weights, whose heads may be large and cancel in Γ."""
    parts = [np.abs(getattr(weights, entry.name)) for entry in fields(weights)]
    gamma, spread = weights.gamma(), np.finfo(float).eps * type(weights)(*parts).gamma()
    curved = np.abs(moments.second) @ spread @ np.abs(moments.input_covariance)
    return np.sum(spread * (2 * np.abs(_residual(moments, gamma)) + curved), axis=(-2, -1))


def _speeds(kind: type[Layer], time_constants: Validated[Sequence[float]]) -> Float[np.ndarray, "part"]:
    names = [entry.name for entry in fields(kind)]
    constants = numbers("time_constants", time_constants)
    require(
        constants.shape == (len(names),) and bool(np.all(constants > 0)),
        f"time_constants must be {len(names)} positive numbers, for {', '.join(names)}; got {time_constants!r}.",
    )
    return 1 / constants


def _head_sizes(parts: tuple[np.ndarray, ...]) -> Float[np.ndarray, "head"]:
    """Largest weight of each head: heads meet only through the residual B − C Γ Λ, so each keeps its own scale."""
    return np.max([np.abs(part).reshape(len(part), -1).max(axis=1) for part in parts], axis=0)
