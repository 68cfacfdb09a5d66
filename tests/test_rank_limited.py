"""Layers of limited rank under label noise: known numbers, drawn contexts, plateaus, and heads that read parities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from iclab.theory import dynamics
from iclab.theory.estimators import gradient_steps
from iclab.theory.population import best_gamma, best_loss, loss, moments_from
from iclab.theory.related import rank_limited

SPECTRUM = np.array([2.0, 1.2, 0.8, 0.5, 0.3, 0.2, 0.1, 0.05])
INPUTS = np.diag(SPECTRUM)
PRETRAINED = moments_from(INPUTS, 20)
TESTED = rank_limited.contexts(INPUTS, 20)
LAM = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 0.5]])
OM = np.array([[1.0, 0.0, 0.3], [0.0, 2.0, 0.0], [0.3, 0.0, 0.5]])
PARITIES = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])


def test_known_losses_gains_and_critical_noises_of_eight_modes() -> None:
    assert_allclose(best_loss(PRETRAINED, rank=2), 2.5043582209, rtol=1e-8)
    gains = [0.4241781548, 0.6589785832, 0.9111617312, 0, 0, 0, 0, 0]
    assert_allclose(np.diag(best_gamma(PRETRAINED, rank=3)), gains, atol=1e-8)
    critical = [47.15, 30.35, 21.95, 15.65, 11.45, 9.35, 7.25, 6.2]
    assert_allclose(rank_limited.critical_noise(PRETRAINED, TESTED), critical, rtol=1e-8)


@pytest.mark.parametrize(("rank", "clean_target"), [(1, 4.1729958088), (3, 3.7975851826), (8, 4.1676993241)])
def test_known_losses_in_noisy_contexts(rank: int, clean_target: float) -> None:
    # published units score against the clean target: our loss holds its noise, 20, too
    found = rank_limited.test_loss(PRETRAINED, TESTED, rank=rank, noise=20.0)
    assert_allclose(found - 20.0, clean_target, rtol=1e-8)


@pytest.mark.parametrize(
    ("rank", "known"), [(1, 1.5032873807), (2, 0.5543582209), (4, 1.4569905468), (8, 1.7354080073)]
)
def test_known_losses_with_irrelevant_features(rank: int, known: float) -> None:
    task = np.array([1.0, 1, 0, 0, 0, 0, 0, 0])
    misled = rank_limited.relabeled_contexts(INPUTS, 20, context_task=np.ones(8), target_task=task)
    assert_allclose(rank_limited.test_loss(PRETRAINED, misled, rank=rank, noise=0.0), known, rtol=1e-8)


@pytest.mark.parametrize(("rank", "known"), [(1, 2.0059810372), (2, 1.1658098043), (3, 1.1130157451)])
def test_covariances_that_do_not_commute_have_known_losses_at_every_rank(rank: int, known: float) -> None:
    law = moments_from(LAM, 10, task_covariance=OM, noise=0.3)
    assert_allclose(best_loss(law, rank=rank) - 0.3, known, rtol=1e-7)


def test_no_factors_of_rank_two_found_by_search_beat_the_best_ones() -> None:
    law = moments_from(LAM, 10, task_covariance=OM, noise=0.3)
    rng = np.random.default_rng(1)
    found = [
        minimize(lambda flat: loss(law, flat[:6].reshape(3, 2) @ flat[6:].reshape(2, 3)), start).fun
        for start in rng.standard_normal((6, 12))
    ]
    assert_allclose(min(found), best_loss(law, rank=2), rtol=1e-8)


def test_the_least_losses_of_all_ranks_are_the_plateaus_of_separate_key_and_query() -> None:
    losses = [best_loss(PRETRAINED, rank=rank) for rank in range(1, 9)]
    assert_allclose(losses, dynamics.plateaus(PRETRAINED)[1:], rtol=1e-13)


def test_the_best_rank_falls_along_the_known_staircase_of_noise() -> None:
    found = rank_limited.best_rank(PRETRAINED, TESTED, np.array([0.0, 6, 10, 20, 40, 50]))
    assert_array_equal(found, [8, 8, 5, 3, 1, 0])  # simulated argmin 8, 8, 5, 3, 1; at 50 the noise exceeds 47.15


def test_the_best_rank_is_the_number_of_critical_noises_above_the_noise() -> None:
    critical = rank_limited.critical_noise(PRETRAINED, TESTED)
    for noise in np.linspace(0, 60, 61) + 0.01:
        assert rank_limited.best_rank(PRETRAINED, TESTED, noise) == np.sum(critical > noise)


def test_where_tasks_change_the_count_of_critical_noises_fails_and_the_scan_does_not() -> None:
    # pretrained where the weak direction matters most, tested where tasks have no preference
    inputs = np.diag([1.0, 0.5, 0.1])
    law = moments_from(inputs, 5, task_covariance=np.diag([0.1, 1.0, 30.0]))
    tested = rank_limited.contexts(inputs, 50)
    noises = np.linspace(0, 40, 201)
    losses = np.stack([rank_limited.test_loss(law, tested, rank=rank, noise=noises) for rank in (1, 2, 3)])
    best = np.argmin(np.concatenate([[1.6 + noises], losses]), axis=0)  # 1.6 = tr Λ, the loss of no prediction
    assert_array_equal(rank_limited.best_rank(law, tested, noises), best)
    critical = rank_limited.critical_noise(law, tested)
    assert np.any(np.diff(critical) > 0)
    assert np.any(np.sum(critical[:, None] > noises, axis=0) != best)


@pytest.mark.parametrize(("length", "known"), [(20, 15.75), (100, 101.39)])
def test_ranks_two_and_eight_cross_where_they_do_equally_well(length: int, known: float) -> None:
    tested = rank_limited.contexts(INPUTS, length)
    noise = rank_limited.crossover(PRETRAINED, tested, 2, 8)
    assert_allclose(noise, known, atol=0.006)  # known to two decimals
    two, eight = (rank_limited.test_loss(PRETRAINED, tested, rank=rank, noise=noise) for rank in (2, 8))
    assert_allclose(two, eight, rtol=1e-12)


def test_larger_ranks_are_more_sensitive_to_label_noise() -> None:
    slopes = [
        rank_limited.test_loss(PRETRAINED, TESTED, rank=rank, noise=1.0)
        - rank_limited.test_loss(PRETRAINED, TESTED, rank=rank, noise=0.0)
        for rank in range(1, 9)
    ]
    # 1 for the label that is asked for, and (1/M) Σ (λu)² over the held modes
    gains = SPECTRUM * np.diag(best_gamma(PRETRAINED))
    assert_allclose(slopes, 1 + np.cumsum(gains**2) / 20, rtol=1e-10)


def test_test_losses_are_those_of_drawn_contexts() -> None:
    """Non-commuting pretraining, another task in the context than the one asked for, noise, another length."""
    law = moments_from(LAM, 10, task_covariance=OM, noise=0.3)
    told, asked, length, noise, draws = np.array([1.0, -0.5, 0.7]), np.array([1.0, -0.5, 0.0]), 4, 1.5, 300_000
    tested = rank_limited.relabeled_contexts(LAM, length, context_task=told, target_task=asked)
    rng = np.random.default_rng(5)
    x = rng.standard_normal((draws, length + 1, 3)) @ np.linalg.cholesky(LAM).T
    y = x[:, :-1] @ told + np.sqrt(noise) * rng.standard_normal((draws, length))
    target = x[:, -1] @ asked + np.sqrt(noise) * rng.standard_normal(draws)
    summary = np.einsum("pn,pnd->pd", y, x[:, :-1]) / length
    for rank in (1, 2, 3):
        squares = (target - np.einsum("pi,ij,pj->p", summary, best_gamma(law, rank=rank), x[:, -1])) ** 2
        distance = squares.mean() - rank_limited.test_loss(law, tested, rank=rank, noise=noise)
        assert abs(distance) < 4 * squares.std() / np.sqrt(draws)


def test_directions_without_inputs_add_nothing_and_have_no_critical_noise() -> None:
    flat = np.diag([1.0, 0.5, 0.0])
    law, tested = moments_from(flat, 8), rank_limited.contexts(flat, 8)
    assert_allclose(
        rank_limited.test_loss(law, tested, rank=3, noise=0.7),
        rank_limited.test_loss(law, tested, rank=2, noise=0.7),
        rtol=1e-14,
    )
    assert rank_limited.best_rank(law, tested) == 2
    assert rank_limited.critical_noise(law, tested)[2] == 0
    with pytest.raises(ValueError, match="larger must add modes that noise enters to those of rank 2"):
        rank_limited.crossover(law, tested, 2, 3)


@pytest.mark.parametrize(
    ("spectrum", "first"), [((1.0, 0.5), 18), ((1.0, 0.5, 0.25), 21), ((3.0, 0.01, 2.0, 1.0), 72.12)]
)
def test_tasks_of_one_direction_give_one_mode_a_critical_noise(spectrum: tuple[float, ...], first: float) -> None:
    # Ω = 1 1ᵀ and u = Λ 1: Γ = 1 1ᵀ/(tr Λ (1 + 2/N)), so that the noise is (N + 2) tr Λ at N = 10
    inputs, ones = np.diag(spectrum), np.ones((len(spectrum), len(spectrum)))
    law, tested = (
        moments_from(inputs, 10, task_covariance=ones),
        rank_limited.contexts(inputs, 10, task_covariance=ones),
    )
    assert_allclose(rank_limited.critical_noise(law, tested), [first, *[0] * (len(spectrum) - 1)], rtol=1e-12, atol=0)


@pytest.mark.parametrize("small", [1e-3, 1e-7, 1e-9])
def test_small_modes_have_the_critical_noise_of_large_ones(small: float) -> None:
    # (N + 1) λ + tr Λ
    inputs = np.diag([1.0, small])
    found = rank_limited.critical_noise(moments_from(inputs, 10), rank_limited.contexts(inputs, 10))
    assert_allclose(found, [12 + small, 1 + 12 * small], rtol=1e-12)


def test_known_losses_of_parity_heads() -> None:
    found = [rank_limited.parity_loss(PARITIES, 20, heads=heads) for heads in (1, 2, 4, 6)]
    assert_allclose(found, [0.6279069767, 0.4105156724, 0.2246670383, 0.1728403603], rtol=1e-8)
    flipped = [
        rank_limited.parity_test_loss(PARITIES, 20, test_length=20, heads=heads, flip=0.2) for heads in (1, 2, 4, 6)
    ]
    assert_allclose(flipped, [0.7151325041, 0.5567204058, 0.43525745, 0.4083966249], rtol=1e-8)


def test_parity_heads_on_drawn_bits_lose_what_is_predicted() -> None:
    """Six parities of pairs of four bits, a fifth of the context's labels flipped."""
    draws, length, heads, flip = 60_000, 20, 4, 0.2
    rng = np.random.default_rng(3)
    bits = rng.choice([-1.0, 1.0], (draws, length + 1, 4))
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    features = np.stack([bits[..., i] * bits[..., j] for i, j in pairs], axis=-1)
    task = rng.choice(6, draws, p=PARITIES)
    label = np.take_along_axis(features, task[:, None, None], axis=-1)[..., 0]
    shown = label[:, :-1] * np.where(rng.random((draws, length)) < flip, -1, 1)
    strengths = rank_limited.parity_strengths(PARITIES, length)[:heads]
    read = np.einsum("pn,pnh->ph", shown, features[:, :-1, :heads]) / length
    squares = (label[:, -1] - np.sum(strengths * read * features[:, -1, :heads], axis=-1)) ** 2
    known = rank_limited.parity_test_loss(PARITIES, length, test_length=length, heads=heads, flip=flip)
    assert abs(squares.mean() - known) < 4 * squares.std() / np.sqrt(draws)


def test_parity_strengths_are_where_the_loss_is_least() -> None:
    # in contexts as in pretraining the test loss is the loss, and no other strengths do better
    clean = rank_limited.parity_test_loss(PARITIES, 20, test_length=20, heads=3, flip=0.0)
    assert_allclose(clean, rank_limited.parity_loss(PARITIES, 20, heads=3), rtol=1e-13)
    assert_allclose(rank_limited.parity_strengths([1.0], 5, noise=0.0), 1.0, rtol=1e-15)  # one parity: certain


def test_one_plain_step_is_the_best_linear_attention_exactly_when_inputs_are_white() -> None:
    white = moments_from(np.eye(4) / 4, 31, noise=0.2)
    assert_allclose(gradient_steps.one_step_loss(white), best_loss(white), rtol=1e-12)
    assert gradient_steps.one_step_loss(PRETRAINED) > best_loss(PRETRAINED) + 0.1
    rates = gradient_steps.one_step_rate(PRETRAINED) * np.array([0.99, 1.0, 1.01])
    losses = loss(PRETRAINED, rates[:, None, None] * np.eye(8))
    assert np.argmin(losses) == 1


def test_a_list_of_preconditioners_takes_one_step_each() -> None:
    rng = np.random.default_rng(5)
    x, y, q = rng.standard_normal((3, 7, 2)), rng.standard_normal((3, 7)), rng.standard_normal((3, 2))
    first, second = rng.standard_normal((2, 2, 2)) / 4
    one = np.einsum("bn,bnd,ed->be", y, x, first) / 7
    two = one + np.einsum("bn,bnd,ed->be", y - np.einsum("bnd,bd->bn", x, one), x, second) / 7
    answers = gradient_steps.descended(x, y, q, preconditioner=[first, second])
    assert_allclose(answers, np.sum(two * q, axis=1), rtol=1e-13)
    looped = gradient_steps.descended(x, y, q, preconditioner=[first] * 3)
    assert_allclose(looped, gradient_steps.descended(x, y, q, preconditioner=first, steps=3), rtol=1e-13)
    with pytest.raises(ValueError, match="steps must be left out with a list of 2 preconditioners; got 2"):
        gradient_steps.descended(x, y, q, preconditioner=[first, second], steps=2)
    with pytest.raises(ValueError, match="steps must be a whole number"):
        gradient_steps.descended(x, y, q, preconditioner=first)


def test_one_step_with_the_best_preconditioner_answers_as_linear_attention() -> None:
    rng = np.random.default_rng(0)
    x, w, q = rng.standard_normal((5, 10, 3)), rng.standard_normal((5, 3)), rng.standard_normal((5, 3))
    y = np.einsum("pnd,pd->pn", x, w)
    law = moments_from(LAM, 10, task_covariance=OM, noise=0.3)
    summary = np.einsum("pn,pnd->pd", y, x) / 10
    attention = np.einsum("pi,ij,pj->p", summary, best_gamma(law), q)
    step = gradient_steps.descended(x, y, q, preconditioner=gradient_steps.one_step_preconditioner(law), steps=1)
    assert_allclose(step, attention, rtol=1e-12)


def test_many_steps_end_at_least_squares() -> None:
    rng = np.random.default_rng(1)
    x, q = rng.standard_normal((4, 12, 3)), rng.standard_normal((4, 3))
    y = rng.standard_normal((4, 12))
    answers = gradient_steps.descended(x, y, q, preconditioner=0.3 * np.eye(3), steps=3000)
    fitted = [np.linalg.lstsq(x[i], y[i], rcond=None)[0] @ q[i] for i in range(4)]
    assert_allclose(answers, fitted, rtol=1e-9)


def test_without_signal_the_best_step_is_none() -> None:
    silent = moments_from(np.eye(2), 4, task_covariance=np.zeros((2, 2)))
    assert gradient_steps.one_step_rate(silent) == 0
    assert gradient_steps.one_step_loss(silent) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: rank_limited.test_loss(PRETRAINED, TESTED, rank=0, noise=0.0),
            "rank must be a whole number >= 1; got 0",
        ),
        (
            lambda: rank_limited.test_loss(PRETRAINED, TESTED, rank=9, noise=0.0),
            "rank must be between 1 and D = 8; got 9",
        ),
        (lambda: rank_limited.test_loss(PRETRAINED, TESTED, rank=1, noise=-1.0), "noise must be finite and >= 0"),
        (lambda: rank_limited.best_rank(PRETRAINED, TESTED, np.nan), "noise must be finite and >= 0"),
        (lambda: rank_limited.contexts(INPUTS, 0), "context_length must be a whole number >= 1; got 0"),
        (lambda: rank_limited.crossover(PRETRAINED, TESTED, 3, 3), "smaller must be below larger; got 3 and 3"),
        (
            lambda: rank_limited.critical_noise(PRETRAINED, rank_limited.contexts(np.eye(8), 20)),
            "tested must have the input covariance of pretraining",
        ),
        (
            lambda: rank_limited.best_rank(PRETRAINED, rank_limited.contexts(np.eye(2), 20)),
            "tested must have the dimension of pretraining, 8; got 2",
        ),
        (
            lambda: rank_limited.relabeled_contexts(INPUTS, 9, context_task=np.ones(3), target_task=np.ones(8)),
            "context_task must be 8 finite numbers",
        ),
        (
            lambda: rank_limited.parity_loss([0.7, 0.7], 5, heads=1),
            "probabilities must be a list of numbers >= 0 that sum to 1",
        ),
        (lambda: rank_limited.parity_loss([0.7, 0.3], 5, heads=3), "heads must be at most the 2 parities; got 3"),
        (lambda: rank_limited.parity_strengths([1.0], 5, noise=-1.0), "noise must be finite and >= 0; got -1.0"),
        (
            lambda: rank_limited.parity_test_loss([1.0], 5, test_length=5, heads=1, flip=1.2),
            "flip must be between 0 and 1; got 1.2",
        ),
        (
            lambda: gradient_steps.descended(
                np.ones((2, 3)), np.ones(3), np.ones(3), preconditioner=np.eye(3), steps=1
            ),
            "inputs, labels and query must have shapes",
        ),
        (
            lambda: gradient_steps.descended(
                np.ones((2, 3)), np.ones(2), np.ones(3), preconditioner=np.eye(2), steps=1
            ),
            "preconditioner must have shape",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_descent_that_diverges_is_said() -> None:
    with pytest.raises(ArithmeticError, match="smaller preconditioner"):
        gradient_steps.descended(9 * np.ones((2, 1)), np.ones(2), np.ones(1), preconditioner=9 * np.eye(1), steps=500)
