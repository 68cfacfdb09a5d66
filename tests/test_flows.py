"""Population gradient flow of merged and separate attention."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import expm

from iclab import MergedAttention, Regression, SeparateAttention
from iclab.attention import aligned_separate, random_merged, random_separate
from iclab.theory import modes
from iclab.theory.dynamics import aligned_values, merged_flow, plateaus, separate_flow
from iclab.theory.integration import integrate, require_fall
from iclab.theory.population import Moments, best_loss, gradient, loss, moments, moments_from

LAW = moments(Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31))


def cosines(phase: float, scale: float, *shape: int) -> np.ndarray:
    """The entries of the published reference starts: scale·cos(phase + 1.7 j), j in C order."""
    return scale * np.cos(phase + 1.7 * np.arange(np.prod(shape))).reshape(shape)


MERGED = MergedAttention(cosines(1, 1e-3, 8), cosines(2, 1e-3, 8, 4, 4))
SEPARATE = SeparateAttention(cosines(1, 0.02, 4), cosines(2, 0.02, 4, 1, 4), cosines(3, 0.02, 4, 1, 4))


def crossings(time: np.ndarray, curve: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """First times at which a falling curve reaches each level, by linear interpolation."""
    after = np.array([np.argmax(curve < level) for level in levels])
    part = (curve[after - 1] - levels) / (curve[after - 1] - curve[after])
    return time[after - 1] + part * (time[after] - time[after - 1])


def test_merged_flow_from_a_known_start() -> None:
    # an independent integration of the same start at relative tolerance 1e-10
    known = [0.9995975113, 0.9830221512, 0.9004637169, 0.6229649771, 0.2841340044, 0.1792868665, 0.1551141859]
    assert_allclose(merged_flow(LAW, MERGED, [20, 30, 35, 40, 50, 80, 120]).loss, known, atol=1e-8)


def test_merged_flow_drops_once_and_at_the_known_time() -> None:
    levels = plateaus(LAW)
    time = np.linspace(40, 42, 2001)
    half = crossings(time, merged_flow(LAW, MERGED, time).loss, np.array([(levels[0] + levels[-1]) / 2]))
    assert_allclose(half, 40.80878, atol=1e-4)  # the reference interpolates between coarser times


def test_separate_flow_from_a_known_start() -> None:
    known = [0.6399288241, 0.3773713493, 0.3773670052, 0.3767515786, 0.2098045279, 0.2098043925, 0.1359950716]
    flow = separate_flow(LAW, SEPARATE, [500, 1000, 1500, 2000, 4000, 6000, 12000])
    assert_allclose(flow.loss, known, atol=1e-8)


def test_separate_flow_drops_at_the_known_times() -> None:
    levels = plateaus(LAW)
    time = np.linspace(0, 11000, 44001)
    halves = crossings(time, separate_flow(LAW, SEPARATE, time).loss, (levels[1:] + levels[:-1]) / 2)
    # 1e-2: linear interpolation between times 0.25 apart
    assert_allclose(halves, [407.0181698, 560.2742912, 2106.782764, 10544.75439], atol=1e-2)


def test_two_heads_stop_at_the_second_plateau() -> None:
    start = SeparateAttention(SEPARATE.value[:2], SEPARATE.key[:2], SEPARATE.query[:2])
    end = separate_flow(LAW, start, [20_000]).loss[-1]
    assert_allclose(end, 0.377372163, atol=1e-8)


def tilted_law(seed: int) -> Moments:
    factors = np.random.default_rng(seed).standard_normal((2, 3, 3))
    inputs, tasks = factors @ factors.transpose(0, 2, 1) / 3
    return moments_from(inputs, 6, task_covariance=tasks, noise=0.1)


@pytest.mark.parametrize("rank", [1, 3])
def test_separate_flow_follows_minus_half_the_slope_of_the_loss(rank: int) -> None:
    start = random_separate(3, 2, rank, scale=1.0, rng=np.random.default_rng(1))
    check_slope(tilted_law(5), start, separate_flow, 0.0, (1.0, 1.0, 1.0))


def test_merged_flow_follows_minus_half_the_slope_of_the_loss() -> None:
    start = random_merged(3, 2, scale=1.0, rng=np.random.default_rng(1))
    check_slope(tilted_law(6), start, merged_flow, 0.0, (1.0, 1.0))


def test_decay_pulls_and_time_constants_slow_each_factor_of_separate_attention() -> None:
    start = random_separate(3, 2, 2, scale=1.0, rng=np.random.default_rng(1))
    check_slope(tilted_law(5), start, separate_flow, 0.3, (2.0, 0.5, 3.0))


def test_decay_pulls_and_time_constants_slow_each_factor_of_merged_attention() -> None:
    start = random_merged(3, 2, scale=1.0, rng=np.random.default_rng(1))
    check_slope(tilted_law(6), start, merged_flow, 0.3, (2.0, 0.5))


def check_slope(law, start, flow, decay: float, time_constants: tuple[float, ...]) -> None:
    """A tiny step of the flow against central differences of the loss, in every weight."""
    dt = 1e-8
    after = flow(law, start, [dt], decay=decay, time_constants=time_constants, tolerance=1e-12).weights
    for name, constant in zip(vars(start), time_constants, strict=True):
        weight = getattr(start, name)
        moved = (getattr(after, name)[0] - weight) / dt
        for place in np.ndindex(weight.shape):
            step = np.zeros_like(weight)
            step[place] = 1e-5
            sides = [type(start)(**(vars(start) | {name: weight + sign * step})).gamma() for sign in (1, -1)]
            slope = (loss(law, sides[0]) - loss(law, sides[1])) / 2e-5
            expected = (-0.5 * slope - decay * weight[place]) / constant
            assert_allclose(moved[place], expected, atol=2e-5)  # first order in dt


def test_separate_flow_with_one_direction_learns_rank_by_rank_in_a_rotated_frame() -> None:
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    turned = moments_from(turn @ np.diag([0.4, 0.3, 0.2, 0.1]) @ turn.T, 31)
    start = SeparateAttention(SEPARATE.value, SEPARATE.key @ turn.T, SEPARATE.query @ turn.T)
    time = [300, 410, 500, 600]
    assert_allclose(separate_flow(turned, start, time).loss, separate_flow(LAW, SEPARATE, time).loss, atol=1e-7)


def test_units_of_the_labels_only_set_the_clock() -> None:
    # Labels times c: B → c² B, C → c² C; the loss scales with c² and time with 1/c².
    scaled = moments_from(np.diag([0.4, 0.3, 0.2, 0.1]), 31, task_covariance=1e8 * np.eye(4))
    time = np.array([20, 40, 80])
    flow = merged_flow(scaled, MERGED, time / 1e8)
    assert_allclose(flow.loss, 1e8 * merged_flow(LAW, MERGED, time).loss, rtol=1e-7)


def test_the_error_falls_in_proportion_to_the_tolerance() -> None:
    time = [300, 410, 420]
    exact = separate_flow(LAW, SEPARATE, time, tolerance=1e-13).loss
    tolerances = 10.0 ** -np.arange(6, 12)
    gaps = [np.max(np.abs(separate_flow(LAW, SEPARATE, time, tolerance=t).loss - exact)) for t in tolerances]
    order = np.polyfit(np.log(tolerances), np.log(gaps), 1)[0]
    assert 0.9 < order < 1.2


def test_the_integrator_has_order_one_in_its_tolerance_on_a_known_solution() -> None:
    # logistic growth from 0.01: 1/(1 + 99 exp(−t))
    time = np.array([1.0, 5.0, 10.0])
    exact = 1 / (1 + 99 * np.exp(-time))
    tolerances = 10.0 ** -np.arange(4, 12)
    gaps = [
        np.max(
            np.abs(integrate(lambda s: s * (1 - s), np.array([0.01]), time, tolerance=t, floor=0.01)[:, 0] - exact)
        )
        for t in tolerances
    ]
    assert 0.8 < np.polyfit(np.log(tolerances), np.log(gaps), 1)[0] < 1.3
    assert gaps[-1] < 1e-10


@pytest.mark.parametrize("scale", [1e-6, 1e-9, 1e-12])
def test_tiny_starts_wait_as_long_as_the_logarithm_of_their_size_says(scale: float) -> None:
    # Merged: weights grow like exp(|B| t), so a start c times smaller drops ln(1/c)/|B| later.
    shrink = scale / 1e-3
    delay = np.log(1 / shrink) / np.linalg.norm([0.16, 0.09, 0.04, 0.01])
    small = MergedAttention(shrink * MERGED.value, shrink * MERGED.key_query)
    time = np.array([35.0, 40.0, 50.0])
    gap = merged_flow(LAW, small, time + delay).loss - merged_flow(LAW, MERGED, time).loss
    assert_allclose(gap, 0, atol=1e-4)  # first order in the larger start, 1e-3, times a slope of 0.1


@pytest.mark.parametrize("scale", [1e-3, pytest.param(1e-9, marks=pytest.mark.slow)])
def test_plateaus_longer_than_explicit_steps_can_cross_are_crossed(scale: float) -> None:
    # Separate: algebraic escape, so a start c times smaller drops 1/c later, up to 1e10 τ here.
    initial = scale * np.array([0.02, 0.018, 0.016, 0.014])
    time = np.array([306.0, 400.0, 607.0, 1543.0, 8000.0]) / scale
    flow = separate_flow(LAW, aligned_separate(initial), time)
    known = aligned_values(Regression(), initial, time)
    assert_allclose(flow.weights.value, known, rtol=1e-6)  # times hold 1e-9 of error, v climbs with 1e3 of it


def test_a_plateau_that_outlasts_the_clock_of_a_float_is_said() -> None:
    # At 6e14 τ neighbouring times differ by 0.1 τ, too much for a drop of a few τ.
    start = aligned_separate(1e-12 * np.array([0.02, 0.018, 0.016, 0.014]))
    with pytest.raises(ArithmeticError, match="the flow stopped at time"):
        separate_flow(LAW, start, [8e15])


def test_the_time_grid_starts_anywhere_and_changes_nothing() -> None:
    late = merged_flow(LAW, MERGED, [40.0, 80.0])
    full = merged_flow(LAW, MERGED, [0.0, 10.0, 40.0, 79.0, 80.0])
    assert_allclose(late.loss, full.loss[[2, 4]], atol=1e-12)
    assert_array_equal(full.weights.key_query[0], MERGED.key_query)


def test_a_grid_of_the_single_time_zero_returns_the_start() -> None:
    flow = separate_flow(LAW, SEPARATE, [0.0])
    assert_array_equal(flow.weights.query[0], SEPARATE.query)
    assert_allclose(flow.loss, [loss(LAW, SEPARATE.gamma())])


def test_a_trajectory_carries_time_before_the_shapes_of_its_start() -> None:
    start = random_separate(4, 3, 2, scale=0.1, rng=np.random.default_rng(0))
    flow = separate_flow(LAW, start, [1.0, 2.0])
    assert flow.weights.value.shape == (2, 3)
    assert flow.weights.key.shape == flow.weights.query.shape == (2, 3, 2, 4)
    assert_allclose(flow.loss, loss(LAW, flow.weights.gamma()))


def test_merged_flow_ends_at_the_minimum() -> None:
    end = merged_flow(LAW, MERGED, [3000.0])
    assert_allclose(gradient(LAW, end.weights.gamma()[0]), 0, atol=1e-8)


def test_weight_decay_rests_where_it_balances_the_force() -> None:
    # Aligned heads: dv = g v² − h v⁵ − γ v, at rest on the largest root of g v − h v⁴ = γ.
    g = np.array([0.16, 0.09, 0.04, 0.01])
    h = g * (np.array([0.4, 0.3, 0.2, 0.1]) * 32 / 31 + 1 / 31)
    end = separate_flow(LAW, aligned_separate(np.ones(4)), [3000.0], decay=0.004).weights.value[-1]
    assert_allclose(
        g * end - h * end**4, 0.004, rtol=1e-6
    )  # a weight is at rest to 1e-9, and 3 g v/γ, 120 of mode 0, multiplies that


def test_weight_decay_keeps_a_small_start_at_zero() -> None:
    end = separate_flow(LAW, SEPARATE, [5000.0], decay=0.01)
    assert_allclose(end.loss, 1.0, atol=1e-12)


def test_equal_time_constants_only_stretch_time() -> None:
    time = np.array([300.0, 410.0, 500.0])
    slow = separate_flow(LAW, SEPARATE, 3 * time, time_constants=(3.0, 3.0, 3.0))
    assert_allclose(slow.loss, separate_flow(LAW, SEPARATE, time).loss, atol=1e-7)


def test_a_large_start_is_lazy() -> None:
    # Heads in pairs of opposite value cancel, Γ(0) = 0. As the start grows the weights stay and the flow becomes
    # that of its linearization, dΓ/dt = Σ v² F + ⟨U, F⟩ U. Weights move by 1/size² of themselves; to that order
    # the two heads of a pair cancel, so the gap falls with the fourth power.
    rng = np.random.default_rng(0)
    half = random_merged(4, 6, scale=1.0, rng=rng)
    value = np.concatenate([half.value, -half.value])
    maps = np.concatenate([half.key_query, half.key_query])
    flat = maps.reshape(12, -1)
    force = -np.kron(LAW.second, LAW.input_covariance)
    kernel = np.sum(value**2) * np.eye(16) + flat.T @ flat
    time, gaps = np.array([0.02, 0.1, 0.5]), []
    best = np.linalg.solve(force, -LAW.cross.ravel())
    linear = np.array([best - expm(t * kernel @ force) @ best for t in time]).reshape(-1, 4, 4)
    for size in (2.0, 4.0, 8.0):
        flow = merged_flow(LAW, MergedAttention(size * value, size * maps), time / size**2)
        gaps.append(np.max(np.abs(flow.loss - loss(LAW, linear))))
    assert_allclose(np.diff(np.log2(gaps)), -4, atol=0.3)


def test_the_published_rank_four_flow_passes_its_fourth_plateau() -> None:
    # D = 8, H = 9, N = 31, 20001 epochs of 2·0.02·31^(2/3) τ, from the published scale 5e-3·31^(1/3).
    law = moments(Regression(eigenvalues=tuple(np.arange(8, 0, -1) / 36)))
    start = random_separate(8, 9, 4, scale=5e-3 * 31 ** (1 / 3), rng=np.random.default_rng(0))
    time = np.arange(0, 20001, 20) * 2 * 0.02 * 31 ** (2 / 3)
    flow = separate_flow(law, start, time)
    assert flow.loss[-1] < plateaus(law)[4]


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ([2.0, 1.0], "time must increase strictly"),
        ([1.0, 1.0], "time must increase strictly"),
        ([-1.0, 1.0], "time must be finite and >= 0"),
        ([0.0, np.nan], "time must be finite"),
        ([], "time must be a non-empty list; got shape"),
        (3.0, "time must be a non-empty list; got shape"),
    ],
)
def test_a_grid_that_does_not_increase_is_refused(time: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        merged_flow(LAW, MERGED, time)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (MergedAttention(np.zeros(2), np.zeros((2, 4, 4))), "the flow never leaves"),
        (
            MergedAttention(np.ones(2), np.ones((2, 3, 3))),
            "start must have the dimension of the problem, D = 4; got 3",
        ),
        (MergedAttention(np.ones((2, 5)), np.ones((2, 5, 4))), "start must be restricted"),
        (MergedAttention(np.ones((7, 2)), np.ones((7, 2, 4, 4))), "start must be one layer"),
        (MergedAttention(np.array([np.nan]), np.ones((1, 4, 4))), "start must be finite"),
        (MergedAttention(np.array([1e200]), 1e200 * np.ones((1, 4, 4))), "start must be small enough"),
        (SEPARATE, "start must be a MergedAttention; got SeparateAttention"),
    ],
)
def test_a_start_that_cannot_flow_is_refused_by_name(start: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        merged_flow(LAW, start, [1.0])


def test_a_separate_start_with_values_alone_never_moves() -> None:
    still = SeparateAttention(np.ones(2), np.zeros((2, 1, 4)), np.zeros((2, 1, 4)))
    with pytest.raises(ValueError, match="the flow never leaves"):
        separate_flow(LAW, still, [1.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"decay": -0.1}, "decay must be finite and >= 0; got -0.1"),
        ({"time_constants": (1.0, 1.0, 1.0)}, "time_constants must be 2 positive numbers, for value, key_query"),
        ({"time_constants": (1.0, 0.0)}, "time_constants must be 2 positive numbers"),
    ],
)
def test_a_pull_or_a_pace_that_makes_no_sense_is_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        merged_flow(LAW, MERGED, [1.0], **arguments)


def test_a_flow_that_explodes_says_how_far_it_came() -> None:
    with pytest.raises(ArithmeticError, match="the flow stopped at time 1: Required step"):
        integrate(lambda s: s**2, np.array([1.0]), [0.5, 2.0])


@pytest.mark.parametrize("tolerance", [0.0, 1e-15, 0.1, np.nan])
def test_a_tolerance_that_no_solver_meets_is_refused(tolerance: float) -> None:
    with pytest.raises(ValueError, match="tolerance must lie in"):
        merged_flow(LAW, MERGED, [1.0], tolerance=tolerance)


def test_an_aligned_start_stays_aligned() -> None:
    flow = separate_flow(LAW, aligned_separate(np.array([0.2, 0.3, 0.4, 0.5])), [50.0])
    assert_allclose(flow.weights.key[0], flow.weights.query[0], atol=1e-9)
    assert_allclose(flow.weights.key[0, :, 0], np.diag(flow.weights.value[0]), atol=1e-9)


LARGE = [1e-6, 1e-3, 1.0, 1e2, 1e3, 1e4, 1e6]


def three_modes(eigenvalues: tuple[float, ...], scale: float, time: list[float]) -> np.ndarray:
    law = moments(Regression(eigenvalues=eigenvalues, context_length=8))
    start = random_separate(3, 3, scale=scale, rng=np.random.default_rng(1))
    return separate_flow(law, start, time).loss


def test_separate_flow_from_a_large_start_is_that_of_a_slow_implicit_solver() -> None:
    # Radau and BDF of SciPy at 1e-9 with derivatives by imaginary steps: 600 000 evaluations for Radau
    known = [1.16170960e8, 0.465160682, 0.465157958, 0.464886829, 0.462311576, 0.414017732, 0.327483327]
    assert_allclose(three_modes((0.5, 0.3, 0.2), 100.0, LARGE), known, rtol=1e-8)
    # BDF at 1e-9 up to 1e4
    known = [0.46516149, 0.46516149, 0.46516146, 0.46515876, 0.46513421, 0.46488765]
    assert_allclose(three_modes((0.5, 0.3, 0.2), 1000.0, LARGE[:6]), known, rtol=3e-8)


@pytest.mark.parametrize("scale", [100.0, 1e4])
def test_a_large_start_with_a_direction_without_inputs_ends_at_the_minimum(scale: float) -> None:
    law = moments(Regression(eigenvalues=(0.5, 0.3, 0.0), context_length=8))
    assert_allclose(three_modes((0.5, 0.3, 0.0), scale, [1.0, 1e3, 1e6]), best_loss(law), rtol=1e-7)


@pytest.mark.parametrize("time", [[1.0], [1e2, 1e3]])
def test_a_start_whose_rounding_is_as_large_as_the_loss_is_said(time: list[float]) -> None:
    # heads of size 1e18 cancel in Γ, of which sixteen digits are kept
    with pytest.raises(ArithmeticError, match="the loss must fall along the flow; got weights whose rounding"):
        three_modes((0.5, 0.3, 0.2), 1e6, time)


@pytest.mark.parametrize("seed", range(3))
def test_merged_flow_from_a_large_start_falls_to_the_same_end_at_once(seed: int) -> None:
    law = moments(Regression(eigenvalues=(0.5, 0.3, 0.2), context_length=8))
    start = random_merged(3, 3, scale=1e6, rng=np.random.default_rng(seed))
    curve = merged_flow(law, start, [0.0, 1e-20, 1e-9, 1e-3, 1.0, 1e3]).loss
    assert np.all(np.diff(curve) <= 1e-9 * curve[:-1])
    assert_allclose(curve[-3:], curve[2], rtol=1e-6)  # nothing is left but what moves in 1e12 units of time


def test_modes_from_large_starts_are_at_rest_after_one_of_their_short_times() -> None:
    rng = np.random.default_rng(0)
    tasks, late = modes.DiagonalTasks([2.0, 1.0, 0.5], 8), [1e-9, 1e-6, 1e-3]
    p, q = 1e6 * rng.standard_normal((2, 3, 3))
    whole = modes.matrix_flow(tasks, start=(p, q), time=late).loss
    assert_allclose(whole, whole[-1], rtol=1e-6)
    problem = Regression(eigenvalues=(2.0, 1.0, 0.5), context_length=8)
    head = modes.single_head_flow(problem, start=(1.2e6, p[0]), time=late).loss
    assert_allclose(head, best_loss(moments(problem)), rtol=1e-6)


@pytest.mark.parametrize(("falling", "blur"), [([1.0, 0.5, 0.6], 0.0), ([1.0, 0.5], 0.1)])
def test_a_loss_that_rises_or_is_not_known_is_never_returned(falling: list[float], blur: float) -> None:
    with pytest.raises(ArithmeticError, match="the loss must fall along the flow"):
        require_fall(np.array(falling), height=1.0, blur=blur)
    require_fall(np.array([1.0, 0.5, 0.5 + 1e-10]), height=1.0, blur=1e-9)


@pytest.mark.parametrize("length", [10**6, 10**12])
def test_flows_of_long_contexts_end_at_a_floor_far_below_their_start(length: int) -> None:
    rng, time, spectrum = np.random.default_rng(0), np.geomspace(0.1, 1e3, 30), (1.0, 0.5)
    problem = Regression(eigenvalues=spectrum, context_length=length)
    law, tasks = moments(problem), modes.DiagonalTasks(spectrum, length)
    heads = random_separate(2, 3, scale=0.05, rng=rng), random_merged(2, 3, scale=0.05, rng=rng)
    p, q = 0.05 * rng.standard_normal((2, 2, 2))
    for tolerance in (1e-9, 1e-6):
        ends = [
            separate_flow(law, heads[0], time, tolerance=tolerance).loss[-1],
            merged_flow(law, heads[1], time, tolerance=tolerance).loss[-1],
        ]
        assert_allclose(ends, best_loss(law), rtol=0, atol=tolerance * law.null_loss)  # the tolerance of its height
    alone = modes.single_head_flow(problem, start=(0.03, 0.02), time=time).loss[-1]
    aligned = modes.exact_flow(tasks, start=(0.03, 0.02), time=time).loss[-1]
    whole = modes.matrix_flow(tasks, start=(p, q), time=time).loss[-1]
    assert_allclose(alone, best_loss(law), rtol=0, atol=1e-10)
    # the balance of p and q, of order 1/N in the loss, settles in N units of time
    assert_allclose([aligned, whole], modes.exact_least_loss(tasks), rtol=0, atol=1 / length + 1e-10)
