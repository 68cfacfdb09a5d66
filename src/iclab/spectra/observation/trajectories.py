"""Missing steps and outliers of norms in a series."""

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["missing_steps", "outliers"]

_TIMES = 4.0  # changes near it beyond which a norm is an outlier
_FACTOR = 0.2  # least distance of an outlier from its neighbors, in log norm
_THINNEST = 2  # a grid must have at least one in this many of its steps


def missing_steps(steps: Sequence[int]) -> list[int]:
    """Steps that are missing from a grid: multiples of a common spacing, after powers of two.

    The last step of a run may be off the grid. Steps without a pattern have none missing, nor have powers of two
    among as many other steps.
    """
    present = sorted({step for step in steps if step > 0})
    unit = math.gcd(*present) or 1
    powers = [step for step in present if (step // unit) & (step // unit - 1) == 0]
    rest = sorted(set(present) - set(powers))
    whole = _grid(present) if rest else None
    if whole is not None:
        return whole
    doubling = [unit * 2**power for power in range((max(powers, default=0) // unit).bit_length())]
    between = [step for step in rest if step < max(powers, default=0)]
    doubles = len(powers) >= max(3, len(between) + 1)
    expected = {step for step in doubling if step >= powers[0]} - set(present) if doubles else set()
    return sorted(expected | set(_grid(rest) or []))


def _grid(steps: Sequence[int]) -> list[int] | None:
    """Missing multiples of the common divisor of the steps, with or without the last; None without a grid."""
    for used in (steps, steps[:-1]):
        if len(used) < 2:
            continue
        spacing = math.gcd(*used)
        if (used[-1] - used[0]) // spacing < _THINNEST * len(used):
            return sorted(set(range(used[0], used[-1], spacing)) - set(used))
    return None


def outliers(steps: Sequence[int], norms: Sequence[float]) -> list[int]:
    """Indices of norms outside the range of both neighbors, by far more than any change near them.

    A norm that rises or falls from step to step is no outlier, however fast, nor are humps of several steps. None for
    fewer than five norms, for norms that are zero or not finite, and where steps do not increase.
    """
    values = np.asarray(norms, dtype=float)
    if len(values) < 5 or not np.all(np.isfinite(values) & (values > 0)) or np.any(np.diff(steps) <= 0):
        return []
    y = np.log(values)
    changes = np.abs(np.diff(y))
    found = []
    for index in range(1, len(y) - 1):
        around = sorted((y[index - 1], y[index + 1]))
        outside = max(around[0] - y[index], y[index] - around[1])
        others = np.concatenate([changes[max(index - 3, 0) : index - 1], changes[index + 1 : index + 3]])
        usual = max(float(np.max(others)), around[1] - around[0])
        if outside > max(_FACTOR, _TIMES * usual):
            found.append(index)
    return found
