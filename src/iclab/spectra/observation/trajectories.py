"""Missing steps and outliers of norms in a series."""

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["missing_steps", "outliers"]

_SPREADS = 8.0  # standard deviations of the residuals beyond which a norm is an outlier
_FACTOR = 0.2  # least residual of an outlier, in log norm
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
    """Indices of norms far from the line between their neighbors in (log step, log norm), for their usual residual.

    None for fewer than five norms, and for norms that are zero or not finite.
    """
    values = np.asarray(norms, dtype=float)
    if len(values) < 5 or not np.all(np.isfinite(values) & (values > 0)) or np.any(np.diff(steps) <= 0):
        return []
    x, y = np.log1p(np.asarray(steps, dtype=float)), np.log(values)
    share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
    residual = np.abs(y[1:-1] - (1 - share) * y[:-2] - share * y[2:])
    spread = 1.4826 * np.median(residual)  # a standard deviation, were the residuals Gaussian
    padded = np.concatenate([[0.0], residual, [0.0]])
    peak = (residual > padded[:-2]) & (residual >= padded[2:])
    return [int(index) + 1 for index in np.flatnonzero(peak & (residual > max(_SPREADS * spread, _FACTOR)))]
