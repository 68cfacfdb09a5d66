"""When small heads leave their plateau, and the drops this predicts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

from iclab import Regression, SeparateAttention
from iclab.attention import aligned_separate, random_separate
from iclab.theory.dynamics import blow_up_times, drop_times, plateaus, separate_flow
from iclab.theory.population import moments, moments_from

LAW = moments(Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31))


def cosines(phase: float, scale: float, *shape: int) -> np.ndarray:
    return scale * np.cos(phase + 1.7 * np.arange(np.prod(shape))).reshape(shape)


KNOWN = SeparateAttention(cosines(1, 0.02, 4), cosines(2, 0.02, 4, 1, 4), cosines(3, 0.02, 4, 1, 4))


def half_drops(law, start, latest: float) -> np.ndarray:
    """Times at which the flow passes the middles between its levels, to 1e-5 of themselves."""
    levels = plateaus(law)
    time = np.geomspace(latest / 1e4, 1.2 * latest, 12_000)
    curve = separate_flow(law, start, time).loss
    return np.interp(-(levels[1:] + levels[:-1]) / 2, -curve, time)


def test_blow_up_times_of_a_known_start() -> None:
    assert_allclose(blow_up_times(LAW, KNOWN), [457.4527318, 1155.775401, 751.4278259, 412.9826652], rtol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_a_head_blows_up_when_its_equations_with_a_constant_force_do(seed: int) -> None:
    # Heads integrated on their own up to a value of 1e6 times their start, the rest being 1/(g v); a third of the
    # heads turn, their value passing zero.
    start = random_separate(4, 3, scale=1.0, rng=np.random.default_rng(seed))
    g = np.array([0.16, 0.09, 0.04, 0.01])

    def slope(_, state: np.ndarray) -> np.ndarray:
        v, k, q = state[0], state[1:5], state[5:]
        return np.concatenate([[np.sum(g * k * q)], v * g * q, v * g * k])

    def grown(_, state: np.ndarray) -> float:
        return abs(state[0]) - 1e6

    grown.terminal = True
    for head, time in enumerate(blow_up_times(LAW, start)):
        state = np.concatenate([[start.value[head]], start.key[head, 0], start.query[head, 0]])
        run = solve_ivp(slope, (0, 1e6), state, events=grown, method="DOP853", rtol=1e-12, atol=1e-14)
        assert_allclose(run.t[-1], time, rtol=2e-6)  # 1/(0.16·1e6) of a time above 5


def test_blow_up_times_scale_inversely_with_the_start() -> None:
    small = SeparateAttention(1e-9 * KNOWN.value, 1e-9 * KNOWN.key, 1e-9 * KNOWN.query)
    assert_allclose(1e-9 * blow_up_times(LAW, small), blow_up_times(LAW, KNOWN), rtol=1e-10)


def test_an_aligned_head_blows_up_after_the_inverse_of_force_and_start() -> None:
    # dv = g v²: 1/(g v₀)
    assert_allclose(
        blow_up_times(LAW, aligned_separate(np.full(4, 0.01))), 100 / np.array([0.16, 0.09, 0.04, 0.01]), rtol=1e-10
    )


@pytest.mark.parametrize(
    ("value", "key", "query"),
    [
        (0.1, [0.0, 0.0], [0.0, 0.0]),  # nothing to grow
        (0.1, [0.1, 0.0], [-0.1, 0.0]),  # key and query opposite: dv = −g v²
        (0.1, [0.02, 0.0], [-0.02, 0.0]),  # too weak to turn the value
        (0.0, [0.1, 0.0], [0.0, 0.1]),  # a point of rest
        (-0.1, [0.1, 0.0], [0.1, 0.0]),  # the mirror image of the second
    ],
)
def test_a_head_that_nothing_makes_grow_never_escapes(value: float, key: list, query: list) -> None:
    law = moments(Regression(eigenvalues=(0.5, 0.2)))
    start = SeparateAttention(np.array([value]), np.array([[key]]), np.array([[query]]))
    assert blow_up_times(law, start).tolist() == [np.inf]


@pytest.mark.parametrize("query", [-0.1, -0.1 * (1 + 1e-15)])
def test_a_head_that_comes_to_rest_on_its_way_is_said(query: float) -> None:
    # value = −query is kept by the flow: both die out along k > 0, and the time of escape diverges.
    law = moments(Regression(eigenvalues=(0.5, 0.2)))
    start = SeparateAttention(np.array([0.1]), np.array([[[0.3, 0.0]]]), np.array([[[query, 0.0]]]))
    with pytest.raises(ArithmeticError, match="comes to rest on its way"):
        blow_up_times(law, start)


def test_the_time_near_a_point_of_rest_grows_with_the_logarithm_of_the_distance() -> None:
    # near v = q = 0 the unstable direction grows at the rate g k; k settles at √(0.3² − 0.1²)
    law = moments(Regression(eigenvalues=(0.5, 0.2)))
    times = []
    for distance in (1e-4, 1e-5, 1e-6):
        query = np.array([[[-0.1 - distance, 0.0]]])
        times.append(blow_up_times(law, SeparateAttention(np.array([0.1]), np.array([[[0.3, 0.0]]]), query))[0])
    assert_allclose(np.diff(times), np.log(10) / (0.25 * np.sqrt(0.08)), rtol=1e-3)


def test_a_strong_pair_of_opposite_key_and_query_turns_the_value_and_escapes() -> None:
    # value 0.1 against k = −q = 1: v passes zero, then key grows along −query. By hand with M = 1, P = 0:
    # v² = 0.01 + (e^{−2gs} − 1), and from the turn v² = M'(e^{2gy} − 1), M' = 0.99, so the time is
    # (1/(g√M')) (π/2 + arctan √(e^{2g·turn} − 1)), e^{2g·turn} = 1/0.99.
    law = moments(Regression(eigenvalues=(0.5, 0.2)))
    start = SeparateAttention(np.array([0.1]), np.array([[[1.0, 0.0]]]), np.array([[[-1.0, 0.0]]]))
    by_hand = (np.pi / 2 + np.arctan(np.sqrt(1 / 0.99 - 1))) / (0.25 * np.sqrt(0.99))
    assert_allclose(blow_up_times(law, start), by_hand, rtol=1e-10)


def test_signs_and_rotations_of_a_start_change_no_time() -> None:
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    turned_law = moments_from(turn @ np.diag([0.4, 0.3, 0.2, 0.1]) @ turn.T, 31)
    turned = SeparateAttention(-KNOWN.value, -KNOWN.key @ turn.T, KNOWN.query @ turn.T)
    assert_allclose(blow_up_times(turned_law, turned), blow_up_times(LAW, KNOWN), rtol=1e-8)
    assert_allclose(drop_times(turned_law, turned), drop_times(LAW, KNOWN), rtol=1e-8)


def test_the_first_known_drop_comes_at_its_predicted_time() -> None:
    assert_allclose(drop_times(LAW, KNOWN)[0], 407.0181698, rtol=1e-4)  # a start of 0.02 is not very small


def test_aligned_drops_come_at_their_known_times() -> None:
    start = aligned_separate(np.array([0.02, 0.018, 0.016, 0.014]))
    known = [306.518003, 607.5448325, 1543.061307, 7078.481023]
    assert_allclose(drop_times(LAW, start), known, rtol=1e-5)  # second order in the start


def drop_errors(seeds: range, scale: float) -> np.ndarray:
    errors = []
    for seed in seeds:
        start = random_separate(4, 6, scale=scale, rng=np.random.default_rng(seed))
        predicted = drop_times(LAW, start)
        errors.append(np.abs(half_drops(LAW, start, predicted[-1]) / predicted - 1))
    return np.array(errors)


def test_predicted_drops_of_two_random_starts_are_those_of_the_flow() -> None:
    errors = drop_errors(range(2), 0.003)
    assert np.all(errors[:, 0] < 1e-4)
    assert np.all(errors < 0.03)


@pytest.mark.slow
def test_predicted_drops_of_twenty_random_starts_are_those_of_the_flow() -> None:
    errors = drop_errors(range(20), 0.003)
    assert np.all(np.median(errors, axis=0) <= 0.003)
    assert np.mean(errors <= 0.03) >= 0.95


@pytest.mark.slow
def test_predicted_drops_grow_exact_as_the_start_shrinks() -> None:
    means = [np.mean(drop_errors(range(6), scale)) for scale in (0.03, 0.003, 0.0003)]
    assert means[0] > 2 * means[1] > 4 * means[2]


def test_drops_of_white_problems_are_predicted_although_modes_may_be_mixed() -> None:
    law = moments(Regression(eigenvalues=(0.25,) * 4))
    start = random_separate(4, 6, scale=0.003, rng=np.random.default_rng(2))
    predicted = drop_times(law, start)
    assert_allclose(predicted, half_drops(law, start, predicted[-1]), rtol=1e-4)


def test_modes_without_a_head_stay_unlearned() -> None:
    start = SeparateAttention(KNOWN.value[:2], KNOWN.key[:2], KNOWN.query[:2])
    times = drop_times(LAW, start)
    assert np.all(np.isfinite(times[:2]))
    assert np.all(np.isinf(times[2:]))
    assert_allclose(separate_flow(LAW, start, [1e4]).loss, plateaus(LAW)[2], atol=1e-6)


def test_a_direction_without_inputs_is_never_dropped_into() -> None:
    law = moments(Regression(eigenvalues=(0.5, 0.3, 0.0)))
    times = drop_times(law, random_separate(3, 4, scale=0.01, rng=np.random.default_rng(0)))
    assert np.isfinite(times).tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("law", "start", "message"),
    [
        (LAW, random_separate(4, 2, 2, scale=0.1, rng=np.random.default_rng(0)), "one key-query pair to each head"),
        (LAW, SeparateAttention(np.zeros(1), np.zeros((1, 1, 4)), np.zeros((1, 1, 4))), "the flow never leaves zero"),
        (
            LAW,
            random_separate(3, 2, scale=0.1, rng=np.random.default_rng(0)),
            "dimension of the problem, D = 4; got 3",
        ),
        (
            moments_from(np.diag([2.0, 1.0]), 4, task_covariance=[[1.0, 0.5], [0.5, 1.0]]),
            random_separate(2, 2, scale=0.1, rng=np.random.default_rng(0)),
            "must commute",
        ),
        (
            moments(Regression(eigenvalues=(0.4, 0.1), task_eigenvalues=(0.5, 3.0))),
            random_separate(2, 2, scale=0.1, rng=np.random.default_rng(0)),
            "signals and contributions in the same order",
        ),
    ],
)
def test_what_drop_times_cannot_predict_is_refused(law, start, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        drop_times(law, start)
