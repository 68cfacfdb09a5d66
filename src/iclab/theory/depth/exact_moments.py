"""Exact mean moments of real Wishart matrices at any size, and the recurrence that they determine.

For W = X Xᵀ with D × N standard normal entries, E tr Wᵏ is a sum over partitions (a, b, 1, …, 1) of k, with a box
(i, j) of content 2(j − 1) − (i − 1): partitions with a box (3, 2) vanish. Every sum is a whole number. The moments
determine the orthogonal polynomials of the mean spectrum, but floats lose all digits of that map near degree 12.
"""

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import factorial
from operator import mul

import numpy as np

from iclab.numerics import Validated, require, whole_number

__all__ = ["Recurrence", "recurrence_of", "wishart_moments"]

Recurrence = tuple[np.ndarray, np.ndarray]
"""Diagonal a_0..a_L and squared off-diagonal b_1..b_L of the Jacobi matrix of a law."""
_GUARD = 128  # bits below the point of a sum that is a whole number
_DIGITS = 60, 2  # of the recurrence, and more for each degree, of which less than one is lost


def wishart_moments(
    dimension: Validated[int], context_length: Validated[int], highest: Validated[int]
) -> tuple[Fraction, ...]:
    """Means of tr Sᵏ/D for k = 0 … highest, S = XXᵀ/N of white inputs of variance 1; also for N < D.

    Cost: the cube of `highest`; a tenth of a second at 65.

    Raises ValueError for sizes below 1 and for a negative `highest`.

    Source: derived in docs/derivations/depth (zonal polynomials at the one-row characters).
    """
    size, length = whole_number("dimension", dimension), whole_number("context_length", context_length)
    top = whole_number("highest", highest, least=0)
    return _moments(size, length, top)


@lru_cache(maxsize=64)
def _moments(size: int, length: int, top: int) -> tuple[Fraction, ...]:
    traces = [size, *_traces(size, length, top)]
    return tuple(Fraction(trace, size * length**k) for k, trace in enumerate(traces))


def _traces(size: int, length: int, top: int) -> list[int]:
    """E tr Wᵏ for k = 1 … top."""
    pairs = [(size + shift) * (length + shift) for shift in range(0, 2 * top, 2)]
    odd = [(size - 1 + shift) * (length - 1 + shift) for shift in range(0, 2 * top, 2)]
    down = [(size - row) * (length - row) for row in range(2, top + 2)]
    first = _products([pair * (2 * j or 1) for j, pair in enumerate(pairs)])
    second = _products([pair * (2 * j - 1) for j, pair in enumerate(odd)])
    column = _products([-pair * row for row, pair in enumerate(down, start=2)])
    facts = [factorial(n) for n in range(2 * top + 2)]
    found = []
    for k in range(1, top + 1):
        total = (2 * k * first[k] << _GUARD) // facts[2 * k]
        for b in range(1, k // 2 + 1):
            for a in range(b, k - b + 1):
                c = k - a - b
                hooks = (2 * a + c) * (2 * a + c + 1) * (2 * b + c - 1) * (2 * b + c) * facts[c] * facts[c + 1]
                rows = facts[2 * (a - b)] * facts[2 * b - 2] * facts[2 * a - 1]
                above = 2 * k * first[a] * second[b] * column[c] * facts[2 * (a - b) + 1]
                total += (above << _GUARD) // (hooks * rows)
        found.append((total + (1 << (_GUARD - 1))) >> _GUARD)
    return found


def _products(values: Sequence[int]) -> list[int]:
    """Products of the first 0, 1, 2, … of the values."""
    return list(accumulate(values, mul, initial=1))


def recurrence_of(moments: Validated[Sequence[Fraction]]) -> Recurrence:
    """The recurrence of degree L from the exact moments m_0 = 1 … m_{2L+1} of a law, each entry right to rounding.

    Raises ValueError for an odd number of moments, which leaves the last diagonal entry open, and for moments of
    fewer points than L + 1.

    Source: derived in docs/derivations/depth (Chebyshev's algorithm).
    """
    require(
        len(moments) % 2 == 0 and len(moments) > 0 and moments[0] == 1,
        f"moments must be an even number, from m_0 = 1 on; got {len(moments)}. Give m_0 … m_(2L+1).",
    )
    depth = len(moments) // 2 - 1
    with localcontext() as context:
        context.prec = _DIGITS[0] + _DIGITS[1] * depth
        exact = [Decimal(moment.numerator) / Decimal(moment.denominator) for moment in moments]
        diagonal, squares = _chebyshev(exact, depth)
    return np.array([float(one) for one in diagonal]), np.array([float(one) for one in squares])


def _chebyshev(moments: list[Decimal], depth: int) -> tuple[list[Decimal], list[Decimal]]:
    before, now = [Decimal(0)] * len(moments), moments
    diagonal, squares, norm = [moments[1]], [], Decimal(0)
    for k in range(1, depth + 1):
        after = [
            now[i + 1] - diagonal[-1] * now[i] - norm * before[i] if k <= i < len(moments) - k else Decimal(0)
            for i in range(len(moments) - 1)
        ] + [Decimal(0)]
        require(after[k] > 0, f"moments must be of more than {k} points; got a law of {k}. Take fewer.")
        norm = after[k] / now[k - 1]
        diagonal.append(after[k + 1] / after[k] - now[k] / now[k - 1])
        squares.append(norm)
        before, now = now, after
    return diagonal, squares
