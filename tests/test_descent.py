"""Gradient descent on tokens, on features, on statistics and on fresh contexts."""

from collections.abc import Callable
from dataclasses import replace

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclab import MergedAttention, Regression, SeparateAttention
from iclab.attention import Layer, random_merged, random_separate
from iclab.outcomes import Trajectory
from iclab.published import context_length, eigenvalues, separate_start, separate_units
from iclab.simulation.keys import key_of
from iclab.simulation.linear import loop
from iclab.simulation.linear.contexts import Contexts, assemble, draw
from iclab.simulation.linear.descent import on_features, on_statistics, on_tokens, one_pass
from iclab.simulation.linear.statistics import Statistics, features, stack, statistics
from iclab.theory.population import Moments, best_loss, loss, moments

SMALL = Regression(eigenvalues=(0.7, 0.5, 0.2), context_length=(3, 8), noise=0.1)
EIGHT = jax.numpy.stack([key_of(seed) for seed in range(8)])
LAYERS = ["merged", "separate", "free merged", "free separate"]


def start_of(kind: str, seed: int = 0, dimension: int = 3, scale: float = 0.4) -> Layer:
    """A layer of two heads; a "free" one is unrestricted with no entry zero."""
    rng = np.random.default_rng(seed)
    separate = random_separate(dimension, 2, 2, scale=2 * scale, rng=rng)
    layer = random_merged(dimension, 2, scale=scale, rng=rng) if "merged" in kind else separate
    if "free" not in kind:
        return layer
    parts = vars(layer.unrestricted()).values()
    return type(layer)(*(part + 0.2 * rng.standard_normal(np.shape(part)) for part in parts))


def drawn(seed: int, count: int = 60) -> Contexts:
    """Sequences of the small problem, always cut from sixty: every other number is compiled anew."""
    whole = draw(SMALL, 60, key=key_of(seed))
    return Contexts(*(part[:count] for part in vars(whole).values()))


@pytest.fixture(scope="module")
def many() -> Contexts:
    return draw(SMALL, 60_000, key=key_of(2))


def by_statistics(contexts: Contexts, start: Layer, **options: object) -> Trajectory:
    return on_statistics(statistics(contexts, start), start, **options)


ROUTES = [on_tokens, on_features, by_statistics]


def plain_loss(contexts: Contexts, layer: Layer) -> float:
    """Mean squared error of attention, written out sequence by sequence."""
    layer = layer.unrestricted() if layer.restricted else layer
    merged = isinstance(layer, MergedAttention)
    key_query = layer.key_query if merged else np.swapaxes(layer.key, -1, -2) @ layer.query
    error = 0.0
    for tokens, target, divisor in zip(contexts.tokens, contexts.target, contexts.divisor, strict=True):
        output = sum(v @ tokens.T @ tokens @ b @ tokens[-1, :-1] for v, b in zip(layer.value, key_query, strict=True))
        error += (output / divisor - target) ** 2
    return error / len(contexts.target)


def moved(layer: Layer, name: str, index: tuple[int, ...], step: float) -> Layer:
    part = np.array(getattr(layer, name))
    part[index] += step
    return replace(layer, **{name: part})


@pytest.mark.parametrize("route", ROUTES)
def test_loss_of_forty_sequences_is_that_of_an_autograd_run(route: Callable[..., Trajectory]) -> None:
    # Unrestricted separate attention, losses of an independent run with automatic differentiation in float64,
    # at learning rate .02 on the full mean square.
    def wave(phase: float, step: float, *shape: int) -> np.ndarray:
        return np.cos(phase + step * np.arange(np.prod(shape))).reshape(shape)

    count = np.arange(40 * 8 * 3)
    x = np.cos(1 + 2.3 * count + 0.01 * count**1.5).reshape(40, 8, 3)
    y = np.einsum("pnd,pd->pn", x, wave(0.4, 1.9, 40, 3))
    start = SeparateAttention(0.3 * wave(1, 1.7, 3, 4), 0.3 * wave(2, 1.7, 3, 2, 4), 0.3 * wave(3, 1.7, 3, 2, 3))
    contexts = assemble(x[:, :-1], y[:, :-1], x[:, -1], y[:, -1])
    curve = route(contexts, start, rate=0.04, steps=[0, 50, 100, 200, 300]).loss
    expected = [0.9433854114, 0.8832769696, 0.8052292476, 0.2669332586, 0.2350497071]
    assert_allclose(curve, expected, rtol=0, atol=1e-9)  # printed to ten digits


@pytest.mark.parametrize("kind", LAYERS)
def test_three_routes_give_the_same_curve_and_weights(kind: str) -> None:
    contexts, start = drawn(0), start_of(kind)
    first, *others = (route(contexts, start, rate=0.1, steps=[0, 60, 400]) for route in ROUTES)
    assert first.loss[-1] < 0.8 * first.loss[0]
    for other in others:
        assert_allclose(other.loss, first.loss, rtol=0, atol=1e-10)
        for part in vars(start):
            assert_allclose(getattr(other.weights, part), getattr(first.weights, part), rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", LAYERS)
def test_a_step_goes_down_the_slope_of_half_the_plain_loss(kind: str) -> None:
    contexts, start, rate, small = drawn(1, 12), start_of(kind), 0.3, 1e-5
    run = by_statistics(contexts, start, rate=rate, steps=[0, 1, 2])
    assert_allclose(run.loss[0], plain_loss(contexts, start), rtol=1e-12)
    for name, before in vars(start).items():
        step = getattr(run.weights, name)[1] - before
        for index in np.ndindex(before.shape):
            ahead, behind = (plain_loss(contexts, moved(start, name, index, s)) for s in (small, -small))
            slope = (ahead - behind) / (2 * small)
            assert_allclose(step[index], -rate * slope / 2, rtol=1e-6, atol=1e-9)  # rounding 1e-16 / 1e-5


@pytest.mark.parametrize("kind", ["merged", "separate"])
def test_loss_on_population_moments_is_the_exact_loss_of_gamma(kind: str) -> None:
    law, start = moments(SMALL), start_of(kind)
    run = on_statistics(Statistics(**renamed(law)), start, rate=0.2, steps=[0, 50, 300])
    assert_allclose(run.loss, loss(law, run.weights.gamma()), rtol=1e-13)
    assert run.loss[-1] < 0.6 * run.loss[0]


def renamed(law: Moments) -> dict[str, object]:
    return {"cross": law.cross, "left": law.second, "right": law.input_covariance, "null_loss": law.null_loss}


def test_statistics_of_many_sequences_approach_those_of_the_population(many: Contexts) -> None:
    law, start = moments(SMALL), start_of("merged")
    found, cubic = statistics(many, start), features(many, start)
    for mean, samples, expected in (
        (found.left, cubic[:, :, None] * cubic[:, None], np.kron(law.second, law.input_covariance)),
        (found.cross[:, 0], many.target[:, None] * cubic, law.cross.ravel()),
        (found.null_loss, many.target**2, law.null_loss),
    ):
        assert np.all(np.abs(mean - expected) < 4 * samples.std(axis=0) / np.sqrt(len(samples)))


def test_blocks_of_sequences_add_up(many: Contexts) -> None:
    start = start_of("free merged")
    cubic, found = features(many, start), statistics(many, start)
    assert cubic.shape == (60_000, 3 * 4 * 5 // 2)
    assert_allclose(found.left, cubic.T @ cubic / 60_000, rtol=1e-10, atol=1e-14)
    assert_allclose(found.cross[:, 0], many.target @ cubic / 60_000, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("kind", LAYERS)
def test_a_start_trains_alike_alone_and_in_any_company(kind: str) -> None:
    contexts = drawn(5)
    starts = [start_of(kind, seed) for seed in range(3)]
    run = {"rate": 0.02, "steps": [0, 7, 100]}  # far from instability, which would amplify rounding
    alone = [by_statistics(contexts, start, **run) for start in starts]
    for order in ([0, 1, 2], [2, 0, 1]):
        together = type(starts[0])(*(np.stack([getattr(starts[i], name) for i in order]) for name in vars(starts[0])))
        found = by_statistics(contexts, together, **run)
        assert found.loss.shape == (3, 3)
        for row, i in enumerate(order):
            assert_allclose(found.loss[row], alone[i].loss, rtol=1e-12)
            for name in vars(starts[0]):
                assert_allclose(getattr(found.weights, name)[row], getattr(alone[i].weights, name), atol=1e-12)


def test_several_data_sets_train_side_by_side() -> None:
    start, run = start_of("separate"), {"rate": 0.1, "steps": [0, 5, 50]}
    several = [statistics(drawn(seed), start) for seed in (6, 7)]
    together = on_statistics(stack(several), start, **run)
    for row, each in enumerate(several):
        assert_allclose(together.loss[row], on_statistics(each, start, **run).loss, rtol=1e-12)


def test_recording_more_often_changes_no_curve() -> None:
    contexts, start = drawn(8), start_of("merged")
    often = by_statistics(contexts, start, rate=0.1, steps=range(201))
    seldom = by_statistics(contexts, start, rate=0.1, steps=[10, 33, 200])
    assert_array_equal(seldom.time, 0.1 * np.array([10, 33, 200]))
    assert_allclose(seldom.loss, often.loss[[10, 33, 200]], rtol=1e-13)
    assert_allclose(seldom.weights.value, often.weights.value[[10, 33, 200]], atol=1e-14)


def test_halving_the_rate_halves_the_distance_to_the_flow() -> None:
    # Gradient descent is Euler's method, so curves at equal times approach each other at first order.
    law, start, time = moments(SMALL), start_of("separate"), 8.0
    curves = [
        on_statistics(
            Statistics(**renamed(law)), start, rate=rate, steps=np.array([1, 3, 8]) * round(time / 8 / rate)
        ).loss
        for rate in (0.02, 0.01, 0.005)
    ]
    ratio = np.max(np.abs(curves[0] - curves[1])) / np.max(np.abs(curves[1] - curves[2]))
    assert 1.9 < ratio < 2.1


def test_a_divisor_is_a_scale_of_the_weights() -> None:
    # Merged weights enter squared: dividing the sums by 4 more is halving both factors.
    contexts, start = drawn(9), start_of("free merged")
    quartered = replace(contexts, divisor=4 * contexts.divisor)
    doubled = MergedAttention(2 * start.value, 2 * start.key_query)
    assert_allclose(
        by_statistics(quartered, doubled, rate=0.4, steps=[0, 3, 30]).loss,
        by_statistics(contexts, start, rate=0.1, steps=[0, 3, 30]).loss,
        rtol=1e-12,
    )


def test_a_restricted_layer_predicts_the_same_with_the_entries_it_lacks() -> None:
    contexts = drawn(10)
    for kind in ("merged", "separate"):
        start = start_of(kind)
        narrow, wide = (
            on_tokens(contexts, layer, rate=0.1, steps=[0, 1, 2]).loss for layer in (start, start.unrestricted())
        )
        assert_allclose(wide[0], narrow[0], rtol=1e-13)
        assert wide[2] != narrow[2]  # drawn data move the other entries


def test_each_step_of_one_pass_sees_contexts_drawn_for_it_alone() -> None:
    key, steps = key_of(11), [0, 5, 40]
    run = one_pass(SMALL, start_of("merged"), rate=0.05, batch=16, steps=steps, key=key)
    for row, step in enumerate(steps):
        seen = draw(SMALL, 16, key=jax.random.fold_in(key, step))
        layer = MergedAttention(run.weights.value[row], run.weights.key_query[row])
        assert_allclose(run.loss[row], plain_loss(seen, layer), rtol=1e-12)


def test_one_pass_follows_the_population_as_the_rate_falls() -> None:
    # At equal times the noise of the batches adds up to a distance of order √rate: fourfold for rates 16 apart.
    law, start = moments(SMALL), start_of("merged")
    gaps = []
    for rate in (0.08, 0.005):
        run = {"rate": rate, "steps": np.array([2, 6, 10]) * round(1 / rate)}
        exact = on_statistics(Statistics(**renamed(law)), start, **run)
        noisy = one_pass(SMALL, start, batch=16, key=EIGHT, **run)
        gaps.append(np.sqrt(np.mean((loss(law, noisy.weights.gamma()) - exact.loss) ** 2)))
    assert gaps[1] < 0.02
    assert 2.5 < gaps[0] / gaps[1] < 8  # eight runs fix neither gap to better than a third


def test_fresh_contexts_depend_on_the_step_and_not_on_what_is_recorded() -> None:
    start, run = start_of("merged"), {"rate": 0.05, "batch": 16, "key": key_of(14)}
    first, second = one_pass(SMALL, start, steps=[0, 5, 40], **run), one_pass(SMALL, start, steps=[5, 20, 40], **run)
    assert_allclose(first.loss[1:], second.loss[[0, 2]], rtol=1e-13)
    assert_allclose(first.weights.value[1:], second.weights.value[[0, 2]], atol=1e-14)


def test_one_pass_trains_each_start_on_the_contexts_of_its_own_key() -> None:
    start, run = start_of("merged"), {"rate": 0.05, "batch": 16, "steps": [0, 5, 40]}
    together = one_pass(SMALL, start, key=EIGHT, **run)
    assert together.weights.key_query.shape == (8, 3, 2, 3, 3)
    for row in (0, 5):
        assert_allclose(together.loss[row], one_pass(SMALL, start, key=key_of(row), **run).loss, rtol=1e-12)
    assert len(set(together.loss[:, 0])) == 8


def test_the_second_call_compiles_nothing() -> None:
    start = start_of("merged")
    by_statistics(drawn(0), start, rate=0.1, steps=[0, 10, 20])
    one_pass(SMALL, start, rate=0.1, batch=16, steps=[0, 1, 2], key=key_of(0))
    compiled = loop._descend._cache_size()
    by_statistics(drawn(1), start, rate=0.05, steps=[5, 20, 60])
    one_pass(replace(SMALL, noise=0.4), start, rate=0.2, batch=16, steps=[3, 9, 10], key=key_of(1))
    assert loop._descend._cache_size() == compiled


def test_precision_is_double_and_no_setting_of_the_process_changes() -> None:
    run = by_statistics(drawn(0, 5), start_of("merged"), rate=0.1, steps=[0, 1, 2])
    assert run.loss.dtype == run.weights.value.dtype == np.float64
    assert not jax.config.jax_enable_x64
    assert jax.numpy.ones(1).dtype == np.float32


def test_a_rate_too_large_is_named_with_the_step_that_shows_it() -> None:
    contexts, start = drawn(0), start_of("merged")
    with pytest.raises(ArithmeticError, match=r"not finite at step 200: .* learning rate 50. Use a smaller one"):
        by_statistics(contexts, start, rate=50.0, steps=[0, 200, 300])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 0.0}, "rate must be finite and > 0"),
        ({"rate": np.nan}, "rate must be finite and > 0"),
        ({"steps": []}, "steps must increase"),
        ({"steps": [0, 5, 5]}, "steps must increase"),
        ({"steps": [-1, 5]}, "steps must increase from 0"),
        ({"steps": [0, 2.5]}, "steps must be whole numbers"),
        ({"steps": 100}, "steps must be whole numbers"),
        ({"start": start_of("free merged")}, "start must read as many features as the statistics hold, 9; got 30"),
        ({"start": start_of("merged", dimension=2)}, "statistics hold, 9; got 4"),
        ({"start": MergedAttention(np.full(2, np.nan), np.ones((2, 3, 3)))}, "start must be finite"),
    ],
)
def test_impossible_runs_are_refused_by_name(options: dict, message: str) -> None:
    good = {"start": start_of("merged"), "rate": 0.1, "steps": [0, 1]}
    known = Statistics(**renamed(moments(SMALL)))
    with pytest.raises(ValueError, match=message):
        on_statistics(known, **(good | options))


def test_starts_that_do_not_fit_the_data_are_refused() -> None:
    contexts, other = drawn(0, 5), start_of("merged", dimension=2)
    for route in ROUTES:
        with pytest.raises(ValueError, match="start must have the dimension of the contexts, 3; got 2"):
            route(contexts, other, rate=0.1, steps=[0])
    with pytest.raises(ValueError, match="start must have the dimension of the problem, 3; got 2"):
        one_pass(SMALL, other, rate=0.1, batch=1, steps=[0], key=key_of(0))
    with pytest.raises(ValueError, match="batch must be a whole number >= 1; got 0"):
        one_pass(SMALL, start_of("merged"), rate=0.1, batch=0, steps=[0], key=key_of(0))
    three = MergedAttention(np.ones((3, 2)), np.ones((3, 2, 3, 3)))
    both = stack([statistics(contexts, start_of("merged"))] * 2)
    with pytest.raises(ValueError, match=r"leading axes of the data, .* got \(3,\) and \(2,\)"):
        on_statistics(both, three, rate=0.1, steps=[0])


def test_statistics_that_do_not_fit_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="left, right and null_loss must have shapes"):
        Statistics(np.ones((3, 3)), np.ones((3, 3)), np.ones((2, 2)), 1.0)
    with pytest.raises(ValueError, match="cross must be a matrix"):
        Statistics(np.ones(3), np.ones((3, 3)), np.ones((1, 1)), 1.0)


@pytest.mark.slow
def test_the_published_low_rank_run_stops_at_the_best_loss_of_its_first_head() -> None:
    # D = 8, H = 9, R = 4, 80000 sequences: a plateau where one head of rank four has learned all it can.
    units = separate_units(0.02, context_length(32))
    problem = Regression(eigenvalues=eigenvalues(8), context_length=context_length(32))
    start = separate_start(8, 9, 4, initial=5e-3, units=units, rng=np.random.default_rng(0)).unrestricted()
    contexts = draw(problem, 80_000, key=key_of(0))
    run = by_statistics(contexts, start, rate=units.rate, steps=range(0, 20_001, 20))
    stretch = run.loss[300:900]  # epochs 6000 to 18000
    level = best_loss(moments(problem), rank=4)
    assert np.ptp(stretch) < 0.001
    assert_allclose(stretch.mean(), level, rtol=0.015)  # of the order of 1/√P, the variance of labels alone .3 %
