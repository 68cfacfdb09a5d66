"""Claims about curves of training: gradient descent against its flow, and where its loss rests."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from iclab.claims.paths import group
from iclab.claims.verdict import SLACK, Verdict, fitted_order
from iclab.numerics.curves import rests_and_drops

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["ExactInRate", "LimitInSequences", "RestsNearLevels"]


@dataclass(frozen=True)
class ExactInRate:
    """Gradient descent at several rates against the flow from the same start on the same moments.

    The gap is the largest |ΔL| over all recorded times, and over all ranks or starts; the median over seeds counts.
    """

    flow: str = "flow"
    descent: str = "rates"
    order: float = 1.0

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """Order in the rate at which the gap vanishes."""
        rates = group(result, "simulation", self.descent)
        gaps = np.abs(rates.loss - group(result, "theory", self.flow).loss)
        gaps = gaps.max([axis for axis in gaps.dims if axis not in ("rate", "seed")]).median("seed")
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
    and the median gap over all recorded times; never the largest gap at equal times: the drops of a
    finite sample shift by a few percent, however large it is.
    """

    levels: str = "levels"
    flow: str = "flow"
    descent: str = "sequences"
    order: float = 0.5

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """Order in 1/P at which sampled curves approach theory: the smaller of the orders of two gaps."""
        flow, descent = group(result, "theory", self.flow), group(result, "simulation", self.descent)
        levels = _first_seed(group(result, "theory", self.levels).loss)
        exact, sampled = _rests_and_drops(flow.loss, levels), _rests_and_drops(descent.loss, levels)
        sizes = descent.sequences.values
        rests = _along("sequences", np.median, abs(sampled[0] - exact[0]))
        shifts = _along("sequences", np.median, sampled[1] / exact[1] - 1)
        median = _along("sequences", np.mean, abs(descent.loss - flow.loss).median("time"))
        orders = [fitted_order(1 / sizes, gaps) for gaps in (rests, median)]
        stated = f"{self.order:g}, a fit may fall {SLACK:g} short; gaps are medians over seeds"
        found = (
            f"levels off by {rest:.4f}, median gap {gap:.4f}, drops at {1 + shift:.3f} of theory's times"
            for rest, gap, shift in zip(rests, median, shifts, strict=True)
        )
        return Verdict(
            claim="limit in sequences",
            meaning="On many drawn sequences the curve rests and ends at the losses of population theory.",
            measure="order in 1/P of the gap in level (of the median gap, if less)",
            value=float(np.min(orders)),
            yardstick=self.order - SLACK,
            evidence=(("stated order", stated), *zip((f"P = {size}" for size in sizes), found, strict=True)),
        )


@dataclass(frozen=True)
class RestsNearLevels:
    """Curves on the largest training set rest at the levels of theory that the flow of the same start visits.

    A level is visited where the flow rests within 1 % of it. For each visited level the median over seeds
    counts, and the farthest level decides.
    """

    levels: str = "levels"
    flow: str = "flow"
    descent: str = "sequences"
    most: float = 0.015

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The largest relative distance of a rest from its level."""
        flow, descent = group(result, "theory", self.flow), group(result, "simulation", self.descent)
        descent = descent.isel(sequences=-1)
        levels = _first_seed(group(result, "theory", self.levels).loss)
        after = levels.isel(plateau=slice(1, None)).rename(plateau="drop")
        visited = abs(_rests_and_drops(flow.loss, levels)[0] / after - 1) <= 0.01
        rests = _rests_and_drops(descent.loss, levels)[0].fillna(np.inf)  # a level that is never reached is far
        distances = abs(rests / after - 1).where(visited)
        kinds = distances.stack(kind=[axis for axis in distances.dims if axis != "seed"])
        distance = _along("kind", np.median, kinds)
        count = int(visited.sum())
        return Verdict(
            claim="rests at the levels",
            meaning="On drawn sequences the curve rests at the levels of theory that the flow visits.",
            measure="largest relative distance of a rest from its level",
            value=float(np.nanmax(distance)) if count else float("nan"),
            yardstick=self.most,
            evidence=(
                ("P", str(int(descent.sequences))),
                ("rests compared", str(count)),
                ("median distance", f"{np.nanmedian(distance):.2e}" if count else "none"),
            ),
            at_most=True,
        )


def _rests_and_drops(loss: "xr.DataArray", levels: "xr.DataArray") -> "tuple[xr.DataArray, xr.DataArray]":
    """Rests and drops of every curve along time, with an axis `drop` in place of `time`."""
    import xarray as xr

    return xr.apply_ufunc(
        rests_and_drops,
        loss.time,
        loss,
        levels,
        input_core_dims=[["time"], ["time"], ["plateau"]],
        output_core_dims=[["drop"], ["drop"]],
        vectorize=True,
    )


def _along(axis: str, summary: Callable[[np.ndarray], float], array: "xr.DataArray") -> Float[np.ndarray, "n"]:
    """For each entry along an axis, a summary of the numbers that are known over all other axes; NaN if none is."""
    rows = array.transpose(axis, ...).values.reshape(array.sizes[axis], -1)
    known = [row[~np.isnan(row)] for row in rows]
    return np.array([float(summary(row)) if len(row) else np.nan for row in known])


def _first_seed(levels: "xr.DataArray") -> "xr.DataArray":
    """Levels know no seed, but stand beside curves that do."""
    return levels.isel(seed=0, drop=True) if "seed" in levels.dims else levels
