"""Claims about curves of training: the levels at which a loss rests between its drops.

Levels that are closer than the claim can tell, twice its tolerance, are one. Where the flow itself does not rest, or
not yet, nothing is said of curves that follow it: of a drop, seeds whose own flow, by theory alone, takes it
together with the next are left out, as long as two others remain.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from iclab.claims.agreement import Agrees
from iclab.claims.comparison import Comparison, paired
from iclab.claims.judgement import Deviations, Judgement, judged
from iclab.claims.limits import Tends
from iclab.claims.paths import variable, whole
from iclab.claims.remedies import steps_to_try
from iclab.numerics.curves import rests_and_drifts

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["RestsAtLevels", "RestsTend"]

Array = np.ndarray


@dataclass(frozen=True)
class RestsAtLevels(Agrees):
    """A curve rests between its drops, and at its end, at the levels of theory.

    The change of the curve within an e-fold of time is an error of the level at which it rests.
    """

    variable: str = "theory/flow/loss"
    meaning: str = "The flow rests between its drops, and ends, at the predicted levels."
    tolerance: float = 0.01
    theory: str | None = "levels/loss"

    def _comparison(self, result: "xr.DataTree") -> Comparison:
        return _rests(result, self, flow=self.variable)[0]

    def _judged(self, deviations: Deviations, result: "xr.DataTree") -> Judgement:
        _, drifts = _rests(result, self, flow=self.variable)
        errors = np.nan_to_num(_largest(drifts.measured / drifts.scale(), drifts.kept)) + self.numerical
        return _where_rested(replace(deviations, numerical=errors), result, rested=deviations.whole())


@dataclass(frozen=True)
class RestsTend(Tends):
    """On many drawn sequences a curve rests between its drops, and at its end, at the levels of theory.

    The times of the drops do not count: on a finite sample they shift by a few percent, however large it is. The
    distance of the flow itself from a level is an error of the level.
    """

    variable: str = "sequences/loss"
    meaning: str = "On many drawn sequences the curve rests and ends at the levels of population theory."
    tolerance: float = 0.05
    along: str = "sequences"
    theory: str | None = "levels/loss"
    flow: str | None = "flow/loss"  # of theory: what the curve follows

    def _comparison(self, result: "xr.DataTree") -> Comparison:
        return _rests(result, self, flow=self.flow, along=self.along)[0]

    def _judged(self, left: Deviations, result: "xr.DataTree") -> Judgement:
        if self.flow is None:
            return judged(left)
        flow = _rests(result, replace(self, variable=whole("theory", self.flow)), flow=self.flow)[0]
        distance = dict(zip(flow.labels, _largest(abs(flow.values()), flow.kept), strict=True))
        errors = np.array([distance.get(label, np.nan) for label in left.labels])
        return _where_rested(replace(left, numerical=errors + self.numerical), result, rested=np.isfinite(errors))


def _where_rested(deviations: Deviations, result: "xr.DataTree", *, rested: Bool[Array, "entry"]) -> Judgement:
    """The judgement of the levels at which the flow rests; open, with what to try, where it misses some."""
    found = judged(deviations.at(rested))
    if not deviations.labels:
        return replace(found, reason="levels of theory lie closer together than the claim can tell")
    if found.outcome == "does not hold":
        return found
    if not rested.all():
        missing = deviations.labels[int(np.argmin(rested))]
        reason = f"the flow does not rest after {missing}: {steps_to_try(result)}, or a smaller start"
        return replace(found, outcome="open", within=float("inf"), worst=missing, reason=reason)
    errors = np.broadcast_to(deviations.numerical, len(deviations.labels))
    if found.outcome == "open" and np.any(errors > deviations.tolerance):
        passed = deviations.labels[int(np.argmax(errors))]
        return replace(found, reason=f"the flow itself is not at its level after {passed}")
    return found


def _largest(values: Float[Array, "seed entry"], kept: Bool[Array, "seed entry"] | None) -> Float[Array, "entry"]:
    """The largest value of every entry, in the seeds that count."""
    return np.max(values if kept is None else np.where(kept, values, -np.inf), axis=0)


def _rests(
    result: "xr.DataTree", claim: Agrees | Tends, *, flow: str | None, along: str | None = None
) -> tuple[Comparison, Comparison]:
    """Rests of every curve after each drop, beside the levels, and its drifts there; NaN where a drop never comes.

    A drop counts in the seeds whose flow comes to rest after it, if two do; else in all.
    """
    curve = _chosen(variable(result, "simulation", claim.variable), claim)
    rests, drifts = _compared(curve, result, claim, along)
    followed = None if flow is None else _chosen(variable(result, "theory", flow), claim)
    if not rests.labels or followed is None or "seed" not in followed.dims or "seed" not in curve.dims:
        return rests, drifts
    moves = _compared(followed, result, claim, None)[1]
    settled = moves.measured / moves.scale() <= claim.tolerance / 2
    settled |= np.sum(settled, axis=0) < 2
    of = dict(zip(moves.labels, settled.T, strict=True))
    drop = [label.rpartition(", ")[0] if along else label for label in rests.labels]
    kept = np.stack([of.get(label, np.ones(len(settled), dtype=bool)) for label in drop], axis=1)
    return replace(rests, kept=kept), replace(drifts, kept=kept)


def _chosen(array: "xr.DataArray", claim: Agrees | Tends) -> "xr.DataArray":
    """The points of the axes at which the claim looks."""
    return array.sel({axis: point for axis, point in claim.at.items() if axis in array.dims})


def _compared(
    curve: "xr.DataArray", result: "xr.DataTree", claim: Agrees | Tends, along: str | None
) -> tuple[Comparison, Comparison]:
    """The rests of a curve beside the levels, and its drifts there."""
    import xarray as xr

    levels = _chosen(variable(result, "theory", claim.theory or ""), claim)
    levels = levels.isel(seed=0, drop=True) if "seed" in levels.dims else levels  # no seed changes them
    apart = xr.apply_ufunc(
        lambda heights: _told_apart(heights, 2 * claim.tolerance), levels,
        input_core_dims=[["plateau"]], output_core_dims=[["plateau"]], vectorize=True,
    )  # fmt: skip
    rests, drifts = xr.apply_ufunc(
        rests_and_drifts, curve.time, curve, apart,
        input_core_dims=[["time"], ["time"], ["plateau"]], output_core_dims=[["drop"], ["drop"]], vectorize=True,
    )  # fmt: skip
    after, before = (apart.isel(plateau=part).rename(plateau="drop") for part in (slice(1, None), slice(None, -1)))
    drops = after.where(after != before.values)  # levels that repeat have no drop between them
    pairs = (paired(drops, one, unit=claim.unit, along=along) for one in (rests, drifts))
    first, second = (replace(one, unstated=()) for one in pairs)  # no drop, and so nothing to state
    return first, second


def _told_apart(heights: Float[Array, "plateau"], least: float) -> Float[Array, "plateau"]:
    """The levels, with each that is closer than a fraction to the next lower kept one put down to it."""
    kept = heights.copy()
    for i in range(len(kept) - 2, -1, -1):
        if kept[i] <= kept[i + 1] * (1 + least):
            kept[i] = kept[i + 1]
    return kept
