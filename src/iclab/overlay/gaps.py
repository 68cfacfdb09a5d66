"""The gap between a run and theory: one number, its bound for a right run, and the factors that would close it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.claims import ALARM, CONFIDENCE

__all__ = ["Calibration", "Factors", "calibrated", "factors", "gap"]

Array = np.ndarray
Curve = Float[Array, "record"]
POWER = 2 / 3  # of a distance, of which it is close to normal however many numbers it is made of
FARTHEST = 300.0  # clock factor that is looked for, either way
LEAST = 1e-6  # of the range: rounding of runs in single precision


def gap(run: Float[Array, "*draw record"], theory: Curve) -> Float[Array, "*draw"]:
    """Mean distance over the records, in units of the range of theory."""
    return np.mean(np.abs(run - theory), axis=-1) / np.ptp(theory)


@dataclass(frozen=True)
class Calibration:
    """The gaps of drawn training sets, from which the bound for a right run follows."""

    gaps: Float[Array, "draw"]

    @property
    def bound(self) -> float:
        """The gap that a right run exceeds at a rate of 1 in 1000."""
        return self._quantile(1 - ALARM)

    @property
    def usual(self) -> float:
        """The gap that a right run exceeds at a rate of 1 in 20."""
        return self._quantile(CONFIDENCE)

    def _quantile(self, share: float) -> float:
        from scipy import special

        mean, spread, degrees = self._moments()
        return float((mean + special.stdtrit(degrees, share) * spread) ** (1 / POWER)) + LEAST

    def chance(self, found: float) -> float:
        """Rate at which a right run has a gap as large as this one."""
        from scipy import special

        mean, spread, degrees = self._moments()
        lifted = max(found - LEAST, 0.0) ** POWER
        return float(special.stdtr(degrees, (mean - lifted) / spread)) if spread > 0 else float(lifted <= mean)

    def _moments(self) -> tuple[float, float, int]:
        """Mean of the powers of gaps, the spread of a further one about it, and degrees of freedom."""
        powers = self.gaps**POWER
        count = len(powers)
        return float(np.mean(powers)), float(np.std(powers, ddof=1) * np.sqrt(1 + 1 / count)), count - 1


def calibrated(draws: Float[Array, "draw record"], theory: Curve) -> Calibration:
    """The calibration by the curves of drawn training sets."""
    return Calibration(gap(draws, theory))


@dataclass(frozen=True)
class Factors:
    """Pace and loss of a run in units of those of theory, and the gap that is left with both of them set right."""

    clock: float
    loss: float
    left: float


def factors(clock: Curve, run: Curve, time: Curve, theory: Curve) -> Factors:
    """The clock and loss factors that bring theory nearest to a run.

    Theory is known on a grid of `time` that reaches further than the clock of the run. A clock factor c > 1:
    theory has to go c times as fast to keep pace with the run.
    """
    first = run[0] / theory[0]
    best = Factors(1.0, first, np.inf)
    grid = np.geomspace(1 / FARTHEST, FARTHEST, 241)
    for _ in range(3):
        for c in grid:
            moved = np.interp(clock * c, time, theory)
            share = float(np.median(run / moved))
            for s in (share, first):
                left = float(np.mean(np.abs(run / s - moved)) / np.ptp(theory))
                if left < best.left:
                    best = Factors(float(c), float(s), left)
        width = grid[1] / grid[0]
        grid = np.geomspace(best.clock / width, best.clock * width, 41)
    return best
