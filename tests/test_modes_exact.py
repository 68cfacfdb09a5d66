"""Mode dynamics without approximation: diagonal, full matrices, one head."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

from iclab import Regression
from iclab.theory import modes, population
from iclab.theory.modes import DiagonalTasks

FOUR = np.array([2.0, 1.0, 0.5, 0.25])
EIGHT = DiagonalTasks(FOUR, 8)
THREE = DiagonalTasks([2.0, 1.0, 0.4], 6, noise=0.3)
P3, Q3 = np.array([0.5, 0.7, 0.2]), np.array([0.4, -0.3, 0.9])


def contexts_loss(value, key_query, s, length: int, noise: float, pool, draws: int, seed: int) -> tuple[float, float]:
    """Mean squared error over drawn contexts, and its standard error."""
    rng = np.random.default_rng(seed)
    size = len(s)
    x = rng.standard_normal((draws, length + 1, size)) * np.sqrt(s)
    task = (
        rng.standard_normal((draws, 1, size)) if pool is None else pool[rng.integers(len(pool), size=draws)][:, None]
    )
    y = task * x + np.sqrt(noise) * rng.standard_normal(x.shape)
    average = np.einsum("pna,pnb->pab", y[:, :-1], x[:, :-1]) / length
    prediction = np.einsum("ij,pjk,kl,pl->pi", value, average, key_query, x[:, -1], optimize=True)
    squares = np.sum((y[:, -1] - prediction) ** 2, axis=1)
    return squares.mean(), squares.std() / np.sqrt(draws)


def slopes(loss, point: np.ndarray, step: float = 1e-5) -> np.ndarray:
    change = step * np.eye(point.size).reshape(point.size, *point.shape)
    return np.array([(loss(point + c) - loss(point - c)) / (2 * step) for c in change]).reshape(point.shape)


def test_exact_loss_and_gradient_of_known_weights() -> None:
    assert_allclose(modes.exact_loss(THREE, P3, Q3), 2 * 1.8336266, atol=1e-10)
    gradient = modes.exact_gradient(THREE, P3, Q3)
    assert_allclose(gradient[0], 2 * np.array([-0.6885766666666666, 0.5038726666666666, -0.11184666666666672]))
    assert_allclose(gradient[1], 2 * np.array([-0.736, -0.9335, 0.000448]), atol=1e-10)


def test_matrix_loss_and_gradient_of_known_weights() -> None:
    p, q = np.array([[0.5, 0.1], [-0.2, 0.3]]), np.array([[0.4, -0.1], [0.3, 0.6]])
    tasks = DiagonalTasks([2.0, 0.7], 6)
    dp, dq = modes.matrix_gradient(tasks, p, q)
    half = [0.747223, -0.6776, 0.035854, -0.36896, -0.186438, -0.744, -0.1099, 0.0798, -0.09114]
    found = np.concatenate([[modes.matrix_loss(tasks, p, q)], dp.ravel(), dq.ravel()])
    assert_allclose(found, 2 * np.array(half), atol=1e-10)


@pytest.mark.parametrize("fresh", [True, False])
def test_matrix_loss_is_that_of_drawn_contexts(fresh: bool) -> None:
    # for off-diagonal p a pool must have uncorrelated modes: (±1.5, ±.5) in all four combinations
    pool = None if fresh else np.array([[1.5, 0.5], [-1.5, 0.5], [1.5, -0.5], [-1.5, -0.5]])
    moments = None if fresh else np.mean(pool**2, axis=0)
    p, q = np.array([[0.5, 0.1], [-0.2, 0.3]]), np.array([[0.4, -0.1], [0.3, 0.6]])
    mean, error = contexts_loss(p, q, [2.0, 0.7], 6, 0.3, pool, 100_000, seed=1)
    exact = modes.matrix_loss(DiagonalTasks([2.0, 0.7], 6, noise=0.3, task_second_moments=moments), p, q)
    assert abs(mean - exact) < 4 * error


def test_exact_loss_of_correlated_tasks_is_that_of_drawn_contexts() -> None:
    # diagonal weights see the mean squares of a pool alone, however its modes correlate
    pool = np.array([[1.0, 2.0, -0.5], [0.5, 1.0, -1.0]])
    mean, error = contexts_loss(np.diag(P3), np.diag(Q3), [2.0, 1.0, 0.4], 6, 0.3, pool, 100_000, seed=2)
    tasks = replace(THREE, task_second_moments=np.mean(pool**2, axis=0))
    assert abs(mean - modes.exact_loss(tasks, P3, Q3)) < 4 * error


@settings(max_examples=15)
@given(st.integers(0, 1000))
def test_gradients_are_the_slopes_of_the_losses(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tasks = DiagonalTasks(rng.random(3), 5, noise=0.2, task_second_moments=rng.random(3))
    for shape, loss, gradient in (
        ((3,), modes.exact_loss, modes.exact_gradient),
        ((3, 3), modes.matrix_loss, modes.matrix_gradient),
    ):
        p, q = rng.standard_normal((2, *shape))
        dp, dq = gradient(tasks, p, q)
        assert_allclose(dp, slopes(lambda part: loss(tasks, part, q), p), atol=1e-8)  # noqa: B023
        assert_allclose(dq, slopes(lambda part: loss(tasks, p, part), q), atol=1e-8)  # noqa: B023


def test_exact_flow_from_an_aligned_start() -> None:
    strength = modes.exact_flow(EIGHT, start=(0.1, 0.1), time=np.array([10.0, 30.0])).strength
    expected = [
        [0.37228965911755446, 0.6865472321588517, 0.253481677866046, 0.01796225113327164],
        [0.3625302391314323, 0.6572480857023756, 1.1167343256028002, 0.05327321099862887],
    ]
    assert_allclose(strength, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((FOUR, 8, 0.0, None), [0.35690050694769837, 0.6412772414660073, 1.0774262778038095, 1.574662376172503]),
        ((FOUR, 8, 0.4, [1.2, 0.8, 1.1, 0.9]),
         [0.35756601185856995, 0.5476371801026991, 0.8944877902990996, 0.05294638348219788]),
        (([4.0, 1.0, 0.05, 0.01], 10, 0.2, None), [0.19963552987965538, 0.6727276547468704, 0.0, 0.0]),
    ],
)  # fmt: skip
def test_exact_fixed_points_noise_and_dead_modes_included(arguments: tuple, expected: list) -> None:
    s, length, noise, m = arguments
    tasks = DiagonalTasks(s, length, noise=noise, task_second_moments=m)
    assert_allclose(modes.exact_fixed_point(tasks), expected, atol=1e-10)


def test_the_flow_ends_at_the_fixed_point() -> None:
    tasks = DiagonalTasks(FOUR, 8, noise=0.4, task_second_moments=[1.2, 0.8, 1.1, 0.9])
    curves = modes.exact_flow(tasks, start=(0.3, 0.5), time=np.array([20_000.0]))
    assert_allclose(curves.strength[0], modes.exact_fixed_point(tasks), atol=1e-6)
    assert_allclose(curves.loss[0], modes.exact_least_loss(tasks), rtol=1e-9)


@given(st.integers(0, 10_000))
def test_no_strengths_beat_the_fixed_point(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 6))
    s, m = rng.exponential(size=size) * (rng.random(size) < 0.8), rng.exponential(size=size)
    s[0] = 1.0
    noise, length = float(rng.choice([0.0, 0.1, 2.0])), int(rng.integers(1, 30))
    tasks = DiagonalTasks(s, length, noise=noise, task_second_moments=m)
    best = modes.exact_fixed_point(tasks)
    least = modes.exact_least_loss(tasks)
    rivals = best + rng.standard_normal((200, size)) * rng.choice([1e-3, 0.1, 1.0], size=(200, 1))
    assert np.min(modes.exact_product_loss(tasks, rivals)) >= least * (1 - 1e-12)
    p, q = rng.standard_normal((2, 200, size))
    assert np.min(modes.exact_loss(tasks, p, q)) >= least * (1 - 1e-12)


def test_the_best_split_of_given_strengths_is_reached() -> None:
    a, r = np.array([0.3, 0.6, 0.2]), np.array([2.0, 1.0, 0.4]) + 0.3
    ratio = np.sqrt(r) / np.array([2.0, 1.0, 0.4])
    reached = modes.exact_loss(THREE, np.sqrt(a / ratio), np.sqrt(a * ratio))
    assert_allclose(modes.exact_product_loss(THREE, a), reached, rtol=1e-14)


def test_equal_eigenvalues_and_starts_agree_with_the_paper_at_any_context_length() -> None:
    tasks, time = DiagonalTasks([0.7] * 3, 2), np.linspace(0, 20, 9)
    exact = modes.exact_flow(tasks, start=(0.1, 0.1), time=time)
    paper = modes.leading_order(tasks, start=(0.1, 0.1), time=time)
    assert_allclose(exact.strength, paper.strength, rtol=1e-8)
    assert_allclose(exact.loss, paper.loss, rtol=1e-8)
    assert_allclose(modes.exact_fixed_point(tasks), modes.limits(tasks), rtol=1e-14)


def test_leading_order_loss_at_finite_length() -> None:
    # (2, 1, .5, .25), N = 8: exact minimum .65667, the paper's strengths .66276 (equal p) and .6930 (p = q), halved
    ends = modes.limits(EIGHT)
    assert_allclose(modes.exact_least_loss(EIGHT) / 2, 0.65667, atol=1e-5)
    assert_allclose(modes.exact_loss(EIGHT, np.ones(4), ends) / 2, 0.66276, atol=1e-5)
    assert_allclose(modes.leading_order_loss(EIGHT, ends) / 2, 0.66276, atol=1e-5)
    assert_allclose(modes.exact_loss(EIGHT, ends**0.5, ends**0.5) / 2, 0.6930, atol=1e-4)


def test_leading_order_is_off_by_a_factor_at_short_contexts_and_by_one_over_n_at_long_ones() -> None:
    time = np.linspace(0, 40, 201)
    lengths, gaps = np.array([50, 100, 200, 500, 1000]), []
    for length in lengths:
        tasks = DiagonalTasks(FOUR, int(length))
        exact = modes.exact_flow(tasks, start=(0.1, 0.1), time=time).strength
        paper = modes.leading_order(tasks, start=(0.1, 0.1), time=time).strength
        gaps.append((np.max(np.abs(paper - exact) / modes.limits(tasks)), np.max(np.abs(paper / exact - 1))))
    falls = -np.polyfit(np.log(lengths), np.log(gaps), 1)[0]
    assert np.all((falls > 0.9) & (falls < 1.1))
    short = modes.leading_order(EIGHT, start=(0.1, 0.1), time=[30.0]).strength
    assert short[0, 3] > 4 * modes.exact_flow(EIGHT, start=(0.1, 0.1), time=[30.0]).strength[0, 3]


def test_only_the_total_balance_is_conserved() -> None:
    time = np.linspace(0, 30, 301)
    curves = modes.exact_flow(EIGHT, start=(0.1, 0.1), time=time)
    balance = curves.value**2 - curves.key_query**2
    assert_allclose(np.sum(balance, axis=1), 0, atol=1e-8)
    assert balance[-1, 2] < -0.4  # against strengths of order one: the law of single modes fails outright
    drift = modes.balance_drift(EIGHT, curves.value, curves.key_query)
    assert_allclose(np.sum(drift, axis=1), 0, atol=1e-14)
    assert_allclose(np.gradient(balance, time, axis=0)[1:-1], drift[1:-1], atol=0.01)  # second order in .1
    assert_allclose(np.trapezoid(drift, time, axis=0), balance[-1], atol=2e-3)


def test_descent_approaches_the_flow_at_first_order_and_breaks_balance_by_its_law() -> None:
    flow = modes.exact_flow(EIGHT, start=(0.2, 0.1), time=[4.0]).strength[0]
    coarse, fine = (
        modes.exact_descent(EIGHT, start=(0.2, 0.1), rate=rate, steps=round(4 / rate)) for rate in (0.01, 0.001)
    )
    ratio = (coarse.strength[-1] - flow) / (fine.strength[-1] - flow)
    assert np.all((ratio > 8) & (ratio < 12))
    dp, dq = modes.exact_gradient(EIGHT, coarse.value, coarse.key_query)
    change = np.diff(np.sum(coarse.value**2 - coarse.key_query**2, axis=1))
    law = 0.01**2 * np.sum((dp / 2) ** 2 - (dq / 2) ** 2, axis=1)
    assert_allclose(change, law[:-1], atol=1e-15)


def test_descent_that_is_too_fast_grows_to_infinity_and_says_that_it_is_not_stable() -> None:
    wild = modes.exact_descent(EIGHT, start=(9, -3), rate=1.0, steps=9)
    assert not wild.stable
    assert np.all(wild.loss[1:] >= wild.loss[:-1])
    assert wild.loss[-1] == np.inf
    assert not any(np.isnan(part).any() for part in (wild.value, wild.key_query, wild.strength, wild.loss))


def test_descent_is_stable_up_to_two_over_the_sharpest_curvature() -> None:
    # one mode, N = ∞ but for 1e12: at p = q = √a∞ = 1 half the loss has curvature p² + q² = 2 across the hyperbola
    tasks = DiagonalTasks([1.0], 10**12)
    slow, fast = (modes.exact_descent(tasks, start=(0.9, 0.9), rate=r, steps=3000) for r in (0.99, 1.01))
    assert slow.stable
    assert not fast.stable
    assert np.isfinite(fast.loss[-1])  # it swings around the minimum


def test_full_matrices_align_and_keep_their_balance() -> None:
    p, q = 0.1 * np.random.default_rng(0).standard_normal((2, 4, 4))
    curves = modes.matrix_flow(EIGHT, start=(p, q), time=np.array([0.0, 5.0, 20.0, 200.0]))
    assert np.all(np.diff(curves.misalignment) < 0)
    assert curves.misalignment[-1] < 1e-3
    assert_allclose(curves.balance, curves.balance[0], atol=1e-8)


def test_diagonal_matrices_follow_the_exact_modes() -> None:
    tasks = DiagonalTasks(FOUR, 8, noise=0.2, task_second_moments=[1.2, 0.8, 1.1, 0.9])
    time = np.array([0.0, 3.0, 9.0])
    whole = modes.matrix_flow(tasks, start=(0.1 * np.eye(4), 0.2 * np.eye(4)), time=time)
    parts = modes.exact_flow(tasks, start=(0.1, 0.2), time=time)
    assert_allclose(whole.strength, parts.strength, rtol=1e-8)
    assert_allclose(whole.loss, parts.loss, rtol=1e-8)
    assert_allclose(whole.misalignment, 0, atol=1e-7)  # of order √ε: the root of one minus a rounded square


def test_one_head_reaches_its_limit_and_speeds_up_late_modes() -> None:
    problem = Regression((2.0, 1.0, 0.5), 8, 0.25)
    assert_allclose(1 / modes.single_head_limits(problem), [2.71875, 1.59375, 1.03125], rtol=1e-14)
    curves = modes.single_head_flow(problem, start=(0.3, 0.2), time=np.array([0.0, 4.0, 200.0]))
    expected = [0.9900165455026572, 0.37271768896484, 0.6487009126427454, 0.6711195203825274]
    assert_allclose([curves.value[1], *curves.key_query[1]], expected, atol=1e-7)
    assert_allclose(curves.strength[-1], modes.single_head_limits(problem), rtol=1e-8)
    balance = curves.value**2 - np.sum(curves.key_query**2, axis=1)
    assert_allclose(balance, balance[0], atol=1e-9)


def test_head_loss_is_the_population_loss_of_its_gamma() -> None:
    problem = Regression((2.0, 1.0, 0.5), 8, 0.25)
    u, matrix = 0.7, np.array([0.3, -0.2, 0.9])
    expected = population.loss(population.moments(problem), u * np.diag(matrix))
    assert_allclose(modes.single_head_loss(problem, u, matrix), expected, rtol=1e-14)


def test_a_head_on_equal_eigenvalues_is_logistic_at_rate_two_root_d() -> None:
    # u = √D U: da/dt = 2 √D s² a (1 − a/a∞)
    s, size, time = 0.7, 4, np.linspace(0, 8, 5)
    problem = Regression((s,) * size, 5)
    curves = modes.single_head_flow(problem, start=(0.1 * size**0.5, 0.1), time=time)
    limit = modes.single_head_limits(problem)[0]
    expected = modes.balanced_law(0.01 * size**0.5, limit, 1 / (size**0.5 * s**2), time)
    assert_allclose(curves.strength[:, 0], expected, rtol=1e-8)


@pytest.mark.parametrize("scale", [1e-30, 1e-9])
def test_escape_from_a_tiny_start_takes_its_time(scale: float) -> None:
    # all modes equal: the closed form is exact, and the solver must not lose the start in its tolerance
    tasks = DiagonalTasks([1.0, 1.0], 4)
    time = modes.time_to_fraction(0.5, (scale, scale), modes.limits(tasks)[0], 1.0)
    strength = modes.exact_flow(tasks, start=(scale, scale), time=[float(time)]).strength
    assert_allclose(strength, 0.5 * modes.limits(tasks)[None], rtol=1e-7)


def test_modes_without_inputs_or_start_stay() -> None:
    tasks = DiagonalTasks([1.0, 0.0, 0.5], 8)
    curves = modes.exact_flow(tasks, start=([0.1, 0.1, 0.0], [0.1, 0.3, 0.0]), time=[0.0, 5.0, 50.0])
    assert_allclose(curves.strength[:, 2], 0, atol=0)
    assert_allclose(curves.key_query[:, 1], 0.3, rtol=1e-12)
    assert modes.exact_fixed_point(DiagonalTasks([1.0, 0.0], 8))[1] == 0
    assert modes.exact_fixed_point(DiagonalTasks([1.0, 0.5], 8, task_second_moments=[0.0, 1.0]))[0] == 0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: DiagonalTasks(FOUR, 8, noise=-1.0), ValueError, "noise must be finite"),
        (
            lambda: DiagonalTasks(FOUR, 8, task_second_moments=[1.0]),
            ValueError,
            "task_second_moments must be",
        ),
        (lambda: modes.exact_flow(EIGHT, start=(1, 1), time=[]), ValueError, "time must be a non-empty list"),
        (
            lambda: modes.exact_descent(EIGHT, start=(1, 1), rate=0.0, steps=2),
            ValueError,
            "rate must be finite and > 0",
        ),
        (lambda: modes.exact_loss(EIGHT, [1.0], [1.0] * 4), ValueError, "value must end in one number per mode, 4"),
        (lambda: modes.matrix_loss(EIGHT, np.eye(3), np.eye(3)), ValueError, "must both end in shape"),
        (
            lambda: modes.single_head_flow(Regression(FOUR, 8), start=([1.0, 1.0], 1.0), time=[1.0]),
            ValueError,
            "one value u0",
        ),
        (
            lambda: modes.single_head_limits(Regression(FOUR, (4, 8))),
            ValueError,
            "problem must have one context length and standard tasks here",
        ),
    ],
)
def test_impossible_exact_modes_are_refused_by_name(call, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_flow_that_cannot_be_solved_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iclab.theory.integration.LONGEST", 50)
    with pytest.raises(ArithmeticError, match=r"of 1e\+08 in 50 steps"):
        modes.exact_flow(DiagonalTasks([1e3, 1e-3], 8), start=(0.1, 0.1), time=[1e8])


@pytest.mark.parametrize("noise", [1e8, 1e15, 1e300])
def test_the_fixed_point_keeps_its_digits_under_large_noise(noise: float) -> None:
    # one mode: N/((N + 1) s + s + noise)
    assert_allclose(modes.exact_fixed_point(DiagonalTasks([2.0], 8, noise=noise)), 8 / (20 + noise), rtol=1e-14)


def test_a_flow_at_rest_is_kept_for_all_times() -> None:
    settled = modes.exact_flow(EIGHT, start=(0.1, 0.1), time=[1e3, 1e9, 1e300]).strength
    assert_allclose(settled[1:], np.tile(settled[0], (2, 1)), rtol=1e-9)
    assert_allclose(settled[2], modes.exact_fixed_point(EIGHT), rtol=1e-8)


def test_a_mode_that_waits_is_no_flow_at_rest() -> None:
    # the second mode, of s = .01, stands at 1e-8 of its strength when the first has long settled
    tasks = DiagonalTasks([1.0, 0.01], 10**12)
    early, late = modes.exact_flow(tasks, start=(1e-3, 1e-3), time=[1e4, 2e5]).strength[:, 1]
    limits = modes.exact_fixed_point(tasks)[1]
    assert early < 1e-5
    assert_allclose(late, limits, rtol=1e-6)


@pytest.mark.parametrize("start", [0.1, 1e-3, 1e-5, (0.9, -0.4)])
def test_the_exact_flow_is_as_sharp_as_its_text_says(start: float | tuple[float, float]) -> None:
    # against steps of 3e-14, with no floor that is felt
    tasks, pair = modes.DiagonalTasks([2.0, 1.0, 0.5, 0.25], 8), start if isinstance(start, tuple) else (start, start)
    time = np.linspace(0, 400, 200)
    found = modes.exact_flow(tasks, start=pair, time=time)

    def velocity(_: float, weights: np.ndarray) -> np.ndarray:
        return -0.5 * np.concatenate(modes.exact_gradient(tasks, *np.split(weights, 2)))

    path = solve_ivp(velocity, (0, 400), np.repeat(pair, 4), method="DOP853", rtol=3e-14, atol=1e-20, t_eval=time).y.T
    value, key_query = np.split(path, 2, axis=1)
    assert_allclose(found.value, value, rtol=1e-6)
    assert_allclose(found.key_query, key_query, rtol=1e-6)
    assert_allclose(found.loss, modes.exact_loss(tasks, value, key_query), rtol=1e-9)


def test_the_error_of_the_exact_flow_falls_with_its_tolerance() -> None:
    time = np.linspace(0, 30, 20)
    sharp, *others = (
        modes.exact_flow(EIGHT, start=(0.1, 0.1), time=time, tolerance=tolerance).strength
        for tolerance in (1e-13, 1e-11, 1e-7, 1e-3)
    )
    errors = [np.max(np.abs(found - sharp)) for found in others]
    assert errors[0] < 1e-8
    assert np.all(np.diff(np.log10(errors)) > 2)
    with pytest.raises(ValueError, match="tolerance must lie in"):
        modes.exact_flow(EIGHT, start=(0.1, 0.1), time=time, tolerance=0.1)
