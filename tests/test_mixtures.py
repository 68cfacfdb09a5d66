"""Drawn mixtures of in-context and in-weight sequences, and what trains on them."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclab import MergedAttention, Regression
from iclab.simulation.keys import key_of
from iclab.simulation.linear.descent import on_statistics
from iclab.simulation.linear.mixtures import draw
from iclab.simulation.linear.statistics import Statistics, features, stack, statistics
from iclab.theory.tokens import mixture

UNEVEN = Regression((0.7, 0.3), (3, 6), noise=0.2, task_eigenvalues=(0.5, 2.0))
TASK = np.array([0.4, -1.1])
WHITE = Regression(eigenvalues=(0.25,) * 4, context_length=31)
STORED = 2 * np.array([1, -1, 0.5, 1.2]) / np.linalg.norm([1, -1, 0.5, 1.2])


def small_start(seed: int = 0) -> MergedAttention:
    rng = np.random.default_rng(seed)
    return MergedAttention(1e-3 * rng.standard_normal((8, 5)), 1e-3 * rng.standard_normal((8, 5, 4)))


@pytest.mark.parametrize("random_labels", [False, True])
@pytest.mark.parametrize("fraction", [0.0, 0.4, 1.0])
def test_moments_of_drawn_sequences_are_those_of_the_law(fraction: float, random_labels: bool) -> None:
    count = 20_000
    drawn = draw(UNEVEN, fraction, TASK, sequences=count, random_labels=random_labels, key=key_of(1))
    law = mixture.mixture_moments(UNEVEN, fraction, TASK, random_labels=random_labels)
    cubic = features(drawn, MergedAttention(np.zeros((1, 3)), np.zeros((1, 3, 2))))
    cross, second = law.distinct()
    pairs = np.triu_indices(12)
    for samples, expected in (
        (drawn.target[:, None] * cubic, cross),
        (cubic[:, pairs[0]] * cubic[:, pairs[1]], second[pairs]),
        (drawn.target**2, law.null_loss),
    ):
        error = samples.std(axis=0) / np.sqrt(count)
        assert np.all(np.abs(samples.mean(axis=0) - expected) < 4.5 * error)  # 91 numbers in each of 6 laws


def test_the_share_of_fresh_tasks_is_the_whole_part_and_the_rest_share_one() -> None:
    drawn = draw(replace(UNEVEN, noise=0.0), 0.37, TASK, sequences=20, key=key_of(0))
    stored = np.isclose(drawn.query @ TASK, drawn.target) & np.isclose(drawn.inputs @ TASK, drawn.labels).all(axis=1)
    assert_array_equal(stored, [False] * 7 + [True] * 13)  # 20 × .37 = 7.4


def test_random_labels_tell_nothing_while_the_query_keeps_its_task() -> None:
    silent = replace(UNEVEN, noise=0.0)
    drawn = draw(silent, 0.0, TASK, sequences=20_000, random_labels=True, key=key_of(2))
    assert_allclose(drawn.query @ TASK, drawn.target, atol=1e-14)
    shown = np.arange(6) < drawn.lengths[:, None]
    assert not drawn.labels[~shown].any()
    labels, inputs = drawn.labels[shown], drawn.inputs[shown]
    assert abs(np.mean(labels**2) - 1) < 4 * np.sqrt(2 / len(labels))
    assert np.all(np.abs(labels @ inputs / len(labels)) < 4 / np.sqrt(len(labels)))


def test_a_seed_draws_the_same_again_and_other_seeds_draw_otherwise() -> None:
    first, again, other = (draw(UNEVEN, 0.37, TASK, sequences=20, key=key_of(seed)) for seed in (5, 5, 6))
    assert_array_equal(first.tokens, again.tokens)
    assert not np.any(first.target == other.target)


def test_descent_on_the_moments_of_the_law_is_the_same_in_both_rooms() -> None:
    law = mixture.mixture_moments(WHITE, 0.4, STORED)
    cross, second = law.distinct()
    known = Statistics(cross[:, None], second, np.ones((1, 1)), law.null_loss)
    steps, start = range(0, 1601, 100), small_start()
    theory = mixture.descend(law, start, steps, rate=0.031)
    run = on_statistics(known, start, rate=0.031, steps=steps)
    assert run.loss[-1] < 0.3
    assert_allclose(run.loss, theory.loss, rtol=0, atol=1e-10)


@pytest.mark.slow
def test_floor_of_drawn_sequences_approaches_that_of_the_law() -> None:
    steps, start = [6000], small_start(1)
    floor = mixture.flow(mixture.mixture_moments(WHITE, 0.4, STORED), start, [0.031 * 6000]).loss

    def gap(sequences: int) -> float:
        several = [draw(WHITE, 0.4, STORED, sequences=sequences, key=key_of(seed)) for seed in range(4)]
        drawn = stack([statistics(contexts, start) for contexts in several])
        return float(np.mean(np.abs(on_statistics(drawn, start, rate=0.031, steps=steps).loss - floor)))

    few, many = gap(2000), gap(32_000)
    assert many < few / 2  # the bias of the floor falls as 1/P, its spread as 1/√P
    assert many < 0.03 * floor


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"in_context_fraction": -0.1}, "in_context_fraction must be between 0 and 1; got -0.1"),
        ({"in_context_fraction": 1.1}, "in_context_fraction must be between 0 and 1; got 1.1"),
        ({"in_weight_task": [1.0]}, "in_weight_task must be 2 finite numbers"),
        ({"in_weight_task": [1.0, np.nan]}, "in_weight_task must be finite numbers"),
        ({"sequences": 0}, "sequences must be at least 1; got 0"),
    ],
)
def test_impossible_mixtures_are_refused_by_name(options: dict, message: str) -> None:
    good = {"problem": UNEVEN, "in_context_fraction": 0.5, "in_weight_task": TASK, "sequences": 4, "key": key_of(0)}
    with pytest.raises(ValueError, match=message):
        draw(**(good | options))
