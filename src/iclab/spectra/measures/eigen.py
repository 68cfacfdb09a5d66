"""Symmetric eigenproblems: all values and few vectors."""

import numpy as np
import scipy.linalg
from jaxtyping import Float

__all__ = ["leading_vectors"]

_SMALL = 96  # rows up to which all vectors cost no more than few
_SHARE = 4  # inverse of the fraction of vectors above which all are computed


def leading_vectors(x: Float[np.ndarray, "n n"], k: int) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n k"]]:
    """All eigenvalues of a symmetric matrix, smallest first, and the vectors of the k largest in that order.

    One tridiagonal form gives both: its values cost n² and its k vectors n k, where all vectors of x would cost more
    than the form itself.
    """
    n = len(x)
    if n <= _SMALL or k * _SHARE > n:
        values, vectors = np.linalg.eigh(x)
        return values, vectors[:, n - k :]
    to_tridiagonal, times_reflectors = scipy.linalg.get_lapack_funcs(("sytrd", "ormqr"), (x,))  # type: ignore[misc]
    reflectors, diagonal, off_diagonal, scales, _ = to_tridiagonal(x, lower=1, lwork=64 * n)
    values = scipy.linalg.eigvalsh_tridiagonal(diagonal, off_diagonal, lapack_driver="sterf")
    found = scipy.linalg.eigh_tridiagonal(
        diagonal, off_diagonal, select="i", select_range=(n - k, n - 1), lapack_driver="stemr"
    )
    vectors = np.asarray(found[1])
    vectors[1:] = times_reflectors("L", "N", reflectors[1:, :-1], scales, vectors[1:], lwork=64 * k)[0]
    return np.asarray(values), vectors
