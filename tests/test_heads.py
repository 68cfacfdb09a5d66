"""Heads that hold several modes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab import Regression, SeparateAttention
from iclab.attention import random_separate
from iclab.theory.dynamics import (
    balanced_weights,
    conserved,
    fixed_point,
    head_flow,
    plateaus,
    separate_flow,
)
from iclab.theory.population import gradient, moments, moments_from

LAW = moments(Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31))


def tilted_law(seed: int):
    factors = np.random.default_rng(seed).standard_normal((2, 4, 4))
    inputs, tasks = factors @ factors.transpose(0, 2, 1) / 4
    return moments_from(inputs, (5, 9), task_covariance=tasks, noise=0.2)


def test_a_rank_two_head_converges_to_the_known_balance() -> None:
    # value³ = A₁ + A₂, c_r = √(A_r/value), A = 2.246376812, 2.924528302
    head = balanced_weights(LAW, (0, 1), heads=1, rank=2)
    lengths = np.linalg.norm(head.key[0], axis=1)
    assert_allclose([head.value[0], *sorted(lengths)], [1.729240995, 1.139760344, 1.300469445], atol=1e-8)


def test_a_rank_one_head_converges_to_the_cube_root() -> None:
    head = balanced_weights(LAW, (2,), heads=2)
    assert_allclose(head.value, [np.cbrt(4.189189189), 0], atol=1e-9)
    assert_allclose(np.abs(head.key[0, 0]), [0, 0, np.cbrt(4.189189189), 0], atol=1e-9)


@pytest.mark.parametrize(("learned", "heads", "rank"), [((3, 0), 3, 1), ((0, 1, 2), 2, 2), ((1, 2, 0, 3), 1, 4)])
def test_balanced_weights_hold_their_modes_at_rest(learned: tuple, heads: int, rank: int) -> None:
    law = tilted_law(1)
    weights = balanced_weights(law, learned, heads=heads, rank=rank)
    assert_allclose(weights.gamma(), fixed_point(law, learned), atol=1e-12)
    assert_allclose(conserved(weights), 0, atol=1e-12)
    force = -0.5 * gradient(law, weights.gamma())
    pull = weights.key @ force
    assert_allclose(np.sum(pull * weights.query, axis=(1, 2)), 0, atol=1e-12)
    assert_allclose(pull[weights.value > 0], 0, atol=1e-12)
    assert_allclose((weights.query @ force.T)[weights.value > 0], 0, atol=1e-12)


def test_the_flow_of_a_rank_two_head_takes_the_known_course() -> None:
    time = [150, 200, 210, 220, 240, 300]
    known = [0.04073260717, 0.06026056509, 0.06659410051, 0.07440247369, 0.09716111308, 0.9581352217]
    flow = head_flow(LAW, 0.02, (0.02, 0.01, 0, 0), time)
    assert_allclose(flow.weights.value[:, 0], known, atol=1e-8)


@pytest.mark.parametrize("tasks", [None, (0.5, 1.0, 3.0, 0.5)])
def test_the_reduced_head_is_an_exact_solution_of_the_flow(tasks: tuple | None) -> None:
    law = moments(Regression(task_eigenvalues=tasks, noise=0.1))
    time = [0.0, 30.0, 60.0, 200.0]
    reduced = head_flow(law, 0.1, (0.1, 0.2, 0.0, 0.05), time)
    first = SeparateAttention(reduced.weights.value[0], reduced.weights.key[0], reduced.weights.query[0])
    flow = separate_flow(law, first, time)
    assert_allclose(reduced.loss, flow.loss, atol=1e-8)
    assert_allclose(reduced.weights.key, flow.weights.key, atol=1e-7)


def test_a_head_ends_at_its_balanced_weights() -> None:
    end = head_flow(LAW, 0.05, (0.04, 0.03, 0, 0), [3000.0])
    rest = balanced_weights(LAW, (0, 1), heads=1, rank=2)
    assert_allclose(end.weights.value[-1], rest.value, rtol=1e-3)  # its start is unbalanced by 1e-3
    assert_allclose(end.loss[-1], plateaus(LAW)[2], rtol=1e-9)


def test_the_second_pair_of_a_head_follows_the_first_after_a_short_exponential_wait() -> None:
    # First pair: algebraic, about 1/(g v₀). Second: exponential, about ln(1/c₀)/(v g) with v ≈ 1.3 and g = 0.09.
    small = 1e-4
    time = np.linspace(0, 2 / (0.16 * small), 200_001)
    curve = head_flow(LAW, small, (small, small, 0, 0), time).loss
    first, second = (time[np.argmax(curve < level)] for level in (plateaus(LAW)[:2] + plateaus(LAW)[1:3]) / 2)
    assert first > 3e4
    assert 0 < second - first < 2 * np.log(1 / small) / (1.3 * 0.09)


@pytest.mark.parametrize("seed", range(2))
def test_rank_two_heads_stay_longest_at_even_plateaus(seed: int) -> None:
    start = random_separate(4, 2, 2, scale=0.003, rng=np.random.default_rng(seed))
    time = np.geomspace(100, 3e5, 2000)
    curve = separate_flow(LAW, start, time).loss
    stays = [np.sum(np.abs(curve - level) < 2e-3) for level in plateaus(LAW)]
    assert min(stays[0], stays[2], stays[4]) > 10 * max(stays[1], stays[3])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strengths": (0.1, 0.1)}, "one for each of the 4 modes"),
        ({"strengths": (0, 0, 0, 0)}, "strengths must not all be 0"),
        ({"value": np.nan}, "must be finite"),
        ({"time": [1.0, 0.5]}, "time must increase strictly"),
    ],
)
def test_a_head_that_cannot_flow_is_refused(arguments: dict, message: str) -> None:
    defaults = {"moments": LAW, "value": 0.1, "strengths": (0.1, 0, 0, 0), "time": [1.0]}
    with pytest.raises(ValueError, match=message):
        head_flow(**(defaults | arguments))


def test_more_modes_than_pairs_cannot_be_held() -> None:
    with pytest.raises(ValueError, match="at most heads × rank = 2 modes; got 3"):
        balanced_weights(LAW, (0, 1, 2), heads=1, rank=2)
