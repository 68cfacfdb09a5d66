"""Change points of curves, against what noise, trends and random walks show."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.spectra.measures.changes import change, change_of_runs

STEPS = np.unique(np.round(np.geomspace(1, 100_000, 42)))  # 40 checkpoints, spaced by logarithm
COUNT = len(STEPS)
RUNS = 1000


def noise(seed: int = 0, runs: int = RUNS, length: int = COUNT) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((runs, length))


def called(curves: np.ndarray, steps: np.ndarray = STEPS) -> float:
    return float(np.mean([change(steps, curve).called for curve in curves]))


def found(curves: np.ndarray, places: np.ndarray) -> float:
    """The share of curves with a change called within one checkpoint of its place."""
    changes = [change(STEPS, curve) for curve in curves]
    return float(
        np.mean(
            [
                one.called and abs(np.searchsorted(STEPS, one.step) - p) <= 1
                for one, p in zip(changes, places, strict=True)
            ]
        )
    )


def test_forty_checkpoints() -> None:
    assert COUNT == 40


@pytest.mark.parametrize("steps", [STEPS, np.arange(COUNT)])
def test_random_walks_are_called_about_one_time_in_twenty(steps: np.ndarray) -> None:
    assert 0.03 <= called(np.cumsum(noise(), axis=1), steps) <= 0.09  # .05 within 3 errors of a thousand walks


def test_noise_correlated_noise_and_trends_are_hardly_ever_called() -> None:
    driven, state = noise(1, length=COUNT + 100), np.zeros(RUNS)
    correlated = np.zeros_like(driven)
    for t in range(COUNT + 100):
        state = 0.8 * state + driven[:, t]
        correlated[:, t] = state
    trend = 3 * np.log(STEPS) + noise(2)
    assert called(noise(0)) <= 0.01
    assert called(correlated[:, 100:]) <= 0.022  # .0115 of 20000, and three standard errors of a thousand
    assert called(trend) <= 0.01


def by_least_squares(steps: np.ndarray, curve: np.ndarray) -> tuple[float, float, float]:
    """F, step and size of the best shift, each position fitted by itself."""
    trends = np.stack([np.ones(len(steps)), np.log1p(steps), steps], axis=1)
    trends = trends / np.max(np.abs(trends), axis=0)
    without = np.sum((curve - trends @ np.linalg.lstsq(trends, curve, rcond=None)[0]) ** 2)
    best = (0.0, 0.0, 0.0)
    for place in range(3, len(steps) - 2):
        columns = np.column_stack([trends, np.arange(len(steps)) >= place])
        fitted = np.linalg.lstsq(columns, curve, rcond=None)[0]
        left = np.sum((curve - columns @ fitted) ** 2)
        best = max(best, ((without - left) / (left / (len(steps) - 4)), steps[place], fitted[-1]))
    return best


@pytest.mark.parametrize("steps", [STEPS, np.arange(COUNT), np.array([0, *(2.0**power for power in range(11))])])
def test_statistic_step_and_size_are_those_of_a_fit_at_every_position(steps: np.ndarray) -> None:
    for curve in np.cumsum(noise(14, 20, len(steps)), axis=1):
        one = change(steps, curve)
        assert_allclose((one.statistic, one.step, one.size), by_least_squares(steps, curve), rtol=1e-8)


@pytest.mark.parametrize("slope", [3, 30, 3000, -30])
def test_a_trend_linear_in_the_step_is_no_change(slope: float) -> None:
    line = slope * STEPS / STEPS[-1]
    assert not change(STEPS, line).called
    assert called(line + noise(10, 300)) <= 0.01


@pytest.mark.parametrize("steps", [STEPS, np.array([0, *(2.0**power for power in range(17))])])
def test_walks_in_the_step_are_called_as_rarely_as_walks_of_checkpoints(steps: np.ndarray) -> None:
    spacing = np.concatenate([[1.0], np.diff(steps)])
    for power in (0.25, 0.5):
        walks = np.cumsum(noise(12, length=len(steps)) * spacing**power, axis=1)
        assert called(walks, steps) <= 0.072  # .05, and three standard errors of a thousand


@pytest.mark.parametrize("offset", [1e13, -1e13, 1e9])
def test_a_unit_step_on_a_large_level_is_a_change(offset: float) -> None:
    # numbers near 1e13 are stored to .002, so that the step of 1 is five hundred times their rounding
    one = change(STEPS, offset + 1.0 * (np.arange(COUNT) >= 20))
    assert one.called
    assert one.step == STEPS[20]
    assert_allclose(one.size, 1.0, rtol=1e-9)


def test_rounding_of_a_large_level_is_no_change() -> None:
    curves = 1e13 + 0.004 * noise(13, 300)  # two units of the last place
    assert called(curves) <= 0.01
    assert change(STEPS, np.nextafter(np.full(COUNT, 1e13), np.inf * (-1.0) ** np.arange(COUNT))).reason


def _rates(steps: np.ndarray, count: int) -> list[float]:
    """Percent called of each kind of curve that the docstring names, in its order."""
    rng, length = np.random.default_rng(11), len(steps)
    spacing, state, correlated = np.concatenate([[1.0], np.diff(steps)]), np.zeros(count), []
    for _ in range(length + 100):
        state = 0.8 * state + rng.standard_normal(count)
        correlated.append(state)
    white = rng.standard_normal((count, length))
    kinds = [
        np.cumsum(rng.standard_normal((count, length)), axis=1),
        np.cumsum(rng.standard_normal((count, length)) * spacing**0.5, axis=1),
        white,
        np.stack(correlated[100:], axis=1),
        white + 3 * np.log1p(steps),
        white + 30 * steps / steps[-1],
        white + 8 * (np.arange(length) >= length // 2),
    ]
    return [100 * called(curves, steps) for curves in kinds]


@pytest.mark.slow
def test_the_docstring_states_what_is_called() -> None:
    stated = [(float(a), float(b)) for a, b in re.findall(r": ([\d.]+) \| ([\d.]+)\n", change.__doc__ or "")]
    count = 4000
    for column, steps in enumerate((STEPS, 100.0 * np.arange(40))):
        rates = _rates(steps, count)
        known = np.array([row[column] for row in stated])
        error = np.sqrt(known * (100 - known) / count + 0.05**2)  # of the sample, and of the last digit
        assert np.all(np.abs(rates - known) <= 3.5 * error), rates
    ten = np.unique(np.round(np.geomspace(1, 1e5, 10)))
    assert_allclose(_rates(ten, count)[-1], 66, atol=3)


def test_a_shift_of_eight_spreads_is_found_to_a_checkpoint() -> None:
    places = np.random.default_rng(3).integers(6, COUNT - 6, RUNS)
    after = np.arange(COUNT) >= places[:, None]
    assert found(noise(4) + 8 * after, places) >= 0.98
    assert found(noise(4) - 8 * after - 2 * np.log(STEPS), places) >= 0.98  # down, on a trend


def test_a_logistic_rise_is_found_to_a_checkpoint() -> None:
    # by 15 spreads, from a tenth to nine tenths within two checkpoints
    places = np.random.default_rng(5).integers(8, COUNT - 8, RUNS)
    rise = 15 / (1 + np.exp(-2 * (np.arange(COUNT) - places[:, None] + 0.5)))
    assert found(noise(6) + rise, places) >= 0.98


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_step_and_size_of_an_exact_shift_are_exact_at_any_scale(scale: float) -> None:
    curve = scale * (2.0 + 0.5 * np.log1p(STEPS) - 3.0 * (np.arange(COUNT) >= 20))
    one = change(STEPS, curve)
    assert one.called
    assert one.step == STEPS[20]
    assert_allclose(one.size, -3 * scale, rtol=1e-9)
    assert not change(STEPS, scale * (2 + 0.5 * np.log1p(STEPS))).called  # a line leaves rounding alone


def test_undefined_values_are_left_out() -> None:
    curve = noise(0, 1)[0] + 20 * (np.arange(COUNT) >= 20)
    whole = change(STEPS, curve)
    curve[[2, 30]] = np.nan
    assert change(STEPS, curve).step == whole.step == STEPS[20]


@pytest.mark.parametrize(
    ("steps", "values", "reason"),
    [
        (np.arange(7), np.arange(7.0), "fewer than 8"),
        (np.arange(9), np.full(9, np.nan), "fewer than 8"),
        (np.arange(9), np.full(9, 3.0), "no change at all"),
        (np.arange(9), np.zeros(9), "no change at all"),
    ],
)
def test_curves_that_are_short_or_flat_have_no_change_and_say_why(steps, values, reason: str) -> None:
    one = change(steps, values)
    assert not one.called
    assert np.isnan(one.step)
    assert reason in one.reason


def test_runs_give_a_median_and_a_range_and_one_run_none() -> None:
    places = [18, 20, 21]
    curves = noise(7, 3) + 15 * (np.arange(COUNT) >= np.array(places)[:, None])
    several = change_of_runs(STEPS, np.vstack([curves, noise(8, 1)]))
    assert (several.runs, several.called) == (4, 3)
    assert (several.lower, several.step, several.upper) == tuple(STEPS[places])
    assert several.uncertainty == "range over 3 of 4 runs"
    one = change_of_runs(STEPS, curves[0])
    assert one.step == STEPS[18]
    assert np.isnan(one.lower)
    assert one.uncertainty == "none from one run"
    assert np.isnan(change_of_runs(STEPS, noise(9, 3)).step)


@pytest.mark.parametrize(
    ("steps", "values", "match"),
    [
        (STEPS[::-1], STEPS, "steps must increase"),
        (STEPS, STEPS[1:], "as many as steps"),
        (STEPS, np.where(STEPS > 10, np.inf, 0), "infinite"),
    ],
)
def test_curves_that_are_none_are_refused(steps, values, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        change(steps, values)
