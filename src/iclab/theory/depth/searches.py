"""Minima of the noisy loss over layers, found from many starts: coexisting ones are kept, and said to be found."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import brentq

from iclab.theory.depth.laws import GaussRule
from iclab.theory.depth.losses import excess_curvature, excess_of, excess_slope

__all__ = ["Minima", "lowest", "minima_of", "settled", "starts_of"]

Array = np.ndarray
_RANGE = 0.1, 8.0  # of the layers of a start, in units of 1 over the mean eigenvalue
_STARTS = 160  # fewer beyond depth 8
_ROUNDS = 80  # damped Newton steps; some twenty do
_SAME = 1e-4  # distance up to which two ends are one minimum


class Minima(NamedTuple):
    """Local minima, lowest first: their excess, their layers ascending, and how many starts ended there."""

    excess: Float[Array, "minimum"]
    layers: Float[Array, "minimum layer"]
    starts: Int[Array, "minimum"]


def lowest(rule: GaussRule, depth: int, *, noise: float) -> Float[Array, "layer"]:
    """The lowest of the minima that are found.

    Source: derived in docs/derivations/depth (numerical).
    """
    return minima_of(rule, starts_of(rule, depth), noise=noise).layers[0]


def starts_of(rule: GaussRule, depth: int) -> Float[Array, "start layer"]:
    """Layers spread evenly over the logarithms of a range of sizes, and some of equal layers.

    The points are multiples of powers of one irrational number, modulo 1, which fill the cube evenly in any
    dimension.

    Source: derived in docs/derivations/depth (numerical).
    """
    root = brentq(lambda x: x ** (depth + 1) - x - 1, 1.0, 2.0)
    count = _STARTS if depth <= 8 else max(40, _STARTS * 64 // depth**2)
    powers = float(root) ** -np.arange(1.0, depth + 1)  # pyright: ignore[reportArgumentType]
    cube = np.arange(1, count + 1)[:, None] * powers % 1.0
    equal = np.repeat(np.geomspace(*_RANGE, 9)[:, None], depth, axis=1)
    sizes = np.r_[_RANGE[0] * (_RANGE[1] / _RANGE[0]) ** cube, equal]
    return sizes / float(rule.weights @ rule.nodes)


def minima_of(rule: GaussRule, starts: Float[Array, "start layer"], *, noise: float) -> Minima:
    """The different minima in which starts end.

    Source: derived in docs/derivations/depth (numerical).
    """
    ends = np.sort(settled(rule, starts, noise=noise), axis=-1)
    heights = np.asarray(excess_of(rule, ends, noise=noise))
    still = np.max(abs(excess_slope(rule, ends, noise=noise)), axis=-1) < 1e-7
    least = np.linalg.eigvalsh(excess_curvature(rule, ends, noise=noise))[:, 0]
    good = still & (least > -1e-7)
    ends, heights = ends[good], heights[good]
    order = np.argsort(heights, kind="stable")
    kept: list[int] = []
    counts: list[int] = []
    for index in order:
        near = [np.max(abs(ends[index] - ends[one])) < _SAME * (1 + np.max(abs(ends[one]))) for one in kept]
        if any(near):
            counts[int(np.argmax(near))] += 1
        else:
            kept.append(int(index))
            counts.append(1)
    return Minima(heights[kept], ends[kept], np.array(counts))


def settled(rule: GaussRule, starts: Float[Array, "start layer"], *, noise: float) -> Float[Array, "start layer"]:
    """Ends of Newton steps on the moduli of the curvatures, damped until the loss falls: they leave saddles.

    Source: derived in docs/derivations/depth (numerical).
    """
    layers = np.array(starts, dtype=float)
    heights = np.asarray(excess_of(rule, layers, noise=noise))
    reach = 0.3 / float(rule.weights @ rule.nodes)
    moving = np.arange(len(layers))
    for _ in range(_ROUNDS):
        here = layers[moving]
        slope = excess_slope(rule, here, noise=noise)
        values, vectors = np.linalg.eigh(excess_curvature(rule, here, noise=noise))
        size = np.maximum(abs(values), 1e-9 * np.max(abs(values), axis=-1, keepdims=True))
        along = np.einsum("slk,sl->sk", vectors, slope)
        step = -np.einsum("slk,sk->sl", vectors, along / size)
        step *= np.minimum(1.0, reach / np.maximum(np.max(abs(step), axis=-1), 1e-300))[:, None]
        scale, tried, lower = np.ones(len(moving)), here, np.zeros(len(moving), dtype=bool)
        for _ in range(12):
            tried = here + scale[:, None] * step
            lower = np.asarray(excess_of(rule, tried, noise=noise)) <= heights[moving]
            if np.all(lower):
                break
            scale = np.where(lower, scale, 0.4 * scale)
        tried = np.where(lower[:, None], tried, here)
        layers[moving], heights[moving] = tried, np.asarray(excess_of(rule, tried, noise=noise))
        moved = np.max(abs(tried - here), axis=-1) > 1e-11
        moving = moving[moved]
        if len(moving) == 0:
            break
    return layers
