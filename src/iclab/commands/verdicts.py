"""Verdicts for programs: as JSON, schema 2 of docs/json.md, and as the exit code of a command."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from iclab.claims import Resolution, Verdict

__all__ = ["FAILED", "INPUT", "INTERRUPTED", "LEFT", "OPEN", "SCHEMA", "as_json", "exit_code"]

SCHEMA = 2  # of the JSON of verdicts; raised when a key changes its meaning
FAILED, INPUT, OPEN, LEFT, INTERRUPTED = 1, 2, 3, 4, 130  # exit codes; 0 where the work is done


def exit_code(verdicts: Iterable[Verdict], *, strict: bool) -> int:
    """0; under `strict` 1 where a claim does not hold, else 3 where one is open or nothing is judged."""
    outcomes = {verdict.outcome for verdict in verdicts}
    if not strict or outcomes == {"holds"}:
        return 0
    return FAILED if "does not hold" in outcomes else OPEN


def as_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict as plain values: numbers as numbers, null where a number is unknown or infinite."""
    return {
        "claim": verdict.claim,
        "meaning": verdict.meaning,
        "measure": verdict.measure,
        "value": _number(verdict.value),
        "asked": _number(verdict.yardstick),
        "at_most": verdict.at_most,
        "relative": verdict.relative,
        "verdict": verdict.outcome,
        "reason": verdict.reason or None,
        "p": _number(verdict.p),
        "would_notice": _resolutions(verdict.notices),
        "evidence": dict(verdict.evidence),
    }


def _resolutions(notices: Mapping[str, Resolution]) -> dict[str, dict[str, float | None]]:
    return {name: {key: _number(value) for key, value in vars(one).items()} for name, one in notices.items()}


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
