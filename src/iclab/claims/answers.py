"""Answers: verdicts in one sentence, for readers who read no table."""

from collections.abc import Sequence

import numpy as np

from iclab.claims.verdict import Verdict

__all__ = ["answered"]

_FEW = 2  # claims that are named of each outcome


def answered(verdicts: Sequence[Verdict]) -> str:
    """The outcome of all claims: how many hold, and those that do not, or the one that comes closest to failing."""
    if not verdicts:
        return "Theory alone: no seeds were asked for, and nothing is judged."
    held = [verdict for verdict in verdicts if verdict.holds]
    if len(held) == len(verdicts):
        closest = max(held, key=_used)
        count = "The claim holds" if len(held) == 1 else f"All {len(held)} claims hold"
        return f"{count}; closest to its bound: {_said(closest)}."
    failed = _named("does not hold", [one for one in verdicts if one.outcome == "does not hold"])
    left = _named("open", [one for one in verdicts if one.outcome == "open"])
    return f"{len(held)} of {len(verdicts)} claims hold; {'; '.join(part for part in (failed, left) if part)}."


def _used(verdict: Verdict) -> float:
    """Share of what was asked for that is used up; 0 where it is not known."""
    value, bound = (verdict.value, verdict.yardstick) if verdict.at_most else (verdict.yardstick, verdict.value)
    return value / bound if bound and np.isfinite(value) else 0.0


def _named(word: str, verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return ""
    more = f" and {len(verdicts) - _FEW} more" if len(verdicts) > _FEW else ""
    return f"{word}: {', '.join(_said(verdict) for verdict in verdicts[:_FEW])}{more}"


def _said(verdict: Verdict) -> str:
    sentence = verdict.meaning.rstrip(".")
    sentence = sentence[:1].lower() + sentence[1:] if sentence[1:2].islower() else sentence
    reason = f"; {verdict.reason}" if verdict.reason and verdict.outcome == "open" else ""
    return f"{sentence} ({verdict.number}, asked {verdict.bound}{reason})"
