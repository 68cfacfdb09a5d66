"""Claims about drawn pretraining runs, whose errors at finite dimension are no more than close to theory.

Runs of one dimension scatter, and their mean lies off the proportional limit by a term of order 1/D. Claims judge
means over seeds, and say how well these are known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from iclab.claims.paths import group
from iclab.claims.verdict import SLACK, Verdict, fitted_order

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["CloseMeans", "LimitOfMeans"]

Array = np.ndarray


@dataclass(frozen=True)
class LimitOfMeans:
    """Means over seeds approach theory along a named size, at a stated order at least.

    The gap is the root mean square of mean/theory − 1 over all other axes and over the variables. Leaving out one
    seed after another (jackknife) gives the standard errors of the gaps and of their order.
    """

    meaning: str
    theory: str = "runs"  # group
    simulation: str = "runs"  # group
    along: str = "dimension"  # the axis, a size that grows
    order: float = 1.0
    variables: tuple[str, ...] = ("icl", "idg")

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """Order in 1/size of the gap, with its standard error; open with fewer than three seeds."""
        sizes, ratio = _ratios(result, self.theory, self.simulation, self.variables, self.along)
        seeds = len(ratio)
        gaps, order = _gaps(ratio), fitted_order(1 / sizes, _gaps(ratio))
        words = self.along.replace("_", " ")
        if seeds < 3:
            return self._verdict(words, float("nan"), 0.0, [("seeds", str(seeds))])
        without = [_gaps(np.delete(ratio, seed, axis=0)) for seed in range(seeds)]
        errors = _jackknife(without)
        spread = float(_jackknife([np.array(fitted_order(1 / sizes, gap)) for gap in without]))
        evidence = [
            (f"{words} {size:g}", f"gap {100 * gap:.2f} ± {100 * error:.2f} %")
            for size, gap, error in zip(sizes, gaps, errors, strict=True)
        ]
        return self._verdict(words, order, spread, evidence)

    def _verdict(self, words: str, order: float, error: float, evidence: Sequence[tuple[str, str]]) -> Verdict:
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
class CloseMeans:
    """Means over seeds are close to an approximate theory: within a relative distance and three standard errors."""

    meaning: str
    most: float  # relative distance that three standard errors do not explain
    theory: str = "runs"  # group
    simulation: str = "runs"  # group
    along: str = "dimension"
    variables: tuple[str, ...] = ("icl", "idg")

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The largest relative distance beyond three standard errors; open with fewer than three seeds."""
        _, ratio = _ratios(result, self.theory, self.simulation, self.variables, self.along)
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


def _ratios(
    result: "xr.DataTree", theory: str, simulation: str, variables: Sequence[str], along: str
) -> tuple[Float[Array, "size"], Float[Array, "seed size entry"]]:
    """Sizes, and simulation/theory − 1 with all other axes and the variables as one axis."""
    drawn, known = group(result, "simulation", simulation), group(result, "theory", theory)
    ratios = [(drawn[name] / known[name] - 1).transpose("seed", along, ...).values for name in variables]
    ratio = np.concatenate([one.reshape(*one.shape[:2], -1) for one in ratios], axis=2)
    return np.asarray(drawn[along].values, dtype=float), ratio


def _gaps(ratio: Float[Array, "seed size entry"]) -> Float[Array, "size"]:
    return np.sqrt(np.mean(np.mean(ratio, axis=0) ** 2, axis=-1))


def _jackknife(without: Sequence[Array]) -> Array:
    """Standard error of a statistic from its values without each of the seeds."""
    count = len(without)
    return np.sqrt((count - 1) * np.var(np.array(without), axis=0))
