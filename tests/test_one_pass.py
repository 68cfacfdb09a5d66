"""Theory against one-pass SGD on drawn tokens: expected loss, small noise, mode strengths, undriven blocks."""

import itertools
from typing import NamedTuple

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab import Regression
from iclab.outcomes import GammaRuns
from iclab.simulation.keys import key_of
from iclab.simulation.linear.scalar_sgd import drawn_squares, gamma_sgd, head_sgd, squares_of_combinations
from iclab.simulation.linear.transformer_sgd import transformer_sgd
from iclab.theory import modes, population, sgd

REFERENCE = Regression(eigenvalues=(1.5, 0.6), context_length=5, noise=0.2)
FOUR = Regression(eigenvalues=(2.0, 1.0, 0.5, 0.25), context_length=8)


def keys(count: int, seed: int = 0) -> jax.Array:
    return jax.random.split(jax.random.key(seed), count)


def deviations(runs: GammaRuns, problem: Regression, *, rate: float, batch: int) -> np.ndarray:
    """Standard errors between mean and expected loss at each record after the start, by weights and by batch."""
    records = len(runs.time)
    every = round(runs.time[1] / rate)
    expected = sgd.expected_loss(problem, rate=rate, batch=batch, steps=every * (records - 1)).loss[::every]
    samples = (sample(population.loss(population.moments(problem), runs.gamma)), sample(runs.batch_loss))
    return np.stack([(one.loss - expected)[1:] / one.standard_error[1:] for one in samples])


class Sample(NamedTuple):
    loss: np.ndarray
    standard_error: np.ndarray
    median: np.ndarray


def sample(losses: np.ndarray) -> Sample:
    """Mean over runs with its standard error, and median, of losses with a run a row."""
    error = np.std(losses, axis=0, ddof=1) / np.sqrt(len(losses))
    return Sample(np.mean(losses, axis=0), error, np.median(losses, axis=0))


def test_mean_loss_of_runs_on_gamma_is_the_expected_loss() -> None:
    runs = gamma_sgd(REFERENCE, rate=0.01, batch=8, steps=40, every=10, key=keys(3000))
    assert np.max(np.abs(deviations(runs, REFERENCE, rate=0.01, batch=8))) < 4


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "batch"), [(0.01, 8), (0.02, 32)])
def test_mean_loss_of_twenty_thousand_runs_is_the_expected_loss_at_every_record(rate: float, batch: int) -> None:
    # well below the critical rates .095 and .223; closer to them rare runs carry the mean and no sample holds them
    runs = gamma_sgd(REFERENCE, rate=rate, batch=batch, steps=120, every=10, key=keys(20_000))
    assert np.max(np.abs(deviations(runs, REFERENCE, rate=rate, batch=batch))) < 4


def test_typical_runs_stay_small_where_the_expected_loss_explodes() -> None:
    # .05 > critical rate .0414 at B = 3: the expectation exceeds 10³ at step 100
    runs = gamma_sgd(REFERENCE, rate=0.05, batch=3, steps=100, every=100, key=keys(400))
    losses = sample(population.loss(population.moments(REFERENCE), runs.gamma))
    assert sgd.expected_loss(REFERENCE, rate=0.05, batch=3, steps=100).loss[-1] > 1e3
    assert losses.median[-1] < 2


def test_runs_on_one_head_follow_the_small_noise_loss_and_balance() -> None:
    run = {"rate": 0.005, "batch": 16, "steps": 60, "start": (0.5, 0.3)}
    runs = head_sgd(REFERENCE, every=20, key=keys(1000), **run)
    expected = sgd.small_noise_loss(REFERENCE, **run)
    losses = sample(population.loss(population.moments(REFERENCE), runs.gamma))
    assert np.all(np.abs(losses.loss - expected.loss[::20])[1:] < 4 * losses.standard_error[1:])
    balance = sample(runs.value**2 - np.sum(runs.key_query**2, axis=(-2, -1)))
    assert np.all(np.abs(balance.loss - expected.balance[::20])[1:] < 4 * balance.standard_error[1:])


@pytest.mark.slow
def test_six_thousand_runs_on_one_head_follow_the_small_noise_loss() -> None:
    run = {"rate": 0.005, "batch": 16, "steps": 300, "start": (0.5, 0.3)}
    runs = head_sgd(REFERENCE, every=50, key=keys(6000), **run)
    expected = sgd.small_noise_loss(REFERENCE, **run)
    losses = sample(population.loss(population.moments(REFERENCE), runs.gamma))
    assert np.all(np.abs(losses.loss - expected.loss[::50])[1:] < 4 * losses.standard_error[1:])
    # the noise it predicts is seen: descent alone is off by many standard errors
    assert losses.loss[-1] - expected.deterministic[-1] > 10 * losses.standard_error[-1]


def test_one_step_of_the_transformer_follows_the_mean_gradient() -> None:
    # the mean step over many batches against the exact gradient, off-diagonal entries and a pool of tasks included
    p, q = np.array([[0.5, 0.1], [-0.2, 0.3]]), np.array([[0.4, -0.1], [0.3, 0.6]])
    pool = np.array([[1.5, 0.5], [-1.5, 0.5], [1.5, -0.5], [-1.5, -0.5]])
    tasks = modes.DiagonalTasks([2.0, 0.7], 6, noise=0.3, task_second_moments=np.mean(pool**2, axis=0))
    problem = Regression((2.0, 0.7), 6, 0.3)
    runs = transformer_sgd(problem, start=(p, q), rate=1.0, batch=100, steps=1, tasks=pool, key=keys(600))
    for path, slope in zip((runs.value, runs.key_query), modes.matrix_gradient(tasks, p, q), strict=True):
        step = path[:, 0] - path[:, 1]
        assert np.all(np.abs(step.mean(axis=0) - slope / 2) < 4 * step.std(axis=0) / np.sqrt(len(step)))
    loss = runs.loss[:, 0]
    assert abs(loss.mean() - modes.matrix_loss(tasks, p, q)) < 4 * loss.std() / np.sqrt(len(loss))


@pytest.mark.slow
def test_the_transformer_follows_the_exact_flow_where_leading_order_is_off_by_a_factor() -> None:
    # the noise of batches of 512 shifts modes 2 and 3 by -1.3 and -1.5 of these standard errors (mean of 96 runs)
    runs = 16
    curves = transformer_sgd(
        FOUR, start=(0.1, 0.1), rate=0.01, batch=512, steps=3000, every=3000, key=keys(runs, seed=1)
    )
    ends = curves.strength[:, -1]
    mean, error = ends.mean(axis=0), ends.std(axis=0, ddof=1) / np.sqrt(runs)
    tasks = modes.DiagonalTasks(FOUR.eigenvalues, 8)
    exact = modes.exact_flow(tasks, start=(0.1, 0.1), time=[30.0]).strength[0]
    paper = modes.leading_order(tasks, start=(0.1, 0.1), time=[30.0]).strength[0]
    assert np.all(np.abs(mean - exact) < 3 * error)
    assert paper[3] > 4 * mean[3]
    assert np.max(curves.stray) < 0.05  # no expected gradient drives these blocks; weights are of order one
    assert np.max(curves.misalignment) < 0.05


def test_runs_depend_on_their_own_key_and_lead_with_its_axes() -> None:
    several = gamma_sgd(REFERENCE, rate=0.01, batch=2, steps=6, every=3, key=keys(7))
    alone = gamma_sgd(REFERENCE, rate=0.01, batch=2, steps=6, every=2, key=keys(7)[4])
    assert several.gamma.shape == (7, 3, 2, 2)
    assert alone.gamma.shape == (4, 2, 2)
    assert_allclose(several.gamma[4, -1], alone.gamma[-1], rtol=1e-13)
    assert_allclose(several.time, [0, 0.03, 0.06])


def test_runs_may_start_from_weights_of_their_own() -> None:
    start = np.random.default_rng(0).standard_normal((3, 2, 2))
    runs = gamma_sgd(REFERENCE, rate=0.01, batch=2, steps=2, start=start, key=keys(3))
    assert_allclose(runs.gamma[:, 0], start, atol=0)
    p, q = np.random.default_rng(0).standard_normal((2, 1, 3, 4, 4))
    curves = transformer_sgd(FOUR, start=(p, q), rate=0.01, batch=2, steps=2, key=keys(3).reshape(1, 3))
    assert curves.strength.shape == (1, 3, 3, 4)
    assert curves.stray.shape == curves.loss.shape == (1, 3, 3)
    assert_allclose(curves.value[:, :, 0], p, atol=0)
    assert_allclose(curves.key_query[:, :, 0], q, atol=0)
    assert_allclose(curves.balance[:, :, 0], np.sum(p**2 - q**2, axis=(-2, -1)), rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": 0.0}, "rate must be finite and > 0"),
        ({"batch": 0}, "batch must be a whole number >= 1"),
        ({"steps": 5, "every": 2}, "every must be a whole part of steps = 5"),
        ({"problem": Regression((1.0,), (4, 8))}, "context_length must be one number"),
        ({"start": np.eye(3)}, "start must have shape"),
        ({"key": np.zeros(2, dtype=np.uint32)}, "key must be made by jax.random.key"),
    ],
)
def test_impossible_runs_are_refused_by_name(change: dict, message: str) -> None:
    settings = {"problem": REFERENCE, "rate": 0.01, "batch": 2, "steps": 4, "key": keys(2)} | change
    with pytest.raises(ValueError, match=message):
        gamma_sgd(settings.pop("problem"), **settings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": (np.ones(3), 1.0)}, "start must hold finite scalars, 4 numbers"),
        ({"tasks": np.ones((5, 3))}, "tasks must be a pool, one row of 4 numbers"),
    ],
)
def test_impossible_transformers_are_refused_by_name(change: dict, message: str) -> None:
    settings = {"start": (0.1, 0.1), "rate": 0.01, "batch": 2, "steps": 4, "key": keys(2)} | change
    with pytest.raises(ValueError, match=message):
        transformer_sgd(FOUR, **settings)


def test_the_square_of_gamma_on_drawn_moments_has_the_expected_loss_and_its_critical_rate() -> None:
    drawn = drawn_squares(REFERENCE, 40_000, key=key_of(0))
    known = sgd.expected_loss(REFERENCE, rate=0.02, batch=16, steps=40)
    state = np.diag([0.0, 0.0, 0.0, 0.0, 1.0])
    for _ in range(40):
        state = drawn.stepped(state, rate=0.02, batch=16)
    noisy = drawn.loss(state)
    assert_allclose(noisy, known.loss[-1], rtol=0.02)  # four errors of forty thousand contexts
    for batch in (1, 8, np.inf):
        assert_allclose(drawn.critical(batch=batch), sgd.critical_rate(REFERENCE, batch=batch), rtol=0.05)


def test_moments_of_combinations_are_the_means_over_every_one() -> None:
    rng = np.random.default_rng(0)
    inputs, noise = rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 1, 4))
    tasks, queries = np.append(rng.normal(size=(2, 2)), [[1], [1]], axis=1), rng.normal(size=(2, 3))
    kappa = [
        np.append(np.outer(x.T @ (x @ task[:2] + error[0]) / 4, query[:2]), query[:2] @ task[:2] + query[2])
        for (x, error), task, query in itertools.product(zip(inputs, noise, strict=True), tasks, queries)
    ]
    sums = np.concatenate([inputs.transpose(0, 2, 1), noise], axis=1) @ inputs / 4
    contexts = np.append(sums.reshape(3, -1), np.ones((3, 1)), axis=1)
    drawn = squares_of_combinations(*(squares(rows) for rows in (contexts, tasks, queries)))
    for found, known in zip(drawn, squares(np.array(kappa)), strict=True):
        assert_allclose(found, known, rtol=1e-12, atol=1e-14)


def squares(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means of vvᵀ and of its square over the rows v."""
    pairs = np.einsum("Pa,Pb->Pab", rows, rows)
    return pairs.mean(axis=0), np.einsum("Pab,Pcd->abcd", pairs, pairs) / len(rows)
