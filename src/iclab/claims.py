"""The claims that studies make, each judged on a labelled result.

Exact claims say that a gap stays within sampling error, or vanishes with the step of gradient descent; limit
claims say that it vanishes along a named size.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from iclab.agreement import SLACK, Verdict, fitted_order, rests_and_drops

if TYPE_CHECKING:
    import xarray as xr

ROUNDING = 1e-12  # relative, of numbers that seeds do not change


@dataclass(frozen=True)
class ExactInRate:
    """Gradient descent at several rates against the flow from the same start on the same moments.

    The gap is the largest |ΔL| over all recorded times, and over all ranks or starts; the middle one of the seeds.
    """

    flow: str = "theory/flow"
    descent: str = "simulation/rates"
    order: float = 1.0

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """Order in the rate at which the gap vanishes."""
        rates = result[self.descent].to_dataset()
        gaps = np.abs(rates.loss - result[self.flow].to_dataset().loss)
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
        levels = _first_seed(result[self.levels].to_dataset().loss)
        exact, sampled = _rests_and_drops(flow.loss, levels), _rests_and_drops(descent.loss, levels)
        sizes = descent.sequences.values
        rests = _along("sequences", np.median, abs(sampled[0] - exact[0]))
        shifts = _along("sequences", np.median, sampled[1] / exact[1] - 1)
        middle = _along("sequences", np.mean, abs(descent.loss - flow.loss).median("time"))
        orders = [fitted_order(1 / sizes, gaps) for gaps in (rests, middle)]
        return Verdict(
            claim="limit in sequences",
            meaning="On many drawn sequences the curve rests and ends at the losses of population theory.",
            measure="order in 1/P of the gap in level (of the median gap, if less)",
            value=float(np.min(orders)),
            yardstick=self.order - SLACK,
            evidence=(
                (
                    "stated order",
                    f"{self.order:g}, a fit may fall {SLACK:g} short; gaps are the middle ones of the seeds",
                ),
                *(
                    (
                        f"P = {size}",
                        f"levels off by {rest:.4f}, median gap {gap:.4f}, drops at {1 + shift:.3f} of theory's times",
                    )
                    for size, rest, gap, shift in zip(sizes, rests, middle, shifts, strict=True)
                ),
            ),
        )


@dataclass(frozen=True)
class WithinErrors:
    """The mean of a simulated variable over seeds against theory, in standard errors of that mean.

    Every entry of the variable counts; the largest distance decides. It is the yardstick of claims that are
    exact: a bias of any size is found once there are seeds enough. Entries that no draw has touched, as at the
    start of training, have no sampling error and must agree to rounding.
    """

    theory: str  # path of a variable, "theory/group/variable"
    simulation: str
    meaning: str
    most: float = 4.0

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The largest distance in standard errors; open with fewer than three seeds."""
        simulated = _variable(result, self.simulation)
        count = simulated.sizes["seed"]
        theory = _variable(result, self.theory)
        gap = simulated - theory  # seed by seed, where theory knows seeds
        size = abs(theory).max("seed") if "seed" in theory.dims else abs(theory)
        distance = abs(gap.mean("seed")) / np.hypot(gap.std("seed", ddof=1) / np.sqrt(count), ROUNDING * size)
        return Verdict(
            claim="exact within sampling error",
            meaning=self.meaning,
            measure=f"largest distance of {distance.size} means from theory, in standard errors",
            value=float(distance.max()) if count >= 3 else float("nan"),
            yardstick=self.most,
            evidence=(("seeds", str(count)), ("median distance", f"{float(distance.median()):.2f}")),
            at_most=True,
        )


@dataclass(frozen=True)
class Within:
    """A simulated variable against theory, by a summary of their relative distance over all entries and seeds."""

    theory: str  # path of a variable, "theory/group/variable"
    simulation: str
    meaning: str
    most: float
    quantile: float = 1.0  # of the distances; 1: the largest

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The distance |simulation / theory − 1| at the quantile; entries that are NaN on a side are left out."""
        with np.errstate(invalid="ignore"):  # inf / inf: what both sides say never comes is left out too
            distance = abs(_variable(result, self.simulation) / _variable(result, self.theory) - 1).values
        known = distance[~np.isnan(distance)]
        name = "largest" if self.quantile == 1 else f"{100 * self.quantile:g} % quantile of the"
        return Verdict(
            claim="close to theory",
            meaning=self.meaning,
            measure=f"{name} relative distance",
            value=float(np.quantile(known, self.quantile, method="higher")) if len(known) else float("nan"),
            yardstick=self.most,
            evidence=(
                ("entries compared", f"{len(known)} of {distance.size}"),
                ("median relative distance", f"{np.median(known):.2e}" if len(known) else "none"),
            ),
            at_most=True,
        )


@dataclass(frozen=True)
class Share:
    """A counted variable is as theory says in a share of the seeds."""

    theory: str  # path of a variable, "theory/group/variable"
    simulation: str
    meaning: str
    least: float = 2 / 3

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The share of seeds in which every entry of the variable is as predicted."""
        same = _variable(result, self.simulation) == _variable(result, self.theory)
        agreeing = same.all([axis for axis in same.dims if axis != "seed"])
        return Verdict(
            claim="as often as predicted",
            meaning=self.meaning,
            measure="share of the seeds",
            value=float(agreeing.mean()),
            yardstick=self.least,
            evidence=(("seeds", f"{int(agreeing.sum())} of {agreeing.size}"),),
        )


@dataclass(frozen=True)
class Limit:
    """The gap between a simulated variable and theory vanishes along a named size, at a stated order at least."""

    theory: str  # path of a variable, "theory/group/variable"
    simulation: str
    meaning: str
    along: str  # the axis, a size that grows
    order: float

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """Order in 1/size of the middle |gap| over all other axes."""
        gap = abs(_variable(result, self.simulation) - _variable(result, self.theory))
        gap = gap.median([axis for axis in gap.dims if axis != self.along])
        sizes = gap[self.along].values.astype(float)
        return Verdict(
            claim=f"limit in {self.along.replace('_', ' ')}",
            meaning=self.meaning,
            measure=f"order in 1/({self.along.replace('_', ' ')}) of the median gap",
            value=fitted_order(1 / sizes, gap.values),
            yardstick=self.order - SLACK,
            evidence=tuple(
                (f"{self.along} {size:g}", f"median gap {one:.2e}")
                for size, one in zip(sizes, gap.values, strict=True)
            ),
        )


@dataclass(frozen=True)
class Vanishes:
    """A gap that theory states about itself falls along a named size, at a stated order at least."""

    gap: str  # path of a variable over the size alone, "theory/group/variable"
    meaning: str
    along: str  # the axis, a size that grows
    order: float

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """Order in 1/size of the gap."""
        gap = _variable(result, self.gap)
        sizes = gap[self.along].values.astype(float)
        words = self.along.replace("_", " ")
        return Verdict(
            claim=f"limit in {words}",
            meaning=self.meaning,
            measure=f"order in 1/({words}) of the largest gap",
            value=fitted_order(1 / sizes, gap.values),
            yardstick=self.order - SLACK,
            evidence=tuple((f"{words} {size:g}", f"{one:.2e}") for size, one in zip(sizes, gap.values, strict=True)),
        )


@dataclass(frozen=True)
class Misses:
    """An approximation is off by at least a factor, in the entry where it is worst: its limits, measured."""

    theory: str  # path of a variable, "theory/group/variable"
    simulation: str
    meaning: str
    factor: float

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The largest ratio, either way, between theory and the simulated mean over seeds."""
        simulated = _variable(result, self.simulation).mean("seed")
        ratio = (simulated / _variable(result, self.theory)).values
        factor = np.maximum(ratio, 1 / ratio)
        return Verdict(
            claim="off by a factor",
            meaning=self.meaning,
            measure=f"largest factor between {factor.size} simulated means and theory",
            value=float(np.max(factor)),
            yardstick=self.factor,
            evidence=(("least factor", f"{np.min(factor):.3f}"),),
        )


@dataclass(frozen=True)
class RestsNearLevels:
    """Curves on the largest training set rest at the levels of theory that the flow of the same start visits.

    A level is visited where the flow rests within 1 % of it. For each visited level the middle one of the seeds
    counts, and the farthest level decides.
    """

    levels: str = "theory/levels"
    flow: str = "theory/flow"
    descent: str = "simulation/sequences"
    most: float = 0.015

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The largest relative distance of a rest from its level."""
        flow, descent = result[self.flow].to_dataset(), result[self.descent].to_dataset().isel(sequences=-1)
        levels = _first_seed(result[self.levels].to_dataset().loss)
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


def _variable(result: "xr.DataTree", path: str) -> "xr.DataArray":
    import xarray as xr

    found = result[path]
    if not isinstance(found, xr.DataArray):
        raise KeyError(f"{path} must name a variable, as in theory/group/variable")
    return found
