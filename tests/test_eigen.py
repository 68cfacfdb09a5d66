"""All values and few vectors of symmetric matrices, against all of both."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.spectra.measures.eigen import leading_vectors


def rotation(size: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(size).standard_normal((size, size)))[0]


SPECTRA = {
    "spread": lambda n: np.linspace(0.1, 2.0, n),
    "steep": lambda n: np.geomspace(1e-14, 1.0, n),
    "one value": lambda n: np.ones(n),
    "a cluster on top": lambda n: np.where(np.arange(n) < n - 6, 0.1, 1 + 1e-13 * np.arange(n)),
    "low rank": lambda n: np.where(np.arange(n) < n - 3, 0.0, 1.0 + np.arange(n)),
    "zeros": np.zeros,
}


@pytest.mark.parametrize("size", [1, 5, 96, 97, 128, 200])
@pytest.mark.parametrize("kind", SPECTRA)
def test_few_vectors_solve_the_eigenproblem_and_all_values_are_right(kind: str, size: int) -> None:
    turn, wanted = rotation(size), np.sort(SPECTRA[kind](size))
    x = (turn * wanted) @ turn.T
    x = (x + x.T) / 2
    for k in {1, min(4, size), max(1, size // 5), size}:
        values, vectors = leading_vectors(x, k)
        rounding = 1e-14 * size * max(wanted[-1], 1e-300)  # backward error of a symmetric eigenproblem
        assert_allclose(values, wanted, rtol=0, atol=rounding)
        assert vectors.shape == (size, k)
        assert_allclose(x @ vectors, vectors * values[size - k :], rtol=0, atol=3 * rounding)
        assert_allclose(vectors.T @ vectors, np.eye(k), rtol=0, atol=1e-14 * size)


def test_a_matrix_that_is_diagonal_already_keeps_its_axes() -> None:
    values, vectors = leading_vectors(np.diag(np.arange(120.0)), 2)
    assert_allclose(values, np.arange(120.0), rtol=0, atol=1e-12)
    assert_allclose(np.abs(vectors[-2:]), np.eye(2), rtol=0, atol=1e-14)
