"""Agreement: means over seeds of a measured variable against theory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from iclab.claims.comparison import Comparison, Unit, compared
from iclab.claims.judgement import ROUNDING, Deviations, Judgement, judged
from iclab.claims.paths import whole
from iclab.claims.resolution import Resolution, resolved
from iclab.claims.verdict import Verdict, verdict_of

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["UNITS", "Agrees"]

UNITS = {
    "theory": "largest relative deviation",
    "range": "largest deviation over the range of theory",
    "mode": "largest deviation over the range of theory in its mode",
    "one": "largest deviation",
}


@dataclass(frozen=True)
class Agrees:
    """The mean of a variable over seeds agrees with theory within a tolerance, in every entry.

    Deviations are in units of theory's height above its floor, of the largest such height ("range"), of the largest
    one of the same mode ("mode"), or of the variable itself ("one"). A measured variable of theory is compared
    without seeds.
    """

    variable: str  # what is measured: "group/variable" of simulation, or "theory/group/variable"
    meaning: str
    tolerance: float
    theory: str | None = None  # the variable of theory, where its name is another one
    floor: str | float = 0.0  # a number or a variable of theory
    unit: Unit = "theory"
    at: Mapping[str, Any] = field(default_factory=dict)  # points of axes, where not all count
    numerical: float = ROUNDING  # error of the numbers, in units of the claim

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The verdict; open with fewer than two seeds, and where an entry is missing in some seed."""
        found = self._judged(self._deviations(self._comparison(result)), result)
        return verdict_of(
            found, claim="agrees with theory", meaning=self.meaning, measure=UNITS[self.unit], asked=self.tolerance,
            relative=self.unit != "one",
        )  # fmt: skip

    def resolution(self, result: "xr.DataTree") -> dict[str, Resolution]:
        """The smallest errors of theory that the claim would expose, by variable."""
        name = whole("theory", self.theory or self.variable)
        return {name: resolved(self._comparison(result), self._deviations, tolerance=self.tolerance)}

    def _judged(self, deviations: Deviations, result: "xr.DataTree") -> Judgement:
        return judged(deviations)

    def _comparison(self, result: "xr.DataTree") -> Comparison:
        theory = self.theory or self.variable
        return compared(result, self.variable, theory, floor=self.floor, unit=self.unit, at=dict(self.at))

    def _deviations(self, comparison: Comparison) -> Deviations:
        return comparison.deviations(self.tolerance, numerical=self.numerical)
