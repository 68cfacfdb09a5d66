"""The judgement of deviations: an interval for each entry, and what it says about a tolerance.

Rates hold for seeds that were fixed beforehand. A theory that is off by more than the tolerance in some entry holds
in at most 5 % of runs, however many entries there are; one that is not fails in at most one of a thousand.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from iclab.claims.seeds import over_seeds
from iclab.numerics import require

__all__ = ["ALARM", "CONFIDENCE", "ROUNDING", "Deviations", "Judgement", "alarm_widths", "judged", "judged_share"]

CONFIDENCE = 0.95  # of the interval within which a theory agrees
ALARM = 1e-3  # chance that a right theory is said not to hold, for a claim with all of its entries
ROUNDING = 1e-12  # relative, of numbers that seeds do not change
MANY = 10_000  # seeds beyond which no number is named
OPEN, HOLDS, FAILS = "open", "holds", "does not hold"

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Deviations:
    """Deviations of a measurement from theory, in the unit of a claim; a row for each seed.

    `numerical` is the error of the numbers themselves and `model` that of an extrapolation. Scatter is pooled over
    entries of one `pool`. A `signed` deviation may be as negative as it likes. Seeds that are not `kept` in an entry
    say nothing of it, as theory alone tells. Entries that are `unitless` have no unit to be measured in: theory is
    zero there, or at its floor. `unstated` are entries that are measured and of which theory says nothing.
    """

    values: Float[Array, "seed entry"]
    labels: tuple[str, ...]  # of the entries
    tolerance: float
    numerical: Float[Array, "entry"] | float = ROUNDING
    model: Float[Array, "entry"] | float = 0.0
    pool: Int[Array, "entry"] | int = 0
    drawn: bool = True  # false where no seed can change them
    signed: bool = False
    kept: Bool[Array, "seed entry"] | None = None  # all seeds, if not stated
    unitless: Bool[Array, "entry"] | np.bool_ | bool = False
    unstated: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require(
            self.values.ndim == 2 and self.values.shape[1] == len(self.labels),
            f"values must have a row for each seed and a column for each of {len(self.labels)} labels; got shape "
            f"{self.values.shape}.",
        )
        require(self.tolerance >= 0, f"tolerance must be >= 0; got {self.tolerance}.")

    def at(self, kept: Bool[Array, "entry"]) -> "Deviations":
        """The deviations of some entries."""
        labels = tuple(label for label, one in zip(self.labels, kept, strict=True) if one)
        parts = {
            name: np.broadcast_to(getattr(self, name), len(kept))[kept]
            for name in ("numerical", "model", "pool", "unitless")
        }
        counting = None if self.kept is None else self.kept[:, kept]
        return replace(self, values=self.values[:, kept], labels=labels, kept=counting, **parts)

    def over_seeds(self) -> tuple[Float[Array, "entry"], Float[Array, "entry"], Int[Array, "entry"]]:
        """Mean, scatter and number of the seeds that are kept in every entry."""
        return over_seeds(self.values, self.kept)

    def known(self) -> Bool[Array, "seed entry"]:
        """True where a value is there, or not asked for. A value that is infinite in some seeds only is none."""
        same = np.all(self.values == self.values[:1], axis=0)
        there = np.isfinite(self.values) | (np.isinf(self.values) & same)
        return there if self.kept is None else there | ~self.kept

    def whole(self) -> Bool[Array, "entry"]:
        """True for the entries that are known in every seed."""
        return np.asarray(self.known().all(axis=0))


@dataclass(frozen=True)
class Judgement:
    """An outcome with the numbers that it rests on."""

    outcome: str  # holds, does not hold, open
    within: float  # deviation that the interval leaves, of the entry where it leaves most; NaN where none is known
    worst: str  # that entry
    entries: int
    seeds: int
    p: float  # rate of false alarms at which "does not hold" would begin
    reason: str = ""  # of an open judgement: what is missing


def judged(deviations: Deviations) -> Judgement:
    """The judgement of means over seeds against the tolerance.

    With n seeds the mean m of an entry is known to se = max(its scatter, the median scatter of its pool)/√n. The
    claim holds if |m| + t(.95) se + errors is within the tolerance in every entry, and does not if
    |m| − t(1 − .0005/M) se − errors is beyond it in one of M.
    """
    seeds, count = deviations.values.shape
    if deviations.unstated:
        return _unstated(deviations)
    if count == 0:
        return Judgement(OPEN, float("nan"), "", 0, seeds, 1.0, "the case has nothing to compare")
    if deviations.drawn and seeds < 2:
        return Judgement(OPEN, float("nan"), "", count, seeds, 1.0, "one seed has no scatter: 2 seeds or more")
    if np.any(deviations.unitless):
        return _unitless(deviations)
    whole = deviations.whole()
    if not whole.any():
        return _partly(deviations, whole, Judgement(OPEN, float("nan"), "", count, seeds, 1.0))
    size, scatter, counts = _means(deviations, whole)
    error = _errors(deviations)[whole]
    labels = [label for label, known in zip(deviations.labels, whole, strict=True) if known]
    slack = deviations.tolerance - size
    degrees, spread = np.maximum(counts - 1, 1), scatter / np.sqrt(counts)
    reach = -slack + _quantile(degrees, CONFIDENCE) * spread + error
    short = slack + _quantile(degrees, 1 - ALARM / (2 * count)) * spread + error
    worst = int(np.argmax(reach))
    outcome = FAILS if np.any(short < 0) else HOLDS if np.all(reach <= 0) else OPEN
    if outcome == FAILS:
        worst = int(np.argmin(short))
    found = Judgement(
        outcome, float(reach[worst] + deviations.tolerance), labels[worst], count, seeds,
        p=_chance(-slack - error, spread, degrees, count),
        reason=_missing(slack, scatter, error, count) if outcome == OPEN else "",
    )  # fmt: skip
    return found if whole.all() else _partly(deviations, whole, found)


def _means(deviations: Deviations, whole: Bool[Array, "entry"]) -> tuple[Array, Array, Array]:
    """Size of the mean of every known entry, its scatter, 0 for what no draw has touched, and its seeds."""
    mean, own, counts = (one[whole] for one in deviations.over_seeds())
    own = np.nan_to_num(own, nan=0.0, posinf=0.0)
    touched, pool = own > ROUNDING, np.broadcast_to(deviations.pool, len(whole))[whole]
    scatter = own.copy()
    for one in np.unique(pool):
        here = touched & (pool == one)
        if here.any():
            scatter[here] = np.maximum(own[here], np.median(own[here]))
    return mean if deviations.signed else abs(mean), np.where(touched, scatter, 0.0), counts


def _quantile(degrees: int | Int[Array, "n"], share: float) -> Any:
    """The quantile of Student's law."""
    from scipy import special

    return special.stdtrit(degrees, share)


def _errors(deviations: Deviations) -> Float[Array, "entry"]:
    return np.broadcast_to(deviations.numerical + np.asarray(deviations.model), len(deviations.labels))


def alarm_widths(deviations: Deviations) -> Float[Array, "entry"]:
    """Distance beyond the tolerance from which on "does not hold" is said of a mean; infinite for one seed."""
    seeds, count = deviations.values.shape
    whole = deviations.whole()
    found = np.full(count, np.inf)
    if whole.any() and (seeds > 1 or not deviations.drawn):
        _, scatter, counts = _means(deviations, whole)
        reach = _quantile(np.maximum(counts - 1, 1), 1 - ALARM / (2 * count)) / np.sqrt(counts)
        found[whole] = reach * scatter + _errors(deviations)[whole]
    return found


def _chance(beyond: Array, error: Array, degrees: Array, count: int) -> float:
    """Chance of means so far beyond the tolerance under a theory that is off by the whole of it."""
    from scipy import special

    with np.errstate(divide="ignore", invalid="ignore"):
        tail = np.where(error > 0, special.stdtr(degrees, -beyond / error), np.where(beyond > 0, 0.0, 1.0))
    return float(min(1.0, 2 * count * np.min(tail)))


def _missing(slack: Array, scatter: Array, error: Array, count: int) -> str:
    """The remedy of an open judgement: seeds, or smaller errors where no number of seeds would decide."""
    seeds = np.unique(np.geomspace(2, MANY, 400).astype(int))
    known = (_quantile(seeds - 1, CONFIDENCE) / np.sqrt(seeds))[:, None] * scatter + error <= slack
    alarm = (_quantile(seeds - 1, 1 - ALARM / (2 * count)) / np.sqrt(seeds))[:, None] * scatter + error < -slack
    deciding = seeds[known.all(axis=1) | alarm.any(axis=1)]
    if len(deciding):
        return f"about {deciding[0]} seeds would decide"
    if np.any(error > abs(slack)):
        return "numerical and model errors are as large as what is to be decided: finer rates, larger sizes"
    return f"more than {MANY} seeds would be needed"


def _unitless(deviations: Deviations) -> Judgement:
    """The judgement where some entry has no unit: open, unless another entry decides."""
    bare = np.broadcast_to(deviations.unitless, len(deviations.labels))
    known = judged(deviations.at(~bare))
    label = deviations.labels[int(np.argmax(bare))]
    reason = f"theory is zero or at its floor{' at ' * bool(label)}{label}, and nothing is relative to that"
    outcome = FAILS if known.outcome == FAILS else OPEN
    return replace(known, outcome=outcome, within=float("inf"), worst=label, entries=len(bare), reason=reason)


def _unstated(deviations: Deviations) -> Judgement:
    """The judgement where theory says nothing of some entries: open, unless another entry decides."""
    silent, known = deviations.unstated, judged(replace(deviations, unstated=()))
    every = len(silent) + len(deviations.labels)
    first = f", the first {silent[0]}" if silent[0] else ""
    reason = f"theory says nothing of {len(silent)} of {every} entries that are measured{first}"
    outcome = FAILS if known.outcome == FAILS else OPEN
    return replace(known, outcome=outcome, within=float("inf"), worst=silent[0], entries=every, reason=reason)


def _partly(deviations: Deviations, whole: Bool[Array, "entry"], known: Judgement) -> Judgement:
    """The judgement where some entry is missing in some seed: its mean is open, and its count is judged."""
    seeds = len(deviations.values)
    there = deviations.known().sum(axis=0)
    label, count = deviations.labels[int(np.argmin(there))], int(there.min())
    reason = f"{label or 'the value'} is there in {count} of {seeds} seeds"
    rare = _clopper_pearson(count, seeds, ALARM / (2 * len(there)))[1] < 1 / 2
    outcome = FAILS if known.outcome == FAILS or rare else OPEN
    return Judgement(outcome, float("inf"), label, len(there), seeds, known.p, reason)


def judged_share(agreeing: int, seeds: int, least: float) -> Judgement:
    """The judgement of a count: the share of seeds that agree is at least the stated one, by Clopper and Pearson."""
    from scipy import special

    lower, _ = _clopper_pearson(agreeing, seeds, 1 - CONFIDENCE)
    _, upper = _clopper_pearson(agreeing, seeds, ALARM)
    outcome = HOLDS if lower >= least else FAILS if upper < least else OPEN
    reason = "" if outcome != OPEN else _seeds_for_share(agreeing / seeds, least)
    chance = float(special.bdtr(agreeing, seeds, least))
    return Judgement(outcome, lower, f"{agreeing} of {seeds}", 1, seeds, chance, reason)


def _clopper_pearson(count: int, seeds: int, alpha: float) -> tuple[float, float]:
    """One-sided bounds of a share, each missed in at most a share alpha of cases."""
    from scipy import special

    lower = 0.0 if count == 0 else float(special.betaincinv(count, seeds - count + 1, alpha))
    upper = 1.0 if count == seeds else float(special.betaincinv(count + 1, seeds - count, 1 - alpha))
    return lower, upper


def _seeds_for_share(share: float, least: float) -> str:
    several = np.unique(np.geomspace(1, MANY, 300).astype(int))
    for seeds in several:
        count = round(share * seeds)
        if _clopper_pearson(count, seeds, 1 - CONFIDENCE)[0] >= least or (
            _clopper_pearson(count, seeds, ALARM)[1] < least
        ):
            return f"about {seeds} seeds would decide"
    return f"more than {MANY} seeds would be needed"
