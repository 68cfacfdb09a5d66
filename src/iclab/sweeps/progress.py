"""Progress of a sweep, for whoever has its folder: read from files alone, and needing no server."""

import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iclab.sweeps.claims import Claims, Held
from iclab.sweeps.failures import Failure
from iclab.sweeps.state import State

__all__ = ["Progress", "progress_of", "span", "stated"]

_WINDOW = 600.0  # seconds over which the rate is measured
_QUIET = 15.0  # seconds without a new part after which nobody works on a sweep that no live claim is on


@dataclass(frozen=True)
class Progress:
    """Cells done and failed with their reasons, who works on the others, and when it ends."""

    study: str
    plan: str
    cells: int
    done: int
    failures: Sequence[Failure]
    """Records of the cells that failed."""
    rate: float | None
    """Cells per second of late; None where too little was written to tell."""
    working: Sequence[Held]
    """Claims on blocks."""
    under_way: Sequence[str]
    """The cell under way of each claim, in words."""
    cancelled: bool
    quiet: bool
    """True where nobody works on it."""

    @property
    def failed(self) -> int:
        """Number of cells that failed."""
        return len(self.failures)

    @property
    def missing(self) -> int:
        """Number of cells that are neither done nor failed."""
        return self.cells - self.done - self.failed

    @property
    def seconds_left(self) -> float | None:
        """Seconds until nothing is missing, at the rate of late; None where that is not known."""
        return self.missing / self.rate if self.rate and not self.quiet else None

    @property
    def reasons(self) -> list[tuple[int, str, str]]:
        """Reasons of failures, the most frequent first: count, error, and the first cell that failed so."""
        kinds = Counter((one.kind, one.message) for one in self.failures)
        first = {(one.kind, one.message): stated(one.values, one.seed) for one in reversed(self.failures)}
        return [(count, f"{kind}: {message}", first[kind, message]) for (kind, message), count in kinds.most_common()]

    def lines(self) -> list[str]:
        """The progress in lines of text."""
        share = f"{100 * self.done / self.cells:.1f} %"
        said = [f"{self.study}: {self.done:,} of {self.cells:,} cells done ({share}), {self.failed:,} failed, "
                f"{self.missing:,} missing; plan {self.plan}"]  # fmt: skip
        if self.missing:
            said.append(self._ending())
        said += [_working(one, cell) for one, cell in zip(self.working, self.under_way, strict=True)]
        said += [f"failed: {count:,} × {reason} (first: {first})" for count, reason, first in self.reasons[:10]]
        if self.failed:
            said.append("failed cells are left out until `iclab sweep … --retry-failed`")
        return said

    def _ending(self) -> str:
        if self.cancelled:
            return "cancelled; `iclab sweep` with the same grid, or `iclab sweep work`, goes on"
        if self.quiet:
            return "nobody works on it; `iclab sweep work` goes on"
        if self.seconds_left is None or self.rate is None:
            return "the rate is not known yet"
        return f"{self.rate:.3g} cells a second of late; ends in about {span(self.seconds_left)}"

    def as_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "study": self.study, "plan": self.plan, "cells": self.cells, "done": self.done, "failed": self.failed,
            "missing": self.missing, "rate": self.rate, "seconds_left": self.seconds_left,
            "cancelled": self.cancelled,
            "working": [
                {"block": one.block, "host": one.host, "pid": one.pid, "job": one.job, "attempt": one.attempt,
                 "age": one.age, "cell": one.cell} for one in self.working
            ],
            "failures": [
                {"count": count, "reason": reason, "first": first} for count, reason, first in self.reasons
            ],
        }  # fmt: skip

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        bar = f'<progress max="{self.cells}" value="{self.done + self.failed}"></progress>'
        return f"{bar}<pre>{html.escape(str(self))}</pre>"


def progress_of(state: State) -> Progress:
    """The progress that a state and the claims tell."""
    plan, claims = state.plan, Claims(state.folder, state.plan)
    written, held = state.written(), [one for one in claims.held() if state.missing(one.block)]
    now = claims.now()
    late = [(time, count) for time, count in written if time > now - _WINDOW]
    passed = late[-1][0] - late[0][0] if len(late) > 1 else 0.0
    rate = sum(count for _, count in late[1:]) / passed if passed > 0 else None
    cells = [None if one.cell is None else plan.cell(one.cell) for one in held]
    return Progress(
        plan.study.name, plan.id, plan.cells, int(state.done.sum()), state.reasons(), rate, held,
        ["" if cell is None else stated(plan.values(cell[0]), cell[1]) for cell in cells], claims.cancelled,
        quiet=not any(one.alive for one in held) and (not written or now - written[-1][0] > _QUIET),
    )  # fmt: skip


def _working(one: Held, cell: str) -> str:
    """A claim in words."""
    words = [f"block {one.block} on {one.host}, process {one.pid}"]
    words += [f"job {one.job}"] * bool(one.job) + [f"attempt {one.attempt}"] * (one.attempt > 1)
    words += [f"{'' if one.alive else 'ended; last '}sign of life {max(0.0, one.age):.0f} s ago"]
    return f"working: {', '.join([*words, *([f'at {cell}'] if cell else [])])}"


def stated(values: dict[str, Any], seed: int | None) -> str:
    """A cell in words: its values and its seed."""
    words = [
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}" for name, value in values.items()
    ]
    return ", ".join([*words, *([] if seed is None else [f"seed {seed}"])])


def span(seconds: float) -> str:
    """A stretch of time in its largest unit."""
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s"
