"""Separate attention with aligned heads: an exact staircase."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab import Regression
from iclab.attention import aligned_separate
from iclab.theory.dynamics import aligned_loss, aligned_values, entered_values, half_drop_shift, separate_flow
from iclab.theory.dynamics.aligned import _falling_clock
from iclab.theory.population import moments

NON_WHITE = Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31)
STEPS = (0.02, 0.018, 0.016, 0.014)


def test_aligned_loss_is_the_known_staircase() -> None:
    time = [0, 300, 320, 600, 650, 1500, 1600, 5000, 7000, 7200]
    known = [
        0.9999960077, 0.9640024391, 0.6405699119, 0.6001316879, 0.3773704447, 0.3724037871, 0.2098044789,
        0.2098025629, 0.2035289684, 0.1359960774,
    ]  # fmt: skip
    assert_allclose(aligned_loss(NON_WHITE, STEPS, time), known, atol=1e-8)


def test_an_aligned_value_passes_known_strengths_at_known_times() -> None:
    time = [312.5004173, 562.5137747, 612.8556647, 620.4923761, 627.4319712]
    assert_allclose(
        aligned_values(NON_WHITE, (0.01,) * 4, time)[:, 0],
        [0.02, 0.1, 0.5, 1.0, 1.3],
        rtol=1e-7,  # the times have ten digits, and v climbs by 20 % of itself in a unit of time
    )


def test_each_aligned_mode_is_half_learned_at_the_known_time() -> None:
    # Half of its drop: (v/v*)³ = 1 − √½, with v*³ = 1/(λ a)
    times = np.array([306.518003, 607.5448325, 1543.061307, 7078.481023])
    rest = np.array([2.246376812, 2.924528302, 4.189189189, 7.380952381])
    values = np.diag(aligned_values(NON_WHITE, STEPS, times))
    assert_allclose(values**3 / rest, 1 - np.sqrt(0.5), rtol=2e-4)  # 1e-4 of time at a rate of 1


@pytest.mark.parametrize("start", [(0.3, 1e-3, 2.0, 0.5), (3.0, 20.0, 1.0, 1.7)])
def test_aligned_values_are_the_flow_from_above_and_below_the_rest_point(start: tuple) -> None:
    problem = Regression(noise=0.1, task_eigenvalues=(1.0, 0.0, 2.0, 1.0), context_length=(8, 20))
    time = [0.0, 0.01, 1.0, 10.0, 100.0]
    flow = separate_flow(moments(problem), aligned_separate(np.array(start)), time, tolerance=1e-11)
    assert_allclose(aligned_values(problem, start, time), flow.weights.value, rtol=1e-8)
    assert_allclose(aligned_loss(problem, start, time), flow.loss, rtol=1e-8)


def test_an_aligned_value_that_has_come_to_rest_is_a_number_at_every_later_time() -> None:
    problem, time = Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31), np.geomspace(0.4, 15478, 600)
    values = aligned_values(problem, [0.1, 0.1, 0.1, 1 / 52.243], time)  # some roots lie at 1 to rounding
    assert np.all(np.diff(values, axis=0) >= -1e-12)


def test_an_aligned_start_at_the_rest_point_stays() -> None:
    rest = np.cbrt(1 / (np.array(NON_WHITE.eigenvalues) * 32 / 31 + 1 / 31))
    assert_allclose(aligned_values(NON_WHITE, rest, [0.0, 1.0, 1e5])[-1], rest, rtol=1e-14)


def test_a_direction_without_inputs_keeps_its_aligned_value() -> None:
    problem = Regression(eigenvalues=(0.5, 0.0), context_length=4)
    assert_allclose(aligned_values(problem, (0.1, 0.3), [0.0, 50.0])[:, 1], 0.3, rtol=0)


@pytest.mark.parametrize("strength", [1 + 1e-9, 1.1, 1.9, 2.1, 30.0, 1e5])
def test_the_clock_above_the_rest_point_is_its_integral(strength: float) -> None:
    with mpmath.workdps(40):
        exact = mpmath.quad(lambda u: u**3 / (1 - u**3), mpmath.linspace(0, 1 / mpmath.mpf(strength), 30))
    assert_allclose(_falling_clock(np.array(strength)), float(exact), rtol=1e-13 if strength > 1.01 else 1e-6)


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        ((0.1, 0.1), "one strength for each of the 4 modes; got shape \\(2,\\). With fewer heads"),
        ((0.1, 0.1, 0.1, 0.0), "initial must be finite and > 0"),
        ((0.1, 0.1, 0.1, -0.1), "initial must be finite and > 0"),
    ],
)
def test_an_aligned_start_that_does_not_fit_is_refused(initial: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        aligned_loss(NON_WHITE, initial, [1.0])


def test_half_of_a_drop_precedes_the_blow_up_by_the_known_time() -> None:
    # −1.25339119 (h/g)^(1/3)/g with g = 0.16, (g/h) = 2.246376812
    assert_allclose(half_drop_shift(moments(NON_WHITE))[0], -5.98144, atol=5e-6)


@pytest.mark.parametrize("initial", [1e-3, 1e-4])
def test_the_half_drop_shift_is_the_limit_of_small_aligned_starts(initial: float) -> None:
    # A head of frozen force blows up at 1/(g v₀).
    law = moments(NON_WHITE)
    g = np.array(NON_WHITE.eigenvalues) ** 2
    half = 1 / (g * initial) + half_drop_shift(law)
    rest = np.cbrt(1 / (np.array(NON_WHITE.eigenvalues) * 32 / 31 + 1 / 31))
    values = np.diag(aligned_values(NON_WHITE, (initial,) * 4, half))
    assert_allclose((values / rest) ** 3, 1 - np.sqrt(0.5), rtol=1e-5)  # second order in the start


def test_heads_that_are_entered_where_a_loss_drops_are_those_that_it_is_made_of() -> None:
    time = np.concatenate([[0.0], np.geomspace(1, 4e5, 8000)])
    starts = np.array([0.004, 0.003, 0.002, 0.0007])  # drops far apart
    loss, values = aligned_loss(NON_WHITE, starts, time), aligned_values(NON_WHITE, starts, time)
    found = entered_values(NON_WHITE, time, loss)
    assert_allclose(found[0], starts, rtol=2e-3)  # a record is a step of .16 %, and starts are small
    assert_allclose(found[-1], values[-1], rtol=1e-12)
    short = entered_values(NON_WHITE, time[:5000], loss[:5000])
    assert np.any(short[-1] == 0)  # modes that the curve does not reach
    assert np.all(short[:, 0] > 0)


def test_a_loss_with_another_number_of_times_is_refused() -> None:
    with pytest.raises(ValueError, match=r"loss must have one entry for each time; got \(2,\)"):
        entered_values(NON_WHITE, [0.0, 1.0, 2.0], [1.0, 0.5])
