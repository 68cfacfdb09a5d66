"""What agreement means: verdicts in numbers, and the numbers they are made of.

An order is fitted over at least three sizes, and a claim of an order holds when the fit is at least the stated
one minus 0.25.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    import xarray as xr

SLACK = 0.25  # by which a fitted order may stay below the stated one


@dataclass(frozen=True)
class Verdict:
    """One number with its yardstick."""

    claim: str
    """What is claimed, in a few words."""
    meaning: str
    """The claim as a sentence."""
    measure: str
    """What the number is."""
    value: float
    yardstick: float
    """The least value with which the claim holds; the largest one if `at_most`."""
    evidence: tuple[tuple[str, str], ...]
    """Further numbers, as label and text."""
    at_most: bool = False
    error: float = 0.0
    """Standard error of the value where one is known; it is shown and decides nothing."""

    @property
    def holds(self) -> bool:
        """Whether the number reaches its yardstick, or stays below it."""
        return bool(self.value <= self.yardstick if self.at_most else self.value >= self.yardstick)

    @property
    def number(self) -> str:
        """The value as text, with its error if it has one; a dash where the case does not allow one."""
        if np.isnan(self.value):
            return "–"
        return _three_digits(self.value) + (f" ± {self.error:#.2g}" if self.error > 0 else "")

    @property
    def bound(self) -> str:
        """The yardstick as text."""
        return f"{'≤' if self.at_most else '≥'} {_three_digits(self.yardstick)}"

    @property
    def word(self) -> str:
        """The verdict in a word; "open" where the case does not allow one."""
        return "open" if np.isnan(self.value) else "holds" if self.holds else "does not hold"


def _three_digits(value: float) -> str:
    return f"{value:#.3g}".rstrip(".")


class Claim(Protocol):
    """What a study claims about its witnesses."""

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The claim, judged on a labelled result."""
        ...


def fitted_order(sizes: Float[np.ndarray, "n"], gaps: Float[np.ndarray, "n"]) -> float:
    """Slope of log gap against log size, by least squares; NaN for fewer than three sizes or a gap of 0 or NaN."""
    if len(sizes) < 3 or not np.all((gaps > 0) & np.isfinite(gaps)):
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(gaps), 1)[0])


def rests_and_drops(
    time: Float[np.ndarray, "time"], loss: Float[np.ndarray, "time"], levels: Float[np.ndarray, "plateau"]
) -> tuple[Float[np.ndarray, "drop"], Float[np.ndarray, "drop"]]:
    """Where a curve rests after each drop, and when it drops.

    A drop is the first time at which the loss is below the middle of two successive levels. The rest after it
    is the loss where |dL/d log t| is least before the next drop; after the last one, the last loss. Drops
    that never come are NaN, and so are rests without a recorded point. Levels may repeat at the end.
    """
    time, loss = time[time > 0], loss[time > 0]
    if len(time) < 2:
        return np.full(len(levels) - 1, np.nan), np.full(len(levels) - 1, np.nan)
    middles = np.where(levels[1:] < levels[:-1], 0.5 * (levels[1:] + levels[:-1]), np.nan)
    drops = np.array([first_below(time, loss, middle) for middle in middles])
    slope = np.abs(np.gradient(loss, np.log(time)))
    rests = np.full(len(drops), np.nan)
    ends = np.append(drops[1:], np.nan)
    for i, (begin, end) in enumerate(zip(drops, ends, strict=True)):
        inside = (time > begin) & (time < (end if np.isfinite(end) else np.inf))
        if np.isfinite(begin) and np.any(inside):
            rests[i] = loss[inside][np.argmin(slope[inside])] if np.isfinite(end) else loss[-1]
    return rests, drops


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
