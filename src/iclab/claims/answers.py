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
    left = [one for one in verdicts if one.outcome == "open"]
    together = [_open(reason, left) for reason in dict.fromkeys(one.reason for one in left)]
    count = f"{len(held)} of {len(verdicts)} claims {'holds' if len(held) == 1 else 'hold'}"
    return f"{count}; {'; '.join(part for part in (failed, *together) if part)}."


def _used(verdict: Verdict) -> float:
    """Share of what was asked for that is used up; 0 where it is not known."""
    value, bound = (verdict.value, verdict.yardstick) if verdict.at_most else (verdict.yardstick, verdict.value)
    return value / bound if bound and np.isfinite(value) else 0.0


def _open(reason: str, left: Sequence[Verdict]) -> str:
    """The open verdicts of one reason: by their number where they are several."""
    same = [one for one in left if one.reason == reason]
    if len(same) == 1 or not reason:
        return _named("open", same)
    return f"{len(same)} are open: {reason}"


def _named(word: str, verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return ""
    more = f" and {len(verdicts) - _FEW} more" if len(verdicts) > _FEW else ""
    return f"{word}: {', '.join(_said(verdict) for verdict in verdicts[:_FEW])}{more}"


def _said(verdict: Verdict) -> str:
    sentence = verdict.meaning.rstrip(".")
    sentence = sentence[:1].lower() + sentence[1:] if sentence[1:2].islower() else sentence
    reason = verdict.reason if verdict.outcome == "open" else ""
    numbers = f"{verdict.number}, asked {verdict.bound}" if verdict.known or not reason else ""
    return f"{sentence} ({'; '.join(part for part in (numbers, reason) if part)})"
