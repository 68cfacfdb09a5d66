"""Stacks that are trained, against theory on the spectrum of their own sample, and against known runs."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.attention import random_stack, stack_of
from iclab.numerics.curves import first_below
from iclab.problem import Regression
from iclab.simulation.keys import key_of
from iclab.simulation.linear import depth as simulated
from iclab.simulation.linear.contexts import draw
from iclab.theory import depth

KNOWN = {row["name"]: row for row in json.loads((Path(__file__).parent / "data/depth.json").read_text())}
WHITE = Regression((1.0,) * 4, 8, task_eigenvalues=(0.25,) * 4)  # T = 1
CLOCK = depth.flow_clock(WHITE)


def sample(contexts: int, seed: int = 0) -> tuple[np.ndarray, depth.Discrete]:
    """An invariant sample, and the law of its spectrum."""
    drawn = simulated.draw_covariances(WHITE, contexts, key=key_of(seed))
    return simulated.orbits(drawn), depth.spectrum(np.linalg.eigvalsh(drawn).ravel(), alpha=2.0)


def test_the_forward_pass_is_the_recursion_in_jax_and_in_numpy() -> None:
    contexts = draw(Regression((0.7, 0.4, 0.1), 9, 0.3), 30, key=key_of(3))
    stack = random_stack(3, 4, scale=0.7, rng=np.random.default_rng(0))
    known = stack.predictions(contexts.inputs, contexts.labels, contexts.query)
    size = np.max(abs(known))
    assert_allclose(simulated.answers(contexts, stack), known, rtol=1e-12, atol=1e-12 * size)
    assert_allclose(simulated.descended_answers(contexts, stack.gammas()), known, rtol=1e-12, atol=1e-12 * size)


def test_the_loss_of_a_sample_is_that_of_theory_on_its_spectrum() -> None:
    problem = Regression((0.6,) * 3, 5, 0.2)
    covariances = simulated.draw_covariances(problem, 40, key=key_of(1))
    law = depth.spectrum(np.linalg.eigvalsh(covariances).ravel() / 0.6, alpha=5 / 3)
    layers = np.array([0.3, 0.8, 0.9])
    losses = simulated.sample_loss(problem, depth.scalar_gammas(problem, layers), covariances=covariances)
    known = 0.2 + 1.8 * depth.excess(law, layers, noise_ratio=0.2 / 1.8)
    assert_allclose(losses.mean(), known, rtol=1e-13)


def test_the_loss_of_a_sample_is_that_of_drawn_tasks_and_labels() -> None:
    problem, rng = Regression((0.9, 0.3), 6, 0.2, (1.0, 2.0)), np.random.default_rng(0)
    stack = random_stack(2, 2, scale=0.8, rng=rng)
    x = np.sqrt(problem.eigenvalues) * rng.standard_normal((1, 6, 2))
    w = np.sqrt(problem.task_spectrum) * rng.standard_normal((40_000, 2))
    q = np.sqrt(problem.eigenvalues) * rng.standard_normal((40_000, 2))
    y = w @ x[0].T + np.sqrt(0.2) * rng.standard_normal((40_000, 6))
    answers = stack.predictions(np.broadcast_to(x, (40_000, 6, 2)), y, q)
    squares = (answers - np.sum(q * w, axis=1) - np.sqrt(0.2) * rng.standard_normal(40_000)) ** 2
    covariances = x.transpose(0, 2, 1) @ x / 6
    known = simulated.sample_loss(problem, stack.gammas(), covariances=covariances)[0]
    assert abs(squares.mean() - known) < 3 * squares.std() / 200
    assert squares.std() / 200 < 0.02 * known


def test_covariances_are_those_of_drawn_contexts() -> None:
    problem = Regression((2.0, 0.5), 4)
    drawn = simulated.draw_covariances(problem, 40_000, key=key_of(0))
    spread = drawn.std(axis=0) / 200
    assert np.all(abs(drawn.mean(axis=0) - np.diag([2.0, 0.5])) < 4 * spread)
    assert_allclose(drawn.var(axis=0)[0, 0], 2 * 2.0**2 / 4, rtol=0.05)


def test_orbits_commute_with_scalars_alone() -> None:
    drawn = simulated.draw_covariances(Regression((1.0,) * 8, 5), 3, key=key_of(0))
    copies = simulated.orbits(drawn)
    assert copies.shape == (3 * 64, 8, 8)
    for power in (1, 2, 5):
        mean = np.mean(np.linalg.matrix_power(copies, power), axis=0)
        assert_allclose(mean, np.trace(mean) / 8 * np.eye(8), atol=1e-12 * np.trace(mean))
    assert_allclose(np.linalg.eigvalsh(copies[3 * 13 + 1]), np.linalg.eigvalsh(drawn[1]), atol=1e-13)


@pytest.mark.parametrize("layers", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_matrices_on_an_invariant_sample_rest_and_end_as_scalars_do(layers: int) -> None:
    covariances, law = sample(20 if layers == 2 else 60)
    start = 1e-4 * np.random.default_rng(layers).standard_normal((1, layers, 4, 4))
    rate = 0.9 * depth.largest_stable_rate(law, layers) / CLOCK
    spread = np.trace(start[0], axis1=1, axis2=2) / 4
    steps = np.arange(0, int(4 * depth.half_way_time(law, spread) / (rate * CLOCK)), 2)
    run = simulated.descend(WHITE, (start,), covariances=covariances, rate=rate, steps=steps)
    tied, best = depth.tied_excess(law, layers), depth.best_excess(law, layers)
    half = first_below(run.time * CLOCK, run.loss[0], (tied + best) / 2)
    tolerances = KNOWN["orbit_training"]["tolerance"]
    log_slope = abs(np.gradient(run.loss[0][1:], np.log(run.time[1:])))
    resting = (run.loss[0][1:] < 0.5 * (1 + tied)) & (run.time[1:] * CLOCK < half)
    rest = run.loss[0][1:][resting][np.argmin(log_slope[resting])]
    assert abs(rest / tied - 1) < tolerances[0]
    assert abs(run.loss[0, -1] / best - 1) < tolerances[2]
    scalars = np.trace(run.gammas[0, -1], axis1=1, axis2=2) / 4
    assert_allclose(
        run.gammas[0, -1], scalars[:, None, None] * np.eye(4), atol=1e-7
    )  # what is off scalar decays with the run
    assert_allclose(np.sort(scalars), depth.best_layers(law, layers), rtol=1e-3)
    assert abs(half / depth.half_way_time(law, spread) - 1) < 0.12  # first order in the rate


@pytest.mark.slow
def test_half_way_times_near_the_flow_in_first_order_of_the_rate() -> None:
    covariances, law = sample(10)
    start = np.array([1e-3, 2e-3])[None, :, None, None] * np.eye(4)
    rate = 0.4 * depth.largest_stable_rate(law, 2) / CLOCK
    middle = (depth.tied_excess(law, 2) + depth.best_excess(law, 2)) / 2
    known, gaps = depth.half_way_time(law, [1e-3, 2e-3]), []
    for finer in (1, 2, 4):
        steps = np.arange(0, int(2 * known * finer / (rate * CLOCK)), finer)
        run = simulated.descend(WHITE, (start,), covariances=covariances, rate=rate / finer, steps=steps)
        gaps.append(first_below(run.time * CLOCK, run.loss[0], middle) / known - 1)
    assert_allclose([gaps[0] / gaps[1], gaps[1] / gaps[2]], 2, rtol=0.15)


@pytest.mark.parametrize("factors", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_products_of_weights_follow_their_flow(factors: int) -> None:
    covariances, law = sample(10)
    layers, size = np.array([0.02, 0.05]), 4
    # g = v k^(m−1) with v² = D k²: balanced
    inner = (layers / np.sqrt(size)) ** (1 / factors)
    value, inner_matrices = np.sqrt(size) * inner, inner[:, None, None] * np.eye(size)
    start = (value[None], *(inner_matrices[None] for _ in range(factors - 1)))
    rate, clock = 0.01, depth.flow_clock(WHITE, factors=factors)
    steps = np.arange(0, int(25 / (rate * clock)), 20)
    run = simulated.descend(WHITE, start, covariances=covariances, rate=rate, steps=steps)
    curve = depth.flow(law, layers, run.time * clock, factors=factors)
    assert_allclose(run.loss[0], curve.excess, atol=3e-3)  # first order in the rate
    assert curve.excess[-1] < 0.6 * curve.excess[0]


@pytest.mark.slow
def test_plain_draws_end_near_scalars() -> None:
    problem = Regression((1.0,) * 6, 12, task_eigenvalues=(1 / 6,) * 6)
    covariances = simulated.draw_covariances(problem, 4000, key=key_of(0))
    law = depth.spectrum(np.linalg.eigvalsh(covariances).ravel(), alpha=2.0)
    start = 1e-4 * np.random.default_rng(0).standard_normal((1, 2, 6, 6))
    run = simulated.descend(problem, (start,), covariances=covariances, rate=0.3 * 6, steps=range(0, 401, 5))
    assert abs(run.loss[0, -1] / depth.best_excess(law, 2) - 1) < 0.005
    log_slope = abs(np.gradient(run.loss[0][1:], np.log(run.time[1:])))
    resting = (run.loss[0][1:] < 0.5) & (run.loss[0][1:] > depth.tied_excess(law, 2) * 0.95)
    assert abs(run.loss[0][1:][resting][np.argmin(log_slope[resting])] / depth.tied_excess(law, 2) - 1) < 0.005


@pytest.mark.slow
def test_three_noisy_runs_find_the_critical_noise() -> None:
    covariances, law = sample(60)
    critical = depth.critical_noise_ratio(law)
    noises = critical * np.array([0.6, 0.75, 0.9])
    start = np.broadcast_to(np.array([0.3, 0.8])[:, None, None] * np.eye(4), (3, 2, 4, 4))
    run = simulated.descend(WHITE, (start,), covariances=covariances, rate=1.0, steps=[3000], noise=noises)
    scalars = np.trace(run.gammas[:, -1], axis1=2, axis2=3) / 4
    splits = np.ptp(scalars, axis=1)
    known = [np.ptp(depth.best_layers(law, 2, noise_ratio=noise)) for noise in noises]
    assert_allclose(splits, known, atol=1e-6)
    bend = np.polynomial.Polynomial.fit(splits**2, noises, 2)
    assert abs(bend(0.0) / critical - 1) < 0.01


@pytest.mark.slow
def test_noisy_stacks_of_three_remember_their_start() -> None:
    covariances, law = sample(60)
    noise = 1.05 * depth.spinodal_noise_ratio(law, 3)
    start = np.array([[0.01, 0.02, 0.03], [0.25, 0.62, 0.62]])[..., None, None] * np.eye(4)
    run = simulated.descend(WHITE, (start,), covariances=covariances, rate=0.7, steps=[4000], noise=[noise, noise])
    spreads = np.ptp(np.trace(run.gammas[:, -1], axis1=2, axis2=3) / 4, axis=1)
    assert spreads[0] < 1e-3
    assert spreads[1] > 0.1
    assert run.loss[1, -1] < run.loss[0, -1]


@pytest.mark.slow
def test_structured_inputs_gain_from_matrices() -> None:
    row = KNOWN["anisotropic"]
    problem = Regression((0.4, 0.3, 0.2, 0.1), 8)
    drawn = simulated.draw_covariances(problem, 1200, key=key_of(0))
    signs = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]], dtype=float)
    covariances = np.concatenate([sign[:, None] * drawn * sign for sign in signs])
    whitened = drawn / np.sqrt(np.multiply.outer(problem.eigenvalues, problem.eigenvalues))
    law = depth.spectrum(np.linalg.eigvalsh(whitened).ravel(), alpha=2.0)
    for place, noise in enumerate(row["parameters"]["noise"]):
        scalars = depth.best_layers(law, 2, noise_ratio=noise)
        white = depth.excess(law, scalars, noise_ratio=noise)
        start = depth.scalar_gammas(problem, scalars)[None]
        run = simulated.descend(problem, (start,), covariances=covariances, rate=8.0, steps=[4000], noise=[noise])
        assert_allclose(white, row["value"][0][place], atol=row["tolerance"])
        assert_allclose(run.loss[0, -1] - noise, row["value"][1][place], atol=row["tolerance"])


def trained(noise: float, writing: str, seed: int, steps: int) -> simulated.FreshLoss:
    problem = Regression((1.0,) * 4, 8, noise, (0.25,) * 4)
    start = random_stack(4, 2, scale=0.2, rng=np.random.default_rng(seed)).unrestricted()
    stack = simulated.train_fresh(
        problem, start, writing=writing, rate=0.008, batch=768, steps=steps, key=key_of(seed)
    )
    return simulated.fresh_loss(problem, stack, 400_000, key=key_of(100 + seed))


@pytest.mark.slow
def test_stacks_trained_on_fresh_contexts_end_at_the_known_losses() -> None:
    free, labels = KNOWN["full_stack"]["value"]
    for found, known, least in (
        (trained(0.0, "all", 0, 5000), free, 0.08834),
        (trained(0.0, "labels", 0, 5000), labels, depth.best_excess(depth.wishart(4, 8), 2)),
    ):
        tolerance = KNOWN["full_stack"]["tolerance"][0 if known == free else 1]
        assert abs(found.loss - known) < tolerance
        assert found.loss > least - 3 * found.error
    noisy = trained(0.3, "all", 0, 4000)
    assert abs(noisy.loss - 0.3 - KNOWN["full_stack_noise"]["value"][0]) < KNOWN["full_stack_noise"]["tolerance"][0]


def test_labels_alone_are_written_where_nothing_else_is_trained() -> None:
    start = random_stack(4, 2, scale=0.2, rng=np.random.default_rng(0))
    problem = Regression((1.0,) * 4, 8, task_eigenvalues=(0.25,) * 4)
    stack = simulated.train_fresh(problem, start, writing="labels", rate=0.01, batch=64, steps=50, key=key_of(0))
    fixed = stack.value.copy()
    fixed[:, -1, -1] = 0
    assert not fixed.any()
    assert not stack.key_query[:, -1].any()
    before, after = (simulated.fresh_loss(problem, one, 4000, key=key_of(1)).loss for one in (start, stack))
    assert after < before
    drawn = simulated.fresh_loss(problem, stack_of(np.eye(4)[None] * 0.6), 20_000, key=key_of(2))
    assert abs(drawn.loss - depth.stack_loss(problem, [0.6])) < 3 * drawn.error


COVARIANCES = np.ones((2, 4, 4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: simulated.descend(WHITE, (np.ones((1, 2, 3, 3)),), covariances=COVARIANCES, rate=1, steps=[1]),
            r"start must hold Γ \(run, L, 4, 4\)",
        ),
        (
            lambda: simulated.descend(WHITE, (np.ones((1, 0, 4, 4)),), covariances=COVARIANCES, rate=1, steps=[1]),
            "one run and one layer at least",
        ),
        (
            lambda: simulated.descend(
                WHITE, (np.ones((1, 2, 4, 4)),), covariances=np.ones((2, 3, 3)), rate=1, steps=[1]
            ),
            r"covariances must have shape \(M, 4, 4\)",
        ),
        (
            lambda: simulated.descend(WHITE, (np.ones((1, 2, 4, 4)),), covariances=COVARIANCES, rate=9, steps=[1]),
            "Above it training diverges, or hangs",
        ),
        (
            lambda: simulated.descend(
                WHITE, (np.ones((1, 2, 4, 4)),), covariances=COVARIANCES, rate=1, steps=[1], noise=[-1.0]
            ),
            "noise must be",
        ),
        (
            lambda: simulated.descend(WHITE, (np.ones((1, 2, 4, 4)),), covariances=COVARIANCES, rate=1, steps=[2, 1]),
            "steps must increase",
        ),
        (lambda: simulated.orbits(np.ones((1, 3, 3))), "dimension must be a power of two"),
        (
            lambda: simulated.draw_covariances(Regression((1.0,), (3, 4)), 2, key=key_of(0)),
            "context_length must be one",
        ),
        (
            lambda: simulated.fresh_loss(
                WHITE, random_stack(3, 1, scale=1, rng=np.random.default_rng(0)), 9, key=key_of(0)
            ),
            "stack must be one of dimension 4",
        ),
        (
            lambda: simulated.answers(
                draw(Regression((1.0,) * 4, (3, 5)), 20, key=key_of(0)),
                random_stack(4, 1, scale=1, rng=np.random.default_rng(0)),
            ),
            "contexts must have one length",
        ),
    ],
)
def test_bad_input_is_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_diverging_product_is_said_to_diverge() -> None:
    start = np.full((1, 2), 3.0), np.broadcast_to(3 * np.eye(4), (1, 2, 4, 4))
    with pytest.raises(ArithmeticError, match="diverged at learning rate"):
        simulated.descend(WHITE, start, covariances=sample(2)[0], rate=9.0, steps=range(0, 200, 10))
