"""Where gradient flow stalls: losses and matrices of the fixed points."""

import time as clock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from iclab import Regression
from iclab.theory.dynamics import fixed_point, plateaus
from iclab.theory.population import best_loss, gradient, loss, moments, moments_from

NON_WHITE = Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31)


def random_law(seed: int, size: int = 4, noise: float = 0.2):
    factors = np.random.default_rng(seed).standard_normal((2, size, size))
    inputs, tasks = factors @ factors.transpose(0, 2, 1) / size
    return moments_from(inputs, (5, 9), task_covariance=tasks, noise=noise)


def test_plateaus_of_four_eigenvalues() -> None:
    # zhang2025training eq. 19: the first drop is 0.4/(1 + (1 + 1/0.4)/31)
    known = [1.0, 0.6405797101, 0.3773721630, 0.2098045954, 0.1359950716]
    assert_allclose(plateaus(moments(NON_WHITE)), known, atol=1e-10)


def test_plateaus_of_eight_eigenvalues() -> None:
    problem = Regression(eigenvalues=tuple(np.arange(8, 0, -1) / 36), context_length=31)
    known = [
        1.0, 0.8112633181, 0.6489769933, 0.5130120810, 0.4031764801, 0.3191656400, 0.2604535188, 0.2260090744,
        0.2133456757,
    ]  # fmt: skip
    assert_allclose(plateaus(moments(problem)), known, atol=1e-10)


def test_a_fixed_point_may_skip_modes() -> None:
    law = moments(NON_WHITE)
    assert_allclose(loss(law, fixed_point(law, (1, 3))), 0.662982929, atol=1e-9)


def test_white_inputs_end_at_five_thirty_sixths() -> None:
    # a = 1 + (1 + 4)/31 = 36/31, least loss 1 − 1/a = 5/36
    white = Regression(eigenvalues=(0.25,) * 4, context_length=31)
    assert_allclose(plateaus(moments(white))[-1], 5 / 36, rtol=1e-12)


def test_plateaus_with_general_tasks_and_noise() -> None:
    # Each mode takes λ²ω A with A = ω/(λω(1 + 1/N) + (tr ΩΛ + noise)/N); growth λ²ω is 0.12, 0.09, 0.08, 0.005.
    problem = Regression(context_length=31, task_eigenvalues=(0.5, 1.0, 3.0, 0.5), noise=0.1)
    known = [1.25, 0.7042787286, 0.4471358715, 0.2850443682, 0.2578513857]
    assert_allclose(plateaus(moments(problem)), known, atol=1e-9)


@pytest.mark.parametrize(
    ("normalization", "known"),
    [
        ("length", [1.0, 0.7250271314, 0.5330821970, 0.4206889797, 0.3795201554]),
        ("tokens", [1.0, 0.7041639361, 0.4948100090, 0.3693976961, 0.3213212085]),
    ],
)
def test_plateaus_of_mixed_context_lengths(normalization: str, known: list[float]) -> None:
    law = moments_from(np.diag(NON_WHITE.eigenvalues), range(1, 32), normalization=normalization)
    assert_allclose(plateaus(law), known, atol=1e-9)


@pytest.mark.parametrize("learned", [(), (0,), (2,), (3, 1), (0, 1, 2), (0, 1, 2, 3)])
def test_both_stationarity_conditions_hold_when_covariances_do_not_commute(learned: tuple[int, ...]) -> None:
    # Active heads need Γ ∇Lᵀ = 0 and ∇Lᵀ Γ = 0; the loss is null − Σ worth.
    law = random_law(3)
    gamma = fixed_point(law, learned)
    slope = gradient(law, gamma)
    assert_allclose(gamma @ slope.T, 0, atol=1e-13)
    assert_allclose(slope.T @ gamma, 0, atol=1e-13)
    assert_allclose(loss(law, gamma), law.null_loss - np.sum(-np.diff(plateaus(law))[list(learned)]), rtol=1e-12)


@given(st.integers(0, 1000))
def test_plateaus_descend_by_ever_smaller_drops_to_the_best_loss(seed: int) -> None:
    law = random_law(seed)
    levels = plateaus(law)
    drops = -np.diff(levels)
    assert np.all(drops >= 0)
    assert np.all(np.diff(drops) <= 1e-12)
    assert_allclose(levels[-1], best_loss(law), rtol=1e-12)
    assert_allclose(levels[2], best_loss(law, rank=2), rtol=1e-12)


def test_long_contexts_leave_only_the_unlearned_variance() -> None:
    # N → ∞ without noise: a mode that is held is solved, one that is not costs λ.
    problem = Regression(context_length=10**9)
    assert_allclose(plateaus(moments(problem)), [1.0, 0.6, 0.3, 0.1, 0.0], atol=1e-8)  # first order in 1/N


def test_a_direction_without_inputs_repeats_the_last_plateau() -> None:
    levels = plateaus(moments(Regression(eigenvalues=(0.5, 0.5, 0.0), context_length=8)))
    assert levels[2] == levels[3]


def test_plateaus_of_512_dimensions_take_less_than_a_second() -> None:
    law = moments(Regression(eigenvalues=tuple(np.linspace(1, 0.1, 512))))
    begin = clock.thread_time()
    assert len(plateaus(law)) == 513
    assert clock.thread_time() - begin < 1.0


@pytest.mark.parametrize(
    ("learned", "message"),
    [
        ((4,), "learned must hold modes 0..3, counted from 0"),
        ((-1,), "learned must hold modes 0..3"),
        ((0.5,), "learned must be whole mode numbers"),
        (2, "learned must be whole mode numbers"),
        ((1, 1), "learned must name each mode once"),
    ],
)
def test_modes_that_do_not_exist_are_refused(learned: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fixed_point(moments(NON_WHITE), learned)
