"""Hints: the convention that would explain a run that is not where theory says. Nothing is changed by them."""

from collections.abc import Callable, Iterable

import numpy as np

from iclab.claims import Verdict
from iclab.overlay.conventions import Conventions
from iclab.overlay.gaps import Factors, factors
from iclab.overlay.logs import LossLog

__all__ = ["explanations", "observed_factors", "said"]

Array = np.ndarray
ONE = 0.08  # deviation of a factor from 1, or from another one that has a name, that is said
RECORDS = 2000  # of theory on the grid where a clock factor is looked for
WORDS = {0.5: "half of", 2.0: "twice"}


def explanations(
    others: Iterable[Conventions], judged: Callable[[Conventions], Iterable[Verdict]]
) -> list[Conventions]:
    """Those of other conventions under which every verdict on the run holds, the likeliest first."""
    found = []
    for other in others:
        verdicts = list(judged(other))
        if verdicts and all(one.holds for one in verdicts):
            found.append((-min(one.p for one in verdicts), len(found), other))
    return [other for *_, other in sorted(found)]


def observed_factors(log: LossLog, conventions: Conventions, theory: Callable[[Array], Array]) -> Factors:
    """The factors between the run and theory, which is a function of the clock."""
    last = float(log.clock[-1])
    for reach in (100.0, 10.0, 1.0):
        grid = np.concatenate([[0.0], np.geomspace(1e-4 * last, reach * last, RECORDS)])
        try:
            return factors(log.clock, conventions.errors(log.loss), grid, theory(grid))
        except ArithmeticError:  # too long a flow
            continue
    return Factors(float("nan"), float("nan"), float("inf"))


def said(conventions: Conventions, found: list[Conventions], seen: Factors) -> list[str]:
    """Hints as sentences."""
    closed = seen.left < ONE
    parts = []
    if closed and abs(np.log(seen.loss)) > ONE:
        parts.append(f"losses are {_times(seen.loss)} ours")
    if closed and abs(np.log(seen.clock)) > ONE:
        parts.append(f"the run goes at {_times(seen.clock)} the pace of theory")
    observed = " and ".join(parts) or "the run is not where theory is"
    if found:
        return [f"{observed}: {' or '.join(one.switches for one in found[:3])}?"]
    if len(parts) == 1 and "pace" in parts[0]:
        rate = f"{seen.clock * conventions.learning_rate:.3g}"
        return [f"{observed}: no other loss or normalization explains it; --learning-rate {rate} would"]
    return [f"{observed}: no other loss or normalization explains it; are problem and start those of the run?"]


def _times(factor: float) -> str:
    for value, words in WORDS.items():
        if abs(np.log(factor / value)) < ONE:
            return words
    return f"{factor:.3g} times"
