"""Studies of depth: their questions hold in their quick cases, and their readings of curves are right."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.studies import STUDIES
from iclab.studies.depth import depth_landscape, depth_spectrum, depth_staircase, samples

NAMES = [name for name in STUDIES if name.startswith("depth-") and name != "depth-softmax"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_claim_of_a_quick_case_holds(name: str) -> None:
    study = STUDIES[name]
    assert {verdict.meaning: verdict.outcome for verdict in study.verdicts(study.run())} == {
        claim.meaning: "holds" for claim in study.claims
    }


def test_a_curve_is_read_at_its_rest_and_half_way() -> None:
    time = np.linspace(0, 200, 2001)
    loss = 0.6 * np.exp(-time) + 0.15 / (1 + np.exp((time - 100) / 5)) + 0.25
    rest, half = samples.curve_reading(time, loss)
    assert_allclose(rest, 0.4, atol=1e-4)
    assert_allclose(half, 100, atol=0.1)


def test_rests_are_read_near_each_level() -> None:
    time = np.r_[0, np.geomspace(1e-2, 1e4, 4000)]
    loss = 0.2 + 0.3 * np.exp(-time / 1000) + 0.5 * np.exp(-time)
    levels = np.array([1.0, 0.5, 0.2])
    assert_allclose(depth_staircase.rests(time, loss, levels), [0.5, 0.2], atol=3e-3)
    assert_allclose(depth_staircase.plateaus_of(time, loss, 2), [0.5, 0.2], atol=3e-3)


def test_polynomials_are_fitted_to_points() -> None:
    values = np.random.default_rng(0).uniform(0.1, 3, 50)
    powers = values[:, None] ** np.arange(1, 4)
    residual = np.linalg.lstsq(powers, np.ones(50), rcond=None)[1]
    assert_allclose(depth_landscape.least_squares(values, 3), residual[0] / 50, rtol=1e-8)
    grid = np.linspace(0.05, 1.5, 20_001)
    least = min(np.mean((1 - step * values) ** 4) for step in grid)
    assert_allclose(depth_landscape.least_power(values, 2), least, rtol=1e-5)


def test_squares_of_chebyshev_polynomials_give_those_of_any() -> None:
    values = np.random.default_rng(0).uniform(0, 2, 60)
    values[0] = 2.0
    basis = np.polynomial.chebyshev.chebvander(values - 1, 6)
    square = basis.T @ basis / 60
    assert_allclose(depth_spectrum.least(square, 3), depth_landscape.least_squares(values, 3), rtol=1e-9)
    tied = min(np.mean((1 - step * values / 2) ** 6) for step in np.linspace(0.2, 2.5, 20_001))
    assert_allclose(depth_spectrum.least_equal(square, 3), tied, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("depth-landscape", {"depths": (1, 1)}, "depths must differ"),
        ("depth-landscape", {"lengths": (4, 4)}, "lengths must differ"),
        ("depth-plateau", {"depths": (1, 2)}, "depths must be 2 or more"),
        ("depth-plateau", {"durations": (1.0,)}, "durations must be one for each depth, 2; got 1"),
        ("depth-plateau", {"dimension": 6}, "dimension must be a power of two"),
        ("depth-staircase", {"factors": 4}, "factors must be 2 or 3; got 4"),
        ("depth-staircase", {"dimension": 6}, "dimension must be a power of two"),
        ("depth-noise", {"shares": (0.5, 0.9)}, "shares must be three or more between 0 and 1"),
        ("depth-noise", {"dimension": 6}, "dimension must be a power of two"),
        ("depth-spectrum", {"depths": (3,)}, "depths must be two or more"),
    ],
)
def test_impossible_cases_are_refused(name: str, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        STUDIES[name].case(**change)
