"""What agreement means: claims that a study makes, and verdicts in numbers.

`Exact` claims that a gap vanishes with the step of gradient descent; `Limit` that it vanishes along a named
axis. Each is a fitted order over at least three sizes, and holds when the order is at least the stated one
minus 0.25.
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
    """The least value with which the claim holds."""
    evidence: tuple[tuple[str, str], ...]
    """Further numbers, as label and text."""

    @property
    def holds(self) -> bool:
        """Whether the number reaches its yardstick."""
        return bool(self.value >= self.yardstick)

    @property
    def word(self) -> str:
        """The verdict in a word; "open" where the case does not allow one."""
        return "open" if np.isnan(self.value) else "holds" if self.holds else "does not hold"


class Claim(Protocol):
    """What a study claims about its witnesses."""

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The claim, judged on a labelled result."""
        ...


@dataclass(frozen=True)
class ExactInRate:
    """Gradient descent at several rates against the flow from the same start on the same moments.

    The gap is the largest |ΔL| over all recorded times, the middle one of the seeds.
    """

    flow: str = "theory/flow"
    descent: str = "simulation/rates"
    order: float = 1.0

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """Order in the rate at which the gap vanishes."""
        rates = result[self.descent].to_dataset()
        gaps = np.abs(rates.loss - result[self.flow].to_dataset().loss).max("time").median("seed")
        return Verdict(
            claim="exact in the rate",
            meaning="Gradient descent becomes its gradient flow, from the same start on the same moments.",
            measure="order of the largest gap in the rate",
            value=fitted_order(rates.rate.values, gaps.values),
            yardstick=self.order - SLACK,
            evidence=tuple(
                (f"largest gap at rate {rate:.3g}", f"{gap:.2e}")
                for rate, gap in zip(rates.rate.values, gaps.values, strict=True)
            ),
        )


@dataclass(frozen=True)
class LimitInSequences:
    """Gradient descent on P drawn sequences against population theory, in the limit of many sequences.

    Compared are the losses at which the curve rests between its drops and at its end, the times of the drops,
    and the gap at the middle one of all recorded times; never the largest gap at equal times: the drops of a
    finite sample shift by a few percent, however large it is.
    """

    levels: str = "theory/levels"
    flow: str = "theory/flow"
    descent: str = "simulation/sequences"
    order: float = 0.5

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """Order in 1/P at which sampled curves approach theory: the smaller of the orders of two gaps."""
        flow, descent = result[self.flow].to_dataset(), result[self.descent].to_dataset()
        levels = result[self.levels].to_dataset().level
        levels = levels.isel(seed=0).values if "seed" in levels.dims else levels.values
        exact = [rests_and_drops(flow.time.values, curve, levels) for curve in flow.loss.values]
        sizes = descent.sequences.values
        rests, shifts = [], []
        for size in sizes:
            curves = descent.loss.sel(sequences=size).values
            sampled = [rests_and_drops(descent.time.values, curve, levels) for curve in curves]
            rests.append(np.nanmedian([np.abs(one[0] - two[0]) for one, two in zip(sampled, exact, strict=True)]))
            shifts.append(np.nanmedian([one[1] / two[1] - 1 for one, two in zip(sampled, exact, strict=True)]))
        middle = np.abs(descent.loss - flow.loss).median("time").mean("seed").sel(sequences=sizes).values
        orders = [fitted_order(1 / sizes, np.array(gaps)) for gaps in (rests, middle)]
        return Verdict(
            claim="limit in sequences",
            meaning="On many drawn sequences the curve rests and ends at the losses of population theory.",
            measure="order in 1/P of the gap in level (of the median gap, if less)",
            value=float(np.min(orders)),
            yardstick=self.order - SLACK,
            evidence=tuple(
                (
                    f"P = {size}",
                    f"levels within {rest:.4f}, median gap {gap:.4f}, drops at {1 + shift:.3f} of theory's times",
                )
                for size, rest, gap, shift in zip(sizes, rests, middle, shifts, strict=True)
            ),
        )


def fitted_order(sizes: Float[np.ndarray, "n"], gaps: Float[np.ndarray, "n"]) -> float:
    """Slope of log gap against log size, by least squares; NaN for fewer than three sizes or a gap of NaN or 0."""
    if len(sizes) < 3 or not np.all(gaps > 0):
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(gaps), 1)[0])


def rests_and_drops(
    time: Float[np.ndarray, "time"], loss: Float[np.ndarray, "time"], levels: Float[np.ndarray, "plateau"]
) -> tuple[Float[np.ndarray, "drop"], Float[np.ndarray, "drop"]]:
    """Where a curve rests after each drop, and when it drops.

    A drop is the first time at which the loss is below the middle of two successive levels. The rest after it
    is the loss where |dL/d log t| is least before the next drop; after the last one, the last loss. Drops
    that never come are NaN, and so are rests without a recorded point.
    """
    time, loss = time[time > 0], loss[time > 0]
    middles = 0.5 * (levels[1:] + levels[:-1])
    drops = np.array([_first_below(time, loss, middle) for middle in middles])
    slope = np.abs(np.gradient(loss, np.log(time)))
    rests = np.full(len(drops), np.nan)
    ends = np.append(drops[1:], np.nan)
    for i, (begin, end) in enumerate(zip(drops, ends, strict=True)):
        inside = (time > begin) & (time < (end if np.isfinite(end) else np.inf))
        if np.isfinite(begin) and np.any(inside):
            rests[i] = loss[inside][np.argmin(slope[inside])] if np.isfinite(end) else loss[-1]
    return rests, drops


def _first_below(time: Float[np.ndarray, "time"], loss: Float[np.ndarray, "time"], height: float) -> float:
    """First time at which the loss passes below a height, linear between records; NaN if it never does."""
    below = np.flatnonzero(loss < height)
    if len(below) == 0:
        return np.nan
    i = below[0]
    if i == 0:
        return float(time[0])
    part = (loss[i - 1] - height) / (loss[i - 1] - loss[i])
    return float(time[i - 1] + part * (time[i] - time[i - 1]))
