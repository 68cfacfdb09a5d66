"""Change points of a curve: the best level shift on top of a trend, tested against random walks."""

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
    """Change point of a curve, at most one: a level shift on top of a straight line in log(1 + step).

    Least squares over all positions with three checkpoints on either side. Training curves wander, so the shift
    is called only where its F exceeds the 95 % quantile of the same statistic on Gaussian random walks over the same
    steps: one in twenty walks is called, noise and trends almost never. Undefined values, nan, are left out.

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
    largest = float(np.max(np.abs(curve)))
    if float(np.ptp(curve)) <= 1e-12 * largest:
        return Change(False, np.nan, np.nan, np.nan, np.nan, "no change at all")
    shifts = _shifts(grid)
    statistic, index, size = (found[0] for found in _best(shifts, curve[None] / largest))
    threshold = _threshold(tuple(grid.tolist()))
    return Change(
        bool(statistic > threshold), float(grid[index + SIDE]), float(size) * largest, float(statistic), threshold
    )


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


@lru_cache(maxsize=256)
def _threshold(steps: tuple[float, ...]) -> float:
    """95 % quantile of the statistic on random walks with one Gaussian increment for each checkpoint."""
    count = int(np.clip(_ENTRIES // len(steps), 1000, 4000))
    walks = np.cumsum(np.random.default_rng(_STREAM).standard_normal((count, len(steps))), axis=1)
    return float(np.quantile(_best(_shifts(np.array(steps)), walks)[0], _QUANTILE))


@dataclass(frozen=True)
class _Shifts:
    """A basis of straight lines, and the length of the level shift orthogonal to them at every allowed position."""

    line: Float[np.ndarray, "step 2"]
    lengths: Float[np.ndarray, "position"]


def _shifts(steps: Float[np.ndarray, "step"]) -> _Shifts:
    count = len(steps)
    line = np.linalg.qr(np.stack([np.ones(count), np.log1p(steps)], axis=1))[0]
    after = count - np.arange(SIDE, count - SIDE + 1)
    squares = after - np.sum(_after(line.T) ** 2, axis=0)
    return _Shifts(line, np.where(squares > 1e-9 * after, np.sqrt(np.maximum(squares, 0.0)), np.inf))


def _after(curves: Float[np.ndarray, "run step"]) -> Float[np.ndarray, "run position"]:
    """Sum of each curve from every allowed position on: its product with the level shift at that position."""
    return np.cumsum(curves[:, ::-1], axis=1)[:, ::-1][:, SIDE : curves.shape[1] - SIDE + 1]


def _best(
    shifts: _Shifts, curves: Float[np.ndarray, "run step"]
) -> tuple[Float[np.ndarray, "run"], Int[np.ndarray, "run"], Float[np.ndarray, "run"]]:
    """F of the best shift of each curve, its index and its size."""
    rest = curves - (curves @ shifts.line) @ shifts.line.T
    along = _after(rest) / shifts.lengths
    index = np.argmax(np.abs(along), axis=1)
    gain = np.take_along_axis(along, index[:, None], axis=1)[:, 0]
    left = np.maximum(np.sum(rest**2, axis=1) - gain**2, 0.0)
    rounding = 1e-24 * np.sum(curves**2, axis=1)  # residual of a curve that a line and a shift fit exactly
    freedom = curves.shape[1] - 3
    return gain**2 / (np.maximum(left, rounding) / freedom), index, gain / shifts.lengths[index]
