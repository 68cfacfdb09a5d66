"""Verdicts: a claim, its outcome, and the numbers from which it follows."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from iclab.claims.judgement import Judgement

if TYPE_CHECKING:
    import xarray as xr

    from iclab.claims.resolution import Resolution

__all__ = ["Claim", "Verdict", "asked", "noticing", "percent", "verdict_of"]


@dataclass(frozen=True, repr=False)
class Verdict:
    """The outcome of a claim as a measurement: the interval that the data leave, and what was asked of it."""

    claim: str
    """The claim in a few words."""
    meaning: str
    """The claim as a sentence."""
    measure: str
    """The quantity that is measured, with its unit."""
    value: float
    """The end of the 95 % interval that counts; NaN where the data give none."""
    yardstick: float
    """The tolerance or bound that was asked for."""
    outcome: str
    """holds, does not hold or open"""
    evidence: tuple[tuple[str, str], ...] = ()
    """Further numbers, as label and text."""
    at_most: bool = True
    """True where the value must be at most what was asked for, else at least."""
    relative: bool = True
    """True where value and yardstick are shown in percent."""
    p: float = 1.0
    """Rate of false alarms at which "does not hold" would begin."""
    reason: str = ""
    """The seeds, sizes or rates that an open verdict lacks."""
    notices: Mapping[str, "Resolution"] = field(default_factory=dict)
    """Smallest errors of theory, by variable, that the claim would have exposed."""

    def __repr__(self) -> str:
        """The verdict in one line."""
        return f"{self.word}: {self.meaning.rstrip('.')} ({self.number}, asked {self.bound})"

    @property
    def holds(self) -> bool:
        """True where the claim holds."""
        return self.outcome == "holds"

    @property
    def known(self) -> bool:
        """True where the data bound what is measured."""
        return bool(np.isfinite(self.value))

    @property
    def word(self) -> str:
        """The outcome; an open one with its reason."""
        return f"open: {self.reason}" if self.reason and self.outcome == "open" else self.outcome

    @property
    def number(self) -> str:
        """The end of the interval as text; a dash where there is none."""
        if np.isnan(self.value):
            return "–"
        sign = ("≤" if self.at_most else "≥") + " "
        return sign + self._shown(self.value)

    @property
    def bound(self) -> str:
        """The tolerance or bound that was asked for, as text."""
        return f"{'≤' if self.at_most else '≥'} {self._shown(self.yardstick)}"

    @property
    def answer(self) -> str:
        """The verdict as an answer: what agrees, how well, what was asked, what would have been noticed."""
        if not self.known and self.outcome == "open":
            return self.word
        said = f"{self.measure}: {self.number} (95 %), asked {self.bound}"
        return f"{self.word}; {said}" + (f"; would notice {self.noticed}" if self.noticed else "")

    @property
    def noticed(self) -> str:
        """Smallest errors of theory that would have been noticed, as text: the variable, then the error."""
        return ", ".join(f"{name.partition('/')[2]} {one}" for name, one in self.notices.items())

    def _shown(self, value: float) -> str:
        return percent(value) if self.relative else f"{value:.3g}".replace("inf", "∞")


def percent(value: float) -> str:
    """A share in percent with two digits."""
    return f"{100 * value:.2g} %" if np.isfinite(value) else "∞"


def verdict_of(
    judgement: Judgement, *, claim: str, meaning: str, measure: str, asked: float,
    evidence: tuple[tuple[str, str], ...] = (), relative: bool = True,
) -> Verdict:  # fmt: skip
    """The verdict on a claim about deviations within a tolerance."""
    counted = (("largest at", judgement.worst),) if judgement.worst else ()
    seeds = (("entries", str(judgement.entries)), ("seeds", str(judgement.seeds)))
    return Verdict(
        claim, meaning, measure, judgement.within, asked, judgement.outcome, (*counted, *seeds, *evidence),
        relative=relative, p=judgement.p, reason=judgement.reason,
    )  # fmt: skip


def noticing(claim: "Claim", result: "xr.DataTree") -> Verdict:
    """The verdict on a claim; where it holds, with the smallest errors of theory that it would have exposed."""
    verdict = claim.verdict(result)
    resolution = getattr(claim, "resolution", None)
    return replace(verdict, notices=resolution(result)) if verdict.holds and resolution else verdict


def asked(claim: "Claim", result: "xr.DataTree") -> bool:
    """True unless a claim is about parts that only other cases have."""
    about = getattr(claim, "asked", None)
    return about is None or about(result)


class Claim(Protocol):
    """A statement about the witnesses of a study that a number can judge."""

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The claim, judged on a labeled result."""
        ...
