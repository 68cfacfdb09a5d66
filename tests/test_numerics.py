"""Roots and least points, wherever they lie."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from iclab.numerics import golden_section, increasing_root, least


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
