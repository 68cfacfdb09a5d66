"""Depth: time courses, other laws, infinite and structured contexts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

from iclab.problem import Regression
from iclab.theory import depth
from iclab.theory.depth import losses

LAW = depth.white_limit(2)
SPREAD = np.exp(-np.arange(4.0))


def test_small_starts_rest_at_the_tied_level_and_end_at_the_best_one() -> None:
    for count in (2, 3):
        start = 1e-6 * (1 + 0.1 * np.arange(count))
        end = depth.half_way_time(LAW, start)
        curve = depth.flow(LAW, start, np.r_[0.0, np.geomspace(1, 4 * end, 400)])
        log_slope = abs(np.gradient(curve.excess[1:], np.log(curve.time[1:])))
        rest = np.argmin(np.where((curve.excess[1:] < 0.4) & (curve.time[1:] < end), log_slope, np.inf))
        assert_allclose(curve.excess[1:][rest], depth.tied_excess(LAW, count), rtol=1e-5)
        assert_allclose(curve.excess[-1], depth.best_excess(LAW, count), rtol=1e-6)
        assert_allclose(np.sort(curve.layers[-1]), depth.best_layers(LAW, count), rtol=1e-3)


def test_half_way_times_grow_with_the_inverse_of_the_split_rate() -> None:
    for count in (2, 3, 4):
        times = [depth.half_way_time(LAW, 1e-4 * np.exp(-spread * np.arange(count))) for spread in (1e-4, 1e-6)]
        slope = (times[1] - times[0]) / np.log(100)
        assert_allclose(slope, 1 / depth.split_rate(LAW, count), rtol=2e-4)  # of the finite spread


def test_two_layers_leave_after_the_known_delay() -> None:
    # [ln(1/d0) − .681]/μ at α = 2, μ = 1/3
    start = np.array([1e-8, 2e-8])
    d0 = np.linalg.norm(start - start.mean())
    assert_allclose(depth.half_way_time(LAW, start), 3 * (np.log(1 / d0) - 0.681), rtol=1e-3)


def test_layers_keep_their_order_and_equal_ones_stay_equal() -> None:
    curve = depth.flow(LAW, [0.01, 0.02, 0.02, 0.03], np.linspace(0, 200, 300), noise_ratio=0.1)
    assert np.all(np.diff(curve.layers, axis=1) >= -1e-12)
    assert_allclose(curve.layers[:, 1], curve.layers[:, 2], atol=1e-12)
    assert np.all(np.diff(curve.excess) <= 1e-9)


def test_equal_layers_end_at_the_tied_level() -> None:
    curve = depth.flow(LAW, [0.01] * 3, [0, 500])
    assert_allclose(curve.excess[-1], depth.tied_excess(LAW, 3), rtol=1e-8)


def test_the_flow_is_that_of_its_own_slope() -> None:
    rule, start = LAW.rule(3), np.array([0.05, 0.1, 0.3])
    run = solve_ivp(
        lambda _, g: -0.5 * losses.excess_slope(rule, g, noise=0.1), (0, 20), start, rtol=1e-10, atol=1e-13
    )
    curve = depth.flow(LAW, start, [0, 20], noise_ratio=0.2)
    assert_allclose(curve.layers[-1], run.y[:, -1], rtol=1e-7)


@pytest.mark.parametrize("factors", [2, 3])
def test_products_of_weights_follow_the_flow_of_their_factors(factors: int) -> None:
    # gradient flow on the factors themselves, balanced at the start
    rule, start = LAW.rule(2), np.array([0.02, 0.05])
    weights = np.repeat(start ** (1 / factors), factors)

    def velocity(_: float, w: np.ndarray) -> np.ndarray:
        parts = w.reshape(2, factors)
        layers = parts.prod(axis=1)
        drive = -0.5 * losses.excess_slope(rule, layers, noise=0.0)
        return (drive[:, None] * layers[:, None] / parts).ravel()

    run = solve_ivp(velocity, (0, 30), weights, rtol=1e-10, atol=1e-13)
    curve = depth.flow(LAW, start, [0, 30], factors=factors)
    assert_allclose(curve.layers[-1], run.y[:, -1].reshape(2, factors).prod(axis=1), rtol=1e-7)


def test_separate_weights_wake_layer_by_layer() -> None:
    # the staircase of depth: levels 1/(1 + α + … + α^k) within .5 % at L = 4
    curve = depth.flow(LAW, 1e-4 * SPREAD, np.r_[0.0, np.geomspace(1, 3e4, 3000)], factors=3)
    log_slope = abs(np.gradient(curve.excess[1:], np.log(curve.time[1:])))
    levels = depth.levels(LAW, 4)
    assert_allclose(levels, [1 / sum(2.0**j for j in range(k + 1)) for k in range(5)], rtol=1e-12)
    for k in range(1, 5):
        near = abs(np.log(curve.excess[1:] / levels[k])) < 0.3
        assert_allclose(curve.excess[1:][near][np.argmin(log_slope[near])], levels[k], rtol=5e-3)


def test_descent_is_stable_below_the_bound_and_not_far_above() -> None:
    law = depth.wishart(4, 8)
    rule, rate = law.rule(2), depth.largest_stable_rate(law, 2)

    def end(factor: float) -> float:
        layers = np.array([0.01, 0.02])
        for _ in range(4000):
            layers = layers - factor * rate * 0.5 * losses.excess_slope(rule, layers, noise=0.0)
        return float(losses.excess_of(rule, layers, noise=0.0))

    assert_allclose(end(0.9), depth.best_excess(law, 2), rtol=1e-9)
    assert end(1.5) > 1.02 * depth.best_excess(law, 2)  # hangs between the levels


def test_the_bound_of_the_rate_is_the_curvature_of_the_best_layers() -> None:
    # half the bound: 6.0 and 13.7 at α = 1, L = 2 and 4 at the optimum; (2L − 1)⟨x²⟩ = 6 and 14
    for count, known in ((2, 6.0), (4, 13.7)):
        law = depth.white_limit(1)
        curvature = losses.excess_curvature(law.rule(count), depth.best_layers(law, count), noise=0.0)
        top = np.linalg.eigvalsh(curvature)[-1] / 2
        assert_allclose(top, known, atol=0.06)
        assert top <= 2 / depth.largest_stable_rate(law, count) * (1 + 1e-12)


def test_depth_breaks_off_its_training_law_as_the_table_says() -> None:
    layers, tied = depth.best_layers(LAW, 3), np.full(3, 2 / 3)
    trained = Regression((0.5,) * 10, 20, task_eigenvalues=(0.2,) * 10)
    twice = Regression((1.0,) * 10, 20, task_eigenvalues=(0.2,) * 10)
    ratio = depth.stack_loss(twice, layers, trained=trained) / depth.stack_loss(twice, 2 * layers)
    assert_allclose(ratio, 1, rtol=1e-12)
    scaled = [[float(depth.excess(LAW, scale * one)) for scale in (0.5, 1.5, 2.0)] for one in (layers, tied)]
    assert_allclose(scaled, [[0.149, 2.47, 44.5], [0.239, 1.22, 16.5]], rtol=5e-3)
    long = [float(depth.excess(depth.white_limit(np.inf), one)) for one in (layers, tied)]
    assert_allclose(long, [0.0400, 0.00137], rtol=5e-3)


def test_stacks_trained_on_another_covariance_have_the_loss_of_draws() -> None:
    rng = np.random.default_rng(2)
    root = rng.standard_normal((3, 3)) / 2
    trained, tested = np.diag([1.0, 0.5, 0.3]), root @ root.T + 0.2 * np.eye(3)
    layers = [0.5, 0.9]
    step = np.linalg.solve(trained, tested)
    tasks, inputs = rng.standard_normal((40_000, 3)), rng.multivariate_normal(np.zeros(3), tested, 40_000)
    weights = np.zeros_like(tasks)
    for one in layers:
        weights = weights + one * (tasks - weights) @ step.T
    squares = np.sum((tasks - weights) * inputs, axis=1) ** 2
    known = depth.infinite_context_shift(layers, trained=trained, tested=tested)
    assert abs(squares.mean() - known) < 3 * squares.std() / np.sqrt(len(squares))
    assert_allclose(depth.infinite_context_shift([1.0, 1.0], trained=trained, tested=trained), 0, atol=1e-15)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_infinite_contexts_are_learned_mode_by_mode(count: int) -> None:
    problem, times = Regression((0.9, 0.4), 8, 0.1, (1.0, 2.0)), np.array([0.0, 1.0, 20.0])
    inputs, tasks = np.array(problem.eigenvalues), np.array(problem.task_spectrum)

    def velocity(_: float, gamma: np.ndarray) -> np.ndarray:
        left = 1 - inputs * gamma / count  # dγ/dt = −½ ∂loss/∂γ
        return tasks * inputs**2 * left ** (2 * count - 1)

    run = solve_ivp(velocity, (0, 20), np.zeros(2), t_eval=times, rtol=1e-10, atol=1e-12)
    left = 1 - inputs[:, None] * run.y / count
    known = 0.1 + (inputs * tasks) @ left ** (2 * count)
    assert_allclose(depth.infinite_context_loss(problem, count, times), known, rtol=1e-7)


def test_infinite_depth_is_the_limit_of_many_layers() -> None:
    problem = Regression((0.9, 0.4), 8)
    deep = depth.infinite_context_loss(problem, 100_000, [3.0, 50.0])
    assert_allclose(depth.infinite_context_loss(problem, np.inf, [3.0, 50.0]), deep, rtol=1e-4)


@pytest.mark.parametrize(("nu", "beta"), [(1.5, 1.0), (1.2, 1.5), (2.0, 0.5)])
def test_depth_buys_the_known_exponents_on_power_laws(nu: float, beta: float) -> None:
    law = depth.power_law(nu, beta)
    untied, tied = (np.log2(one(law, 64) / one(law, 128)) for one in (depth.best_excess, depth.tied_excess))
    assert_allclose(untied, (2 + nu) * beta, rtol=0.03)  # still rising with L
    assert_allclose(tied, beta, rtol=0.03)


def test_a_power_law_of_few_modes_is_a_plain_spectrum() -> None:
    k = np.arange(1.0, 31)
    plain = depth.spectrum(k**-1.5, k**-2.5)
    assert_allclose(depth.best_excess(depth.power_law(1.5, 1, 30), 4), depth.best_excess(plain, 4), rtol=1e-13)


def test_modes_beyond_the_first_are_summed_as_an_integral() -> None:
    k = np.arange(1.0, 100_001)
    for depths in (2, 8):
        exact = depth.best_excess(depth.spectrum(k**-1.5, k**-1.75), depths)
        assert_allclose(depth.best_excess(depth.power_law(1.5, 0.5, 100_000), depths), exact, rtol=1e-8)


@pytest.mark.slow
def test_structured_inputs_lose_what_drawn_contexts_lose() -> None:
    k, rng, length = np.arange(1.0, 121), np.random.default_rng(0), 480
    inputs, weights = k**-1.5, k**-2.5
    found = depth.finite_contexts(inputs, weights / inputs, length)
    step = 2 / found.edge
    losses_drawn = []
    for _ in range(60):
        x = np.sqrt(inputs) * rng.standard_normal((length, 120))
        kept = np.linalg.matrix_power(np.eye(120) - step * x.T @ x / length, 3)
        losses_drawn.append(np.sum(inputs[:, None] * kept**2 * (weights / inputs)) / np.sum(weights))
    assert_allclose(np.mean(losses_drawn), found.excess([step] * 3), rtol=0.03)  # the 1/N of single modes


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: depth.flow(LAW, [[0.1]], [0, 1]), "start must be one list of layers"),
        (lambda: depth.flow(LAW, [0.1, 0.0], [0, 1], factors=2), "start must be positive where layers are products"),
        (lambda: depth.half_way_time(LAW, [0.1, 0.1]), "equal ones, which never leave the tied point"),
        (lambda: depth.half_way_time(LAW, [0.1, 0.2], noise_ratio=0.7), "equal layers are a minimum"),
        (lambda: depth.spinodal_noise_ratio(LAW, 1), "depth must be at least 2"),
        (lambda: depth.flow_clock(Regression((2.0, 1.0), 3)), "eigenvalues must all be equal here"),
        (lambda: depth.scalar_gammas(Regression((1.0,), 3), [[0.1]]), "layers must be one list of numbers"),
        (lambda: depth.infinite_context_loss(Regression(), 1.5, [1.0]), "depth must be whole or inf"),
        (
            lambda: depth.infinite_context_shift([0.5], trained=np.diag([1.0, 0.0]), tested=np.eye(2)),
            "trained must be positive definite",
        ),
        (lambda: depth.finite_contexts([1.0], [1.0, 2.0], 3), "must be two lists of one length"),
        (lambda: depth.power_law(2, 1, 0.5), "modes must be"),
    ],
)
def test_bad_input_is_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
