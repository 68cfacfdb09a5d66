"""One-pass SGD: expected loss, critical rate, small noise, broken balance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from iclab import Regression
from iclab.theory import population, sgd
from iclab.theory.sgd.dense import dense_step
from iclab.theory.sgd.moments import context_moments, gradient_second

REFERENCE = Regression(eigenvalues=(1.5, 0.6), context_length=5, noise=0.2)
CRITICAL = {1: 0.014761798327673444, 3: 0.041413063409231954, 8: 0.09483421614642051, 32: 0.22322347573340748}


def random_covariances(seed: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    factors = np.random.default_rng(seed).standard_normal((2, size, size))
    return tuple(factors @ factors.transpose(0, 2, 1) / size)


def drawn_contexts(inputs, tasks, lengths, noise: float, draws: int, seed: int) -> tuple[np.ndarray, ...]:
    """Summary, task, query and its label of drawn contexts, lengths mixed evenly."""
    rng = np.random.default_rng(seed)
    longest, size = max(lengths), len(inputs)
    x = rng.standard_normal((draws, longest + 1, size)) @ np.linalg.cholesky(inputs).T
    w = rng.standard_normal((draws, size)) @ np.linalg.cholesky(tasks).T
    y = np.einsum("pni,pi->pn", x, w) + np.sqrt(noise) * rng.standard_normal((draws, longest + 1))
    length = np.asarray(lengths)[rng.integers(len(lengths), size=draws)]
    kept = np.arange(longest) < length[:, None]
    summary = np.einsum("pn,pni->pi", y[:, :-1] * kept, x[:, :-1]) / length[:, None]
    return summary, w, x[:, -1], y[:, -1]


def test_moments_of_the_summary_of_the_reference_case() -> None:
    law = context_moments(np.diag([1.5, 0.6]), 5, noise=0.2)
    found = [
        law.population.second[0, 0], law.population.second[1, 1], law.tasks[0, 0, 0, 0], law.tasks[0, 0, 1, 1],
        law.mixed[0, 0, 0, 0], law.summaries[0, 0, 0, 0], law.summaries[0, 0, 1, 1],
    ]  # fmt: skip
    assert_allclose(found, [3.39, 0.708, 9.69, 3.75, 27.027, 92.87838, 6.759144], atol=1e-10)


def test_second_moment_of_the_gradient_is_that_of_drawn_contexts() -> None:
    inputs, tasks = random_covariances(4, 2)
    lengths, noise, draws = (4, 9), 0.3, 200_000
    law = context_moments(inputs, lengths, task_covariance=tasks, noise=noise)
    gamma = 0.3 * np.random.default_rng(1).standard_normal((2, 2))
    summary, _, query, label = drawn_contexts(inputs, tasks, lengths, noise, draws, seed=3)
    error = np.einsum("pi,ij,pj->p", summary, gamma, query) - label
    gradients = np.einsum("pi,p,pj->pij", summary, error, query)
    expected = gradient_second(law, gamma, np.multiply.outer(gamma, gamma))
    for i, j, k, m in np.ndindex(2, 2, 2, 2):
        products = gradients[:, i, j] * gradients[:, k, m]
        assert abs(products.mean() - expected[i, j, k, m]) < 4 * products.std() / np.sqrt(draws)


def test_expected_loss_of_the_reference_case() -> None:
    curve = sgd.expected_loss(REFERENCE, rate=0.01, batch=8, steps=120)
    half = [1.1016607033154502, 0.6989712693278658, 0.6038021948334733, 0.5686178595989054]
    assert_allclose(curve.loss[[1, 20, 60, 120]], 2 * np.array(half), atol=1e-9)
    assert curve.stable
    assert_allclose(curve.time[[1, 120]], [0.01, 1.2])


def test_expected_loss_grows_to_infinity_beyond_the_critical_rate_and_is_never_nan() -> None:
    curve = sgd.expected_loss(REFERENCE, rate=0.05, batch=3, steps=9000)
    assert_allclose(np.log10(curve.loss[[100, 200]] / 2), [3.6398898624676006, 7.401086706753822], atol=1e-6)
    assert not curve.stable
    assert curve.loss[-1] == np.inf
    assert not np.any(np.isnan(curve.loss))
    assert_allclose(curve.deterministic[-1], population.best_loss(population.moments(REFERENCE)), rtol=1e-6)


def test_descent_itself_diverges_to_infinity_beyond_two_over_the_curvature() -> None:
    curve = sgd.expected_loss(REFERENCE, rate=0.5, batch=32, steps=3000)
    assert curve.deterministic[-1] == np.inf
    assert not np.any(np.isnan(curve.deterministic) | np.isnan(curve.loss))


@pytest.mark.parametrize("batch", [1, 3, 8, 32])
def test_critical_rates_of_the_reference_case(batch: int) -> None:
    assert_allclose(sgd.critical_rate(REFERENCE, batch=batch), CRITICAL[batch], rtol=1e-10)


def test_critical_rate_of_descent_is_two_over_the_curvature() -> None:
    # largest curvature s E h² = 1.5 × 3.39
    assert_allclose(sgd.critical_rate(REFERENCE, batch=np.inf), 2 / (1.5 * 3.39), rtol=1e-14)
    assert_allclose(sgd.critical_rate(REFERENCE, batch=10**9), 2 / (1.5 * 3.39), rtol=1e-6)


@pytest.mark.parametrize("batch", [1, 8])
def test_the_whole_second_moment_map_has_spectral_radius_one_at_the_critical_rate(batch: int) -> None:
    # the dense map on all D⁴ numbers, its linear part taken by differences from zero; second moments are symmetric
    problem = Regression((1.5, 0.6), (5, 9), 0.2, task_eigenvalues=(0.5, 2.0))
    law = context_moments(np.diag([1.5, 0.6]), (5, 9), task_covariance=np.diag([0.5, 2.0]), noise=0.2)
    rate, zero = sgd.critical_rate(problem, batch=batch), np.zeros((2, 2))

    def stepped(second: np.ndarray) -> np.ndarray:
        symmetric = (second.reshape(4, 4) + second.reshape(4, 4).T).reshape((2,) * 4) / 2
        return dense_step(law, zero, symmetric, rate=rate, per_batch=1 / batch)[1].ravel()

    columns = [stepped(unit) - stepped(np.zeros(16)) for unit in np.eye(16)]
    assert_allclose(np.max(np.abs(np.linalg.eigvals(np.stack(columns)))), 1, rtol=1e-10)


@pytest.mark.parametrize(("factor", "settles"), [(0.97, True), (1.03, False)])
def test_expected_loss_settles_below_the_critical_rate_alone(factor: float, settles: bool) -> None:
    problem = Regression((0.4, 0.3, 0.2, 0.1), 31, 0.1)
    rate = factor * sgd.critical_rate(problem, batch=2)
    curve = sgd.expected_loss(problem, rate=rate, batch=2, steps=4000)
    assert bool(curve.loss[-1] < 2 * curve.loss[2000]) is settles
    assert curve.stable is settles


@settings(max_examples=12)
@given(st.integers(0, 10_000))
def test_diagonal_and_dense_second_moments_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 4))
    inputs = np.sort(rng.exponential(size=size))[::-1] * np.append(1.0, rng.random(size - 1) < 0.8)
    tasks, noise = rng.exponential(size=size), float(rng.choice([0.0, 0.4]))
    lengths = tuple(int(length) for length in rng.integers(1, 12, size=2))
    start = rng.standard_normal((size, size))
    order = np.argsort(-inputs, kind="stable")
    inputs, tasks = inputs[order], tasks[order]
    problem = Regression(tuple(inputs), lengths, noise, tuple(tasks))
    run = {"rate": 0.02, "batch": int(rng.integers(1, 20)), "steps": 40, "start": start}
    dense = sgd.dense_expected_loss(np.diag(inputs), lengths, task_covariance=np.diag(tasks), noise=noise, **run)
    assert_allclose(sgd.expected_loss(problem, **run).loss, dense, rtol=1e-11)


def test_rotating_inputs_and_tasks_together_changes_no_expected_loss() -> None:
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((2, 2)))[0]
    run = {"noise": 0.2, "rate": 0.01, "batch": 8, "steps": 60}
    turned = sgd.dense_expected_loss(turn @ np.diag([1.5, 0.6]) @ turn.T, 5, **run)
    assert_allclose(turned, sgd.expected_loss(REFERENCE, rate=0.01, batch=8, steps=60).loss, rtol=1e-12)


def test_expected_loss_of_covariances_that_do_not_commute_is_that_of_runs() -> None:
    inputs, tasks = (matrix / np.trace(matrix) for matrix in random_covariances(6, 2))
    rng, runs, steps = np.random.default_rng(5), 10_000, 12
    gamma = np.zeros((runs, 2, 2))
    for step in range(steps):
        h, _, x, y = drawn_contexts(inputs, tasks, (6,), 0.1, 4 * runs, seed=int(rng.integers(2**31)) + step)
        h, x, y = h.reshape(runs, 4, 2), x.reshape(runs, 4, 2), y.reshape(runs, 4)
        error = np.einsum("rbi,rij,rbj->rb", h, gamma, x) - y
        gamma = gamma - np.einsum("rbi,rb,rbj->rij", h, error, x) / 4
    losses = population.loss(population.moments_from(inputs, 6, task_covariance=tasks, noise=0.1), gamma)
    expected = sgd.dense_expected_loss(inputs, 6, task_covariance=tasks, noise=0.1, rate=1.0, batch=4, steps=steps)
    assert abs(losses.mean() - expected[-1]) < 4 * losses.std() / np.sqrt(runs)


def test_infinite_batches_are_descent_on_the_population() -> None:
    start = np.random.default_rng(2).standard_normal((2, 2))
    curve = sgd.expected_loss(REFERENCE, rate=0.05, batch=np.inf, steps=30, start=start)
    law, gamma = population.moments(REFERENCE), start
    for _ in range(30):
        gamma = gamma - 0.05 / 2 * population.gradient(law, gamma)
    assert_allclose(curve.loss, curve.deterministic, rtol=1e-12)
    assert_allclose(curve.loss[-1], population.loss(law, gamma), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_units_of_inputs_and_labels_scale_out(scale: float) -> None:
    # x -> c x at fixed labels: Γ -> Γ/c², so the rate that gives the same curve is rate/c⁴
    scaled = Regression((1.5 * scale, 0.6 * scale), 5, 0.2, task_eigenvalues=(1 / scale, 1 / scale))
    curve = sgd.expected_loss(scaled, rate=0.01 / scale**2, batch=8, steps=50)
    assert_allclose(curve.loss, sgd.expected_loss(REFERENCE, rate=0.01, batch=8, steps=50).loss, rtol=1e-11)
    assert_allclose(sgd.critical_rate(scaled, batch=8) * scale**2, CRITICAL[8], rtol=1e-10)


def test_directions_without_inputs_change_nothing() -> None:
    padded = Regression((1.5, 0.6, 0.0), 5, 0.2)
    run = {"rate": 0.01, "batch": 8, "steps": 50}
    start = np.full((3, 3), 0.3)
    expected = sgd.expected_loss(REFERENCE, start=start[:2, :2], **run)
    assert_allclose(sgd.expected_loss(padded, start=start, **run).loss, expected.loss, rtol=1e-14)
    assert_allclose(sgd.critical_rate(padded, batch=8), CRITICAL[8], rtol=1e-10)


def test_without_labels_nothing_is_learned_and_any_rate_is_stable() -> None:
    silent = Regression((1.0, 0.5), task_eigenvalues=(0.0, 0.0))
    assert sgd.critical_rate(silent, batch=1) == np.inf
    assert_allclose(sgd.expected_loss(silent, rate=9.0, batch=1, steps=3).loss, 0, atol=0)


def test_small_noise_loss_of_the_reference_case() -> None:
    curve = sgd.small_noise_loss(REFERENCE, rate=0.005, batch=16, steps=300, start=(0.5, 0.3))
    half = np.array([[0.6448541194151558, 0.645682830274004], [0.5344803356368243, 0.5376647620089267]])
    assert_allclose(np.stack([curve.deterministic, curve.loss], axis=1)[[50, 300]], 2 * half, atol=1e-8)
    assert curve.stable
    assert curve.spread[-1] < 0.05


def test_small_noise_shrinks_with_the_batch_and_with_the_rate() -> None:
    def excess(rate: float, batch: float) -> float:
        curve = sgd.small_noise_loss(REFERENCE, rate=rate, batch=batch, steps=round(0.5 / rate), start=(0.5, 0.3))
        return float(curve.loss[-1] - curve.deterministic[-1])

    assert_allclose(excess(0.01, 16), 4 * excess(0.01, 64), rtol=1e-10)  # linear in 1/B at fixed rate
    assert_allclose(excess(0.002, 16) / excess(0.001, 16), 2, rtol=0.02)  # first order in the rate at fixed time
    assert excess(0.01, np.inf) == 0


def test_small_noise_beyond_stability_ends_in_infinity_not_in_nan() -> None:
    curve = sgd.small_noise_loss(REFERENCE, rate=4.0, batch=16, steps=60, start=(0.5, 0.3))
    assert not curve.stable
    assert curve.loss[-1] == np.inf
    assert not np.any(np.isnan(curve.loss) | np.isnan(curve.balance) | np.isnan(curve.spread))


def test_a_step_changes_the_balance_by_its_law() -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        u, matrix, gradient = rng.standard_normal(), *rng.standard_normal((2, 3, 3))
        after_u, after = u - 0.1 * np.sum(gradient * matrix), matrix - 0.1 * u * gradient
        change = after_u**2 - np.sum(after**2) - (u**2 - np.sum(matrix**2))
        assert_allclose(sgd.balance_step(u, matrix, gradient, rate=0.1), change, rtol=1e-11)
        balanced = np.linalg.norm(matrix)
        assert sgd.balance_step(balanced, matrix, gradient, rate=0.1) < 0


def test_expected_change_of_the_balance_is_that_of_drawn_batches() -> None:
    u, matrix, draws = 0.5, np.array([[0.3, 0.1], [-0.2, 0.4]]), 50_000
    h, _, x, y = drawn_contexts(np.diag([1.5, 0.6]), np.eye(2), (5,), 0.2, 4 * draws, seed=8)
    h, x, y = h.reshape(draws, 4, 2), x.reshape(draws, 4, 2), y.reshape(draws, 4)
    error = np.einsum("rbi,ij,rbj->rb", h, u * matrix, x) - y
    gradients = np.einsum("rbi,rb,rbj->rij", h, error, x) / 4
    changes = sgd.balance_step(u, matrix, gradients, rate=0.1)
    expected = sgd.expected_balance_step(REFERENCE, u, matrix, rate=0.1, batch=4)
    assert abs(changes.mean() - expected) < 4 * changes.std() / np.sqrt(draws)


def test_costs_are_known_before_the_run() -> None:
    # 16 arrays: 64⁴ × 8 bytes × 16 = 2 GiB dense, 64² × 8 × 16 = 512 KiB diagonal
    assert sgd.dense_cost(64, 10).memory == 2**31
    assert sgd.diagonal_cost(64, 1000).memory == 2**19
    assert sgd.diagonal_cost(64, 1000).seconds < 2 < sgd.dense_cost(64, 1000).seconds


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sgd.expected_loss(REFERENCE, rate=0.0, batch=8, steps=1), "rate must be finite and > 0"),
        (lambda: sgd.expected_loss(REFERENCE, rate=0.1, batch=0, steps=1), "batch must be a whole number >= 1"),
        (lambda: sgd.expected_loss(REFERENCE, rate=0.1, batch=2.5, steps=1), "batch must be a whole number >= 1"),
        (lambda: sgd.expected_loss(REFERENCE, rate=0.1, batch=8, steps=-1), "steps must be a whole number >= 0"),
        (lambda: sgd.expected_loss(REFERENCE, rate=0.1, batch=8, steps=1, start=np.eye(3)), "start must be a matrix"),
        (lambda: sgd.critical_rate(REFERENCE, batch=-3), "batch must be a whole number >= 1"),
        (
            lambda: sgd.small_noise_loss(REFERENCE, rate=0.1, batch=8, steps=1, start=(1.0, np.ones(3))),
            "start must be",
        ),
        (
            lambda: sgd.dense_expected_loss(np.eye(64), 8, rate=0.1, batch=8, steps=1),
            r"got 64, which needs 2048 MiB \(limit 256\) and about 17 s a step.*expected_loss\(\) needs D² numbers",
        ),
    ],
)
def test_impossible_settings_are_refused_by_name(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
