"""Roots of increasing functions and least points, wherever they lie."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from iclab.numerics import increasing_grid, increasing_root, nonnegative, require
from iclab.numerics.minima import golden_section, least, scanned, vertex
from iclab.numerics.roots import border


@pytest.mark.parametrize("exponent", [-300, -12, 0, 12, 300])
def test_a_root_is_sharp_at_every_scale(exponent: int) -> None:
    target = 2.0 * 10.0**exponent

    def shifted(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return x - target, x

    found = increasing_root(shifted, np.array([1e-305]), np.array([1e305]))
    assert_allclose(found, target, rtol=4e-13)  # rounding of the logarithm, |log x| <= 702 units


def test_roots_are_found_element_by_element() -> None:
    squares = np.array([1e-8, 1.0, 7.0, 1e8])
    found = increasing_root(lambda x: (x**2 - squares, 2 * x**2), np.full(4, 1e-9), np.full(4, 1e9))
    assert_allclose(found, np.sqrt(squares), rtol=1e-14)


def test_a_root_at_an_end_of_the_bracket_is_that_end_exactly() -> None:
    ends = np.array([0.1, 0.7, 3.3])  # exp(log(x)) differs from x for some of them
    above = increasing_root(lambda x: (x - ends, x), ends, 2 * ends)
    below = increasing_root(lambda x: (x - ends, x), ends / 2, ends)
    assert_array_equal(above, ends)
    assert_array_equal(below, ends)


def test_a_pole_at_the_end_of_the_bracket_is_approached() -> None:
    def pole(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with np.errstate(divide="ignore"):
            return -np.log1p(-x) - 30, x / (1 - x)

    found = increasing_root(pole, np.array([0.1]), np.array([1.0]))
    assert_allclose(1 - found, np.exp(-30), atol=5e-16)  # a few units of rounding in x


def test_a_function_too_flat_for_newton_is_solved_by_bisection() -> None:
    # Far from its root x/(1 + x) is flat in log x, and Newton leaves the bracket at once.
    found = increasing_root(lambda x: (x / (1 + x) - 0.5, x / (1 + x) ** 2), np.array([1e-100]), np.array([1e120]))
    assert_allclose(found, 1, rtol=1e-14)


def test_a_function_that_grows_exponentially_in_log_x_takes_no_hundred_newton_steps() -> None:
    calls = 0

    def power(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        nonlocal calls
        calls += 1
        return x**8 - 1, 8 * x**8

    increasing_root(power, np.array([1e-30]), np.array([1e38]))
    assert calls < 60  # each plain Newton step would shorten log x by 1/8, from 87


def test_a_bracket_that_does_not_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="must be <= 0 at the lower and >= 0 at the upper end"):
        increasing_root(lambda x: (x + 1, x), np.array([1.0]), np.array([2.0]))


def test_require_says_what_must_hold() -> None:
    require(True, "unused")
    with pytest.raises(ValueError, match="heads must be positive"):
        require(False, "heads must be positive; got 0.")


@pytest.mark.parametrize("values", [[-1.0], [np.nan], [np.inf], -0.5])
def test_values_that_must_not_be_negative_are_refused_by_name(values: object) -> None:
    with pytest.raises(ValueError, match="delay must be finite and >= 0"):
        nonnegative("delay", values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([2.0, 1.0], "time must increase strictly"),
        ([1.0, 1.0], "time must increase strictly"),
        ([-1.0, 1.0], "time must be finite and >= 0"),
        ([], "time must be a non-empty list"),
        (3.0, "time must be a non-empty list"),
    ],
)
def test_a_grid_must_increase_from_zero_or_later(values: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        increasing_grid("time", values)


@given(st.floats(-290, 290), st.floats(0.1, 10))
def test_roots_at_any_size_are_sharp(exponent: float, power: float) -> None:
    root = 10.0**exponent
    found = increasing_root(lambda x: ((x / root) ** power - 1, power * (x / root) ** power), root / 50, root * 3000)
    assert_allclose(found, root, rtol=4e-15)  # 8 units of rounding in the step, some in the power


def test_many_roots_are_found_at_once_and_each_in_its_bracket() -> None:
    target = np.array([1e-9, 1.0, 7.0, 1e12])
    found = increasing_root(lambda x: (np.log(x / target), np.ones_like(x)), target / 1e3, target * 1e5)
    assert_allclose(found, target, rtol=1e-14)


def test_a_slope_that_misleads_is_survived_by_bisection() -> None:
    # slopes 1000 times too small throw Newton out of the bracket at every step
    found = increasing_root(lambda x: (x - 2.0, 1e-3 * x), 1e-3, 1e3)
    assert_allclose(found, 2.0, rtol=1e-14)


def test_roots_at_the_ends_of_the_bracket_are_found() -> None:
    for end in (1e-5, 1e5):
        assert_allclose(increasing_root(lambda x, end=end: (x - end, x), 1e-5, 1e5), end, rtol=1e-14)


def test_a_bracket_without_a_root_is_refused() -> None:
    with pytest.raises(ValueError, match="Widen the bracket"):
        increasing_root(lambda x: (x - 2.0, x), 3.0, 9.0)


def test_a_function_that_is_not_a_number_has_no_root() -> None:
    with pytest.raises(ValueError, match="got nan and nan"):
        increasing_root(lambda x: (np.nan * x, x), 0.1, 9.0)
    with pytest.raises(ArithmeticError, match="no root"):
        increasing_root(lambda x: (np.where((x > 0.1) & (x < 9), np.nan, x - 2), x), 0.1, 9.0)


def test_least_points_of_many_functions_are_polished_between_grid_points() -> None:
    centre = np.array([3e-4, 0.2, 55.0])
    found = least(lambda x: np.log(x / centre) ** 2, np.geomspace(1e-6, 1e6, 49), (3,))
    assert_allclose(found, centre, rtol=2e-9)  # the tolerance of the golden section
    assert least(np.exp, np.geomspace(0.1, 10, 5)) == 0.1  # an end stays that end
    assert_allclose(golden_section(lambda x: (x - 2) ** 2 + 1, 0.1, 9.0), 2, rtol=1e-7)  # half of the digits


def test_a_scan_finds_the_least_point_and_the_ends() -> None:
    points, best = np.geomspace(1e-4, 1e4, 801), np.array([0.03, 1.7, 200.0])
    found = scanned(lambda x: 2 - 1 / (1 + np.log(x / best) ** 2), points, lowest=1e-4)
    assert_allclose(found, best, rtol=1e-4)  # third order in a step of 2 %
    rising = scanned(lambda x: 1 + np.array([1.0, -0.5]) * (1 - 1 / (1 + x)), points, lowest=1e-12)
    assert_array_equal(rising, [0.0, np.inf])
    assert_allclose(vertex(2.0, np.log(np.array([1.0, 2.0, 4.0]) / 3) ** 2, 2.0), 3.0, rtol=1e-14)


def test_a_border_is_where_a_condition_turns_in_each_bracket() -> None:
    ends = np.array([0.3, 2.5])
    found = border(lambda x: x < ends, np.zeros(2), np.full(2, 4.0), halvings=30)
    assert_allclose(found, ends, atol=4 * 2.0**-30)
