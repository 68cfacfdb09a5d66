"""How wide a window softmax attention should open: exact losses and the best scale at any context length.

Inputs lie on the unit sphere in d dimensions; softmax attention with key-query matrix w·I answers the mean of the
labels with shares that fall with the distance to the query, a window of squared width 1/w. Labels are f(x) + noise
with f a random function without preferred directions. Losses hold the noise of the label that is asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from iclab.numerics import Values, checked, require, whole_number
from iclab.theory.attention_shares import MOST_NODES, Angles, Shares, angles, enough_nodes, shares
from iclab.theory.softmax_laws import (
    gaussian_loss,
    gaussian_share,
    kinked_kernel,
    linear_attention_loss,
    long_context_loss,
    scale_exponent,
    scale_law,
)
from iclab.theory.sphere_kernels import Spectrum, pair_gaps, spectrum

__all__ = [
    "KernelLoss", "affine_loss", "best_kernel_scale", "best_scale", "effective_context", "gaussian_loss",
    "gaussian_share", "kernel_loss", "kinked_kernel", "linear_attention_loss", "long_context_loss", "scale_exponent",
    "scale_law",
]  # fmt: skip

Array = np.ndarray
Kernel = Callable[[Float[Array, "*n"]], Float[Array, "*n"]]
AGREE = 1e-11  # of two numbers of nodes
KERNEL_AGREE = 1e-6  # of two numbers of nodes and degrees; rough kernels converge slowly
NARROWEST, WIDEST = 350.0, 1e-6  # scales between which the best one is looked for


@dataclass(frozen=True)
class KernelLoss:
    """A loss, and the change at the last doubling of nodes and degrees, which bounds its error."""

    loss: float
    error: float


def affine_loss(
    scale: ArrayLike, *, dimension: int, context_length: ArrayLike, slope_variance: ArrayLike, noise: ArrayLike
) -> Values:
    """Exact loss for affine functions f(x) = l uᵀx + b, u uniform on the sphere, E l² = slope_variance.

    Any offset b: shares sum to one, so it cancels. Scale, length, slope variance and noise broadcast. Ten digits up
    to scale 350.

    Raises ValueError for a dimension below 2, a length below 1, a scale that is not positive, negative variances;
    ArithmeticError for scales too large for the quadrature.

    Source: collins2024context (the setting); exact at any length: derived in docs/derivations/softmax_window.
    """
    size, variance, ripple = (
        _dimension(dimension),
        _variance("slope_variance", slope_variance),
        _variance("noise", noise),
    )
    window, length = np.broadcast_arrays(_scale(scale), _lengths(context_length))
    found = [_affine_parts(float(w), int(n), size) for w, n in zip(window.flat, length.flat, strict=True)]
    bias, share = np.array(found).T.reshape(2, *window.shape)
    return (variance / size * bias + ripple * (1 + share))[()]


def effective_context(scale: ArrayLike, *, dimension: int, context_length: ArrayLike) -> Values:
    """Number of examples that the window averages over, 1/E Σ a²; it lies between 1 and the context length.

    Raises ValueError and ArithmeticError as affine_loss.

    Source: derived in docs/derivations/softmax_window.
    """
    only_noise = affine_loss(scale, dimension=dimension, context_length=context_length, slope_variance=0.0, noise=1.0)
    return 1 / (only_noise - 1)


def kernel_loss(kernel: Kernel, scale: float, *, dimension: int, context_length: int, noise: float) -> KernelLoss:
    """Exact loss for random functions of covariance E f(x) f(x') = kernel(xᵀx'), which takes arrays of cosines.

    The kernel is expanded in the harmonics of the sphere, in which a pair of examples factorises; nodes and degrees
    are doubled until the loss changes by less than a millionth.

    Raises ValueError as affine_loss and for a kernel that is no covariance; ArithmeticError where doubling ends
    before.

    Source: collins2024context (the setting); derived in docs/derivations/softmax_window.
    """
    size, length = _dimension(dimension), whole_number("context_length", context_length)
    window, variance = float(_scale(scale)), float(_variance("noise", noise))
    nodes, before, change = 2 * enough_nodes(window), np.inf, np.inf
    while nodes <= MOST_NODES:
        loss = _kernel_value(spectrum(kernel, size, nodes), window, length, size, variance)
        change = abs(loss - before)
        if change <= KERNEL_AGREE * loss:
            return KernelLoss(loss, change)
        nodes, before = 2 * nodes, loss
    raise ArithmeticError(
        f"the loss at scale {window:g} still changes by {change:.1e} at {nodes // 2} nodes. Use a smaller scale."
    )


def best_scale(*, dimension: int, context_length: int, slope_variance: float, noise: float) -> float:
    """Scale of least loss for affine functions, to four digits. Cost: some ten losses, 5 ms up to w = 15.

    It depends on dimension, length and slope_variance/noise alone.

    Raises ValueError as affine_loss, for a length of 1, where the scale is without effect, and for a slope variance
    of 0; ArithmeticError for a best scale outside 1e-6 .. 350.

    Source: collins2024context (the best window adapts to slope and noise); derived in
    docs/derivations/softmax_window.
    """
    size, length = _dimension(dimension), _several(context_length)
    variance, ripple = float(_variance("slope_variance", slope_variance)), float(_variance("noise", noise))
    require(variance > 0, f"slope_variance must be positive; got {slope_variance!r}. A constant needs no window.")

    def loss(window: float) -> float:
        bias, share = _affine_at(window, length, angles(size, enough_nodes(window)))
        return variance / size * bias + ripple * share

    return _least(loss, _first_guess(size, length, variance, ripple))


def best_kernel_scale(kernel: Kernel, *, dimension: int, context_length: int, noise: float) -> float:
    """Scale of least loss for random functions of a covariance, to four digits. Cost: some ten losses.

    Raises ValueError and ArithmeticError as kernel_loss and best_scale.

    Source: collins2024context (the setting); derived in docs/derivations/softmax_window.
    """
    size, length, variance = _dimension(dimension), _several(context_length), float(_variance("noise", noise))
    height = float(kernel(np.ones(1))[0])
    require(height > 0, f"kernel must be positive at 1; got {height!r}. A constant 0 needs no window.")

    def loss(window: float) -> float:
        found = spectrum(kernel, size, 2 * enough_nodes(window))
        return _kernel_value(found, window, length, size, variance)

    return _least(loss, _first_guess(size, length, size * height, variance))


def _affine_parts(window: float, length: int, dimension: int) -> tuple[float, float]:
    """E |x_q − Σ a x|² and E Σ a², doubled until two numbers of nodes agree."""
    nodes, before = enough_nodes(window), None
    while nodes <= MOST_NODES:
        parts = np.array(_affine_at(window, length, angles(dimension, nodes)))
        if before is not None and np.all(abs(parts - before) <= AGREE * parts):
            return float(parts[0]), float(parts[1])
        nodes, before = 2 * nodes, parts
    raise ArithmeticError(f"scale {window:g} is too large for the quadrature. Use one below {NARROWEST:g}.")


def _affine_at(window: float, length: int, at: Angles) -> tuple[float, float]:
    found = shares(window, length, at)
    return 2 * found.single @ at.gap + np.sum((found.pair @ at.gap) ** 2), found.single.sum()


def _kernel_value(law: Spectrum, window: float, length: int, dimension: int, noise: float) -> float:
    found: Shares = shares(window, length, law.at)
    return float(2 * found.single @ law.gap + pair_gaps(law, found.pair) + noise * (1 + found.single.sum()))


def _least(loss: Callable[[float], float], guess: float) -> float:
    """Where a loss is least, in log scale: a walk downhill from a guess, then parabolas."""
    step = 0.3
    logs = np.log(guess) + step * np.array([-1, 0, 1])
    heights = [loss(float(np.exp(log))) for log in logs]
    while not heights[1] < min(heights[0], heights[2]):
        step *= 2
        left = heights[0] <= heights[2]
        edge = max(logs[0] - step, np.log(WIDEST)) if left else min(logs[2] + step, np.log(NARROWEST))
        if not (edge < logs[0] if left else edge > logs[2]):
            raise ArithmeticError(
                f"the best scale must lie between {WIDEST:g} and {NARROWEST:g}; the loss falls to the end of that "
                "range. Change noise, slope or length."
            )
        height = loss(float(np.exp(edge)))
        logs = [edge, *logs[:2]] if left else [*logs[1:], edge]
        heights = [height, *heights[:2]] if left else [*heights[1:], height]
    found = minimize_scalar(lambda log: loss(float(np.exp(log))), bracket=tuple(logs), tol=1e-5)
    return float(np.exp(found.x))


def _first_guess(dimension: int, length: int, slope_variance: float, noise: float) -> float:
    """The law for long contexts, or n L²/(d ρ) for windows wider than the sphere, whichever is less.

    The noise added bounds the scale where there is none.
    """
    ripple = noise + 0.025 * slope_variance
    law = scale_law(dimension, length, slope_variance, ripple)
    return float(np.clip(min(law, length * slope_variance / (dimension * ripple)), 2 * WIDEST, NARROWEST / 2))


def _dimension(dimension: int) -> int:
    return whole_number("dimension", dimension, least=2)


def _several(context_length: int) -> int:
    length = whole_number("context_length", context_length)
    require(
        length > 1, "context_length must be 2 or more here; got 1. One example gets the whole share at any scale."
    )
    return length


def _lengths(context_length: ArrayLike) -> Array:
    numbers = np.asarray(context_length)
    require(
        np.issubdtype(numbers.dtype, np.integer) and bool(np.all(numbers >= 1)),
        f"context_length must be whole numbers >= 1; got {context_length!r}.",
    )
    return numbers


def _scale(scale: ArrayLike) -> Values:
    return checked("scale", scale, above=0.0, infinite=False, advice="It is the inverse squared width of the window.")


def _variance(name: str, value: ArrayLike) -> Values:
    return checked(name, value, at_least=0.0, infinite=False, advice="It is a variance.")
