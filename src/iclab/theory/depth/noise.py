"""The noise at which layers stop to differ: two layers in closed form, more of them by search.

Two layers split in a pitchfork. From three on rising noise first merges the largest layers, then an equal stack
becomes a minimum (spinodal), then the lowest one (jump), and the split one lives on for a while: hysteresis.
"""

from collections.abc import Callable
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from iclab.numerics import Validated, instance, require
from iclab.theory.depth.flows import split_rate
from iclab.theory.depth.laws import SpectralLaw
from iclab.theory.depth.losses import excess_of
from iclab.theory.depth.optima import best_layers, checked_depth, free_roots, tied_excess, tied_layer
from iclab.theory.depth.searches import Minima, minima_of, starts_of

__all__ = ["NoisePhases", "critical_noise_ratio", "noise_minima", "noise_phases", "spinodal_noise_ratio"]

_REAL = 1e-6  # imaginary part, relative, from which on roots are a complex pair
_EQUAL = 1e-3  # spread of layers, relative, below which they are equal
_STRIDE = 1.05  # of a scan in noise
_FAR = 30.0  # times the noise at which a branch was found: no end is looked for beyond
_SHARP = 1e-5  # of a bisection in noise, relative

Array = np.ndarray


class NoisePhases(NamedTuple):
    """Noise ratios ρ/T, rising: the sequence through which L ≥ 3 layers become equal."""

    merging: float  # the first pair of roots of the free polynomial becomes complex: the largest layers merge
    spinodal: float  # the tied point stops being a saddle
    jump: float  # equal layers become the lowest minimum that is found
    end: float  # the best layers without noise, and those just below the jump, become equal; others may live on


def critical_noise_ratio(law: Validated[SpectralLaw]) -> float:
    """The noise ρ/T from which on two layers are best equal, for any law: a supercritical pitchfork.

    α (2/3)(√(r₁² − r₁r₂ + r₂²) − (r₁ + r₂)/2), r the inverses of the two best layers without noise.

    Raises ValueError for a law with two points or fewer, or with infinite α.

    Source: derived in docs/derivations/depth.
    """
    instance("law", law, SpectralLaw)
    require(np.isfinite(law.alpha), "law must have a finite alpha, for infinite contexts average noise out; got inf.")
    first, second = 1 / best_layers(law, 2)
    return law.alpha * (2 / 3) * (sqrt(first**2 - first * second + second**2) - (first + second) / 2)


def noise_minima(law: Validated[SpectralLaw], depth: Validated[int], *, noise_ratio: Validated[float]) -> Minima:
    """Local minima of the loss over layers that a search from many starts finds, lowest first, with their starts.

    The search is numerical: minima with narrow basins can be missed.

    Raises ValueError for a depth below 1, negative noise, and a law with no more points than layers.

    Source: derived in docs/derivations/depth (numerical).
    """
    layers, noise = checked_depth(law, depth, noise_ratio)
    rule = law.rule(layers)
    tied = np.full((1, layers), tied_layer(law, layers, noise_ratio=noise_ratio))
    return minima_of(rule, np.concatenate([starts_of(rule, layers), tied]), noise=noise)


def spinodal_noise_ratio(law: Validated[SpectralLaw], depth: Validated[int]) -> float:
    """The noise ρ/T at which the best tied point stops being a saddle; for two layers the critical noise.

    Training from a small start stays tied from here on, though a split stack may be better.

    Raises ValueError for a depth below 2, and as critical_noise_ratio().

    Source: derived in docs/derivations/depth.
    """
    layers, _ = checked_depth(law, depth, 0.0)
    require(layers >= 2, f"depth must be at least 2, for one layer has no other; got {layers}.")
    high = 0.05
    while split_rate(law, layers, noise_ratio=high) > 0:
        high *= 1.5
    root: Any = brentq(lambda noise: split_rate(law, layers, noise_ratio=noise), 0.0, high, xtol=1e-13)
    return float(root)


def noise_phases(law: Validated[SpectralLaw], depth: Validated[int]) -> NoisePhases:
    """The sequence of noises through which layers become equal. Merging and spinodal are exact, jump and end found.

    The jump is a first-order one from three layers on. Cost: seconds.

    Raises ValueError as spinodal_noise_ratio().

    Source: derived in docs/derivations/depth (jump and end numerical).
    """
    spinodal = spinodal_noise_ratio(law, depth)
    merging = _last(lambda noise: _real(law, depth, noise), 0.0, spinodal * (1 + 1e-3))
    if depth == 2:
        return NoisePhases(merging, spinodal, spinodal, spinodal)
    low, split = spinodal, _split(law, depth, spinodal)
    while _gain(law, depth, low * _STRIDE, found := _split(law, depth, low * _STRIDE)) > 0:
        low, split = low * _STRIDE, found

    def better(noise: float) -> bool:
        return _gain(law, depth, noise, _split(law, depth, noise, starts=split)) > 0

    jump = _last(better, low, low * _STRIDE)
    lowest = _split(law, depth, jump * (1 - 1e-4), starts=split)[:1]
    ends = _end(law, depth, best_layers(law, depth)[None], 0.5 * merging), _end(law, depth, lowest, jump * (1 - 1e-4))
    return NoisePhases(merging, spinodal, jump, max(ends))


def _end(law: SpectralLaw, depth: int, branch: Array, low: float) -> float:
    """The noise up to which layers, followed from a lower one, stay split; infinite where that is far beyond."""
    far = _FAR * low
    while len(later := _split(law, depth, low, starts=branch)):
        low, branch = low * _STRIDE, later[:1]
        if low > far:
            return inf
    return _last(lambda noise: len(_split(law, depth, noise, starts=branch)) > 0, low / _STRIDE, low)


def _split(law: SpectralLaw, depth: int, noise_ratio: float, *, starts: Array | None = None) -> Array:
    """Minima whose layers differ, lowest first: of a whole search, or those in which the given starts end."""
    noise = law.felt_noise(noise_ratio)
    if starts is None:
        found = noise_minima(law, depth, noise_ratio=noise_ratio)
    else:
        found = minima_of(law.rule(depth), starts, noise=noise)
    return found.layers[np.ptp(found.layers, axis=1) > _EQUAL * np.max(found.layers, axis=1)]


def _gain(law: SpectralLaw, depth: int, noise_ratio: float, split: Array) -> float:
    """Excess of the best tied layers over the lowest split ones; negative infinity where there are none."""
    if len(split) == 0:
        return -inf
    lowest = float(excess_of(law.rule(depth), split[0], noise=law.felt_noise(noise_ratio)))
    return tied_excess(law, depth, noise_ratio=noise_ratio) - lowest


def _real(law: SpectralLaw, depth: int, noise_ratio: float) -> bool:
    roots = free_roots(law, depth, noise_ratio=noise_ratio)
    return bool(np.all(abs(roots.imag) <= _REAL * abs(roots)))


def _last(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The noise up to which a statement holds that is true at the lower end and false at the upper one."""
    while high - low > _SHARP * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return 0.5 * (low + high)
