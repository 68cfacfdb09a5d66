"""Expected products of softmax shares over examples on the unit sphere, exactly, at any number of examples.

Example i gets the share a_i = K_i/Σ K with K = exp(w (t − 1)) and t = x_iᵀ x_q. Powers of 1/Σ K are integrals over
s of exp(−s Σ K), under which examples are independent; what is left is one integral over s and one over t.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float
from scipy.special import roots_legendre

Array = np.ndarray
STEP = 0.1  # of log s; the trapezoid is exact to rounding at twice that
LARGEST = 750.0  # s K beyond which exp(−s K) is zero in float64
MOST_NODES = 6144  # 200 MB at the largest scales


@dataclass(frozen=True)
class Angles:
    """Nodes for the angle between two points of the sphere; weights sum to one."""

    cosine: Float[Array, "node"]
    gap: Float[Array, "node"]  # 1 − cosine, without cancellation
    weight: Float[Array, "node"]


@dataclass(frozen=True)
class Shares:
    """The integral over s, at the nodes of the angle.

    E Σ a² f(t) is single @ f; E Σ_{i≠j} a_i a_j f(t_i) f(t_j) is the sum of the squares of pair @ f.
    """

    single: Float[Array, "node"]
    pair: Float[Array, "s node"]


def enough_nodes(scale: float) -> int:
    """Nodes that give ten digits or more up to scale 40, and six beyond: doubled from there.

    Source: derived in docs/derivations/softmax_window.
    """
    return 48 * (1 + int(scale / 8))


@lru_cache(maxsize=64)
def angles(dimension: int, nodes: int) -> Angles:
    """Gauss nodes in the angle, in which kernels that are rough in the cosine are smooth.

    Source: derived in docs/derivations/softmax_window.
    """
    point, weight = roots_legendre(nodes)
    theta = 0.5 * np.pi * (point + 1)
    density = np.sin(theta) ** (dimension - 2) * weight
    return Angles(np.cos(theta), 2 * np.sin(0.5 * theta) ** 2, density / density.sum())


def shares(scale: float, context_length: int, at: Angles) -> Shares:
    """Expected products of shares at scale w and n examples. Cost: 0.3 ms at w = 5, 0.1 s at w = 170.

    Source: derived in docs/derivations/softmax_window.
    """
    n, log_n = context_length, np.log(context_length)
    low, high = -log_n - 25, 2 * scale + 6 - min(log_n, 2 * scale)
    coarse = np.arange(low, high, 1.0)
    alive = (n - 2) * _log_rest(coarse, scale, at)[1] > -LARGEST if n > 2 else coarse < np.inf
    log_s = np.arange(low, min(high, coarse[alive][-1] + 1) + STEP, STEP)
    kernel, log_rest = _log_rest(log_s, scale, at)
    weighted = kernel * np.exp(-kernel) * at.weight
    single = STEP * n * (np.exp((n - 1) * log_rest) @ (kernel * weighted))
    root = np.exp(0.5 * (n - 2) * log_rest) if n > 1 else np.zeros(len(log_s))
    return Shares(single, np.sqrt(STEP * n * (n - 1)) * root[:, None] * weighted)


def _log_rest(log_s: Float[Array, "s"], scale: float, at: Angles) -> tuple[Float[Array, "s node"], Float[Array, "s"]]:
    """s K, and log E exp(−s K), what one of the other examples contributes."""
    kernel = np.exp(np.minimum(np.add.outer(log_s, -scale * at.gap), np.log(LARGEST)))
    below = -np.expm1(-kernel) @ at.weight  # 1 − E exp(−s K), without cancellation
    return kernel, np.log1p(-np.minimum(below, 1 - 2.0**-53))
