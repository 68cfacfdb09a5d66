"""Bounds, shares and factors: claims about a variable of simulation that state no value for it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from iclab.claims.comparison import compared
from iclab.claims.judgement import Deviations, Judgement, judged, judged_share
from iclab.claims.paths import variable
from iclab.claims.verdict import Verdict

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Bounded", "Coverage", "Misses", "Share", "above", "below", "share_verdict"]


@dataclass(frozen=True)
class Bounded:
    """The mean over seeds of a variable lies on one side of a bound, in every entry.

    With a `share` the seeds are counted in which every entry does: for values whose scatter is skewed.
    """

    variable: str  # "group/variable" of simulation
    meaning: str
    bound: float
    at_most: bool = True  # true where the bound is an upper one
    share: float | None = None  # least share of the seeds

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The end of the interval of the entry that comes closest to the bound, or lies farthest beyond it."""
        values = variable(result, "simulation", self.variable).transpose("seed", ...)
        rows = values.values.reshape(values.sizes["seed"], -1).astype(float)
        sign = 1.0 if self.at_most else -1.0
        beyond = sign * (rows - self.bound)
        evidence = (("bound", f"{self.bound:g}"), ("median", f"{np.median(rows):.4g}"), ("seeds", str(len(rows))))
        if self.share is not None:
            counted = judged_share(int(np.all(beyond <= 0, axis=1).sum()), len(rows), self.share)
            return share_verdict(counted, "stays within a bound", self.meaning, self.share, evidence)
        labels = tuple(f"entry {i + 1}" for i in range(rows.shape[1]))
        found = judged(Deviations(beyond, labels, 0.0, signed=True))
        return Verdict(
            "stays within a bound", self.meaning, f"mean of {rows.shape[1]} values over seeds",
            self.bound + sign * found.within, self.bound, found.outcome, evidence,
            at_most=self.at_most, relative=False, p=found.p, reason=found.reason,
        )  # fmt: skip


def above(variable: str, meaning: str, bound: float, *, share: float | None = None) -> Bounded:
    """Claim that a variable of simulation, "group/variable", stays above a bound."""
    return Bounded(variable, meaning, bound, at_most=False, share=share)


def below(variable: str, meaning: str, bound: float, *, share: float | None = None) -> Bounded:
    """Claim that a variable of simulation, "group/variable", stays below a bound."""
    return Bounded(variable, meaning, bound, share=share)


@dataclass(frozen=True)
class Share:
    """A counted variable is as theory says in at least a share of the seeds."""

    variable: str  # "group/variable" of simulation
    meaning: str
    least: float = 1 / 3
    theory: str | None = None  # the variable of theory, where its name is another one

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The lower bound of the share of seeds in which every entry is as predicted."""
        theory = variable(result, "theory", self.theory or self.variable)
        measured = variable(result, "simulation", self.variable)
        same = measured == theory
        agreeing = same.all([axis for axis in same.dims if axis != "seed"])
        found = judged_share(int(agreeing.sum()), agreeing.size, self.least)
        silent = theory.isnull() & measured.notnull()
        if silent.any():
            reason = f"theory says nothing of {int(silent.sum())} of {silent.size} counts that are measured"
            found = replace(found, outcome="open", p=1.0, reason=reason)
        return share_verdict(found, "as often as predicted", self.meaning, self.least)


@dataclass(frozen=True)
class Coverage:
    """The share of fresh runs whose errors the band covers, or leaves out, is at least the stated one."""

    least: float
    covered: Mapping[str, str]  # shares of the runs of each size, "group/variable" of simulation, and their words
    outside: bool = False  # true for the share that is left out
    fresh: str = "band/fresh"  # number of these runs

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The lower bound of the share of the fresh runs of all seeds and sizes, for the error where it is lower."""
        fresh, word = variable(result, "simulation", self.fresh), "leaves out" if self.outside else "covers"
        found = {}
        for path, words in self.covered.items():
            covered = variable(result, "simulation", path)
            inside = round(float((covered * fresh).sum()))
            runs = round(float(fresh.sum()) * covered.size / covered.sizes["seed"])
            found[words] = judged_share(runs - inside if self.outside else inside, runs, self.least)
        worst = min(found.values(), key=lambda one: one.within)
        return Verdict(
            "band of single runs",
            f"The band of two standard deviations {word} at least {100 * self.least:g} % of fresh runs.",
            "share of fresh runs", worst.within, self.least, worst.outcome,
            tuple((f"fresh runs, {words}", one.worst) for words, one in found.items()),
            at_most=False, p=worst.p, reason=worst.reason,
        )  # fmt: skip


def share_verdict(
    found: Judgement, claim: str, meaning: str, least: float, evidence: Iterable[tuple[str, str]] = ()
) -> Verdict:
    """The verdict on a share of the seeds."""
    return Verdict(
        claim, meaning, "share of the seeds", found.within, least, found.outcome, (("seeds", found.worst), *evidence),
        at_most=False, p=found.p, reason=found.reason,
    )  # fmt: skip


@dataclass(frozen=True)
class Misses:
    """An approximation is off by at least a factor, in the entry where it is worst: its limits, measured."""

    variable: str  # "group/variable" of simulation
    meaning: str
    factor: float
    theory: str | None = None  # the variable of theory, where its name is another one

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The lower bound of the largest factor, either way, between theory and means over seeds."""
        comparison = compared(result, self.variable, self.theory or self.variable)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = abs(np.log(comparison.measured / comparison.theory))
        logs = np.where(np.isfinite(logs), logs, np.nan)  # a run that diverged says nothing of a factor
        worst = int(np.argmax(np.nan_to_num(logs.mean(axis=0), nan=-1.0)))
        gap = np.log(self.factor) - logs
        found = judged(Deviations(gap[:, [worst]], (comparison.labels[worst],), 0.0, signed=True))
        if found.outcome != "holds":  # then an entry that is missing could be the one
            missing = Deviations(gap, comparison.labels, 0.0, signed=True, unstated=comparison.unstated)
            if comparison.unstated or not missing.whole().all():
                found = replace(judged(missing), outcome="open", p=1.0)
        return Verdict(
            "off by a factor", self.meaning, "largest factor between means and theory",
            float(self.factor * np.exp(-found.within)), self.factor, found.outcome,
            (("at", comparison.labels[worst]), ("seeds", str(found.seeds))),
            at_most=False, relative=False, p=found.p, reason=found.reason,
        )  # fmt: skip
