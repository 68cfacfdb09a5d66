"""Where gradient flow stalls: losses and matrices of the fixed points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import least_squares

from iclab import Regression
from iclab.theory.dynamics import fixed_point, plateau_prediction, plateaus, reachable
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


def test_with_fewer_pairs_than_modes_only_small_sets_are_reached() -> None:
    law = moments(NON_WHITE)
    assert list(reachable(law, 1, rank=2)) == [
        (), (0,), (1,), (2,), (3,), (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)
    ]  # fmt: skip
    assert len(list(reachable(law, 4))) == len(list(reachable(law, 9, rank=3))) == 2**4
    assert list(reachable(moments(Regression(eigenvalues=(0.5, 0.0))), 2)) == [(), (0,)]


@pytest.mark.parametrize(("heads", "rank"), [(0, 1), (2, 0), (1.5, 1)])
def test_no_heads_or_no_rank_reach_nothing(heads: float, rank: int) -> None:
    with pytest.raises(ValueError, match="must be a whole number >= 1"):
        reachable(moments(NON_WHITE), heads, rank=rank)


def drawn_contexts(count: int, length: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, length + 1, 4)) * np.sqrt(NON_WHITE.eigenvalues)
    w = rng.standard_normal((count, 4))
    y = np.einsum("pnd,pd->pn", x, w)
    return x[:, :-1], y[:, :-1], x[:, -1], y[:, -1]


@pytest.mark.parametrize("learned", [(0,), (0, 1), (2,), (0, 1, 2, 3)])
def test_attention_at_a_plateau_is_shrunk_principal_component_regression(learned: tuple[int, ...]) -> None:
    # Regression of y on each principal component of the population by itself, its slope being mean(y z)/var(z),
    # divided by 1 + (1 + tr Λ/λ)/N.
    inputs, labels, query, _ = drawn_contexts(20, 31)
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    law = moments_from(turn @ np.diag(NON_WHITE.eigenvalues) @ turn.T, 31)
    variance, axes = np.linalg.eigh(law.input_covariance)
    expected = np.zeros(20)
    for component in learned:
        axis, size = axes[:, 3 - component], variance[3 - component]
        scores = inputs @ turn.T @ axis
        slope = np.mean(labels * scores, axis=1) / size
        expected += slope / (1 + (1 + 1 / size) / 31) * (query @ turn.T @ axis)
    answers = plateau_prediction(law, learned, inputs @ turn.T, labels, query @ turn.T)
    assert_allclose(answers, expected, rtol=1e-10)


def test_long_contexts_make_it_least_squares_on_the_learned_components() -> None:
    gaps = []
    for length in (1000, 100_000):
        inputs, labels, query, _ = drawn_contexts(8, length)
        law = moments_from(np.diag(NON_WHITE.eigenvalues), length)
        answers = plateau_prediction(law, (0, 1), inputs, labels, query)
        fits = [np.linalg.lstsq(x[:, :2], y, rcond=None)[0] for x, y in zip(inputs, labels, strict=True)]
        gaps.append(np.sqrt(np.mean((answers - np.sum(np.array(fits) * query[:, :2], axis=1)) ** 2)))
    assert gaps[1] < 0.2 * gaps[0]  # 1/√N of its spread, a tenth, with eight draws


def test_the_error_of_the_plateau_prediction_on_drawn_contexts_is_the_plateau() -> None:
    inputs, labels, query, target = drawn_contexts(100_000, 31)
    squares = (plateau_prediction(moments(NON_WHITE), (0, 1), inputs, labels, query) - target) ** 2
    assert abs(squares.mean() - 0.3773721630) < 4 * squares.std() / np.sqrt(len(squares))


@pytest.mark.parametrize(
    ("inputs", "labels", "query", "message"),
    [
        ((3, 2), (3,), (4,), "inputs must have shape"),
        ((3, 4), (2,), (4,), "labels must be one for each input"),
        ((5, 3, 4), (5, 3), (4,), "query must be one input for each context"),
    ],
)
def test_contexts_whose_shapes_do_not_fit_are_refused(inputs, labels, query, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plateau_prediction(moments(NON_WHITE), (0,), np.ones(inputs), np.ones(labels), np.ones(query))


@pytest.mark.parametrize(
    "shift",
    [
        {"context_lengths": 5},
        {"context_lengths": (3, 50)},
        {"noise": 0.5},
        {"input_covariance": np.diag([0.1, 0.2, 0.3, 1.0]) + 0.05},
        {"task_covariance": np.diag([2.0, 0.0, 1.0, 0.5]) + 0.2},
    ],
)
def test_the_loss_under_shift_is_that_of_contexts_drawn_from_the_other_law(shift: dict) -> None:
    trained = fixed_point(moments(NON_WHITE), (0, 1, 2, 3))
    law = {"input_covariance": np.diag(NON_WHITE.eigenvalues), "context_lengths": 31, "noise": 0.0}
    law = law | {"task_covariance": np.eye(4)} | shift
    predicted = loss(moments_from(**law), trained)
    rng, squares, lengths = np.random.default_rng(3), [], np.atleast_1d(law["context_lengths"])
    for length in lengths:
        draws = 100_000 // len(lengths)
        x = rng.standard_normal((draws, length + 1, 4)) @ np.linalg.cholesky(law["input_covariance"]).T
        w = rng.standard_normal((draws, 4)) @ np.linalg.cholesky(law["task_covariance"]).T
        y = np.einsum("pnd,pd->pn", x, w) + np.sqrt(law["noise"]) * rng.standard_normal((draws, length + 1))
        summary = np.einsum("pn,pnd->pd", y[:, :-1], x[:, :-1]) / length
        squares.append((y[:, -1] - np.einsum("pi,ij,pj->p", summary, trained, x[:, -1])) ** 2)
    error = np.sqrt(np.sum([s.var() / len(s) for s in squares])) / len(lengths)
    assert abs(np.mean([s.mean() for s in squares]) - predicted) < 4 * error


@pytest.mark.slow
def test_random_restarts_of_a_solver_land_on_the_eight_fixed_points_and_find_them_all() -> None:
    # Zeros of all slopes of separate attention, D = 3 and H = 4, by Levenberg-Marquardt from entries N(0, 4).
    law = moments(Regression(eigenvalues=(0.4, 0.3, 0.2), context_length=31))
    found, rng = [], np.random.default_rng(0)
    for _ in range(300):
        run = least_squares(slopes, 2 * rng.standard_normal(28), jac=slopes_jacobian, method="lm",
                            args=(law,), xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=2000)  # fmt: skip
        if np.max(np.abs(run.fun)) < 1e-11:
            found.append(float(loss(law, gamma_of(run.x))))
    predicted = np.array([loss(law, fixed_point(law, learned)) for learned in reachable(law, 4)])
    distance = np.abs(np.array(found)[:, None] - predicted)
    assert np.max(np.min(distance, axis=1)) < 1e-8
    assert set(np.argmin(distance, axis=1)) == set(range(8))
    assert len(found) >= 100


def gamma_of(state: np.ndarray) -> np.ndarray:
    value, (key, query) = state[:4], state[4:].reshape(2, 4, 3)
    return (value[:, None] * key).T @ query


def slopes(state: np.ndarray, law) -> np.ndarray:
    value, (key, query) = state[:4], state[4:].reshape(2, 4, 3)
    force = law.cross - law.second @ gamma_of(state) @ law.input_covariance
    pull, push = key @ force, query @ force.T
    return np.concatenate(
        [np.sum(pull * query, axis=1), (value[:, None] * push).ravel(), (value[:, None] * pull).ravel()]
    )


def slopes_jacobian(state: np.ndarray, law) -> np.ndarray:
    """Exact derivative of `slopes`: each entry of the state moves Γ, and the other factors of its own head."""
    value, (key, query) = state[:4], state[4:].reshape(2, 4, 3)
    force = law.cross - law.second @ gamma_of(state) @ law.input_covariance
    units = np.eye(28)
    dv, dk, dq = units[:, :4, None], *np.moveaxis(units[:, 4:].reshape(28, 2, 4, 3), 1, 0)
    moved = np.swapaxes(dv * key + value[:, None] * dk, 1, 2) @ query + (value[:, None] * key).T @ dq
    change = -law.second @ moved @ law.input_covariance
    pull = dk @ force + key @ change
    push = dq @ force.T + query @ np.swapaxes(change, 1, 2)
    blocks = [
        np.sum(pull * query + (key @ force) * dq, axis=2),
        (dv * (query @ force.T) + value[:, None] * push).reshape(28, -1),
        (dv * (key @ force) + value[:, None] * pull).reshape(28, -1),
    ]
    return np.concatenate(blocks, axis=1).T


def test_there_is_a_plateau_for_every_number_of_modes() -> None:
    assert len(plateaus(moments(Regression(eigenvalues=tuple(np.linspace(1, 0.1, 512)))))) == 513


@pytest.mark.parametrize(
    ("learned", "message"),
    [
        ((4,), "learned must hold modes 0..3, counted from 0"),
        ((-1,), "learned must be a whole number >= 0; got -1"),
        ((0.5,), "learned must be a whole number >= 0; got 0.5"),
        (2, "learned must be a list of modes"),
        ((1, 1), "learned must name each mode once"),
    ],
)
def test_modes_that_do_not_exist_are_refused(learned: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fixed_point(moments(NON_WHITE), learned)
