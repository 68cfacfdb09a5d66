"""Verdicts: agreement in numbers, and the orders that some of them are made of.

An order is fitted over at least three sizes, and a claim of an order holds when the fit is at least the stated
one minus 0.25.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    import xarray as xr

SLACK = 0.25  # by which a fitted order may stay below the stated one


@dataclass(frozen=True)
class Verdict:
    """One number with its threshold."""

    claim: str
    """The claim in a few words."""
    meaning: str
    """The claim as a sentence."""
    measure: str
    """The quantity that is measured."""
    value: float
    yardstick: float
    """The least value with which the claim holds; the largest one if `at_most`."""
    evidence: tuple[tuple[str, str], ...]
    """Further numbers, as label and text."""
    at_most: bool = False
    error: float = 0.0
    """Standard error of the value where one is known; it is shown and decides nothing."""

    @property
    def holds(self) -> bool:
        """True where the number reaches its threshold, or stays below it if `at_most`."""
        return bool(self.value <= self.yardstick if self.at_most else self.value >= self.yardstick)

    @property
    def number(self) -> str:
        """The value as text, with its error if it has one; a dash where the case does not allow one."""
        if np.isnan(self.value):
            return "–"
        return _three_digits(self.value) + (f" ± {self.error:#.2g}" if self.error > 0 else "")

    @property
    def bound(self) -> str:
        """The threshold as text."""
        return f"{'≤' if self.at_most else '≥'} {_three_digits(self.yardstick)}"

    @property
    def word(self) -> str:
        """The verdict in a word; "open" where the case does not allow one."""
        return "open" if np.isnan(self.value) else "holds" if self.holds else "does not hold"


def _three_digits(value: float) -> str:
    return f"{value:#.3g}".rstrip(".")


class Claim(Protocol):
    """A statement about the witnesses of a study that a number can judge."""

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The claim, judged on a labeled result."""
        ...


def fitted_order(sizes: Float[np.ndarray, "n"], gaps: Float[np.ndarray, "n"]) -> float:
    """Slope of log gap against log size, by least squares; NaN for fewer than three sizes or a gap of 0 or NaN."""
    if len(sizes) < 3 or not np.all((gaps > 0) & np.isfinite(gaps)):
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(gaps), 1)[0])
