"""Limits: a gap between measurement and theory that vanishes with growing size, or with a vanishing rate."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float

from iclab.claims.agreement import UNITS
from iclab.claims.comparison import Comparison, Unit, compared
from iclab.claims.extrapolation import extrapolated
from iclab.claims.judgement import ROUNDING, Deviations, Judgement, judged
from iclab.claims.paths import whole
from iclab.claims.remedies import rises
from iclab.claims.resolution import Resolution, resolved
from iclab.claims.seeds import over_seeds
from iclab.claims.verdict import Verdict, verdict_of

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["ExactInRate", "Tends"]

Array = np.ndarray
RECORDS = 400  # of a curve


@dataclass(frozen=True)
class Tends:
    """The gap between a variable and theory vanishes along a size that grows: what is left of it is judged.

    For every seed the gap is extrapolated, with the stated orders of its bias in 1/size; the change of the result
    with the next order, and without the smallest size, counts as an error.
    """

    variable: str  # what is measured: "group/variable" of simulation, or "theory/group/variable"
    meaning: str
    tolerance: float
    along: str  # the axis
    orders: tuple[float, ...] = (1.0, 2.0)  # kept in the fit, and last the next one
    theory: str | None = None  # the variable of theory, where its name is another one
    floor: str | float = 0.0  # a number or a variable of theory
    unit: Unit = "theory"
    at: Mapping[str, Any] = field(default_factory=dict)  # points of axes, where not all count
    numerical: float = ROUNDING

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The verdict on what is left; open with fewer than three sizes, and where they are too small."""
        comparison = self._comparison(result)
        left, fits = self._left(comparison)
        found = self._judged(left, result)
        if comparison.labels and not fits:
            sizes = np.unique(comparison.places[self.along])
            least = len(self.orders) + 1
            reason = (
                f"{least} sizes or more are needed" if len(sizes) < least else "sizes too small for the stated order"
            )
            found = replace(found, outcome="open", reason=reason)
        return verdict_of(
            found, claim=f"limit in {self.along.replace('_', ' ')}", meaning=self.meaning,
            measure=f"{UNITS[self.unit]} at infinite size", asked=self.tolerance, evidence=self._evidence(comparison),
            relative=self.unit != "one",
        )  # fmt: skip

    def resolution(self, result: "xr.DataTree") -> dict[str, Resolution]:
        """The smallest errors of theory that the claim would expose, by variable."""
        name = whole("theory", self.theory or self.variable)
        comparison = self._comparison(result)
        return {name: resolved(comparison, lambda one: self._left(one)[0], tolerance=self.tolerance)}

    def _judged(self, left: Deviations, result: "xr.DataTree") -> Judgement:
        return judged(left)

    def _comparison(self, result: "xr.DataTree") -> Comparison:
        theory = self.theory or self.variable
        where = {"floor": self.floor, "unit": self.unit, "at": dict(self.at), "along": self.along}
        return compared(result, self.variable, theory, **where)

    def _left(self, comparison: Comparison) -> tuple[Deviations, bool]:
        sizes, gaps = _along(comparison, self.along)
        kept = None if comparison.kept is None else comparison.kept.reshape(gaps.shape)[:, :, 0]
        found = extrapolated(gaps, sizes, self.orders, kept=kept)
        labels = tuple(label.rpartition(", ")[0] for label in comparison.labels[:: len(sizes) or None])
        left = Deviations(
            found.gap, labels, self.tolerance, self.numerical, np.maximum(found.model, 0.0), drawn=comparison.drawn,
            kept=kept, unitless=np.any(comparison.unitless().reshape(gaps.shape[1:]), axis=1),
            unstated=tuple(label.rpartition(", ")[0] for label in comparison.unstated),
        )  # fmt: skip
        return left, found.fits

    def _evidence(self, comparison: Comparison) -> tuple[tuple[str, str], ...]:
        sizes, gaps = _along(comparison, self.along)
        kept = None if comparison.kept is None else comparison.kept.reshape(gaps.shape)
        worst = np.max(abs(over_seeds(gaps, kept)[0]), axis=0, initial=0.0)
        words = self.along.replace("_", " ")
        return tuple((f"{words} {size:g}", f"{gap:.2e}") for size, gap in zip(sizes, worst, strict=True))


def _along(comparison: Comparison, axis: str) -> tuple[Float[Array, "size"], Float[Array, "seed entry size"]]:
    """Points of the last axis of entries, and the deviations with it apart."""
    values, places = comparison.values(), comparison.places[axis]
    count = len(np.unique(places))
    return places[:count].astype(float), values.reshape(len(values), len(places) // max(count, 1), count)


@dataclass(frozen=True)
class ExactInRate:
    """Gradient descent becomes its flow as the learning rate vanishes, from the same start on the same moments.

    For every seed and recorded time the gap is extrapolated to a vanishing rate; the largest remainder over all
    times counts, in units of the range of the flow's loss.
    """

    flow: str = "flow/loss"
    descent: str = "rates/loss"
    tolerance: float = 1e-3
    orders: tuple[float, ...] = (1.0, 2.0)  # kept in the fit, and last the next one
    meaning: str = "Gradient descent becomes its gradient flow, from the same start on the same moments."
    at_all_times: ClassVar[bool] = True  # also of a run that is not finished

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The verdict on the largest remainder; open with too few rates."""
        comparison = self._comparison(result)
        found = judged(self._left(comparison))
        if len(np.unique(comparison.places["rate"])) <= len(self.orders):
            found = replace(found, outcome="open", reason=f"{len(self.orders) + 1} rates or more are needed")
        elif found.outcome != "holds" and (reason := rises(result, self.descent)):
            found = replace(found, outcome="open", reason=reason)
        _, gaps = _along(comparison, "rate")
        rates = np.unique(comparison.places["rate"])[::-1]
        shown = zip(rates, abs(gaps).max(axis=1).mean(axis=0), strict=True)
        return verdict_of(
            found, claim="exact in the rate", meaning=self.meaning,
            measure="largest remainder at any time over the range of the loss", asked=self.tolerance,
            evidence=tuple((f"largest gap at rate {rate:.3g}", f"{gap:.2e}") for rate, gap in shown),
        )  # fmt: skip

    def resolution(self, result: "xr.DataTree") -> dict[str, Resolution]:
        """The smallest errors of the flow that the claim would expose."""
        return {whole("theory", self.flow): resolved(self._comparison(result), self._left, tolerance=self.tolerance)}

    def _comparison(self, result: "xr.DataTree") -> Comparison:
        return compared(result, self.descent, self.flow, unit="range", along="rate", most=RECORDS)

    def _left(self, comparison: Comparison) -> Deviations:
        rates, gaps = _along(comparison, "rate")
        found = extrapolated(gaps, 1 / rates, self.orders)
        left = np.max(abs(found.gap), axis=1, keepdims=True)
        model = float(np.max(found.model, initial=0.0))
        return Deviations(
            left, ("remainder",), self.tolerance, ROUNDING, model, drawn=comparison.drawn, signed=True,
            unstated=comparison.unstated,
        )  # fmt: skip
