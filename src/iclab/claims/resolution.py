"""The resolution of a claim: the smallest error of theory that it would have exposed on this very result.

Theory is changed and judged with the unchanged theory in the place of the measurement, so that no luck enters. Tried
are a change of the whole variable, of its part above the floor, and of each entry along an axis with physics; the
coarsest counts.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from iclab.claims.comparison import PHYSICS, Comparison
from iclab.claims.judgement import Deviations, alarm_widths

__all__ = ["Resolution", "finest", "resolved"]

Array = np.ndarray
LARGEST = 10.0  # relative change beyond which nothing is resolved


@dataclass(frozen=True)
class Resolution:
    """Smallest relative changes of theory, each way, that reach the tolerance, and that would be refuted."""

    up: float
    down: float
    refuted_up: float = np.inf
    refuted_down: float = np.inf

    @property
    def coarsest(self) -> float:
        """The larger one of the changes up and down."""
        return max(self.up, self.down)

    def __str__(self) -> str:
        return f"{100 * self.coarsest:.2g} %" if np.isfinite(self.coarsest) else "–"


def finest(one: Resolution, other: Resolution) -> Resolution:
    """The smaller changes of two claims about one variable."""
    pairs = zip(vars(one).values(), vars(other).values(), strict=True)
    return Resolution(*(min(pair) for pair in pairs))


def resolved(
    comparison: Comparison, deviations: Callable[[Comparison], Deviations], *, tolerance: float
) -> Resolution:
    """The resolution of a claim that judges `deviations(comparison)`."""
    allowance = tolerance + alarm_widths(deviations(comparison))
    found = [
        [
            _smallest(comparison, deviations, sign * direction, limit)
            for limit in (np.full_like(allowance, tolerance), allowance)
            for sign in (1.0, -1.0)
        ]
        for direction in _directions(comparison)
    ]
    return Resolution(*np.max(found, axis=0)) if found else Resolution(np.inf, np.inf)


def _directions(comparison: Comparison) -> Iterator[Float[Array, "rows entry"]]:
    """Relative changes to try, each as what is added to theory for a change of 1."""
    height = comparison.theory - comparison.floor
    yield comparison.theory
    if np.any(comparison.floor != 0):
        yield height
    for axis in PHYSICS:
        if axis in comparison.places:
            for point in np.unique(comparison.places[axis]):
                here: Bool[Array, "entry"] = comparison.places[axis] == point
                if np.any(height[:, here] != 0):
                    yield np.where(here, comparison.theory, 0.0)


def _smallest(
    comparison: Comparison,
    deviations: Callable[[Comparison], Deviations],
    direction: Float[Array, "rows entry"],
    limit: Float[Array, "entry"],
) -> float:
    """The smallest positive multiple of a direction at which some deviation reaches its limit: secant steps."""

    def beyond(change: float) -> float:
        with np.errstate(invalid="ignore"):
            changed = comparison.theory + change * direction
        values = np.nanmax(abs(deviations(comparison.under(changed)).values), axis=0, initial=0.0)
        with np.errstate(invalid="ignore"):
            return float(np.nanmax(values / limit, initial=0.0))

    change = 1e-4
    for _ in range(6):
        share = beyond(change)
        if not share > 0 or change > LARGEST:
            return np.inf
        if abs(share - 1) < 1e-6:
            break
        change /= share
    return change
