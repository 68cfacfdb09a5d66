"""The rule that counts stages, on curves made up by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.numerics.curves import at_rests, drop_count, half_drop_time, stages

LOG_TIME = np.linspace(0, 10, 1001)
TIME = np.exp(LOG_TIME)


def staircase(levels: list[float], drops: list[float], width: float = 0.05) -> np.ndarray:
    """Loss with smooth steps between levels, at log-times `drops`."""
    loss = np.full(LOG_TIME.shape, levels[0])
    for before, after, at in zip(levels[:-1], levels[1:], drops, strict=True):
        loss += (after - before) / (1 + np.exp(-(LOG_TIME - at) / width))
    return loss


def test_one_drop_between_two_levels_makes_two_stages() -> None:
    first, last = stages(TIME, staircase([1.0, 0.2], [4.0]))
    assert_allclose([first.begin, last.end], [1.0, np.exp(10)])
    assert_allclose([first.loss_at_begin, last.loss_at_end], [1.0, 0.2], atol=1e-12)
    # |dL/d log t| = .8/.05 σ(1 − σ) crosses .02 where σ is about .00125, 6.7 widths before the middle
    assert_allclose(np.log(first.end), 4.0 - 6.68 * 0.05, atol=0.02)  # two records


@pytest.mark.parametrize("levels", [[1.0, 0.6, 0.3, 0.1], [50.0, 30.0, 15.0, 5.0], [1e-9, 6e-10, 3e-10, 1e-10]])
def test_stairs_of_three_drops_make_four_stages_in_any_unit(levels: list[float]) -> None:
    found = stages(TIME, staircase(levels, [2.0, 5.0, 8.0]))
    assert_allclose([stage.loss_at_end for stage in found], levels, rtol=0.02)


def test_a_level_shorter_than_five_per_cent_of_log_time_is_no_stage() -> None:
    # the drops leave |dL/d log t| above .02 for about 6 widths of .05 on either side of their middles
    for length, count in ((0.4, 2), (0.6, 3)):
        assert len(stages(TIME, staircase([1.0, 0.5, 0.1], [4.0, 4.0 + length + 0.6]))) == count


def test_a_drop_below_five_per_cent_of_the_first_loss_separates_nothing() -> None:
    for depth, count in ((0.04, 2), (0.06, 3)):
        assert len(stages(TIME, staircase([1.0, 0.3, 0.3 - depth], [3.0, 7.0]))) == count


def test_a_slow_fall_is_one_stage_below_two_per_cent_and_none_above() -> None:
    (slow,) = stages(TIME, 1 - 0.019 * LOG_TIME)
    assert_allclose([slow.begin, slow.end], [1.0, np.exp(10)])
    assert stages(TIME, 1 - 0.021 * LOG_TIME) == ()


def test_a_rise_separates_nothing() -> None:
    assert len(stages(TIME, staircase([0.5, 0.9], [5.0]))) == 1


def test_the_start_at_time_zero_only_sets_the_unit() -> None:
    loss = staircase([1.0, 0.2], [4.0])
    assert stages(np.append(0, TIME), np.append(1.0, loss)) == stages(TIME, loss)
    # in units of a first loss of 20 a fall by .8 is a drop of 4 %, and no longer one
    assert len(stages(np.append(0, TIME), np.append(20.0, loss))) == 1


@pytest.mark.parametrize(
    ("time", "loss", "message"),
    [
        ([0, 1, 2], [1, 1], "two lists of one length"),
        ([0, 1], [1, 1], r"at least two positive times; got \[0.0, 1.0\]. A curve of training needs two steps"),
        ([0, 2, 1], [1, 1, 1], "time must increase"),
        ([-1, 1, 2], [1, 1, 1], "time must increase"),
        ([0, 1, np.inf], [1, 1, 1], "time must increase"),
        ([0, 1, 2], [1, np.nan, 1], "loss must be finite"),
        ([0, 1, 2], [0, 1, 1], "loss must be finite and begin above 0"),
    ],
)
def test_curves_that_cannot_be_counted_are_refused(time: list, loss: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        stages(time, loss)


@pytest.mark.parametrize("name", ["extent", "slope", "drop"])
def test_fractions_outside_zero_and_one_are_refused_by_name(name: str) -> None:
    for fraction in (0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match=f"{name} must be a fraction"):
            stages(TIME, np.ones_like(TIME), **{name: fraction})


def test_the_half_drop_time_is_where_a_curve_passes_the_middle_of_its_ends() -> None:
    time = np.linspace(0, 10, 101)
    assert_allclose(half_drop_time(time, 3 - 0.2 * time), 5.0, rtol=1e-12)


def test_drops_are_one_fewer_than_stages() -> None:
    assert drop_count(TIME, staircase([1.0, 0.6, 0.3], [3.0, 6.0])) == 2
    assert drop_count(TIME, 1 / (1 + LOG_TIME)) == 0  # a curve that never rests


def test_predictions_are_taken_where_the_loss_rests() -> None:
    time = np.geomspace(1, 1000, 7)
    loss = np.array([1.0, 0.99, 0.52, 0.5, 0.49, 0.1, 0.1])
    predictions = np.arange(7.0)[:, None]
    taken = at_rests(time, loss, predictions, np.array([1.0, 0.5, 0.1, 0.0]))
    assert_allclose(taken[:, 0], [3, 6, np.nan])
