"""Mixtures of in-context and in-weight sequences: exact moments, flow, growth and test losses."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab import MergedAttention, Regression, SeparateAttention
from iclab.theory import population
from iclab.theory.tokens import mixture
from iclab.theory.tokens.moments import MixtureMoments

WHITE = Regression(eigenvalues=(0.25,) * 4, context_length=31)
TASK = 2 * np.array([1, -1, 0.5, 1.2]) / np.linalg.norm([1, -1, 0.5, 1.2])  # |w*| = √D
UNEVEN = Regression(eigenvalues=(0.7, 0.3), context_length=2, noise=0.2, task_eigenvalues=(0.5, 2.0))
RATE = 0.031  # 2 N × the published 5e-4


def published_start() -> MergedAttention:
    value = np.zeros((8, 5))
    value[:, -1] = 1e-5 * np.cos(1 + 1.7 * np.arange(8))
    key_query = 1e-5 * np.cos(2 + 1.7 * np.arange(160)).reshape(8, 5, 4)
    key_query[:, 4] = 0
    return MergedAttention(value, key_query)


def drawn_features(
    problem: Regression,
    fraction: float,
    task: np.ndarray,
    *,
    sequences: int,
    random_labels: bool,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """φ and y_q of drawn sequences, straight from the tokens."""
    length, dimension = problem.context_lengths[0], problem.dimension
    fresh = np.arange(sequences) < round(fraction * sequences)
    tasks = np.where(
        fresh[:, None], rng.standard_normal((sequences, dimension)) * np.sqrt(problem.task_spectrum), task
    )
    inputs = rng.standard_normal((sequences, length + 1, dimension)) * np.sqrt(problem.eigenvalues)
    clean = np.einsum("pnd,pd->pn", inputs, tasks)
    if random_labels:
        clean[:, :-1] = np.where(fresh[:, None], clean[:, :-1], rng.standard_normal((sequences, length)))
    labels = clean + np.sqrt(problem.noise) * rng.standard_normal((sequences, length + 1))
    target = labels[:, -1].copy()
    labels[:, -1] = 0
    tokens = np.concatenate([inputs, labels[:, :, None]], axis=2)
    average = tokens.transpose(0, 2, 1) @ tokens / length
    return (average[..., None] * inputs[:, -1, None, None, :]).reshape(sequences, -1), target


def test_loss_of_a_known_interaction() -> None:
    tensor = 0.5 * np.cos(0.3 + 1.7 * np.arange(100)).reshape(5, 5, 4)
    assert_allclose(mixture.loss(mixture.mixture_moments(WHITE, 0.4, TASK), tensor), 0.9598102394, atol=1e-7)


def test_growth_rates_of_a_known_mixture() -> None:
    rates = mixture.growth_rates(mixture.mixture_moments(WHITE, 0.4, TASK))
    assert_allclose(rates, [0.3992319711, *[0.08139170585] * 3, 0.0228644315], atol=1e-7)


def test_descent_on_a_known_mixture_and_its_test_losses() -> None:
    law = mixture.mixture_moments(WHITE, 0.4, TASK)
    epochs = [0, 600, 900, 1200, 1500, 2000, 3000, 4000, 4001]
    run = mixture.descend(law, published_start(), epochs, rate=RATE)
    known = [1.0, 0.9998196937, 0.8072158236, 0.4778551568, 0.4160103561, 0.2187850356, 0.1391326975, 0.1330607613]
    assert_allclose(run.loss[:-1], known, atol=2e-5)
    assert_allclose(run.time[-1], 4001 * RATE, rtol=1e-14)
    tests = mixture.in_context_test(WHITE), mixture.in_weight_test(WHITE, TASK)
    final = [mixture.loss(law, run.weights)[-1] for law in tests]
    assert_allclose(final, [0.1587789722, 1.019106943], atol=1e-4)


@pytest.mark.parametrize("fraction", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("random_labels", [False, True])
def test_moments_are_those_of_quadrature_over_every_normal_variable(fraction: float, random_labels: bool) -> None:
    # every entry of z is a product of normal variables, so Gauss-Hermite nodes for x, w, x_q and the labels'
    # own noise, 3 where the degree is at most 4 and 4 where it is 6, integrate the definition without error
    points3, points4 = (np.polynomial.hermite_e.hermegauss(n) for n in (3, 4))
    task, (noise,) = np.array([0.4, -1.1]), (UNEVEN.noise,)
    deviation = np.sqrt(UNEVEN.eigenvalues)

    def law(tasks: str) -> tuple[np.ndarray, np.ndarray, float]:
        rules = [points4] * 2 + [points3] * (6 + 2 * (tasks == "fresh"))
        nodes = np.array(list(itertools.product(*(rule[0] for rule in rules))))
        weight = np.prod(list(itertools.product(*(rule[1] / np.sqrt(2 * np.pi) for rule in rules))), axis=1)
        query, inputs, own = nodes[:, :2] * deviation, nodes[:, 2:6].reshape(-1, 2, 2) * deviation, nodes[:, 6:8]
        w = nodes[:, 8:] * np.sqrt(UNEVEN.task_spectrum) if tasks == "fresh" else np.tile(task, (len(nodes), 1))
        if tasks == "random labels":  # label and noise are one normal variable of variance 1 + noise
            labels = own * np.sqrt(1 + noise)
        else:
            labels = np.einsum("knd,kd->kn", inputs, w) + np.sqrt(noise) * own
        tokens = np.concatenate([inputs, labels[..., None]], axis=2)
        last = np.pad(query, ((0, 0), (0, 1)))
        average = (np.einsum("kna,knb->kab", tokens, tokens) + np.einsum("ka,kb->kab", last, last)) / 2
        features = np.einsum("kab,kc->kabc", average, query).reshape(len(nodes), -1)
        target = np.sum(w * query, axis=1)
        return (weight * target) @ features, (weight * features.T) @ features, weight @ target**2 + noise

    fresh, fixed = law("fresh"), law("random labels" if random_labels else "fixed")
    cross, second, null = (fraction * a + (1 - fraction) * b for a, b in zip(fresh, fixed, strict=True))
    exact = mixture.mixture_moments(UNEVEN, fraction, task, random_labels=random_labels)
    assert_allclose(exact.cross.ravel(), cross, rtol=1e-12, atol=1e-13)
    assert_allclose(exact.second.reshape(18, 18), second, rtol=1e-11, atol=1e-12)
    assert_allclose(exact.null_loss, null, rtol=1e-12)


@pytest.mark.parametrize(("fraction", "random_labels"), [(0.0, True), (0.3, False), (0.3, True), (1.0, False)])
def test_the_loss_is_that_of_drawn_sequences(fraction: float, random_labels: bool) -> None:
    problem = Regression((0.5, 0.3, 0.2), 5, noise=0.3, task_eigenvalues=(0.5, 2.0, 1.0))
    task, rng = np.array([1.0, -0.5, 0.8]), np.random.default_rng(2)
    tensor = 0.3 * rng.standard_normal((4, 4, 3))
    features, target = drawn_features(
        problem, fraction, task, sequences=200_000, random_labels=random_labels, rng=rng
    )
    squares = (target - features @ tensor.ravel()) ** 2
    law = mixture.mixture_moments(problem, fraction, task, random_labels=random_labels)
    assert abs(np.mean(squares) - mixture.loss(law, tensor)) < 4 * np.std(squares) / np.sqrt(len(squares))


def test_a_restricted_layer_with_fresh_tasks_has_the_loss_of_its_gamma() -> None:
    problem = Regression((0.6, 0.3), (3, 9, 20), noise=0.3, task_eigenvalues=(0.5, 2.0))
    layer = MergedAttention(*(np.random.default_rng(1).standard_normal(shape) for shape in [(4, 3), (4, 3, 2, 2)]))
    found = mixture.loss(mixture.in_context_test(problem), layer)
    assert_allclose(found, population.loss(population.moments(problem), layer.gamma()), rtol=1e-12)


def test_separate_keys_and_queries_have_the_loss_of_their_products() -> None:
    value, key, query = (np.random.default_rng(1).standard_normal(shape) for shape in [(4, 3), (4, 2, 3), (4, 2, 2)])
    merged = MergedAttention(value, key.transpose(0, 2, 1) @ query)
    law = mixture.mixture_moments(UNEVEN, 0.3, [1.0, 2.0])
    assert_allclose(mixture.loss(law, SeparateAttention(value, key, query)), mixture.loss(law, merged), rtol=1e-12)


def test_mixed_lengths_average_the_moments_of_each() -> None:
    several = mixture.mixture_moments(Regression((0.6, 0.3), (2, 7), noise=0.1), 0.4, np.array([1.0, 2.0]))
    each = [mixture.mixture_moments(Regression((0.6, 0.3), n, noise=0.1), 0.4, np.array([1.0, 2.0])) for n in (2, 7)]
    assert_allclose(several.cross, (each[0].cross + each[1].cross) / 2, rtol=1e-13)
    assert_allclose(several.second, (each[0].second + each[1].second) / 2, rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize("fraction", [0.0, 0.4, 0.9, 1.0])
@pytest.mark.parametrize("dimension", [2, 4])
def test_growth_on_long_white_contexts_has_a_closed_form(fraction: float, dimension: int) -> None:
    # docs/derivations/mixture: the Gram matrix of b splits into directions across and along w*
    p, q, d = fraction, 1 - fraction, dimension
    own = p + q * d
    mixed = q * own * np.sqrt(d) * (1 + d)
    block = np.linalg.eigvalsh([[q**2 * d + own**2, mixed], [mixed, (d - 1) * p**2 + own**2 + q**2 * d**3]])
    expected = np.sort([*np.sqrt(np.abs(block)), *[np.sqrt(q**2 * d + p**2)] * (d - 1)])[::-1]
    task = np.linspace(-1, 2, d)
    variance = 0.3
    law = mixture.mixture_moments(
        Regression((variance,) * d, context_length=10**10), p, task * np.sqrt(d) / np.linalg.norm(task)
    )
    # corrections are of order D/N; a rate of 0 only vanishes as the square root of rounding
    assert_allclose(mixture.growth_rates(law) / variance**2, expected, rtol=1e-8, atol=1e-7)


def test_growth_on_long_white_contexts_at_two_fifths() -> None:
    rates = mixture.growth_rates(mixture.mixture_moments(Regression((1.0,) * 4, 10**8), 0.4, TASK))
    assert_allclose(rates, [6.35789, 1.26491, 1.26491, 1.26491, 0.46607], atol=1e-5)


def test_a_tiny_start_grows_at_the_first_growth_rate() -> None:
    law = mixture.mixture_moments(WHITE, 0.4, TASK)
    time = np.linspace(0, 60, 61)
    run = mixture.flow(law, MergedAttention(*(1e-20 * w for w in _random_weights(3))), time)
    size = np.linalg.norm(run.weights.value, axis=(1, 2))
    slope = np.log(size[60] / size[50]) / 10
    assert_allclose(slope, mixture.growth_rates(law)[0], rtol=1e-8)  # the next rate is 0.3 below: e^-15 at t = 50


def test_scaling_labels_scales_the_losses() -> None:
    tensor = np.random.default_rng(5).standard_normal((3, 3, 2))
    unit = mixture.mixture_moments(UNEVEN, 0.3, [1.0, 2.0])
    for log_scale in (-12, -3, 4, 12):
        c = 10.0**log_scale
        inputs = Regression((c**2 * 0.7, c**2 * 0.3), 2, noise=c**2 * 0.2, task_eigenvalues=(0.5, 2.0))
        # x -> c x and y -> c y: φ -> c³ φ
        assert_allclose(
            mixture.loss(mixture.mixture_moments(inputs, 0.3, [1.0, 2.0]), tensor / c**2),
            c**2 * mixture.loss(unit, tensor),
            rtol=1e-12,
        )


def _random_weights(seed: int, heads: int = 3, dimension: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((heads, dimension + 1)), rng.standard_normal((heads, dimension + 1, dimension))


def test_flow_conserves_the_balance_of_value_and_key_query() -> None:
    start = MergedAttention(*(0.3 * w for w in _random_weights(1)))
    run = mixture.flow(mixture.mixture_moments(WHITE, 0.4, TASK), start, np.linspace(0, 100, 5))
    value, key_query = run.weights.value, run.weights.key_query
    balance = value @ value.transpose(0, 2, 1) - np.einsum("thbc,tkbc->thk", key_query, key_query)
    assert run.loss[-1] < 0.5 * run.loss[0]
    assert_allclose(balance, np.broadcast_to(balance[0], balance.shape), atol=1e-8)


def test_descent_follows_the_flow_to_first_order_in_the_rate() -> None:
    law = mixture.mixture_moments(WHITE, 0.4, TASK)
    start = MergedAttention(*(0.1 * w for w in _random_weights(2)))
    time = np.array([8.0, 16.0, 40.0])
    exact = mixture.flow(law, start, time).loss
    gaps = [
        np.max(np.abs(mixture.descend(law, start, np.rint(time / rate).astype(int), rate=rate).loss - exact))
        for rate in (0.04, 0.004)
    ]
    assert 8 < gaps[0] / gaps[1] < 12


@pytest.mark.parametrize("seed", range(4))
def test_twenty_thousand_drawn_sequences_follow_the_flow_on_their_own_clock(seed: int) -> None:
    # a draw changes the first growth rate by about 2 % (one deviation) and so the time of the drop: at equal
    # times the gap is .014 to .092 over ten draws, in units of that rate it is below .025
    rng = np.random.default_rng(seed)
    features, target = drawn_features(WHITE, 0.4, TASK, sequences=20_000, random_labels=False, rng=rng)
    count = len(target)
    drawn = MixtureMoments(
        (target @ features / count).reshape(5, 5, 4),
        (features.T @ features / count).reshape(5, 5, 4, 5, 5, 4),
        float(np.mean(target**2)),
    )
    law = mixture.mixture_moments(WHITE, 0.4, TASK)
    clock = mixture.growth_rates(drawn)[0] / mixture.growth_rates(law)[0]
    steps = np.arange(20, 4001, 20)
    theory = mixture.flow(law, published_start(), RATE * steps)
    run = mixture.descend(drawn, published_start(), steps, rate=RATE / clock)
    assert abs(clock - 1) < 0.06
    assert np.max(np.abs(run.loss - theory.loss)) < 0.05


def test_weights_learn_the_fixed_task_first_and_the_context_takes_over() -> None:
    run = mixture.flow(mixture.mixture_moments(WHITE, 0.4, TASK), published_start(), np.linspace(0, 200, 201))
    in_context = mixture.loss(mixture.in_context_test(WHITE), run.weights)
    in_weight = mixture.loss(mixture.in_weight_test(WHITE, TASK), run.weights)
    first = np.argmin(in_weight)
    assert in_weight[first] < 0.4
    assert in_context[: first + 1].max() > 1.02
    assert in_context[-1] < 0.2
    assert in_weight[-1] > 1


def test_without_context_tasks_and_labels_the_context_test_gets_worse() -> None:
    run = mixture.flow(mixture.in_weight_test(WHITE, TASK), published_start(), np.linspace(0, 400, 101))
    assert run.loss[-1] < 0.3
    assert 2 < mixture.loss(mixture.in_context_test(WHITE), run.weights)[-1] < 3


LAW = mixture.mixture_moments(Regression((0.6, 0.3), 5), 0.4, [1.0, 1.0])


@pytest.mark.parametrize(
    ("fraction", "task", "message"),
    [
        (-0.1, [1.0, 1.0], "in_context_fraction must be between 0 and 1; got -0.1"),
        (1.5, [1.0, 1.0], "in_context_fraction must be between 0 and 1; got 1.5"),
        (np.nan, [1.0, 1.0], "in_context_fraction must be finite; got nan"),
        (0.4, [1.0], "in_weight_task must be 2 finite numbers"),
        (0.4, [1.0, np.inf], "in_weight_task must be finite numbers"),
    ],
)
def test_impossible_mixtures_are_refused_by_name(fraction: float, task: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mixture.mixture_moments(Regression((0.6, 0.3), 5), fraction, task)


def test_too_many_dimensions_are_refused_with_their_cost() -> None:
    with pytest.raises(ValueError, match=r"at most 12 .* got 13, for which they hold 6.5e\+06 numbers"):
        mixture.in_context_test(Regression((0.1,) * 13))


@pytest.mark.parametrize("scale", [0.0, np.nan])
def test_starts_that_lead_nowhere_are_refused(scale: float) -> None:
    start = MergedAttention(scale * np.ones((2, 3)), scale * np.ones((2, 3, 2)))
    with pytest.raises(ValueError, match="start must"):
        mixture.flow(LAW, start, [0.0, 1.0])


@pytest.mark.parametrize(
    "start",
    [
        MergedAttention(np.ones(2), np.ones((2, 2, 2))),
        MergedAttention(np.ones((2, 4)), np.ones((2, 4, 3))),
        MergedAttention(np.ones((1, 2, 3)), np.ones((1, 2, 3, 2))),
    ],
)
def test_starts_of_another_kind_are_refused(start: MergedAttention) -> None:
    with pytest.raises(ValueError, match=r"start must be one unrestricted layer, value \(H, 3\)"):
        mixture.flow(LAW, start, [0.0, 1.0])


@pytest.mark.parametrize("time", [[], [1.0, 1.0], [2.0, 1.0], [-1.0, 1.0], [0.0, np.nan]])
def test_times_that_do_not_increase_are_refused(time: list) -> None:
    with pytest.raises(ValueError, match="time must"):
        mixture.flow(LAW, MergedAttention(np.ones((2, 3)), np.ones((2, 3, 2))), time)


@pytest.mark.parametrize("steps", [[], [-1, 4], [4, 4], [0.5, 1.0]])
def test_steps_that_do_not_increase_are_refused(steps: list) -> None:
    with pytest.raises(ValueError, match="steps must be increasing whole numbers"):
        mixture.descend(LAW, MergedAttention(np.ones((2, 3)), np.ones((2, 3, 2))), steps, rate=0.1)


def test_a_rate_that_is_too_large_is_said() -> None:
    start = MergedAttention(np.ones((2, 3)), np.ones((2, 3, 2)))
    with pytest.raises(ArithmeticError, match=r"diverged within 100 steps at learning rate 50.0"):
        mixture.descend(LAW, start, [100], rate=50.0)
    with pytest.raises(ValueError, match="rate must be finite and > 0; got 0"):
        mixture.descend(LAW, start, [100], rate=0)


def test_an_interaction_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"tensor of shape \(3, 3, 2\)"):
        mixture.loss(LAW, np.zeros((4, 4, 3)))
