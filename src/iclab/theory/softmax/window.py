"""The window of softmax attention: exact losses and the best scale at any context length.

Inputs lie on the unit sphere in d dimensions; softmax attention with key-query matrix w·I predicts the mean of the
labels, with attention weights that fall with the distance to the query: a window of squared width 1/w. Labels are
f(x) + noise with f a random function of isotropic law. Losses include the noise of the query's label.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from iclab.numerics import Validated, Values, checked, checked_number, magnitude_number, require, whole_number
from iclab.theory.softmax.attention_weights import (
    MOST_NODES,
    Angles,
    angles,
    enough_nodes,
    farthest,
    nearest,
    weight_products,
    weight_products_and_derivatives,
)
from iclab.theory.softmax.laws import (
    MOST_DIMENSIONS,
    scale_law,
)
from iclab.theory.softmax.sphere_kernels import Kernel, pair_gaps, spectrum

__all__ = [
    "KernelLoss", "affine_loss", "best_kernel_scale", "best_scale", "effective_context", "kernel_loss",
]  # fmt: skip

AGREE = 1e-11  # of two numbers of nodes
KERNEL_AGREE = 1e-6  # of two numbers of nodes and degrees; rough kernels converge slowly
NARROWEST, WIDEST = 1e5, 1e-6  # scales between which the best one is looked for
SHARP = 1e-6  # relative, of a best scale


@dataclass(frozen=True)
class KernelLoss:
    """A loss, and the change at the last doubling of nodes and degrees, which bounds its error."""

    loss: float
    error: float


def affine_loss(
    scale: Validated[ArrayLike],
    *,
    dimension: Validated[int],
    context_length: Validated[ArrayLike],
    slope_variance: Validated[ArrayLike],
    noise: Validated[ArrayLike],
) -> Values:
    """Exact loss for affine functions f(x) = l uᵀx + b, u uniform on the sphere, E l² = slope_variance.

    Any offset b: attention weights sum to one, so it cancels. Scale, length, slope variance and noise
    broadcast. Ten digits, up to scale 350 at any length and dimension, and far beyond in long contexts or in many
    dimensions.

    Raises ValueError for a dimension outside 2..100000, a length below 1, a scale that is not positive or too large
    for the quadrature, and negative variances.

    Source: collins2024context (the setting); exact at any length: derived in docs/derivations/softmax_window.
    """
    size, variance, ripple = (
        _dimension(dimension),
        _variance("slope_variance", slope_variance),
        _variance("noise", noise),
    )
    bias, squares = _affine(_scale(scale), _lengths(context_length), size)
    return (variance / size * bias + ripple * (1 + squares))[()]


def effective_context(
    scale: Validated[ArrayLike], *, dimension: Validated[int], context_length: Validated[ArrayLike]
) -> Values:
    """Effective number of examples in the window, 1/E Σ a²; it lies between 1 and the context length.

    Raises ValueError as affine_loss.

    Source: derived in docs/derivations/softmax_window.
    """
    return (1 / _affine(_scale(scale), _lengths(context_length), _dimension(dimension))[1])[()]


def kernel_loss(
    kernel: Validated[Kernel],
    scale: Validated[float],
    *,
    dimension: Validated[int],
    context_length: Validated[int],
    noise: Validated[float],
) -> KernelLoss:
    """Exact loss for random functions of covariance E f(x) f(x') = kernel(xᵀx'), which takes arrays of cosines.

    The kernel is expanded in the harmonics of the sphere, in which a pair of examples factorizes; nodes and degrees
    are doubled until the loss changes by less than a millionth.

    Raises ValueError as affine_loss, for a kernel that is no covariance, and for a scale above some 190, less in
    hundreds of dimensions and more, for which the nodes are too many; ArithmeticError where doubling ends before.

    Source: collins2024context (the setting); derived in docs/derivations/softmax_window.
    """
    size, length = _dimension(dimension), whole_number("context_length", context_length)
    window, variance = checked_number("scale", scale, above=0.0), checked_number("noise", noise, at_least=0.0)
    nodes, before, change = _kernel_nodes(window, size, most=MOST_NODES // 2), np.inf, np.inf
    while nodes <= MOST_NODES:
        law = spectrum(kernel, size, nodes)
        found = weight_products(window, length, law.at)
        bias = 2 * float(found.single @ law.gap) + pair_gaps(law, found.pair, found.pair)
        loss = bias + variance * (1 + float(found.single.sum()))
        change = abs(loss - before)
        if change <= KERNEL_AGREE * loss:
            return KernelLoss(loss, change)
        nodes, before = 2 * nodes, loss
    raise ArithmeticError(
        f"the loss at scale {window:g} still changes by {change:.1e} at {nodes // 2} nodes. Use a smaller scale."
    )


def best_scale(
    *,
    dimension: Validated[int],
    context_length: Validated[int],
    slope_variance: Validated[float],
    noise: Validated[float],
) -> float:
    """Scale of least loss for affine functions, to five digits. Cost: some seven derivatives, 2 to 6 ms.

    It depends on dimension, length and slope_variance/noise alone. In much noise it is n·slope_variance/(d·noise).

    Raises ValueError as affine_loss, for a length of 1, where the scale has no effect, for a slope variance of 0,
    and for a best scale that is too large for the quadrature.

    Source: collins2024context (the best window adapts to slope and noise); derived in
    docs/derivations/softmax_window.
    """
    size, length = _dimension(dimension), _several(context_length)
    variance = magnitude_number("slope_variance", slope_variance, advice="A constant needs no window.")
    ripple = magnitude_number("noise", noise, zero=True)
    guess = _first_guess(size, length, variance, ripple)
    if guess <= WIDEST:
        return guess

    def slope(log: float) -> float:
        window = float(np.exp(log))
        begin, end = _range(window, length, size)
        at = angles(size, _nodes(window, size, end, begin, what="the best scale"), end, begin)
        here, tilt = weight_products_and_derivatives(window, length, at)
        bias = tilt.single @ at.gap + (here.pair @ at.gap) @ (tilt.pair @ at.gap)
        return float(2 * variance / size * bias + ripple * tilt.single.sum())

    return _least(slope, guess)


def best_kernel_scale(
    kernel: Validated[Kernel], *, dimension: Validated[int], context_length: Validated[int], noise: Validated[float]
) -> float:
    """Scale of least loss for random functions of a covariance, to four digits.

    Cost: some seven derivatives, 10 ms.

    Raises ValueError as best_scale and kernel_loss, and for a best scale below a millionth.

    Source: collins2024context (the setting); derived in docs/derivations/softmax_window.
    """
    size, length = _dimension(dimension), _several(context_length)
    ripple = magnitude_number("noise", noise, zero=True)
    height = spectrum(kernel, size, 2 * enough_nodes(1.0, size)).height
    require(height > 0, f"kernel must be positive at 1; got {height!r}. A constant 0 needs no window.")

    def slope(log: float) -> float:
        window = float(np.exp(log))
        law = spectrum(kernel, size, _kernel_nodes(window, size, most=MOST_NODES, what="the best scale"))
        here, tilt = weight_products_and_derivatives(window, length, law.at)
        bias = 2 * float(tilt.single @ law.gap) + 2 * pair_gaps(law, here.pair, tilt.pair)
        return bias + ripple * float(tilt.single.sum())

    return _least(slope, max(_first_guess(size, length, size * height, ripple), WIDEST))


def _affine(scale: Values, lengths: Int[np.ndarray, "*n"], dimension: int) -> Float[np.ndarray, "2 *all"]:
    """E |x_q − Σ a x|² and E Σ a² at every scale and length."""
    window, length = np.broadcast_arrays(scale, lengths)
    found = [_affine_parts(float(w), int(n), dimension) for w, n in zip(window.flat, length.flat, strict=True)]
    return np.array(found).T.reshape(2, *window.shape)


def _affine_parts(window: float, length: int, dimension: int) -> tuple[float, float]:
    """E |x_q − Σ a x|² and E Σ a², nodes doubled until two numbers of them agree, the most of all at last."""
    begin, end = _range(window, length, dimension)
    nodes, last, before = _nodes(window, dimension, end, begin), 0, None
    while nodes >= 1.1 * last:  # with fewer more two numbers of nodes would agree for being alike
        parts = np.array(_affine_at(window, length, angles(dimension, nodes, end, begin)))
        if before is not None and np.all(abs(parts - before) <= AGREE * parts):
            return float(parts[0]), float(parts[1])
        nodes, last, before = min(2 * nodes, MOST_NODES), nodes, parts
    raise ArithmeticError(f"the loss at scale {window:g} still changes at {last} nodes. Use a smaller scale.")


def _affine_at(window: float, length: int, at: Angles) -> tuple[float, float]:
    found = weight_products(window, length, at)
    return 2 * found.single @ at.gap + np.sum((found.pair @ at.gap) ** 2), found.single.sum()


def _range(window: float, length: int, dimension: int) -> tuple[float, float]:
    """The angles between which examples are found that have weight."""
    begin = nearest(length, dimension)
    return begin, min(farthest(window, length, dimension), np.pi - begin)


def _nodes(window: float, dimension: int, end: float, begin: float = 0.0, *, what: str = "scale") -> int:
    """The first number of nodes. Raises ValueError where it is too large to be doubled."""
    nodes = enough_nodes(min(window, 1e6), dimension, end, begin)
    require(
        2 * nodes <= MOST_NODES,
        f"{what} must be at most 350, or beyond in contexts that are long for it; got {window:g}, which takes too "
        "many nodes. Use a smaller scale, a longer context or more noise.",
    )
    return nodes


def _kernel_nodes(window: float, dimension: int, *, most: int, what: str = "scale") -> int:
    """The first number of nodes for harmonics, which need all angles. Raises ValueError where it is above `most`."""
    nodes = 2 * enough_nodes(min(window, 1e6), dimension)
    widest = sum(2 * enough_nodes(float(scale), dimension) <= most for scale in range(1, 500))
    require(
        nodes <= most,
        f"{what} must be at most {widest} for functions of a kernel in {dimension} dimensions; got {window:g}, which "
        f"takes too many nodes. Use {'a smaller scale or more noise' if widest else 'fewer dimensions'}.",
    )
    return nodes


def _least(slope: Callable[[float], float], guess: float) -> float:
    """The scale at which the derivative of a loss in log scale is zero, bracketed downhill from a guess."""
    derivative = lru_cache(maxsize=None)(slope)
    here, step = float(np.log(guess)), 0.1
    down = -np.sign(derivative(here))
    while True:
        there = float(np.clip(here + down * step, np.log(WIDEST), np.log(NARROWEST)))
        require(
            there != here or down == 0,
            f"the best scale must lie between {WIDEST:g} and {NARROWEST:g}; got a loss that falls to the end of that "
            "range. Change noise, slope or length.",
        )
        if derivative(there) * down >= 0:
            root: Any = brentq(derivative, here, there, xtol=SHARP)
            return float(np.exp(root))
        here, step = there, min(2 * step, 0.8)


def _first_guess(dimension: int, length: int, slope_variance: float, noise: float) -> float:
    """The smaller of the law for long contexts and n L²/(d ρ), that of windows wider than the sphere.

    A small noise is added, which bounds the scale where there is none.
    """
    ripple = noise + 0.025 * slope_variance
    wide = length * slope_variance / (dimension * ripple)
    return float(min(scale_law(dimension, length, slope_variance, ripple), wide, NARROWEST / 2))


def _dimension(dimension: Validated[int]) -> int:
    size = whole_number("dimension", dimension, least=2)
    require(size <= MOST_DIMENSIONS, f"dimension must be at most {MOST_DIMENSIONS} here; got {size}. Use scale_law.")
    return size


def _several(context_length: Validated[int]) -> int:
    length = whole_number("context_length", context_length)
    require(
        length > 1, "context_length must be 2 or more here; got 1. One example gets the whole weight at any scale."
    )
    return length


def _lengths(context_length: Validated[ArrayLike]) -> Int[np.ndarray, "*n"]:
    checked("context_length", context_length, at_least=1.0)
    numbers = np.asarray(context_length)
    require(
        np.issubdtype(numbers.dtype, np.integer) or numbers.size == 0,
        f"context_length must be whole numbers >= 1, of 64 bits; got {context_length!r}.",
    )
    return numbers


def _scale(scale: Validated[ArrayLike]) -> Values:
    return checked("scale", scale, above=0.0, infinite=False, advice="It is the inverse squared width of the window.")


def _variance(name: str, value: Validated[ArrayLike]) -> Values:
    return checked(name, value, at_least=0.0, infinite=False, advice="It is a variance.")
