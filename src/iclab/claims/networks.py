"""Claims about networks that are trained: where their error peaks, and which of two estimators they are nearer to."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from iclab.claims.bounds import share_verdict
from iclab.claims.judgement import Deviations, judged, judged_share
from iclab.claims.paths import group, variable
from iclab.claims.verdict import Claim, Verdict

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["CrossesBetween", "PeaksWhereFitEnds", "RisesAndFalls", "WhereKnown"]


@dataclass(frozen=True)
class PeaksWhereFitEnds:
    """The error on new tasks is largest where the error on the training data leaves zero, up to a factor in size.

    Both places lie between points of the grid of sizes: the peak on a parabola through the largest error and its
    neighbors, the end of fitting on a line through the errors around `zero`, all in logarithms.
    """

    runs: str  # group of simulation with `icl` and `train` over τ
    meaning: str
    factor: float
    zero: float = 1e-3  # training errors up to here are fitted

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The largest factor, either way, between the two places; open where no training error leaves zero."""
        runs = group(result, "simulation", self.runs).transpose("seed", "dimension", "tau")
        tau = np.log(runs.tau.values)
        peaks = np.apply_along_axis(lambda error: _peak(tau, error), 2, np.log(runs.icl.values))
        fitted = np.maximum(runs.train.values, 1e-12 * self.zero)  # an error of 0 has no logarithm
        ends = np.apply_along_axis(lambda error: _passes(tau, error), 2, np.log(fitted / self.zero))
        labels = tuple(f"D = {one}" for one in runs.dimension.values)
        found = judged(Deviations(peaks - ends, labels, float(np.log(self.factor))))
        evidence = tuple(
            (f"{label}, peak and end of fitting at τ", f"{np.exp(peak):.3g} and {np.exp(end):.3g}")
            for label, peak, end in zip(labels, peaks.mean(axis=0), ends.mean(axis=0), strict=True)
        )
        return Verdict(
            "peaks where fitting ends", self.meaning, "factor between the peak and the end of fitting",
            float(np.exp(found.within)), self.factor, found.outcome, evidence,
            relative=False, p=found.p, reason=found.reason,
        )  # fmt: skip


def _peak(x: Float[np.ndarray, "n"], y: Float[np.ndarray, "n"]) -> float:
    """The place of the largest value of a parabola through the largest point and its neighbors."""
    top = int(np.argmax(y))
    if top in (0, len(y) - 1):
        return float(x[top])
    bend, slope, _ = np.polyfit(x[top - 1 : top + 2], y[top - 1 : top + 2], 2)
    return float(-slope / (2 * bend))


def _passes(x: Float[np.ndarray, "n"], y: Float[np.ndarray, "n"]) -> float:
    """The place where a rising curve first passes 0; NaN where it never does."""
    above = np.flatnonzero(y > 0)
    if len(above) == 0 or above[0] == 0:
        return float("nan") if len(above) == 0 else float(x[0])
    low, high = above[0] - 1, above[0]
    return float(np.interp(0, [y[low], y[high]], [x[low], x[high]]))


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

    def asked(self, result: "xr.DataTree") -> bool:
        """True for the cases that have both sizes."""
        sizes = variable(result, "simulation", self.falling)[self.along].values
        return {self.lower, self.upper} <= {float(size) for size in sizes}

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The lower bound of the share of seeds in which the curves cross between the sizes."""
        ratio = variable(result, "simulation", self.falling) / variable(result, "simulation", self.rising)
        above, below = (ratio.sel({self.along: size}) for size in (self.lower, self.upper))
        found = judged_share(int(((above > 1) & (below < 1)).sum()), ratio.sizes["seed"], self.least)
        sizes = zip((self.lower, self.upper), (above, below), strict=True)
        evidence = [(f"ratio at {self.along} {size:g}", f"{float(one.median()):.3g}") for size, one in sizes]
        return share_verdict(found, "crosses between two sizes", self.meaning, self.least, evidence)


@dataclass(frozen=True)
class WhereKnown:
    """A claim about a group that only some cases have."""

    claim: Claim
    group: str  # of simulation

    def asked(self, result: "xr.DataTree") -> bool:
        """True for the cases with the group."""
        return self.group in result["simulation"].children

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The verdict of the claim."""
        return self.claim.verdict(result)
