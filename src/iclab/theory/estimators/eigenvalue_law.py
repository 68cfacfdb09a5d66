"""The exact density of the eigenvalues of a Gaussian Gram matrix, and means over it.

X has m × D entries N(0, 1), k = min(m, D), a = |m − D|. The k singular values t of X have the joint density
∝ Π |t_i² − t_j²| Π t_i^a exp(−t_i²/2). By de Bruijn's formula the mean of Π (1 + ε f(t_i)) is a Pfaffian, whose
derivative in ε is the mean of Σ f(t_i): an integral over one density.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from iclab.numerics import Validated, require, whole_number

__all__ = ["MOST", "SingularValues", "singular_values"]

MOST = 1000  # singular values; two seconds of work
_ORDER = 20  # nodes in a panel


@dataclass(frozen=True, eq=False)
class SingularValues:
    """Nodes t, and weights with which Σ weight f(t) is the mean of Σ f over the singular values of X."""

    nodes: Float[np.ndarray, "node"]
    weights: Float[np.ndarray, "node"]


def singular_values(
    rows: Validated[int], columns: Validated[int], *, finest: Validated[float] = 1.0
) -> SingularValues:
    """The quadrature for a matrix of standard normal entries; `finest` is the scale of functions near t = 0.

    Exact to ten digits for smooth functions of t/finest. Cost: k³ and some 20 (√n + log(1/finest)) k², n = max(m, D).

    Raises ValueError for sizes below 1 and for more than 1000 singular values.

    Source: debruijn1955some, section 4; derived in docs/derivations/estimators.
    """
    few, many = sorted((whole_number("rows", rows), whole_number("columns", columns)))
    require(few <= MOST, f"rows or columns must be at most {MOST} here; got {few}. Take the limit, ridge_error.")
    edges = _edges(few, many, finest)
    nodes, weights, running = _panels(edges)
    functions = _functions(few, many - few, nodes)
    total = weights @ functions.T
    below = running(functions)
    signed = total[:, None] - 2 * below  # ∫ sgn(t − s) φ(t) dt
    skew = (functions * weights) @ signed.T
    skew = 0.5 * (skew - skew.T)
    if few % 2:
        skew = np.block([[skew, total[:, None]], [-total[None], np.zeros((1, 1))]])
        functions, signed = np.vstack([functions, 0 * nodes]), np.vstack([signed, 1 + 0 * nodes])
    density = np.einsum("js,js->s", functions, np.linalg.solve(skew.T, signed))
    return SingularValues(nodes, weights * density)


def _edges(few: int, many: int, finest: float) -> Float[np.ndarray, "edge"]:
    """Panels of a width that resolves the functions, finer and finer towards zero down to a tenth of `finest`."""
    low, high = max(0.0, np.sqrt(many) - np.sqrt(few) - 9), np.sqrt(many) + np.sqrt(few) + 9
    width = min(1.0, 12 / np.sqrt(few))
    edges = np.linspace(low, high, 2 + int((high - low) / width))
    if low > 0:
        return edges
    halves = max(0, int(np.ceil(np.log2(edges[1] / (0.1 * finest)))))
    return np.concatenate([[0.0], edges[1] * 0.5 ** np.arange(halves, 0, -1), edges[1:]])


def _panels(edges: Float[np.ndarray, "edge"]):  # noqa: ANN202
    """Gauss nodes and weights of all panels, and the running integral from the lowest edge."""
    point, weight = np.polynomial.legendre.leggauss(_ORDER)
    half = 0.5 * np.diff(edges)
    nodes = (edges[:-1, None] + half[:, None] * (point + 1)).ravel()
    weights = (half[:, None] * weight).ravel()
    legendre = np.polynomial.legendre.legvander(point, _ORDER)
    degree = np.arange(1, _ORDER)
    primitive = np.column_stack(
        [point + 1, (legendre[:, degree + 1] - legendre[:, degree - 1]) / (2 * degree + 1)]
    )  # of the Legendre polynomials, from −1
    inside = primitive @ (legendre[:, :_ORDER].T * weight * (np.arange(_ORDER) + 0.5)[:, None])

    def running(functions: Float[np.ndarray, "f node"]) -> Float[np.ndarray, "f node"]:
        panels = functions.reshape(len(functions), len(half), _ORDER)
        within = half[:, None] * (panels @ inside.T)
        whole = half * (panels @ weight)
        before = np.cumsum(whole, axis=1) - whole
        return (before[:, :, None] + within).reshape(functions.shape)

    return nodes, weights, running


def _functions(few: int, power: int, t: Float[np.ndarray, "node"]) -> Float[np.ndarray, "k node"]:
    """Orthonormal Laguerre functions √2 L_j(t²) t^a exp(−t²/2), of parameter a − ½, without over- or underflow."""
    alpha, x = power - 0.5, t**2
    log_first = power * np.log(t) - 0.5 * x + 0.5 * (np.log(2) - gammaln(alpha + 1))
    before, now, scale = np.zeros_like(t), np.ones_like(t), log_first
    rows = []
    for j in range(few):
        rows.append(now * np.exp(scale))
        here, after = np.sqrt(j * (j + alpha)), np.sqrt((j + 1) * (j + 1 + alpha))
        before, now = now, ((2 * j + 1 + alpha - x) * now - here * before) / after
        size = np.maximum(np.maximum(np.abs(now), np.abs(before)), 1e-300)
        before, now, scale = before / size, now / size, scale + np.log(size)
    return np.array(rows)
