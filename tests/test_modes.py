"""The paper's decoupled modes: closed forms, times, steps, decay."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

from iclab.theory import modes
from iclab.theory.modes import DiagonalTasks

FOUR = np.array([2.0, 1.0, 0.5, 0.25])
EIGHT = DiagonalTasks(FOUR, 8)
TIMES = np.array([0.3, 1.0, 3.0])


def test_limits_and_time_constants_of_four_modes() -> None:
    # ((N+1) s + tr Λ)/N with N = 8, tr Λ = 3.75; 1/(η P s²) in steps with η = .01, P = 64
    assert_allclose(1 / modes.limits(EIGHT), [2.71875, 1.59375, 1.03125, 0.75], rtol=1e-14)
    steps = modes.time_constants(FOUR) / modes.paper_time(0.01, 64, 1)
    assert_allclose(steps, [0.390625, 1.5625, 6.25, 25.0], rtol=1e-14)


def test_balanced_curves_and_their_loss() -> None:
    tasks = DiagonalTasks(FOUR, 200)
    curves = modes.leading_order(tasks, start=(0.001**0.5,) * 2, time=np.array([0.0, 4.0, 12.0, 24.0]))
    expected = [
        [0.49291435612755163, 0.7359060029062685, 0.007364530037748421, 0.0016484325399220986],
        [0.4929143561306223, 0.9768009408177794, 0.3334767141927762, 0.004477479988190929],
        [0.4929143561306223, 0.9768009768009768, 1.8961263685586078, 0.019982564868689896],
    ]
    assert_allclose(curves.strength[1:], expected, atol=1e-10)
    half = [1.86969214296875, 0.4285345016433345, 0.32436776022325453, 0.15974961924870756]
    assert_allclose(curves.loss, 2 * np.array(half), atol=1e-10)
    logistic = modes.balanced_law(0.001, modes.limits(tasks), modes.time_constants(FOUR), curves.time[:, None])
    assert_allclose(logistic, curves.strength, rtol=1e-12)


@pytest.mark.parametrize(
    ("start", "value", "key_query"),
    [
        ((1.3, 0.2), (1.3333258794517093, 1.3563305388428148, 1.358347302507119),
         (0.35743237236668196, 0.4354681740353023, 0.44170962659689283)),
        ((0.9, -0.3), (0.8493486663472392, 0.9564410771291693, 1.0288971478463298),
         (0.0373250187653473, 0.44133834415333245, 0.5819186720206804)),
        ((0.1, 0.7), (0.2833921153920286, 0.5390334900867143, 0.6364147640089218),
         (0.7485393049575745, 0.8778138204853373, 0.9407570099917042)),
        ((1.2, 0.0), (1.2312582588939334, 1.280706025129093, 1.2873278465316076),
         (0.27567535271496474, 0.4474459998725669, 0.4660611381092679)),
        ((0.8, -0.8), (0.46509660032883776, 0.18854007686268862, 0.019858625011907178),
         (-0.46509660032883776, -0.18854007686268862, -0.019858625011907178)),
    ],
)  # fmt: skip
def test_mode_law_from_unbalanced_negative_zero_and_antibalanced_starts(
    start: tuple[float, float], value: tuple, key_query: tuple
) -> None:
    assert_allclose(modes.mode_law(start, 0.6, 0.9, TIMES), [value, key_query], atol=1e-9)


@settings(max_examples=15)
@given(st.floats(-2, 2), st.floats(-2, 2), st.floats(0.2, 3), st.floats(0.2, 3))
def test_mode_law_solves_its_equation(p: float, q: float, limit: float, tau: float) -> None:
    def velocity(_: float, state: np.ndarray) -> np.ndarray:
        return state[::-1] * (1 - state[0] * state[1] / limit) / tau

    path = solve_ivp(velocity, (0, 2), [p, q], rtol=1e-11, atol=1e-13, t_eval=[0.5, 2.0]).y
    assert_allclose(modes.mode_law((p, q), limit, tau, np.array([0.5, 2.0])), path, atol=1e-8)


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(0, 20))
def test_balance_is_conserved_and_signs_and_roles_may_be_exchanged(p: float, q: float, time: float) -> None:
    value, key_query = modes.mode_law((p, q), 0.7, 1.3, time)
    assert_allclose(value**2 - key_query**2, p**2 - q**2, atol=1e-13 * (1 + value**2 + key_query**2))
    assert_allclose(modes.mode_law((-p, -q), 0.7, 1.3, time), (-value, -key_query), atol=0)
    assert_allclose(modes.mode_law((q, p), 0.7, 1.3, time), (key_query, value), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("scale", [1e-30, 1e-8, 1.0, 1e8, 1e30])
def test_units_of_the_weights_scale_out(scale: float) -> None:
    # p, q -> c p, c q and a∞ -> c² a∞ is the same curve
    reference = np.array(modes.mode_law((1.3, -0.2), 0.6, 0.9, TIMES))
    scaled = modes.mode_law((1.3 * scale, -0.2 * scale), 0.6 * scale**2, 0.9, TIMES)
    assert_allclose(scaled, scale * reference, rtol=1e-12)


@pytest.mark.parametrize(
    "start", [(1e-200, 2e-200), (1e8, 1e-8), (3.0, -3.0 + 1e-12), (1e-9, 0.5), (3e6, 2e6), (-4e5, 1e6)]
)
def test_mode_law_at_fifty_digits(start: tuple[float, float]) -> None:
    # tiny and huge starts, imbalances, next to the separatrix; y = (p + q)² obeys a Riccati equation
    p, q = (mpmath.mpf(part) for part in start)
    for time in (0.2, 5.0, 400.0):
        with mpmath.workdps(500):
            limit, tau, balance = mpmath.mpf("0.6"), mpmath.mpf("0.9"), p**2 - q**2
            root = mpmath.sqrt(4 * limit**2 + balance**2)
            up, low, first = 2 * limit + root, 2 * limit - root, (p + q) ** 2
            odds = (up - first) / (first - low) * mpmath.exp(-root * mpmath.mpf(time) / (limit * tau))
            total = mpmath.sqrt((up + low * odds) / (1 + odds))
            expected = float((total + balance / total) / 2), float((total - balance / total) / 2)
        assert_allclose(modes.mode_law(start, 0.6, 0.9, time), expected, rtol=1e-9)


def test_starts_at_rest_stay_and_modes_without_inputs_never_move() -> None:
    assert_allclose(modes.mode_law((0.0, 0.0), 0.6, 0.9, np.array([0.0, 1.0, 1e6, np.inf])), 0, atol=0)
    curves = modes.leading_order(DiagonalTasks([1.0, 0.0], 8), start=(0.1, 0.3), time=np.array([0.0, 1e9]))
    assert_allclose(curves.value[:, 1], 0.1, rtol=1e-15)
    assert_allclose(curves.strength[1, 0], 8 / 10, rtol=1e-12)


def test_all_but_antibalanced_starts_end_on_the_hyperbola() -> None:
    value, key_query = modes.mode_law(
        (np.array([0.5, -0.5, 1e-9]), np.array([-0.5 + 1e-9, 0.4, 0.0])), 0.7, 1, np.inf
    )
    assert_allclose(value * key_query, 0.7, rtol=1e-12)
    assert_allclose(modes.mode_law((0.5, -0.5), 0.7, 1, np.inf), (0, 0), atol=0)


def test_time_to_ninety_percent_and_the_width_of_a_step() -> None:
    # (τ/2) ln[f (a∞ − a₀)/((1 − f) a₀)], f = .9, a₀ = 1e-4, a∞ = .7, τ = 2; from 10 to 90 % takes τ ln 9
    early, late = modes.time_to_fraction(np.array([0.1, 0.9]), (0.01, 0.01), 0.7, 2.0)
    assert_allclose(late, 11.05074713802576, atol=1e-10)
    assert_allclose(late - early, 2 * np.log(9), rtol=1e-12)


@given(st.floats(-2, 2), st.floats(-2, 2), st.floats(0.001, 0.999999))
def test_time_to_fraction_inverts_the_mode_law(p: float, q: float, fraction: float) -> None:
    time = modes.time_to_fraction(fraction, (p, q), 0.7, 1.3)
    if p == -q:
        assert time == np.inf
        return
    value, key_query = modes.mode_law((p, q), 0.7, 1.3, time)
    assert_allclose(value * key_query, max(p * q, fraction * 0.7), rtol=1e-6, atol=1e-9)  # p q grows like e^{2t/τ}


@pytest.mark.parametrize(
    "start",
    [(3.0, -3.0000000000000004), (10.0, -10.000000000000002), (1e6, -1000000.0000000001), (0.0, 1.0), (1e6, -1e-6),
     (1e-200, 3e-200), (-0.3, 1.0), (1e-7, 1e-7), (2e5, -1e5)],
)  # fmt: skip
@pytest.mark.parametrize("fraction", [1e-12, 1e-8, 0.5, 1 - 1e-12])
def test_time_to_fraction_at_six_hundred_digits(start: tuple[float, float], fraction: float) -> None:
    # next to the separatrix, and fractions at the ends; y = (p + q)² obeys a Riccati equation
    with mpmath.workdps(600):
        p, q, share, limit, tau = (mpmath.mpf(part) for part in (*start, fraction, 0.7, 1.3))
        balance = p**2 - q**2
        root, first = mpmath.sqrt(4 * limit**2 + balance**2), (p + q) ** 2
        up, low = root + 2 * limit, root - 2 * limit
        last = 2 * share * limit + mpmath.sqrt(4 * share**2 * limit**2 + balance**2)
        log = mpmath.log((last + low) * (up - first) / ((up - last) * (first + low)))
        expected = float(log * limit * tau / root)
    assert_allclose(modes.time_to_fraction(fraction, start, 0.7, 1.3), expected, rtol=1e-14)


def test_time_to_half_next_to_the_separatrix_is_known() -> None:
    starts = np.array([3.0, 10.0, 1e6])
    times = modes.time_to_fraction(0.5, (starts, -np.nextafter(starts, np.inf)), 1.0, 1.0)
    assert_allclose(times, [34.892360842620135, 32.34979876957664, 9.751493531935335], rtol=1e-14)  # 600 digits


def test_time_to_fraction_is_zero_when_already_there_and_infinite_when_never() -> None:
    assert modes.time_to_fraction(0.5, (2.0, 2.0), 0.7, 1.0) == 0
    assert modes.time_to_fraction(0.5, (0.0, 0.0), 0.7, 1.0) == np.inf
    assert modes.time_to_fraction(0.5, (0.1, 0.1), 0.7, np.inf) == np.inf


def test_step_of_descent_and_its_exact_law() -> None:
    p, q = modes.descent_step((0.3, 0.8), 1 / 1.7, 0.2)
    assert_allclose([p, q, (p**2 - q**2) + 0.55], [0.39472, 0.83552, 0.007710207999999996], atol=1e-12)
    error = 1 - 0.24 * 1.7
    assert_allclose(p**2 - q**2, -0.55 * (1 - 0.04 * error**2), rtol=1e-14)


@pytest.mark.parametrize("balance", [0.0, 1.0])
@pytest.mark.parametrize(("factor", "settles"), [(0.95, True), (1.05, False)])
def test_descent_settles_below_the_largest_step_alone(balance: float, factor: float, settles: bool) -> None:
    limit = 0.6
    step = factor * modes.largest_step(limit, balance)
    q = np.sqrt((np.sqrt(balance**2 + 4 * limit**2) - balance) / 2)
    state = (limit / q * (1 + 1e-6), q)
    before = abs(state[0] * state[1] - limit)
    for _ in range(40):
        state = modes.descent_step(state, limit, step)
    assert bool(abs(state[0] * state[1] - limit) < before) is settles


def test_saddle_and_hyperbola_have_their_growth_rates() -> None:
    assert_allclose(modes.growth_rates((0.0, 0.0), 0.6, 0.9), [-1 / 0.9, 1 / 0.9], rtol=1e-14)
    c, limit, tau = 0.8, 0.6, 0.9
    q = np.sqrt((np.sqrt(c**2 + 4 * limit**2) - c) / 2)
    across = -np.sqrt(c**2 + 4 * limit**2) / (limit * tau)
    assert_allclose(modes.growth_rates((limit / q, q), limit, tau), [across, 0], atol=1e-13)


@pytest.mark.parametrize("start", [(1e6, 0.0), (1e6, 1e-7), (3e4, -2e4), (1e3, 5e-4), (0.0, 0.0), (0.5, 0.6)])
def test_growth_rates_at_fifty_digits(start: tuple[float, float]) -> None:
    with mpmath.workdps(50):
        p, q = (mpmath.mpf(part) for part in start)
        kept = p * q / mpmath.mpf(0.6)
        middle = -(p**2 + q**2) / (2 * mpmath.mpf(0.6))
        spread = mpmath.sqrt(((p**2 - q**2) / (2 * mpmath.mpf(0.6))) ** 2 + (1 - 2 * kept) ** 2)
        expected = [float((middle - spread) / mpmath.mpf(0.9)), float((middle + spread) / mpmath.mpf(0.9))]
    assert_allclose(modes.growth_rates(start, 0.6, 0.9), expected, rtol=1e-14)


def test_decay_moves_and_kills_modes() -> None:
    # (1 − λ/s²) a∞ with λ = .1, N = 8; the mode with s² = .0625 < .1 dies
    expected = [0.3586206896551724, 0.5647058823529412, 0.5818181818181818, 0.0]
    ends = modes.decayed_limits(EIGHT, decay=0.1)
    assert_allclose(ends, expected, atol=1e-12)
    taus, limits = modes.time_constants(FOUR), modes.limits(EIGHT)
    assert_allclose(modes.balanced_law(0.01, limits, taus, 3000.0, decay=0.1), ends, atol=1e-12)
    tasks = DiagonalTasks([1.0, 0.0], 8)
    assert_allclose(modes.decayed_limits(tasks, decay=0.0), modes.limits(tasks))


def test_decayed_law_solves_its_equation_and_balance_decays() -> None:
    def velocity(_: float, state: np.ndarray) -> np.ndarray:
        return state[::-1] * (1 - state[0] * state[1] / 0.6) / 0.9 - 0.3 * state

    path = solve_ivp(velocity, (0, 4), [0.2, 0.2], rtol=1e-11, atol=1e-13, t_eval=[1.0, 4.0]).y
    assert_allclose(modes.balanced_law(0.04, 0.6, 0.9, np.array([1.0, 4.0]), decay=0.3), path[0] * path[1], rtol=1e-8)
    path = solve_ivp(velocity, (0, 4), [0.9, 0.2], rtol=1e-11, atol=1e-13).y[:, -1]
    assert_allclose(path[0] ** 2 - path[1] ** 2, 0.77 * np.exp(-2 * 0.3 * 4), rtol=1e-8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: modes.mode_law((1, 1), 0.0, 1.0, 1.0), "limit must be finite and > 0"),
        (lambda: modes.mode_law((1, 1), 1.0, 0.0, 1.0), "time_constant must be > 0"),
        (lambda: modes.mode_law((np.nan, 1), 1.0, 1.0, 1.0), "start must be finite"),
        (lambda: modes.mode_law((1, 1), 1.0, 1.0, -1.0), "time must be >= 0"),
        (lambda: modes.time_to_fraction(1.0, (1, 1), 1.0, 1.0), "fraction must lie between"),
        (lambda: modes.balanced_law(-0.1, 1.0, 1.0, 1.0), "start must be >= 0"),
        (lambda: modes.decayed_limits(EIGHT, decay=-1.0), "decay must be finite and >= 0"),
        (lambda: DiagonalTasks([0.0, 0.0], 8), "eigenvalues must hold a positive one"),
        (lambda: DiagonalTasks([1.0, -1.0], 8), "eigenvalues must be finite and >= 0"),
        (lambda: DiagonalTasks(FOUR, 0), "context_length must be whole numbers"),
        (lambda: DiagonalTasks(FOUR, (4, 8)), "context_length must be one number"),
        (lambda: modes.limits(DiagonalTasks(FOUR, 8, noise=0.1)), "tasks must be standard normal and free of noise"),
        (
            lambda: modes.leading_order_loss(DiagonalTasks([1.0], 8, task_second_moments=[2.0]), [0.1]),
            "tasks must be standard normal and free of noise",
        ),
        (lambda: modes.limits(FOUR), r"tasks must be a DiagonalTasks; got ndarray\. Write DiagonalTasks\("),
        (
            lambda: modes.leading_order(EIGHT, start=((1, 2), 1), time=[1.0]),
            "start must hold scalars or one number",
        ),
        (lambda: modes.leading_order(EIGHT, start=(1, 1), time=[2.0, 1.0]), "time must increase strictly"),
    ],
)
def test_impossible_modes_are_refused_by_name(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_tiny_starts_take_their_time_and_huge_ones_are_refused() -> None:
    # balanced, limit 1: ln(1/a) from p = q = a to p q = 1/2, for (1 − a²)/a² has no other digits
    assert_allclose(modes.time_to_fraction(0.5, (1e-170, 1e-170), 1.0, 1.0), 170 * np.log(10), rtol=1e-14)
    with pytest.raises(ValueError, match="start must be at most 1e70"):
        modes.mode_law((1e160, 1.0), 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="limit must be between"):
        modes.time_to_fraction(0.5, (0.1, 0.1), 1e300, 1.0)
