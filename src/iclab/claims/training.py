"""Claims about curves of training: the levels at which a loss rests between its drops."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from iclab.claims.agreement import Agrees
from iclab.claims.comparison import Comparison, paired
from iclab.claims.limits import Tends
from iclab.claims.paths import variable
from iclab.numerics.curves import rests_and_drops

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["RestsAtLevels", "RestsTend"]


@dataclass(frozen=True)
class RestsAtLevels(Agrees):
    """A curve rests between its drops, and at its end, at the levels of theory."""

    variable: str = "theory/flow/loss"
    meaning: str = "The flow rests between its drops, and ends, at the predicted levels."
    tolerance: float = 0.01
    theory: str | None = "levels/loss"

    def _comparison(self, result: "xr.DataTree") -> Comparison:
        return _rests(result, self)


@dataclass(frozen=True)
class RestsTend(Tends):
    """On many drawn sequences a curve rests between its drops, and at its end, at the levels of theory.

    The times of the drops do not count: on a finite sample they shift by a few percent, however large it is.
    """

    variable: str = "sequences/loss"
    meaning: str = "On many drawn sequences the curve rests and ends at the levels of population theory."
    tolerance: float = 0.05
    along: str = "sequences"
    theory: str | None = "levels/loss"

    def _comparison(self, result: "xr.DataTree") -> Comparison:
        return _rests(result, self, along=self.along)


def _rests(result: "xr.DataTree", claim: Agrees | Tends, along: str | None = None) -> Comparison:
    """Rests of every curve after each drop, beside the levels; NaN where a drop never comes."""
    import xarray as xr

    curve, levels = variable(result, "simulation", claim.variable), variable(result, "theory", claim.theory or "")
    where = dict(claim.at)
    curve, levels = (one.sel({axis: where[axis] for axis in where if axis in one.dims}) for one in (curve, levels))
    levels = levels.isel(seed=0, drop=True) if "seed" in levels.dims else levels  # no seed changes them
    rests = xr.apply_ufunc(
        lambda time, loss, heights: rests_and_drops(time, loss, heights)[0], curve.time, curve, levels,
        input_core_dims=[["time"], ["time"], ["plateau"]], output_core_dims=[["drop"]], vectorize=True,
    )  # fmt: skip
    after, before = (levels.isel(plateau=part).rename(plateau="drop") for part in (slice(1, None), slice(None, -1)))
    drops = after.where(after != before.values)  # levels that repeat have no drop between them
    return paired(drops, rests, unit=claim.unit, along=along)
