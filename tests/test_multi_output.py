"""Merged attention with several labels for each input."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.theory.dynamics import multi_output_loss
from iclab.theory.population import best_gamma, best_loss, loss, moments_from

FACTORS = np.random.default_rng(4).standard_normal((2, 3, 3))
INPUTS, TASKS = FACTORS @ FACTORS.transpose(0, 2, 1) / 3
LAW = moments_from(INPUTS, 5, task_covariance=TASKS, noise=0.3)


def test_one_label_has_the_loss_of_gamma() -> None:
    rng = np.random.default_rng(0)
    value, maps = rng.standard_normal((4, 1, 1)), rng.standard_normal((4, 3, 3))
    gamma = np.einsum("h,hij->ij", value[:, 0, 0], maps)
    assert_allclose(multi_output_loss(LAW, value, maps), loss(LAW, gamma), rtol=1e-12)


def test_each_label_costs_at_least_the_least_loss_of_one() -> None:
    best = multi_output_loss(LAW, np.eye(2)[None], best_gamma(LAW)[None])
    assert_allclose(best, 2 * best_loss(LAW), rtol=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(200):
        value = np.eye(2) + 0.1 * rng.standard_normal((2, 2, 2))
        maps = best_gamma(LAW) / 2 + 0.1 * rng.standard_normal((2, 3, 3))
        assert multi_output_loss(LAW, value, maps) >= best


def test_the_loss_is_that_of_drawn_contexts_with_two_labels() -> None:
    rng = np.random.default_rng(2)
    draws, length = 200_000, 5
    value, maps = rng.standard_normal((2, 2, 2)), 0.5 * rng.standard_normal((2, 3, 3))
    x = rng.standard_normal((draws, length + 1, 3)) @ np.linalg.cholesky(INPUTS).T
    w = rng.standard_normal((draws, 2, 3)) @ np.linalg.cholesky(TASKS).T
    y = np.einsum("pnd,pod->pno", x, w) + np.sqrt(0.3) * rng.standard_normal((draws, length + 1, 2))
    summary = np.einsum("pno,pnd->pod", y[:, :-1], x[:, :-1]) / length
    answers = np.einsum("hop,npd,hde,ne->no", value, summary, maps, x[:, -1], optimize=True)
    squares = np.sum((y[:, -1] - answers) ** 2, axis=1)
    assert abs(squares.mean() - multi_output_loss(LAW, value, maps)) < 4 * squares.std() / np.sqrt(draws)


@pytest.mark.parametrize(
    ("value", "maps", "message"),
    [
        (np.ones((2, 2, 3)), np.ones((2, 3, 3)), "value must have shape"),
        (np.ones((2, 2, 2)), np.ones((1, 3, 3)), "key_query must have shape"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(value, maps, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        multi_output_loss(LAW, value, maps)
