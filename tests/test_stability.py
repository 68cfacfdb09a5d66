"""How fixed points are left: curvature, growth and rotating heads."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclab import Regression
from iclab.attention import random_separate
from iclab.theory.dynamics import (
    Stability,
    balanced_weights,
    commuting_modes,
    fixed_point,
    growth,
    half_drop_shift,
    merged_stability,
    plateaus,
    reachable,
    rotations,
    separate_flow,
    stability,
)
from iclab.theory.population import Moments, best_gamma, gradient, loss, modes, moments, moments_from

NON_WHITE = moments(Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31))
ROTATING = moments(Regression(eigenvalues=(0.4, 0.1), task_eigenvalues=(0.5, 3.0), context_length=31))


def tilted_law(seed: int, size: int = 4) -> Moments:
    factors = np.random.default_rng(seed).standard_normal((2, size, size))
    inputs, tasks = factors @ factors.transpose(0, 2, 1) / size
    return moments_from(inputs, (5, 9), task_covariance=tasks, noise=0.2)


def downward_curvatures(function, point: np.ndarray) -> int:
    """Negative eigenvalues of a Hessian by second differences, beyond their rounding."""
    step = 1e-3 * np.eye(len(point))
    i, j = np.triu_indices(len(point))
    corners = [
        sign * function(point + a * step[i] + b * step[j])
        for a, b, sign in ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))
    ]
    hessian = np.zeros((len(point), len(point)))
    hessian[i, j] = hessian[j, i] = sum(corners) / 4e-6
    curvature = np.linalg.eigvalsh(hessian)
    return int(np.sum(curvature < -1e-5 * np.max(np.abs(curvature))))


def separate_curvatures(law: Moments, learned: tuple[int, ...], heads: int, rank: int) -> int:
    weights = balanced_weights(law, learned, heads=heads, rank=rank)
    point = np.concatenate([weights.value, weights.key.ravel(), weights.query.ravel()])

    def losses(points: np.ndarray) -> np.ndarray:
        value, factors = points[:, :heads], points[:, heads:].reshape(len(points), 2, heads * rank, -1)
        strength = np.repeat(value, rank, axis=1)[:, :, None]
        return loss(law, np.swapaxes(strength * factors[:, 0], 1, 2) @ factors[:, 1])

    return downward_curvatures(losses, point)


@pytest.mark.parametrize(
    ("law", "heads", "rank"), [(NON_WHITE, 5, 1), (tilted_law(0), 5, 1), (tilted_law(1), 3, 2), (tilted_law(2), 2, 3)]
)
def test_the_count_of_negative_directions_is_that_of_the_hessian(law: Moments, heads: int, rank: int) -> None:
    for size in range(law.dimension):
        for learned in itertools.combinations(range(law.dimension), size):
            expected = separate_curvatures(law, learned, heads, rank)
            assert stability(law, learned, rank=rank).negative == expected, learned


@pytest.mark.parametrize(
    ("learned", "expected"),
    [
        ((), Stability(0, True)),
        ((0,), Stability(0, True)),
        ((0, 1), Stability(0, True)),
        ((0, 1, 2), Stability(0, True)),
        ((0, 1, 2, 3), Stability(0, False)),
        ((1,), Stability(1, False)),
        ((1, 2), Stability(2, False)),
        ((3,), Stability(3, False)),
    ],
)
def test_the_staircase_runs_along_degenerate_saddles_and_ends_at_the_minimum(learned, expected) -> None:
    assert stability(NON_WHITE, learned) == expected


def test_a_spare_pair_of_an_active_head_opens_a_direction_to_each_unlearned_mode() -> None:
    law = moments(Regression(eigenvalues=(0.5, 0.3, 0.2)))
    counts = [stability(law, learned, rank=2).negative for learned in ((0,), (1,), (2,), (0, 1), ())]
    assert counts == [2, 3, 4, 0, 0]


def test_equal_worths_are_not_steps_down() -> None:
    white = moments(Regression(eigenvalues=(0.25,) * 4))
    assert stability(white, (2,)) == Stability(0, True)
    assert rotations(white, (2,)) == ()


def test_a_direction_without_inputs_is_no_reason_to_move() -> None:
    law = moments(Regression(eigenvalues=(0.5, 0.3, 0.0)))
    assert stability(law, (0, 1)) == Stability(0, False)
    assert stability(law, (0, 1, 2)) == Stability(0, False)
    assert merged_stability(law, (0, 1), heads=3).negative == 0


@pytest.mark.parametrize("size", [2, 3, 8])
@pytest.mark.parametrize("rank", [1, 2])
def test_a_direction_without_tasks_is_no_mode(size: int, rank: int) -> None:
    rng = np.random.default_rng(size)
    factor, turn = rng.standard_normal((size, rank)), np.linalg.qr(rng.standard_normal((size, size)))[0]
    for inputs in (np.diag(1.0 / np.arange(1, size + 1)), (turn / np.arange(1, size + 1) ** 2) @ turn.T):
        law = moments_from((inputs + inputs.T) / 2, 10, task_covariance=factor @ factor.T)
        assert list(reachable(law, heads=size))[-1] == tuple(range(rank))
        assert np.count_nonzero(growth(law)) == np.count_nonzero(modes(law).contribution) == rank
        assert stability(law, range(rank)) == Stability(0, False)
        assert merged_stability(law, range(rank), heads=3).negative == 0


def test_a_direction_without_tasks_has_no_drop() -> None:
    law = moments_from(0.7 * np.eye(3), 10, task_covariance=np.ones((3, 3)))
    assert_allclose(commuting_modes(law).signal, [3 * 0.49, 0, 0], rtol=1e-12, atol=0)  # λ² ω
    assert_array_equal(np.isfinite(half_drop_shift(law)), [True, False, False])


@pytest.mark.parametrize("small", [1e-6, 1e-9])
def test_a_small_mode_is_one(small: float) -> None:
    law = moments_from(np.diag([1.0, small]), 10)
    assert list(reachable(law, heads=2)) == [(), (0,), (1,), (0, 1)]
    assert stability(law, (0,)) == Stability(0, True)


@pytest.mark.parametrize("learned", [(), (0, 1, 2)])
def test_merged_attention_leaves_zero_in_one_direction_for_each_head(learned: tuple[int, ...]) -> None:
    law, heads = tilted_law(3, size=3), 4
    value = np.zeros(heads)
    maps = np.zeros((heads, 3, 3))
    if learned:
        value[0], maps[0] = 1.5, best_gamma(law) / 1.5

    def losses(points: np.ndarray) -> np.ndarray:
        gammas = np.einsum("nh,nhk->nk", points[:, :heads], points[:, heads:].reshape(len(points), heads, -1))
        return loss(law, gammas.reshape(-1, 3, 3))

    expected = downward_curvatures(losses, np.concatenate([value, maps.ravel()]))
    assert merged_stability(law, learned, heads=heads) == Stability(expected, False)
    assert expected == (0 if learned else heads)


def test_merged_attention_has_no_fixed_point_in_between() -> None:
    with pytest.raises(ValueError, match="learned must be no modes or all"):
        merged_stability(NON_WHITE, (0, 1), heads=2)


def test_growth_with_general_tasks_is_the_known_one() -> None:
    # λ² ω of λ = .4 .3 .2 .1 and ω = .5 1 3 .5: .08 .09 .12 .005, largest contribution first
    problem = Regression(task_eigenvalues=(0.5, 1.0, 3.0, 0.5), noise=0.1)
    assert_allclose(growth(moments(problem)), [0.12, 0.09, 0.08, 0.005], rtol=1e-10)


@pytest.mark.parametrize("learned", [(), (0,), (1, 2)])
def test_no_unlearned_mode_outgrows_the_first_singular_pair_of_the_slope(learned: tuple[int, ...]) -> None:
    law = tilted_law(4)
    unlearned = [mode for mode in range(4) if mode not in learned]
    slope = -0.5 * gradient(law, fixed_point(law, learned))
    assert np.max(growth(law)[unlearned]) <= np.linalg.svd(slope, compute_uv=False)[0] * (1 + 1e-12)


def test_where_growth_and_worth_disagree_a_rotating_head_adds_a_plateau() -> None:
    # growth .08 and .03 but contributions .17971 and .27624 of the two inputs: the plateaus of the leading modes
    # are .5, .22376, .04405; on the way the faster mode is held first, at .32029.
    assert_allclose(plateaus(ROTATING), [0.5, 0.22376, 0.04405], atol=1e-5)
    assert_allclose(growth(ROTATING), [0.03, 0.08], rtol=1e-12)
    assert_allclose(loss(ROTATING, fixed_point(ROTATING, (1,))), 0.32029, atol=1e-5)
    assert rotations(ROTATING, (1,)) == ((0,),)
    assert rotations(ROTATING, (0,)) == ()


@pytest.mark.parametrize("seed", range(3))
def test_the_flow_of_a_small_start_visits_the_plateau_of_the_rotating_head(seed: int) -> None:
    start = random_separate(2, 2, scale=0.003, rng=np.random.default_rng(seed))
    time = np.linspace(0, 1.1e5, 11001)
    curve = separate_flow(ROTATING, start, time).loss
    # A plateau is a stay within 2e-3 of its level, for at least 200 τ, where a drop takes some 50 τ.
    stays = [10 * np.sum(np.abs(curve - level) < 2e-3) for level in (0.5, 0.32029, 0.22376, 0.04405)]
    assert min(stays) >= 200


@pytest.mark.parametrize("rank", [0, 1.5])
def test_a_rank_below_one_is_refused(rank: float) -> None:
    with pytest.raises(ValueError, match="rank must be a whole number >= 1"):
        stability(NON_WHITE, (0,), rank=rank)
