"""Continuity of a series: states of another run or of another time, from the overlaps of leading directions."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from iclab.spectra.observation.dynamics import MatrixSeries
from iclab.spectra.observation.integrity.findings import Finding

__all__ = ["continuity"]

_ROUNDING = 2.0**-8  # relative error of a number in bfloat16, the coarsest format of a copy
_NEAR, _NEAREST = 5e-3, 1e-4  # bounds on 1 − overlap after rounding, whatever the gap
_FARTHER = 30.0  # 1 − overlap of neighbors, in units of that
_BEFORE, _USUAL = 0.7, 0.85  # overlap before a fall of each matrix, and of the median of those that fall
_SPREADS = 3.0  # above the level of random subspaces up to which an overlap is one of chance
_DEFINED = 0.8  # level of random subspaces above which an overlap says nothing
_ALIKE = 2.0  # ratio of norms up to which two states are of one size
_SHARE = 0.5  # of the matrices that must agree


def continuity(
    steps: Int[np.ndarray, "step"], matrices: Sequence[MatrixSeries], copies: Collection[int] = ()
) -> tuple[Finding, ...]:
    """Findings of level error about checkpoints that do not continue the ones beside them.

    A checkpoint as near to the final state as rounding, although a later one is not; a first checkpoint that is no
    nearer to the second than chance, with norms of the same size; an overlap with the previous checkpoint that falls
    from .85 to chance, although the pace before does not explain it. Each asks for half of the matrices, and for two
    at least. None for fewer than three checkpoints, and where steps do not increase; `copies` are known already.
    """
    if len(steps) < 3 or np.any(np.diff(steps) <= 0):
        return ()
    final, previous = (_overlaps(steps, matrices, name) for name in ("overlap_with_final", "overlap_with_previous"))
    near = (found for found in _near_final(steps, final) if found.steps[0] not in copies)
    return (*near, *_foreign_start(steps, previous), *_falls(steps, previous))


@dataclass(frozen=True)
class _Overlaps:
    """Overlaps of all matrices along the steps, nan where undefined, with their levels, spreads and norms."""

    values: Float[np.ndarray, "matrix step"]
    chance: Float[np.ndarray, "matrix"]  # largest overlap of random subspaces
    level: Float[np.ndarray, "matrix"]
    norms: Float[np.ndarray, "matrix step"]
    gaps: Float[np.ndarray, "matrix step"]  # after the leading directions, over the largest value


def _overlaps(steps: Int[np.ndarray, "step"], matrices: Sequence[MatrixSeries], name: str) -> _Overlaps:
    kept = [(one, one.curves[name]) for one in matrices if name in one.curves and one.curves[name].null < _DEFINED]
    values, norms, gaps = np.full((3, len(kept), len(steps)), np.nan)
    for row, (series, curve) in enumerate(kept):
        sound = np.array([status == "ok" for status in series.status])
        values[row], norms[row] = np.where(sound, curve.values, np.nan), series.norm
        gaps[row] = series.gap
    level = np.array([curve.null for _, curve in kept])
    spread = np.array([curve.spread for _, curve in kept])
    return _Overlaps(values, np.minimum(level + _SPREADS * spread, _DEFINED), level, norms, gaps)


def _near_final(steps: Int[np.ndarray, "step"], overlaps: _Overlaps) -> Iterator[Finding]:
    """Checkpoints as near to the final one as rounding, between others that are not."""
    apart = np.maximum(1 - overlaps.values, 0.0)
    for index in range(len(steps) - 2):
        later = _largest(apart[:, index + 1 : -1])
        before = apart[:, index - 1] if index else later
        rounded = np.clip((_ROUNDING / np.maximum(overlaps.gaps[:, index], _ROUNDING)) ** 2, _NEAREST, _NEAR)
        limit = np.maximum(_FARTHER * apart[:, index], rounded)
        near = (apart[:, index] <= rounded) & (later > limit) & ~(before <= limit)
        moving = np.isfinite(apart[:, index]) & (_largest(apart) > rounded)
        if _agree(near, moving):
            text = (
                f"step {steps[index]} is as near to the final state, step {steps[-1]}, as rounding, and later steps "
                "are not: it may be a copy of the final one in another format"
            )
            yield Finding("rounded copies", "error", text, (int(steps[index]), int(steps[-1])))


def _foreign_start(steps: Int[np.ndarray, "step"], overlaps: _Overlaps) -> Iterator[Finding]:
    """A first checkpoint that is no nearer to the second than chance, while their norms are of one size."""
    values, norms = overlaps.values, overlaps.norms
    first, second = np.diff(steps)[:2]
    with np.errstate(divide="ignore", invalid="ignore"):
        alike = np.abs(np.log(norms[:, 0] / norms[:, 1])) < np.log(_ALIKE)
    chance = (values[:, 1] <= overlaps.chance) & alike
    if _agree(
        chance & _paced(values[:, 2], first / second, overlaps.level), np.isfinite(values[:, 1] + values[:, 2])
    ):
        text = (
            f"step {steps[0]} is no nearer to step {steps[1]} than chance, and their norms are alike: it may be the "
            "start of another run"
        )
        yield Finding("foreign start", "error", text, (int(steps[0]), int(steps[1])))


def _falls(steps: Int[np.ndarray, "step"], overlaps: _Overlaps) -> Iterator[Finding]:
    """Checkpoints whose overlap with the one before is one of chance, while that of the one before was not."""
    values, lengths = overlaps.values, np.diff(steps)
    for index in range(2, len(steps)):
        before = values[:, index - 1]
        steady = (before >= _BEFORE) & _paced(before, lengths[index - 1] / lengths[index - 2], overlaps.level)
        fallen = steady & (values[:, index] <= overlaps.chance)
        agreed = _agree(fallen, np.isfinite(values[:, index]) & np.isfinite(before))
        if agreed and (usual := float(np.median(before[fallen]))) >= _USUAL:
            text = (
                f"the overlap of step {steps[index]} with step {steps[index - 1]} is one of chance, after "
                f"{usual:.2f} one step before: it may be of another run"
            )
            yield Finding("broken continuity", "error", text, (int(steps[index - 1]), int(steps[index])))


def _paced(
    overlap: Float[np.ndarray, "matrix"], ratio: float, level: Float[np.ndarray, "matrix"]
) -> Bool[np.ndarray, "matrix"]:
    """True where the pace of an interval does not explain a fall to chance within another, `ratio` times as long.

    A straight path moves away with the square of time, a walk with time.
    """
    return (1 - overlap) * max(ratio, 1.0) ** 2 < (1 - level) / 2


def _agree(found: Bool[np.ndarray, "matrix"], among: Bool[np.ndarray, "matrix"]) -> bool:
    count = int(np.sum(among))
    return count > 1 and int(np.sum(found & among)) >= max(_SHARE * count, 2)


def _largest(values: Float[np.ndarray, "matrix step"]) -> Float[np.ndarray, "matrix"]:
    """Largest defined value of each matrix, 0 without any."""
    return np.max(np.nan_to_num(values, nan=0.0), axis=1, initial=0.0)
