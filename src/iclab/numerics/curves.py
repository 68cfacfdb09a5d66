"""Reading a loss curve: its stages, where it rests, when it drops. Knows nothing of what was trained."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics.annotations import Validated
from iclab.numerics.checks import require

__all__ = [
    "Stage", "at_rests", "drop_count", "first_below", "half_drop_time", "rests_and_drifts", "rests_and_drops",
    "stages",
]  # fmt: skip

Array = np.ndarray


@dataclass(frozen=True)
class Stage:
    """A stretch of training on which the loss hardly moves, from its first to its last recorded time."""

    begin: float
    end: float
    loss_at_begin: float
    loss_at_end: float


def stages(
    time: Validated[ArrayLike],
    loss: Validated[ArrayLike],
    *,
    extent: float = 0.05,
    slope: float = 0.02,
    drop: float = 0.05,
) -> tuple[Stage, ...]:
    """Stages of a loss curve, first to last: plateaus with drops between them, one drop fewer than stages.

    L(0) is the first loss, and log-time runs from the first positive time to the last. A stage is a stretch of at
    least `extent` of all log-time on which |dL/d log t| < `slope` × L(0) between each record and the next;
    stretches between which the loss falls by less than `drop` × L(0) are one stage. A curve that never rests has
    no stage. Records should lie closer together than `extent`, for between two of them only their mean slope shows.

    Raises ValueError for fewer than two positive times, times that do not increase from 0 or more, losses that
    are not finite or do not begin above 0, and fractions outside (0, 1).
    """
    time, loss = np.asarray(time, dtype=float), np.asarray(loss, dtype=float)
    _require_curve(time, loss)
    for name, fraction in (("extent", extent), ("slope", slope), ("drop", drop)):
        require(0 < fraction < 1, f"{name} must be a fraction between 0 and 1; got {fraction!r}.")
    late = time > 0
    log_time, level, time, loss = np.log(time[late]), loss[late] / loss[0], time[late], loss[late]
    rests = np.abs(np.diff(level)) < slope * np.diff(log_time)
    turns = np.diff(np.concatenate([[0], rests, [0]]))
    long_enough = extent * (log_time[-1] - log_time[0])
    found: list[tuple[int, int]] = []
    for begin, end in zip(np.flatnonzero(turns == 1).tolist(), np.flatnonzero(turns == -1).tolist(), strict=True):
        if log_time[end] - log_time[begin] < long_enough:
            continue
        if found and level[found[-1][1]] - level[begin] < drop:
            found[-1] = found[-1][0], end
        else:
            found.append((begin, end))
    return tuple(Stage(*map(float, (time[b], time[e], loss[b], loss[e]))) for b, e in found)


def _require_curve(time: Array, loss: Array) -> None:
    require(
        time.ndim == 1 and time.shape == loss.shape,
        f"time and loss must be two lists of one length; got shapes {time.shape} and {loss.shape}.",
    )
    require(
        bool(np.sum(time > 0) >= 2 and time[0] >= 0 and np.all(np.isfinite(time)) and np.all(np.diff(time) > 0)),
        f"time must increase from 0 or more, with at least two positive times; got {_told(time)}. A curve of "
        "training needs two steps or more.",
    )
    require(
        bool(np.all(np.isfinite(loss)) and loss[0] > 0),
        "loss must be finite and begin above 0, for the rule counts in units of the first loss.",
    )


def _told(time: Array) -> str:
    listed = time.tolist()
    return str(listed) if len(listed) < 5 else f"{len(listed)} times from {listed[0]:g} to {listed[-1]:g}"


def drop_count(time: Float[np.ndarray, "time"], loss: Float[np.ndarray, "time"]) -> int:
    """Number of drops of a curve, by the rule of `stages`."""
    return max(0, len(stages(time, loss)) - 1)


def half_drop_time(time: Float[np.ndarray, "time"], loss: Float[np.ndarray, "time"]) -> float:
    """Time at which a curve has fallen half-way from its first to its last loss."""
    return first_below(time, loss, 0.5 * float(loss[0] + loss[-1]))


def at_rests(
    time: Float[np.ndarray, "time"], loss: Float[np.ndarray, "time"], values: Float[np.ndarray, "time n"],
    levels: Float[np.ndarray, "plateau"],
) -> Float[np.ndarray, "drop n"]:  # fmt: skip
    """Other values of a run where its loss rests after each drop, see rests_and_drops; NaN where one never comes."""
    records = [np.flatnonzero(loss == rest) for rest in rests_and_drops(time, loss, levels)[0]]
    never = np.full(values.shape[1], np.nan)
    return np.stack([values[found[-1]] if len(found) else never for found in records])


def rests_and_drops(
    time: Float[np.ndarray, "time"], loss: Float[np.ndarray, "time"], levels: Float[np.ndarray, "plateau"]
) -> tuple[Float[np.ndarray, "drop"], Float[np.ndarray, "drop"]]:
    """Rest level after each drop of a curve, and time of each drop.

    A drop is the first time at which the loss is below the middle of two successive levels. The rest after it
    is the loss where |dL/d log t| is least before the next drop; after the last one, the last loss. Drops
    that never come are NaN, and so are rests without a recorded point. Levels may repeat.
    """
    rests, drops, _ = _read(time, loss, levels)
    return rests, drops


def rests_and_drifts(
    time: Float[np.ndarray, "time"], loss: Float[np.ndarray, "time"], levels: Float[np.ndarray, "plateau"]
) -> tuple[Float[np.ndarray, "drop"], Float[np.ndarray, "drop"]]:
    """Rest level after each drop of a curve, as rests_and_drops, and |dL/d log t| there: its change in an e-fold."""
    rests, _, drifts = _read(time, loss, levels)
    return rests, drifts


def _read(
    time: Float[np.ndarray, "time"], loss: Float[np.ndarray, "time"], levels: Float[np.ndarray, "plateau"]
) -> tuple[Float[np.ndarray, "drop"], Float[np.ndarray, "drop"], Float[np.ndarray, "drop"]]:
    """Rests, drops and drifts of a curve."""
    time, loss = time[time > 0], loss[time > 0]
    rests, drops, drifts = np.full((3, len(levels) - 1), np.nan)
    if len(time) < 2:
        return rests, drops, drifts
    apart = np.flatnonzero(levels[1:] < levels[:-1])
    drops[apart] = [first_below(time, loss, 0.5 * (levels[i] + levels[i + 1])) for i in apart]
    slope = np.abs(np.gradient(loss, np.log(time)))
    for i, begin, end in zip(apart, drops[apart], np.append(drops[apart], np.nan)[1:], strict=True):
        inside = np.flatnonzero((time > begin) & (time < (end if np.isfinite(end) else np.inf)))
        if np.isfinite(begin) and len(inside):
            at = inside[np.argmin(slope[inside])] if np.isfinite(end) else len(time) - 1
            rests[i], drifts[i] = loss[at], slope[at]
    return rests, drops, drifts


def first_below(time: Float[np.ndarray, "time"], loss: Float[np.ndarray, "time"], height: float) -> float:
    """First time at which the loss passes below a height, linear between records; NaN if it never does."""
    below = np.flatnonzero(loss < height)
    if len(below) == 0:
        return np.nan
    i = below[0]
    if i == 0:
        return float(time[0])
    part = (loss[i - 1] - height) / (loss[i - 1] - loss[i])
    return float(time[i - 1] + part * (time[i] - time[i - 1]))
