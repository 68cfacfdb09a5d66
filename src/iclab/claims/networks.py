"""Claims about networks that are trained: where their error peaks, and which of two estimators they are nearer to."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from iclab.claims.general import Bounded
from iclab.claims.paths import group, variable
from iclab.claims.verdict import Verdict

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["CrossesBetween", "PeaksWhereFitEnds", "RisesAndFalls", "WhereKnown"]


@dataclass(frozen=True)
class PeaksWhereFitEnds:
    """The error on new tasks is largest at the first size at which the error on the training data leaves zero.

    Both are medians over seeds, at every size of a grid. Where a result holds several networks the one
    that misses by most decides.
    """

    runs: str  # group of simulation with `icl` and `train` over τ
    meaning: str
    zero: float = 1e-3  # training errors up to here are fitted

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """Points of the grid between the two; open where no training error leaves zero."""
        middle = group(result, "simulation", self.runs).median("seed")
        missed, evidence = [], []
        for dimension in middle.dimension.values:
            one, tau = middle.sel(dimension=dimension), middle.tau.values
            left = np.flatnonzero(one.train.values > self.zero)
            peak = int(np.argmax(one.icl.values))
            missed.append(abs(peak - left[0]) if len(left) else np.nan)
            evidence += [
                (f"D = {dimension}, peak", f"τ = {tau[peak]:g}, error {one.icl.values[peak]:.3g}"),
                (f"D = {dimension}, end of fitting", f"τ = {tau[left[0]]:g}" if len(left) else "none"),
            ]
        return Verdict(
            claim="peaks where fitting ends",
            meaning=self.meaning,
            measure="points of the grid of τ between the peak and the end of fitting",
            value=float(np.max(missed)),
            yardstick=0.0,
            evidence=tuple(evidence),
            at_most=True,
        )


@dataclass(frozen=True)
class RisesAndFalls:
    """The error on new tasks is larger inside a grid of sizes than at either end of it, by a stated factor.

    Errors are medians over seeds. Where a result holds several networks the flattest one decides.
    """

    runs: str  # group of simulation with `icl` over τ
    meaning: str
    factor: float

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The largest error over the larger one of the two ends."""
        middle = group(result, "simulation", self.runs).icl.median("seed")
        ends = middle.isel(tau=[0, -1]).max("tau")
        return Verdict(
            claim="rises and falls",
            meaning=self.meaning,
            measure="largest error over the larger one at the ends of the grid of τ",
            value=float((middle.max("tau") / ends).min()),
            yardstick=self.factor,
            evidence=tuple(
                (f"D = {one.dimension.item()}, τ = {tau:g}", f"error {error:.3g}")
                for one in middle.transpose("dimension", "tau")
                for tau, error in zip(one.tau.values, one.values, strict=True)
            ),
        )


@dataclass(frozen=True)
class CrossesBetween:
    """A curve over sizes passes below another one between two sizes, in every seed."""

    falling: str  # variable of simulation, "group/variable", that is above at the lower size
    rising: str  # the one that is above at the upper size
    meaning: str
    along: str  # the axis
    lower: float
    upper: float

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The share of seeds; open where a size is missing."""
        ratio = variable(result, "simulation", self.falling) / variable(result, "simulation", self.rising)
        sizes = [float(size) for size in ratio[self.along].values]
        known = self.lower in sizes and self.upper in sizes
        ends = ratio.reindex({self.along: [self.lower, self.upper]})  # NaN where a size is missing
        crosses = (ends.isel({self.along: 0}) > 1) & (ends.isel({self.along: 1}) < 1)
        middle = ratio.median("seed")
        return Verdict(
            claim="crosses between two sizes",
            meaning=self.meaning,
            measure="share of the seeds",
            value=float(crosses.mean()) if known else float("nan"),
            yardstick=1.0,
            evidence=(
                ("seeds", f"{int(crosses.sum())} of {ratio.sizes['seed']}"),
                *((f"ratio at {size:g}", f"{float(middle.sel({self.along: size})):.3g}") for size in sizes),
            ),
        )


@dataclass(frozen=True)
class WhereKnown:
    """A claim about a group that only some cases have."""

    claim: Bounded | PeaksWhereFitEnds | RisesAndFalls
    group: str  # of simulation

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The verdict of the claim; open for the cases without the group."""
        if self.group in result["simulation"].children:
            return self.claim.verdict(result)
        nothing = "nothing that this case has"
        return Verdict("not asked in this case", self.claim.meaning, nothing, float("nan"), 0.0, ())
