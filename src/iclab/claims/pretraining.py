"""Claims about drawn pretraining runs, whose errors at finite dimension are no more than close to theory.

Runs of one dimension scatter, and their mean lies off the proportional limit by a term of order 1/D. Claims judge
means over seeds, and say how well these are known.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from iclab.claims.paths import group
from iclab.claims.verdict import SLACK, Verdict, fitted_order

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["CloseMeans", "Coverage", "ExactWithoutRidge", "LimitOfMeans", "Means"]

Array = np.ndarray


@dataclass(frozen=True)
class Means:
    """Means over seeds of drawn runs and the theory which a claim compares them with."""

    meaning: str
    simulation: str = "runs"  # group
    theory: str | None = None  # group, where its name is another one
    along: str = "dimension"  # the axis, a size that grows
    variables: tuple[str, ...] = ("icl", "idg")

    def ratios(self, result: "xr.DataTree") -> tuple[Float[Array, "size"], Float[Array, "seed size entry"]]:
        """Sizes, and simulation/theory − 1 with all other axes and the variables as one axis."""
        drawn = group(result, "simulation", self.simulation)
        known = group(result, "theory", self.theory or self.simulation)
        gaps = [(drawn[name] / known[name] - 1).transpose("seed", self.along, ...) for name in self.variables]
        entries = [gap.values.reshape(*gap.shape[:2], -1) for gap in gaps]
        return np.asarray(drawn[self.along].values, dtype=float), np.concatenate(entries, axis=2)


@dataclass(frozen=True)
class LimitOfMeans(Means):
    """Means over seeds approach theory along a named size, at a stated order at least.

    The gap is the root mean square of mean/theory − 1 over all other axes and over the variables. Leaving out one
    seed after another (jackknife) gives the standard errors of the gaps and of their order.
    """

    order: float = 1.0

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """Order in 1/size of the gap, with its standard error; open with fewer than three seeds."""
        sizes, ratio = self.ratios(result)
        words, seeds = self.along.replace("_", " "), len(ratio)
        order, error, evidence = float("nan"), 0.0, [("seeds", str(seeds))]
        if seeds >= 3:
            gaps, without = _gaps(ratio), [_gaps(np.delete(ratio, seed, axis=0)) for seed in range(seeds)]
            order = fitted_order(1 / sizes, gaps)
            error = float(_jackknife([np.array(fitted_order(1 / sizes, gap)) for gap in without]))
            evidence = [
                (f"{words} {size:g}", f"gap {100 * gap:.2f} ± {100 * spread:.2f} %")
                for size, gap, spread in zip(sizes, gaps, _jackknife(without), strict=True)
            ]
        return Verdict(
            claim=f"limit in {words}",
            meaning=self.meaning,
            measure=f"order in 1/({words}) of the gap of means",
            value=order,
            yardstick=self.order - SLACK,
            evidence=tuple(evidence),
            error=error,
        )


@dataclass(frozen=True)
class CloseMeans(Means):
    """Means over seeds are close to an approximate theory: within a relative distance and three standard errors."""

    most: float = field(kw_only=True)  # relative distance that three standard errors do not explain

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The largest relative distance beyond three standard errors; open with fewer than three seeds."""
        _, ratio = self.ratios(result)
        count, mean = len(ratio), abs(np.mean(ratio, axis=0))
        error = np.std(ratio, axis=0, ddof=1) / np.sqrt(count) if count > 1 else np.zeros_like(mean)
        return Verdict(
            claim="close to theory",
            meaning=self.meaning,
            measure="largest relative distance of means, beyond three standard errors",
            value=max(0.0, float(np.max(mean - 3 * error))) if count >= 3 else float("nan"),
            yardstick=self.most,
            evidence=(
                ("seeds", str(count)),
                ("largest distance", f"{100 * np.max(mean):.2f} %"),
                ("largest standard error", f"{100 * np.max(error):.2f} %"),
            ),
            at_most=True,
        )


@dataclass(frozen=True)
class ExactWithoutRidge:
    """Errors with a small ridge against errors without: the largest relative gap away from the peak."""

    variables: tuple[str, ...]
    far: float = 0.2  # |ln τ| that counts as away from τ = 1, where the gap vanishes like √λ

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """Order in the ridge at which the gap vanishes."""
        small, none = group(result, "theory", "small"), group(result, "theory", "none")
        away = abs(np.log(none.tau)) > self.far
        gaps = np.maximum(
            *(abs(small[name] / none[name] - 1).where(away).max("tau").values for name in self.variables)
        )
        shown = zip(small.ridge.values, gaps, strict=True)
        return Verdict(
            claim="exact without ridge",
            meaning="The formulas with ridge become those without as the ridge vanishes.",
            measure="order of the largest relative gap in the ridge",
            value=fitted_order(small.ridge.values, gaps),
            yardstick=1.0 - SLACK,
            evidence=tuple((f"largest gap at ridge {ridge:.0e}", f"{gap:.2e}") for ridge, gap in shown),
        )


@dataclass(frozen=True)
class Coverage:
    """The share of fresh runs in the band, over all seeds, errors and sizes."""

    variables: tuple[str, ...]
    bound: float
    at_most: bool = False

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The share, at least or at most the bound."""
        band = group(result, "simulation", "band")
        shares = {target: band[f"{target}_covered"] for target in self.variables}
        whole = float(np.mean([float(share.mean()) for share in shares.values()]))
        word = "most" if self.at_most else "least"
        single = ((target, tau, share.sel(tau=tau)) for target, share in shares.items() for tau in share.tau.values)
        return Verdict(
            claim="band of single runs",
            meaning=f"The band of two standard deviations covers at {word} {100 * self.bound:g} % of fresh runs.",
            measure="share of the errors of fresh runs",
            value=whole,
            yardstick=self.bound,
            evidence=tuple((f"{name}, τ = {tau:g}", f"{100 * float(one.mean()):.1f} %") for name, tau, one in single),
            at_most=self.at_most,
        )


def _gaps(ratio: Float[Array, "seed size entry"]) -> Float[Array, "size"]:
    return np.sqrt(np.mean(np.mean(ratio, axis=0) ** 2, axis=-1))


def _jackknife(without: Sequence[Array]) -> Array:
    """Standard error of a statistic from its values without each of the seeds."""
    count = len(without)
    return np.sqrt((count - 1) * np.var(np.array(without), axis=0))
