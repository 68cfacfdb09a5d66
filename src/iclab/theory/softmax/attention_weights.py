"""Expected products of softmax attention weights on the unit sphere, exact at any number of examples.

Example i gets the weight a_i = K_i/Σ K with K = exp(w (t − 1)) and t = x_iᵀ x_q. Powers of 1/Σ K are integrals over
s of exp(−s Σ K), under which examples are independent; one integral over s and one over t remain.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float
from scipy.special import betaincinv, gammaln, roots_legendre

__all__ = [
    "FAINT", "LARGEST", "MOST_NODES", "STEP", "Angles", "WeightProducts", "angles", "enough_nodes", "falling",
    "farthest", "nearest", "weight_products", "weight_products_and_derivatives",
]  # fmt: skip

STEP = 0.25  # of log s; the error of the trapezoid is of order exp(−π²/step), below rounding
LARGEST = 500.0  # s K at which exp(−s K) is negligible, but not yet subnormal, which would be slow
FAINT = 34.0  # integrals are cut this many powers of e below their largest value: twelve digits and more
MOST_NODES = 4800  # 110 MB for an array at the largest scales


@dataclass(frozen=True)
class Angles:
    """Quadrature nodes for the angle between two points of the sphere; over all angles weights sum to one."""

    dimension: int
    cosine: Float[np.ndarray, "node"]
    gap: Float[np.ndarray, "node"]  # 1 − cosine, without cancellation
    log_weight: Float[np.ndarray, "node"]
    weight: Float[np.ndarray, "node"]


@dataclass(frozen=True)
class WeightProducts:
    """The integral over s, at the nodes of the angle.

    E Σ a² f(t) is single @ f; E Σ_{i≠j} a_i a_j f(t_i) f(t_j) is the sum of the squares of pair @ f.
    """

    single: Float[np.ndarray, "node"]
    pair: Float[np.ndarray, "s node"]


def enough_nodes(scale: float, dimension: int, end: float = np.pi, begin: float = 0.0) -> int:
    """Number of nodes between two angles for ten digits: features are no narrower than 1/(w sin angle) and 1/√d.

    Source: derived in docs/derivations/softmax_window.
    """
    density = 0.125 * scale * np.sin(min(end, 0.5 * np.pi)) + 0.16 * np.sqrt(dimension)
    return 48 * (1 + int(density * (end - begin) / np.pi))


def nearest(context_length: int, dimension: int) -> float:
    """Angle below which there is no example, nor above π minus it: the sphere of many dimensions is a thin band.

    It leaves out e^-34/n² of the sphere; 0 below a tenth, where there is little to leave out.

    Source: derived in docs/derivations/softmax_window.
    """
    angle = float(np.arcsin(np.exp(-(FAINT + 2 * np.log(float(context_length))) / (dimension - 1))))
    return angle if angle > 0.1 else 0.0


def farthest(scale: float, context_length: int, dimension: int) -> float:
    """Angle beyond which every attention weight is negligible; π in contexts that are short for the scale.

    Source: derived in docs/derivations/softmax_window.
    """
    last = _last_log_s(scale, context_length, dimension)
    reach = last + np.log(float(context_length)) + FAINT  # w times the gap
    return _angle(reach / scale) if reach < 2 * scale else np.pi


def falling(scale: float, dimension: int) -> tuple[int, float]:
    """Number of nodes, and the largest angle needed, for averages of exp(w t) over the sphere.

    Source: derived in docs/derivations/softmax_window.
    """
    reach = 2 * FAINT + 2 * dimension  # w times the gap
    end = _angle(reach / scale) if reach < 2 * scale else np.pi
    return 48 * (1 + int(0.3 * np.sqrt(scale + dimension) * end / np.pi)), end


def angles(dimension: int, nodes: int, end: float = np.pi, begin: float = 0.0) -> Angles:
    """Gauss nodes in the angle from `begin` to `end`; kernels that are rough in the cosine are smooth in the angle.

    Source: derived in docs/derivations/softmax_window.
    """
    point, weight = _legendre(nodes)
    theta = begin + 0.5 * (end - begin) * (point + 1)
    log_sphere = 0.5 * np.log(np.pi) + gammaln(0.5 * (dimension - 1)) - gammaln(0.5 * dimension)
    log_weight = np.log(0.5 * (end - begin) * weight) + (dimension - 2) * np.log(np.sin(theta)) - log_sphere
    if end == np.pi - begin:  # to the last digit, so that cancellations are exact
        log_weight -= np.log(np.exp(log_weight).sum())
    return Angles(dimension, np.cos(theta), 2 * np.sin(0.5 * theta) ** 2, log_weight, np.exp(log_weight))


def weight_products(scale: float, context_length: int, at: Angles) -> WeightProducts:
    """Expected products of attention weights at scale w and n examples.

    Cost: 0.3 ms at w = 5, 50 ms at w = 170 and n < 100.

    Source: derived in docs/derivations/softmax_window.
    """
    n = float(context_length)
    kernel, log_rest = _log_rest(_grid(scale, context_length, at.dimension), scale, at)
    weighted = kernel * np.exp(-kernel) * at.weight
    single = STEP * n * (np.exp((n - 1) * log_rest) @ (kernel * weighted))
    root = np.exp(0.5 * (n - 2) * log_rest) if n > 1 else np.zeros(len(log_rest))
    return WeightProducts(single, np.sqrt(STEP * n * (n - 1)) * root[:, None] * weighted)


def weight_products_and_derivatives(
    scale: float, context_length: int, at: Angles
) -> tuple[WeightProducts, WeightProducts]:
    """Expected products of attention weights and their derivatives in log w, for the search for a best scale.

    Source: derived in docs/derivations/softmax_window.
    """
    n, fall = float(context_length), scale * at.gap  # −d log K/d log w
    kernel, log_rest = _log_rest(_grid(scale, context_length, at.dimension), scale, at)
    weighted = kernel * np.exp(-kernel) * at.weight
    rise = (weighted @ fall) / np.exp(log_rest)  # of log E exp(−s K)
    root, others = np.exp(0.5 * (n - 2) * log_rest), np.exp((n - 1) * log_rest)
    square = kernel * weighted
    single = STEP * n * (others @ square)
    tilted = STEP * n * ((n - 1) * (others * rise) @ square - fall * (others @ (square * (2 - kernel))))
    size = np.sqrt(STEP * n * (n - 1)) * root[:, None]
    pair = size * weighted
    return WeightProducts(single, pair), WeightProducts(
        tilted, pair * (0.5 * (n - 2) * rise[:, None] - fall * (1 - kernel))
    )


def _angle(gap: float) -> float:
    """The angle whose cosine is 1 − gap, to full precision."""
    return 2 * float(np.arcsin(np.sqrt(0.5 * gap)))


@lru_cache(maxsize=64)
def _legendre(nodes: int) -> tuple[Float[np.ndarray, "node"], Float[np.ndarray, "node"]]:
    return roots_legendre(nodes)


def _last_log_s(scale: float, context_length: int, dimension: int) -> float:
    """Log s at which either exp(−s K) vanishes for every example, or (E exp(−s K))^(n − 2) is too small to count.

    The latter is below (1 − (1 − e^−5) F)^(n − 2), F the fraction of the sphere on which s K > 5.
    """
    log_n = np.log(float(context_length))
    most = 2 * scale + np.log(LARGEST) - min(log_n, 2 * scale)
    near = -np.expm1(-FAINT / (context_length - 2)) / -np.expm1(-5.0) if context_length > 2 else 1.0
    if near >= 0.5:
        return most
    sine = betaincinv(0.5 * (dimension - 1), 0.5, 2 * near)  # squared, of the angle that bounds this fraction
    return min(most, np.log(5.0) + scale * sine / (1 + np.sqrt(1 - sine)))


def _grid(scale: float, context_length: int, dimension: int) -> Float[np.ndarray, "s"]:
    first = -np.log(float(context_length)) - 0.5 * FAINT  # integrands are of second order in s
    return np.arange(first, _last_log_s(scale, context_length, dimension) + 2 * STEP, STEP)


def _log_rest(
    log_s: Float[np.ndarray, "s"], scale: float, at: Angles
) -> tuple[Float[np.ndarray, "s node"], Float[np.ndarray, "s"]]:
    """s K, and log E exp(−s K), the factor of each of the other examples."""
    kernel = np.exp(np.minimum(np.add.outer(log_s, -scale * at.gap), np.log(LARGEST)))
    below = -np.expm1(-kernel) @ at.weight  # 1 − E exp(−s K), without cancellation
    return kernel, np.log1p(-np.minimum(below, 1 - 2.0**-53))
