"""Claims about networks that are trained: where their error peaks, and which of two estimators they are nearer to."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from iclab.claims.bounds import Bounded, share_verdict
from iclab.claims.judgement import Deviations, judged, judged_share
from iclab.claims.paths import group, variable
from iclab.claims.verdict import Verdict

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["CrossesBetween", "PeaksWhereFitEnds", "RisesAndFalls", "WhereKnown"]


@dataclass(frozen=True)
class PeaksWhereFitEnds:
    """The error on new tasks is largest at the first size at which the error on the training data leaves zero.

    Every seed and every network of the result counts.
    """

    runs: str  # group of simulation with `icl` and `train` over τ
    meaning: str
    least: float = 1 / 3  # share of the seeds
    zero: float = 1e-3  # training errors up to here are fitted

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The lower bound of the share of seeds in which the two are one point of the grid."""
        runs, evidence, agreeing = group(result, "simulation", self.runs), [], []
        tau = runs.tau.values
        for dimension in runs.dimension.values:
            one = runs.sel(dimension=dimension).transpose("seed", "tau")
            left = one.train.values > self.zero
            peaks, ends = np.argmax(one.icl.values, axis=1), np.argmax(left, axis=1)
            agreeing.append((peaks == ends) & left.any(axis=1))
            evidence.append((f"D = {dimension}, peaks at τ", ", ".join(f"{tau[peak]:g}" for peak in peaks)))
            shown = [f"{tau[end]:g}" if some else "none" for end, some in zip(ends, left.any(axis=1), strict=True)]
            evidence.append((f"D = {dimension}, fitting ends at τ", ", ".join(shown)))
        together = np.all(agreeing, axis=0)
        found = judged_share(int(together.sum()), len(together), self.least)
        return share_verdict(found, "peaks where fitting ends", self.meaning, self.least, evidence)


@dataclass(frozen=True)
class RisesAndFalls:
    """The error on new tasks is larger inside a grid of sizes than at either end of it, by a stated factor.

    Where a result holds several networks the flattest one decides.
    """

    runs: str  # group of simulation with `icl` over τ
    meaning: str
    factor: float

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The lower bound of the mean ratio of the largest error to the larger one of the two ends."""
        errors = group(result, "simulation", self.runs).icl
        ratio = (errors.max("tau") / errors.isel(tau=[0, -1]).max("tau")).transpose("seed", ...)
        rows = np.log(ratio.values.reshape(ratio.sizes["seed"], -1))
        labels = tuple(f"D = {one}" for one in np.atleast_1d(errors.dimension.values))
        found = judged(Deviations(np.log(self.factor) - rows, labels, 0.0, signed=True))
        return Verdict(
            "rises and falls", self.meaning, "largest error over the larger one at the ends of the grid of τ",
            float(self.factor * np.exp(-found.within)), self.factor, found.outcome,
            tuple((label, f"{np.exp(mean):.3g}") for label, mean in zip(labels, rows.mean(axis=0), strict=True)),
            at_most=False, relative=False, p=found.p, reason=found.reason,
        )  # fmt: skip


@dataclass(frozen=True)
class CrossesBetween:
    """A curve over sizes passes below another one between two sizes, in at least a share of the seeds."""

    falling: str  # variable of simulation, "group/variable", that is above at the lower size
    rising: str  # the one that is above at the upper size
    meaning: str
    along: str  # the axis
    lower: float
    upper: float
    least: float = 1 / 3  # share of the seeds

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The lower bound of the share of seeds; open where a size is missing."""
        ratio = variable(result, "simulation", self.falling) / variable(result, "simulation", self.rising)
        sizes = [float(size) for size in ratio[self.along].values]
        if not {self.lower, self.upper} <= set(sizes):
            return Verdict(
                "crosses between two sizes", self.meaning, "share of the seeds", float("nan"), self.least, "open",
                at_most=False, reason=f"{self.along} must hold {self.lower:g} and {self.upper:g}",
            )  # fmt: skip
        above, below = (ratio.sel({self.along: size}) for size in (self.lower, self.upper))
        count = int(((above > 1) & (below < 1)).sum())
        evidence = [(f"ratio at {size:g}", f"{float(ratio.sel({self.along: size}).median()):.3g}") for size in sizes]
        found = judged_share(count, ratio.sizes["seed"], self.least)
        return share_verdict(found, "crosses between two sizes", self.meaning, self.least, evidence)


@dataclass(frozen=True)
class WhereKnown:
    """A claim about a group that only some cases have."""

    claim: Bounded | PeaksWhereFitEnds | RisesAndFalls
    group: str  # of simulation

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The verdict of the claim; open for the cases without the group."""
        if self.group in result["simulation"].children:
            return self.claim.verdict(result)
        return Verdict(
            "not asked in this case", self.claim.meaning, "nothing that this case has", float("nan"), 0.0, "open",
            reason=f"this case has no {self.group}",
        )  # fmt: skip
