"""Searches for points where a gradient vanishes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab import Regression, SeparateAttention
from iclab.simulation.keys import key_of
from iclab.simulation.linear.contexts import draw
from iclab.simulation.linear.stationary import Found, search
from iclab.simulation.linear.statistics import Statistics, statistics
from iclab.theory import population


def starts(searches: int, heads: int = 2, *, seed: int = 0) -> SeparateAttention:
    rng, shape = np.random.default_rng(seed), (searches, heads, 1, 2)
    return SeparateAttention(*(2 * rng.standard_normal(size) for size in (shape[:2], shape, shape)))


def law(problem: Regression) -> Statistics:
    moments = population.moments(problem)
    return Statistics(moments.cross, moments.second, moments.input_covariance, np.asarray(moments.null_loss))


def test_searches_end_at_all_four_fixed_points_of_two_modes() -> None:
    found = search(law(Regression((0.7, 0.3), 9)), starts(60), iterations=80)
    losses = np.unique(np.round(found.loss[found.gradient_norm < 1e-10], 9))
    # null loss 1; λ/a with a = 1 + (1 + 1/λ)/9
    large, small = 0.7 / (1 + (1 + 1 / 0.7) / 9), 0.3 / (1 + (1 + 1 / 0.3) / 9)
    assert_allclose(losses, [1 - large - small, 1 - large, 1 - small, 1.0], atol=2e-9)


def test_a_minimum_found_on_drawn_sequences_is_the_least_squares_fit_of_the_products() -> None:
    drawn = draw(Regression((0.7, 0.3), 9), 200, key=key_of(0))
    start = starts(60)
    found = search(statistics(drawn, start), start, iterations=80)
    summary = np.einsum("pn,pnd->pd", drawn.labels, drawn.inputs) / 9
    products = np.einsum("pi,pj->pij", summary, drawn.query).reshape(200, 4)
    residual = np.linalg.lstsq(products, drawn.target, rcond=None)[1][0] / 200
    assert_allclose(found.loss[found.gradient_norm < 1e-10].min(), residual, rtol=1e-9)


def test_searches_that_do_not_fit_are_refused() -> None:
    known = law(Regression((0.7, 0.3), 9))
    with pytest.raises(ValueError, match="iterations must be a whole number >= 1; got 0"):
        search(known, starts(1), iterations=0)
    with pytest.raises(ValueError, match="starts must be restricted layers along one axis"):
        search(known, starts(1)[0], iterations=1)
    with pytest.raises(ValueError, match="starts must read as many features as the statistics hold, 9; got 4"):
        search(law(Regression((0.5, 0.3, 0.2), 9)), starts(1), iterations=1)


def test_losses_of_searches_that_end_elsewhere_count_for_nothing() -> None:
    found = Found(np.array([0.5, 1.0, 0.7, 0.5 + 1e-9]), np.array([1e-12, 1e-13, 1e-3, 1e-12]))
    rule = {"vanishing": 1e-9, "same": 1e-6}
    assert_allclose(found.losses(2, **rule), [0.5, 1.0], rtol=1e-8)
    assert np.all(np.isinf(found.losses(3, **rule)))  # one was predicted that is not found
