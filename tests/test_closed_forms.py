"""Time courses without integration of a layer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from iclab import MergedAttention, Regression
from iclab.attention import aligned_separate, random_merged
from iclab.theory.dynamics import (
    growing_amplitude,
    merged_flow,
    plateaus,
    reduced_merged_flow,
    white_drop_time,
    white_merged_loss,
)
from iclab.theory.population import moments, moments_from

NON_WHITE = Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31)
UNIT = Regression(eigenvalues=(1.0,) * 4, context_length=31)
TRACE_ONE = Regression(eigenvalues=(0.25,) * 4, context_length=31)
STEPS = (0.02, 0.018, 0.016, 0.014)


def cosines(phase: float, scale: float, *shape: int) -> np.ndarray:
    return scale * np.cos(phase + 1.7 * np.arange(np.prod(shape))).reshape(shape)


def cosine_start(scale: float) -> MergedAttention:
    return MergedAttention(cosines(1, scale, 8), cosines(2, scale, 8, 4, 4))


@pytest.mark.parametrize(
    ("problem", "time", "strength"),
    [
        # zhang2025training eq. 10, amplitude² = 1e-6
        (UNIT, [1, 2, 3, 3.5, 4, 5],
         [2.729822545e-05, 0.001487904475, 0.07435105713, 0.3540641686, 0.7213130857, 0.8580651835]),
        (TRACE_ONE, [20, 40, 50, 60], [7.420499166e-05, 0.01097813312, 0.1291384375, 1.108491213]),
    ],
)  # fmt: skip
def test_white_loss_follows_the_published_strength(problem: Regression, time: list, strength: list) -> None:
    # L = D λ (1 − 1/a + (1 − σ λ a)²/a), a = 1 + (1 + D)/N = 36/31
    size, a = problem.eigenvalues[0], 36 / 31
    known = 4 * size * (1 - 1 / a + (1 - np.array(strength) * size * a) ** 2 / a)
    assert_allclose(white_merged_loss(problem, 1e-3, time), known, atol=1e-8)


def test_white_drop_times_are_the_known_ones() -> None:
    assert_allclose(white_drop_time(UNIT, 1e-3), 3.369437959, atol=1e-9)
    assert_allclose(white_drop_time(TRACE_ONE, 1e-4), 77.87686785, atol=1e-7)


@given(st.floats(0.01, 0.99), st.floats(-8, -2), st.floats(0, 3))
def test_at_the_drop_time_the_fraction_of_the_drop_is_done(fraction: float, exponent: float, noise: float) -> None:
    problem = Regression(eigenvalues=(0.7,) * 3, context_length=(4, 9), noise=noise, task_eigenvalues=(2.0,) * 3)
    amplitude = 10.0**exponent
    levels = plateaus(moments(problem))
    reached = white_merged_loss(problem, amplitude, white_drop_time(problem, amplitude, fraction=fraction))
    assert_allclose((levels[0] - reached) / (levels[0] - levels[-1]), fraction, atol=1e-9)


def test_the_growing_amplitude_of_a_known_start() -> None:
    # |(value + key_query · Λ²/|Λ²|)/2|² of the cosine start
    assert_allclose(growing_amplitude(moments(NON_WHITE), cosine_start(1e-3)) ** 2, 5.76714465e-07, atol=1e-14)


def test_the_white_closed_form_meets_the_flow_in_the_square_of_the_start() -> None:
    problem = Regression(eigenvalues=(0.25,) * 4, context_length=31, noise=0.1, task_eigenvalues=(2.0,) * 4)
    law, gaps = moments(problem), []
    for scale in (1e-2, 1e-3, 1e-4):
        start = cosine_start(scale)
        amplitude = growing_amplitude(law, start)
        time = np.linspace(0.5, 1.5, 40) * white_drop_time(problem, amplitude)
        gaps.append(np.max(np.abs(merged_flow(law, start, time).loss - white_merged_loss(problem, amplitude, time))))
    assert gaps[2] <= 1e-6
    assert_allclose(np.diff(np.log10(gaps)), -2, atol=0.3)


def test_without_task_variance_white_loss_only_decays_to_the_noise() -> None:
    # g = 0: dσ/dt = −2√D h σ², σ = σ₀/(1 + 2√D h σ₀ t), L = noise + D h σ²
    silent = Regression(eigenvalues=(1.0, 1.0), context_length=4, noise=2.0, task_eigenvalues=(0.0, 0.0))
    first, drag = 0.5**2 / np.sqrt(2), 2.0 / 4
    time = np.array([0.0, 1.0, 1e6])
    strength = first / (1 + 2 * np.sqrt(2) * drag * first * time)
    assert_allclose(white_merged_loss(silent, 0.5, time), 2 + 2 * drag * strength**2, rtol=1e-12)


@pytest.mark.parametrize("tasks", [None, (0.5, 1.0, 3.0, 0.5)])
def test_the_reduced_flow_meets_the_flow_in_proportion_to_the_start(tasks: tuple | None) -> None:
    law, gaps = moments(Regression(task_eigenvalues=tasks)), []
    for scale in (1e-2, 1e-3, 1e-4):
        start = cosine_start(scale)
        time = np.linspace(20, 120, 60)
        reduced = reduced_merged_flow(law, growing_amplitude(law, start), time)
        gaps.append(np.max(np.abs(merged_flow(law, start, time).loss - reduced.loss)))
    assert gaps[2] < 1e-5
    assert_allclose(np.diff(np.log10(gaps)), -1, atol=0.3)


def test_the_error_of_the_reduced_flow_falls_with_its_tolerance() -> None:
    law, time = moments(Regression()), np.linspace(0, 120, 20)
    sharp, *others = (reduced_merged_flow(law, 1e-3, time, tolerance=one).loss for one in (1e-13, 1e-11, 1e-7, 1e-3))
    errors = [np.max(np.abs(found - sharp)) for found in others]
    assert errors[0] < 1e-9
    assert np.all(np.diff(np.log10(errors)) > 2)


def test_the_reduced_flow_is_that_of_one_aligned_head_in_any_frame() -> None:
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    rotated = moments_from(
        turn @ np.diag([0.4, 0.3, 0.2, 0.1]) @ turn.T, 31, task_covariance=turn @ np.diag([1, 2, 0, 1]) @ turn.T
    )
    time = [0.0, 20.0, 40.0]
    reduced = reduced_merged_flow(rotated, 0.01, time)
    first = MergedAttention(reduced.weights.value[0], reduced.weights.key_query[0])
    assert_allclose(reduced.loss, merged_flow(rotated, first, time).loss, atol=1e-8)
    assert_allclose(np.linalg.norm(first.key_query), 0.01, rtol=1e-12)


@pytest.mark.parametrize(
    ("problem", "amplitude", "time", "message"),
    [
        (NON_WHITE, 0.1, 1.0, "eigenvalues must all be equal"),
        (Regression((1.0, 1.0), task_eigenvalues=(1.0, 2.0)), 0.1, 1.0, "task_eigenvalues must all be equal"),
        (UNIT, 0.0, 1.0, "amplitude must be finite and > 0; got 0.0"),
        (UNIT, -1.0, 1.0, "amplitude must be finite"),
        (UNIT, np.nan, 1.0, "amplitude must be finite"),
        (UNIT, 0.1, -1.0, "time must be finite and >= 0"),
    ],
)
def test_a_white_closed_form_names_what_it_needs(problem, amplitude, time, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        white_merged_loss(problem, amplitude, time)


def test_a_drop_that_is_over_or_never_comes_is_refused() -> None:
    with pytest.raises(ValueError, match="fraction must lie between 0 and 1"):
        white_drop_time(UNIT, 0.1, fraction=1.0)
    with pytest.raises(ValueError, match="amplitude must be small enough for the drop"):
        white_drop_time(UNIT, 2.0)
    with pytest.raises(ValueError, match="task_eigenvalues must be positive"):
        white_drop_time(Regression((1.0, 1.0), noise=1.0, task_eigenvalues=(0.0, 0.0)), 0.1)


def test_covariances_that_do_not_commute_have_no_reduced_flow() -> None:
    tilted = moments_from(np.diag([2.0, 1.0]), 4, task_covariance=[[1.0, 0.5], [0.5, 1.0]])
    with pytest.raises(ValueError, match="input and task covariance must commute"):
        reduced_merged_flow(tilted, 0.1, [1.0])


def test_the_reduced_flow_takes_one_amplitude() -> None:
    with pytest.raises(ValueError, match="amplitude must be one number; got shape"):
        reduced_merged_flow(moments(NON_WHITE), [0.1, 0.2], [1.0])


def test_an_amplitude_needs_a_start_that_fits() -> None:
    start = random_merged(3, 2, scale=0.1, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="dimension of the problem, D = 4; got 3"):
        growing_amplitude(moments(NON_WHITE), start)
    with pytest.raises(ValueError, match="start must be a MergedAttention"):
        growing_amplitude(moments(NON_WHITE), aligned_separate(np.ones(4)))
    with pytest.raises(ValueError, match="got B = 0"):
        growing_amplitude(moments(Regression((1.0,) * 3, noise=1.0, task_eigenvalues=(0.0,) * 3)), start)
