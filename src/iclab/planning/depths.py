"""Inverse questions about depth: the least number of layers for a loss, and layers against examples of a context."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from iclab.numerics import Validated, positive, whole_number
from iclab.theory import depth
from iclab.theory.depth import SpectralLaw

__all__ = ["Deep", "DepthSplit", "depth_law", "depth_or_context", "depth_split_excess", "least_depth"]

MOST = 64  # layers without noise
MOST_NOISY = 8  # with noise, where best layers are found by search
WIDEST = 64.0  # factor by which tests may differ from training, either way
_SCAN = 25  # points of a scan of tests


@dataclass(frozen=True)
class Deep:
    """The least depth for an excess, its layers in units of 1/λ, and the tests on which it beats one layer less."""

    depth: int
    layers: tuple[float, ...]
    excess: float
    one_less: float
    """The best excess of one layer less."""
    tied: float
    """The best excess of as many equal layers."""
    ridge: float
    """The excess of Bayes-optimal ridge, which no stack goes below."""
    lengths: tuple[float, float]
    """Lengths of test contexts, over that of training, between which it loses less than one layer less."""
    scales: tuple[float, float]
    """Variances of test inputs, over that of training, between which it loses less than one layer less."""


@dataclass(frozen=True)
class DepthSplit:
    """The best depth and context length for a budget of layers times examples."""

    depth: int
    context_length: int
    excess: float


def depth_law(
    *, alpha: Validated[float | None], dimension: Validated[int | None], context_length: Validated[int | None]
) -> SpectralLaw:
    """The law of contexts of a size: exact at dimension and context length, the white limit at alpha.

    Raises ValueError unless either both counts or alpha alone are given.
    """
    if dimension is not None and context_length is not None and alpha is None:
        return depth.wishart(dimension, context_length)
    if alpha is None or dimension is not None or context_length is not None:
        raise ValueError(
            "dimension and context_length must be given, or alpha alone; got "
            f"dimension {dimension}, context_length {context_length}, alpha {alpha}."
        )
    return depth.white_limit(alpha)


def least_depth(law: SpectralLaw, excess: Validated[float], *, noise: Validated[float] = 0.0) -> Deep:
    """The least depth whose best layers reach an excess, in units of the signal variance, as the noise ρ is.

    Raises ValueError for an excess that is not positive, below ridge, or beyond what the layers that are tried reach:
    64 of them, 8 with noise.
    """
    level, floor, most = (
        positive("excess", excess),
        depth.ridge_excess(law, noise_ratio=noise),
        MOST_NOISY if noise > 0 else MOST,
    )
    if level <= floor:
        name = "ridge" if noise > 0 else "the share of directions without examples, 1 − N/D"
        found = f" The best of {MOST_NOISY} scalar layers found is {_best(law, MOST_NOISY, noise)[0]:.4g}." * (
            noise > 0
        )
        raise ValueError(
            f"excess must be above {floor:.4g}, {name}, the floor of any stack; got {level:g}.{found} "
            "Take longer contexts."
        )
    before = 1.0
    for count in range(1, most + 1):
        height, layers = _best(law, count, noise)
        if height <= level:
            return _found(law, count, layers, height, before, noise)
        before = height
    raise ValueError(
        f"excess must be reached by {most} layers; got {level:g}, while the best of them found has {before:.4g}. The "
        f"only proved floor is ridge, {floor:.4g}: take longer contexts or a larger excess."
    )


def _best(law: SpectralLaw, count: int, noise: float) -> tuple[float, np.ndarray]:
    """Excess and layers of the best stack of a depth."""
    layers = depth.best_layers(law, count, noise_ratio=noise)
    if noise == 0:
        return depth.best_excess(law, count), layers
    return float(depth.excess(law, layers, noise_ratio=noise)), layers


def _found(law: SpectralLaw, count: int, layers: np.ndarray, height: float, before: float, noise: float) -> Deep:
    less = depth.best_layers(law, count - 1, noise_ratio=noise) if count > 1 else np.zeros(1)

    def longer(factor: float) -> bool:
        """True where the stack beats one layer less on contexts of another length."""
        other = _longer(law, factor)
        one, two = (depth.excess(other, stack, noise_ratio=noise) for stack in (layers, less))
        return bool(one < two)

    def larger(factor: float) -> bool:
        """True where it does on inputs of another variance; noise over signal falls with it."""
        one, two = (depth.excess(law, factor * stack, noise_ratio=noise / factor) for stack in (layers, less))
        return bool(one < two)

    tied = depth.tied_excess(law, count, noise_ratio=noise)
    ridge = depth.ridge_excess(law, noise_ratio=noise)
    return Deep(count, tuple(layers.tolist()), height, before, tied, ridge, _range(longer), _range(larger))


def _longer(law: SpectralLaw, factor: float) -> SpectralLaw:
    """The law of contexts longer by a factor; whole examples where there are some."""
    if isinstance(law, depth.Wishart):
        return depth.wishart(law.dimension, max(1, round(factor * law.context_length)))
    return depth.white_limit(factor * law.alpha)


def _range(holds: Callable[[float], bool]) -> tuple[float, float]:
    """Factors around 1 between which a statement holds that is true at 1; infinite or 0 beyond those tried."""
    ends = []
    for sign in (-1, 1):
        low, high = 1.0, None
        for factor in WIDEST ** (sign * np.arange(1, _SCAN + 1) / _SCAN):
            if not holds(float(factor)):
                high = float(factor)
                break
            low = float(factor)
        if high is None:
            ends.append(0.0 if sign < 0 else np.inf)
            continue
        for _ in range(12):
            middle = float(np.sqrt(low * high))
            low, high = (middle, high) if holds(middle) else (low, middle)
        ends.append(low)
    return ends[0], ends[1]


def depth_split_excess(
    budget: Validated[int], depths: np.ndarray, *, dimension: Validated[int], noise: Validated[float] = 0.0
) -> np.ndarray:
    """The best excess of L layers on contexts of budget/L examples, for each of several depths."""
    lengths = np.maximum(1, budget // depths)
    return np.array(
        [_best(depth.wishart(dimension, int(n)), int(one), noise)[0] for one, n in zip(depths, lengths, strict=True)]
    )


def depth_or_context(
    budget: Validated[int], *, dimension: Validated[int], noise: Validated[float] = 0.0
) -> tuple[DepthSplit, np.ndarray, np.ndarray]:
    """The best split of L·N = budget into layers and examples, with all depths tried and their excess.

    Raises ValueError for a budget or a dimension below 1.
    """
    total, size = whole_number("budget", budget), whole_number("dimension", dimension)
    most = min(total, MOST_NOISY if noise > 0 else MOST)
    depths = np.arange(1, most + 1)
    heights = depth_split_excess(total, depths, dimension=size, noise=noise)
    best = int(depths[np.argmin(heights)])
    return DepthSplit(best, total // best, float(np.min(heights))), depths, heights
