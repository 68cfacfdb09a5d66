"""The claims that studies make, each judged on a labeled result.

Exact claims say that a gap stays within sampling error, or vanishes with the learning rate; limit
claims say that it vanishes along a named size.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from iclab.claims.paths import Compared, variable
from iclab.claims.verdict import SLACK, Verdict, fitted_order

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["ROUNDING", "Bounded", "Limit", "Misses", "Share", "Vanishes", "Within", "WithinErrors", "above", "below"]

ROUNDING = 1e-12  # relative, of numbers that seeds do not change


@dataclass(frozen=True)
class WithinErrors(Compared):
    """The mean of a simulated variable over seeds against theory, in standard errors of that mean.

    Every entry of the variable counts; the largest distance decides. It is the threshold of claims that are
    exact: a bias of any size is found once there are seeds enough. Entries that no draw has touched, as at the
    start of training, have no sampling error and must agree to rounding.
    """

    most: float = 4.0
    claim: str = "exact within sampling error"  # in a few words; others for a theory that is no exact one

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The largest distance in standard errors; open with fewer than three seeds."""
        theory, simulated = self.pair(result)
        count = simulated.sizes["seed"]
        gap = simulated - theory  # seed by seed, where theory knows seeds
        size = abs(theory).max("seed") if "seed" in theory.dims else abs(theory)
        distance = abs(gap.mean("seed")) / np.hypot(gap.std("seed", ddof=1) / np.sqrt(count), ROUNDING * size)
        return Verdict(
            claim=self.claim,
            meaning=self.meaning,
            measure=f"largest distance of {distance.size} means from theory, in standard errors",
            value=float(distance.max()) if count >= 3 else float("nan"),
            yardstick=self.most,
            evidence=(("seeds", str(count)), ("median distance", f"{float(distance.median()):.2f}")),
            at_most=True,
        )


@dataclass(frozen=True)
class Within(Compared):
    """A simulated variable against theory, by a summary of their relative distance over all entries and seeds."""

    most: float
    quantile: float = 1.0  # of the distances; 1: the largest

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The distance |simulation / theory − 1| at the quantile; entries that are NaN on a side are left out."""
        theory, simulated = self.pair(result)
        with np.errstate(invalid="ignore"):  # inf / inf: what both sides say never comes is left out too
            distance = abs(simulated / theory - 1).values
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
class Bounded:
    """A simulated variable stays on one side of a bound, in every entry and seed."""

    variable: str  # of simulation, "group/variable"
    meaning: str
    bound: float
    at_most: bool = True  # whether the bound is an upper one

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The entry that comes closest to the bound, or lies farthest beyond it."""
        values = variable(result, "simulation", self.variable).values
        return Verdict(
            claim="stays within a bound",
            meaning=self.meaning,
            measure=f"{'largest' if self.at_most else 'smallest'} of {values.size} simulated values",
            value=float(values.max() if self.at_most else values.min()),
            yardstick=self.bound,
            evidence=(("median", f"{np.median(values):.4g}"),),
            at_most=self.at_most,
        )


@dataclass(frozen=True)
class Share(Compared):
    """A counted variable is as theory says in a share of the seeds."""

    least: float = 2 / 3

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The share of seeds in which every entry of the variable is as predicted."""
        theory, simulated = self.pair(result)
        same = simulated == theory
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
class Limit(Compared):
    """The gap between a simulated variable and theory vanishes along a named size, at a stated order at least."""

    along: str  # the axis, a size that grows
    order: float

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """Order in 1/size of the median |gap| over all other axes."""
        theory, simulated = self.pair(result)
        gap = abs(simulated - theory)
        return _in_size(self, gap.median([axis for axis in gap.dims if axis != self.along]), "median gap")


@dataclass(frozen=True)
class Vanishes:
    """A gap that theory states about itself falls along a named size, at a stated order at least."""

    gap: str  # variable of theory over the size alone, "group/variable"
    meaning: str
    along: str  # the axis, a size that grows
    order: float

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """Order in 1/size of the gap."""
        return _in_size(self, variable(result, "theory", self.gap), "largest gap")


@dataclass(frozen=True)
class Misses(Compared):
    """An approximation is off by at least a factor, in the entry where it is worst: its limits, measured."""

    factor: float

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The largest ratio, either way, between theory and the simulated mean over seeds."""
        theory, simulated = self.pair(result)
        ratio = (simulated.mean("seed") / theory).values
        factor = np.maximum(ratio, 1 / ratio)
        return Verdict(
            claim="off by a factor",
            meaning=self.meaning,
            measure=f"largest factor between {factor.size} simulated means and theory",
            value=float(np.max(factor)),
            yardstick=self.factor,
            evidence=(("least factor", f"{np.min(factor):.3f}"),),
        )


def above(variable: str, meaning: str, bound: float) -> Bounded:
    """Claim that a variable of simulation, "group/variable", stays above a bound."""
    return Bounded(variable, meaning, bound, at_most=False)


def below(variable: str, meaning: str, bound: float) -> Bounded:
    """Claim that a variable of simulation, "group/variable", stays below a bound."""
    return Bounded(variable, meaning, bound)


def _in_size(claim: Limit | Vanishes, gap: "xr.DataArray", name: str) -> Verdict:
    """Order in 1/size of a gap along the size of a claim."""
    sizes, words = gap[claim.along].values.astype(float), claim.along.replace("_", " ")
    return Verdict(
        claim=f"limit in {words}",
        meaning=claim.meaning,
        measure=f"order in 1/({words}) of the {name}",
        value=fitted_order(1 / sizes, gap.values),
        yardstick=claim.order - SLACK,
        evidence=tuple((f"{words} {size:g}", f"{name} {x:.2e}") for size, x in zip(sizes, gap.values, strict=True)),
    )
