"""Neighbors of the scalar stack: layers that may rewrite inputs, and matrix layers on white inputs.

Both are other models. Rewriting, x ← x + c S x, makes the second layer act on S (1 + cS)², a polynomial of degree 4
at two layers. Matrix layers on white inputs gain at most a few percent, and nothing without noise at large dimension.
"""

from math import prod
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from iclab.numerics import Validated, magnitude_number, whole_number
from iclab.theory.depth.exact_moments import wishart_moments
from iclab.theory.depth.laws import SpectralLaw, white_limit, wishart
from iclab.theory.depth.losses import mean_of
from iclab.theory.depth.optima import checked_depth, tied_layer

__all__ = [
    "MatrixCurvature", "Rewriting", "matrix_curvature", "rewriting_excess", "rewriting_optimum",
    "two_matrices_bound",
]  # fmt: skip

Array = np.ndarray


class Rewriting(NamedTuple):
    """Two layers of which the first also rewrites inputs: excess, the two steps, and c."""

    excess: float
    layers: Float[Array, "layer"]
    rewriting: float


def rewriting_excess(
    law: Validated[SpectralLaw],
    layers: Validated[tuple[float, float]],
    rewriting: Validated[float],
    *,
    noise_ratio: Validated[float] = 0.0,
) -> float:
    """The excess of p = (1 − g₁x)(1 − g₂x(1 + cx)²): two layers, of which the first rewrites inputs by 1 + cS.

    Raises ValueError for negative noise, and noise where α is infinite.

    Source: vonoswald2023transformers, section 2 (GD++); derived in docs/derivations/depth.
    """
    _, noise = checked_depth(law, 2, noise_ratio, points=False)
    first, second = layers
    rule = law.rule(4)
    seen = second * (1 + rewriting * rule.nodes) ** 2
    kept = 1 - first * rule.nodes
    answer = first + seen * kept
    return float(mean_of(rule, (kept * (1 - seen * rule.nodes)) ** 2 + noise * rule.nodes * answer**2))


def rewriting_optimum(law: Validated[SpectralLaw], *, noise_ratio: Validated[float] = 0.0) -> Rewriting:
    """The best two layers of which the first may rewrite inputs, out of a search from several starts.

    Raises ValueError as rewriting_excess().

    Source: vonoswald2023transformers, section 2 (GD++); derived in docs/derivations/depth (numerical).
    """
    mean = float(law.recurrence(0)[0][0])
    runs = [
        minimize(
            lambda x: rewriting_excess(law, (x[0], x[1]), x[2], noise_ratio=noise_ratio),
            np.array([first, second, turn]) / mean,
            method="BFGS",
            options={"gtol": 1e-9},
        )
        for first in (0.3, 1.0)
        for second in (0.8, 2.5)
        for turn in (-0.35, -0.15)
    ]
    best = min(runs, key=lambda run: run.fun)
    return Rewriting(float(best.fun), best.x[:2], float(best.x[2]))


def two_matrices_bound(
    dimension: Validated[int], context_length: Validated[int], *, noise_ratio: Validated[float] = 0.0
) -> float:
    """A lower bound of the excess of any two matrix layers on white inputs.

    Averaging over rotations leaves K = a + b S + c tr S/D, and never raises the loss; tr S is independent of S/tr S.

    Raises ValueError for sizes below 1 and for negative noise.

    Source: derived in docs/derivations/depth.
    """
    size, length = whole_number("dimension", dimension), whole_number("context_length", context_length)
    noise = wishart(size, length).felt_noise(noise_ratio)
    moments = [float(one) for one in wishart_moments(size, length, 4)]
    count = size * length

    def mean(power: int, traces: int) -> float:
        """Mean of tr S^power/D · (tr S/D)^traces."""
        return moments[power] * prod(count + 2 * (power + j) for j in range(traces)) / count**traces

    kinds = ((0, 0), (1, 0), (0, 1))  # powers of S and of tr S/D
    cross = np.array([mean(1 + i, j) for i, j in kinds])
    square = np.array([[mean(2 + i + k, j + m) + noise * mean(1 + i + k, j + m) for k, m in kinds] for i, j in kinds])
    return float(1 - cross @ np.linalg.solve(square, cross))


class MatrixCurvature(NamedTuple):
    """Least curvature at the tied point of two layers, towards matrices: below 0 matrices lower the loss."""

    antisymmetric: float
    symmetric: float  # and traceless


def matrix_curvature(alpha: Validated[float], *, noise_ratio: Validated[float] = 0.0) -> MatrixCurvature:
    """Curvature of the loss of two layers, at their best equal value, towards fixed matrices, at large dimension.

    Raises ValueError for α that is not positive and for negative noise.

    Source: derived in docs/derivations/depth (numerical check at finite dimension).
    """
    law = white_limit(magnitude_number("alpha", alpha))
    _, noise = checked_depth(law, 2, noise_ratio)
    rule = law.rule(3)
    x, kept = rule.nodes, 1 - tied_layer(law, 2, noise_ratio=noise_ratio) * rule.nodes

    def mean(values: Float[Array, "node"]) -> float:
        return float(mean_of(rule, values))

    first = mean(kept**2) * (mean(x**2) + noise * mean(x))
    second = mean(x**2 * kept**2) + noise * mean(x * kept**2)
    shared = mean(kept) * (mean(x**2 * kept) + noise * mean(x * kept))
    turned = mean(x) * (mean(x * kept**2) - noise * mean(1 - kept**2))
    return MatrixCurvature(*(_least(first, second, shared + sign * turned) for sign in (-1, 1)))


def _least(first: float, second: float, shared: float) -> float:
    return float(np.linalg.eigvalsh([[first, shared], [shared, second]])[0])
