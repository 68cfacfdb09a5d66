"""Change points of a curve: the best level shift on top of a trend, tested against random walks of its own kind."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from iclab.numerics import Validated, increasing_grid, require

__all__ = ["LEAST", "SIDE", "Change", "ChangeOfRuns", "change", "change_of_runs"]

SIDE = 3  # checkpoints at least on either side of a change
LEAST = 2 * SIDE + 2  # checkpoints at least
_QUANTILE, _STREAM, _ENTRIES = 0.95, 20250417, 2_000_000  # of all walks together, about
_EXPONENTS = (0.0, 0.25, 0.5)  # from walks in the logarithm of the step to walks in the step
_ROUNDING = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Change:
    """The best level shift of one curve: at `step`, the first checkpoint after it, by `size` in units of the curve.

    `called` where `statistic`, the F of the shift, exceeds `threshold`, its 95 % quantile on random walks. `step` and
    `size` are nan, with a `reason`, where a curve is too short or flat.
    """

    called: bool
    step: float
    size: float
    statistic: float
    threshold: float
    reason: str = ""


@dataclass(frozen=True)
class ChangeOfRuns:
    """Change of several runs: the number in which it is called, with the median and range of its step over those."""

    runs: int
    called: int
    step: float
    lower: float
    upper: float
    uncertainty: str


def change(steps: Validated[Float[ArrayLike, "step"]], values: Validated[Float[ArrayLike, "step"]]) -> Change:
    """Change point of a curve, at most one: a level shift on top of a trend in log(1 + step) and in the step.

    Least squares over all positions with three checkpoints on either side. Training curves wander, so the shift
    is called only where its F exceeds the 95 % quantile of the same statistic on Gaussian random walks over the same
    steps. Their increments grow with the spacing of checkpoints as those of the curve do: as its power between 0 (one
    increment for each checkpoint) and 1/2 (walks in the step). Undefined values, nan, are left out.

    Called of 20000 curves, in percent, on 40 checkpoints spaced by logarithm from 1 to 1e5 | on 40 at equal spacing:
    walks of one increment for each checkpoint: 4.7 | 4.4
    walks in the step: 5.2 | 4.9
    white noise: 0.0 | 0.0
    noise with correlation .8 between neighbors: 1.2 | 1.1
    noise on a line in log(1 + step): 0.0 | 0.0
    noise on a line in the step: 0.0 | 0.0
    noise with a shift of eight standard deviations: 99.0 | 99.5
    On ten checkpoints spaced by logarithm such a shift is called in 66 %.

    Raises ValueError unless steps increase from one >= 0 and values are as many and not infinite.

    Source: derived in docs/derivations/spectra.
    """
    grid, curve = increasing_grid("steps", steps), np.asarray(values, dtype=float)
    require(curve.shape == grid.shape, f"values must be as many as steps; got {curve.shape} and {grid.shape}.")
    require(not np.any(np.isinf(curve)), "values must not be infinite. Leave out what diverged.")
    defined = ~np.isnan(curve)
    grid, curve = grid[defined], curve[defined]
    if len(grid) < LEAST:
        return Change(False, np.nan, np.nan, np.nan, np.nan, f"fewer than {LEAST} checkpoints with a value")
    centered, spread, power, rounding = _centered(curve)
    if spread == 0:
        return Change(False, np.nan, np.nan, np.nan, np.nan, "no change at all")
    statistic, index, size = (found[0] for found in _best(_shifts(grid), centered[None], rounding))
    exponent = float(_exponents(grid, centered[None])[0])
    threshold = float(np.interp(exponent, _EXPONENTS, _thresholds(tuple(grid.tolist()))))
    size = float(np.ldexp(size * spread, power))
    return Change(bool(statistic > threshold), float(grid[index + SIDE]), size, float(statistic), threshold)


def change_of_runs(
    steps: Validated[Float[ArrayLike, "step"]], runs: Validated[Float[ArrayLike, "run step"]]
) -> ChangeOfRuns:
    """Median and range over seeds of the step of a change, of the runs in which it is called.

    One run has no uncertainty; `uncertainty` states it.

    Raises ValueError as `change` does.

    Source: derived in docs/derivations/spectra.
    """
    curves = np.atleast_2d(np.asarray(runs, dtype=float))
    found = [change(steps, curve) for curve in curves]
    called = np.array([one.step for one in found if one.called])
    uncertainty = "none from one run" if len(curves) == 1 else f"range over {len(called)} of {len(curves)} runs"
    if not len(called):
        return ChangeOfRuns(len(curves), 0, np.nan, np.nan, np.nan, uncertainty)
    ends = (float(np.min(called)), float(np.max(called))) if len(curves) > 1 else (np.nan, np.nan)
    return ChangeOfRuns(len(curves), len(called), float(np.median(called)), *ends, uncertainty)


def _centered(curve: Float[np.ndarray, "step"]) -> tuple[Float[np.ndarray, "step"], float, int, float]:
    """The curve around its middle in a unit, the unit as a factor and a power of two, and the rounding of a number.

    The factor is zero for a curve that is flat up to rounding.
    """
    power = int(np.frexp(np.max(np.abs(curve)))[1])
    scaled = np.ldexp(curve, -power)  # exact, so that a small change of large numbers stays what it is
    middle = scaled - (np.max(scaled) + np.min(scaled)) / 2
    largest, spread = float(np.max(np.abs(scaled))), float(np.max(np.abs(middle)))
    if spread <= 2 * _ROUNDING * largest:
        return middle, 0.0, power, 0.0
    rounding = _ROUNDING * (largest / spread + 4)  # stored numbers; the arithmetic here
    return middle / spread, spread, power, rounding


@lru_cache(maxsize=256)
def _thresholds(steps: tuple[float, ...]) -> tuple[float, ...]:
    """Thresholds at each exponent, raised until no kind of walk is called in more than one of twenty.

    A walk is held against the threshold at the exponent that it shows, not at its own: the factor makes up for that.
    """
    grid = np.array(steps)
    count = int(np.clip(_ENTRIES // len(grid), 1000, 4000))
    increments = np.random.default_rng(_STREAM).standard_normal((count, len(grid) - 1))
    spacings, shifts, found, shown = np.diff(grid), _shifts(grid), [], []
    for exponent in _EXPONENTS:
        walks = np.pad(np.cumsum(increments * spacings**exponent, axis=1), ((0, 0), (1, 0)))
        found.append(_best(shifts, walks, _ROUNDING)[0])
        shown.append(_exponents(grid, walks))
    quantiles = [np.quantile(statistic, _QUANTILE) for statistic in found]
    ratios = [f / np.interp(e, _EXPONENTS, quantiles) for f, e in zip(found, shown, strict=True)]
    factor = max(1.0, *(np.quantile(ratio, _QUANTILE) for ratio in ratios))
    return tuple(float(factor * quantile) for quantile in quantiles)


def _exponents(steps: Float[np.ndarray, "step"], curves: Float[np.ndarray, "run step"]) -> Float[np.ndarray, "run"]:
    """Power of the spacing with which the increments of each curve grow: a slope in logarithms, from 0 to 1/2."""
    spacing = np.log(np.diff(steps))
    spacing -= np.mean(spacing)
    squares = float(np.sum(spacing**2))
    if squares < 1e-9 * len(steps):
        return np.zeros(len(curves))
    sizes = np.abs(np.diff(curves, axis=1))
    floor = 1e-3 * np.sqrt(np.mean(sizes**2, axis=1, keepdims=True))  # for repeated values
    return np.clip(np.log(np.maximum(sizes, floor)) @ spacing / squares, _EXPONENTS[0], _EXPONENTS[-1])


@dataclass(frozen=True)
class _Shifts:
    """A basis of trends, and the length of the level shift orthogonal to them at every allowed position."""

    trend: Float[np.ndarray, "step 3"]
    lengths: Float[np.ndarray, "position"]


def _shifts(steps: Float[np.ndarray, "step"]) -> _Shifts:
    count = len(steps)
    trend = np.linalg.qr(np.stack([np.ones(count), np.log1p(steps), steps / steps[-1]], axis=1))[0]
    after = count - np.arange(SIDE, count - SIDE + 1)
    squares = after - np.sum(_after(trend.T) ** 2, axis=0)
    return _Shifts(trend, np.where(squares > 1e-9 * after, np.sqrt(np.maximum(squares, 0.0)), np.inf))


def _after(curves: Float[np.ndarray, "run step"]) -> Float[np.ndarray, "run position"]:
    """Sum of each curve from every allowed position on: its product with the level shift at that position."""
    return np.cumsum(curves[:, ::-1], axis=1)[:, ::-1][:, SIDE : curves.shape[1] - SIDE + 1]


def _best(
    shifts: _Shifts, curves: Float[np.ndarray, "run step"], rounding: float
) -> tuple[Float[np.ndarray, "run"], Int[np.ndarray, "run"], Float[np.ndarray, "run"]]:
    """F of the best shift of each curve, its index and its size; `rounding` is the error of one number."""
    rest = curves - (curves @ shifts.trend) @ shifts.trend.T
    along = _after(rest) / shifts.lengths
    index = np.argmax(np.abs(along), axis=1)
    gain = np.take_along_axis(along, index[:, None], axis=1)[:, 0]
    left = np.maximum(np.sum(rest**2, axis=1) - gain**2, 0.0)
    count = curves.shape[1]
    least = count * rounding**2  # residual of a curve that a trend and a shift fit exactly
    return gain**2 / (np.maximum(left, least) / (count - 4)), index, gain / shifts.lengths[index]
