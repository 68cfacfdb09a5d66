"""The recurrence of a discrete law, by Lanczos with full orthogonalization."""

import numpy as np
from jaxtyping import Float

from iclab.theory.depth.exact_moments import Recurrence

__all__ = ["lanczos"]

Array = np.ndarray


def lanczos(values: Float[Array, "point"], weights: Float[Array, "point"], degree: int) -> Recurrence:
    """Diagonal a_0..a_L and squared off-diagonal b_1..b_L of the law Σ weight δ(value), weights summing to 1.

    `degree` must be below the number of different values with a weight. Cost: points × degree².

    Source: derived in docs/derivations/depth (Lanczos' algorithm).
    """
    kept = weights > 0
    values, vector = values[kept], np.sqrt(weights[kept])
    basis = np.empty((degree + 1, len(values)))
    basis[0] = vector / np.linalg.norm(vector)
    diagonal, squares = np.empty(degree + 1), np.empty(degree)
    for k in range(degree + 1):
        image = values * basis[k]
        diagonal[k] = basis[k] @ image
        if k == degree:
            break
        for _ in range(2):
            image = image - basis[: k + 1].T @ (basis[: k + 1] @ image)
        squares[k] = image @ image
        basis[k + 1] = image / np.sqrt(squares[k])
    return diagonal, squares
