"""Verdicts on one run, whose scatter training sets that were drawn for it tell.

One run has no scatter of its own. Shown is the largest deviation that it leaves possible, at 95 %, and asked is what
that is at most for 999 of 1000 right runs, for a claim with all of its entries. A claim holds only if a run that is
off by half would have been noticed, and says what it would notice.
"""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from iclab.claims import ALARM, CONFIDENCE, Resolution, Verdict
from iclab.overlay.gaps import calibrated, gap
from iclab.overlay.levels import LEVELS, TIMES, Landmark, blurs, landmarks, names_of

__all__ = ["diverging", "of_gap", "of_landmarks", "unknown"]

Array = np.ndarray
Curve = Float[Array, "record"]
BLUNT = 0.5  # relative change of a variable that must be noticed for a run to tell anything
ROUNDING = 1e-4  # relative, of landmarks of runs in single precision
CLAIM, MEANING = "follows theory", "From this start the run follows the gradient flow of theory."
MEASURE = "mean distance over the range of theory"
FEW = "right runs on so few sequences differ by more: train on more of them"


def unknown(run: Curve, theory: Curve, reason: str) -> Verdict:
    """The verdict on the curve where no sampling error is known."""
    return Verdict(CLAIM, MEANING, MEASURE, float(gap(run, theory)), np.nan, "open", reason=reason)


def diverging(run: Curve, theory: Curve, *, surely: bool) -> Verdict:
    """The verdict where descent on drawn training sets diverges in the stated conventions."""
    reason = "" if surely else "descent on some drawn training set diverges at this rate"
    evidence = (("descent on drawn sets", "diverges, and the run does not"),)
    outcome = "does not hold" if surely else "open"
    found = float(gap(run, theory))
    return Verdict(CLAIM, MEANING, MEASURE, found, np.nan, outcome, evidence, p=0.0 if surely else 1.0, reason=reason)


def of_gap(run: Curve, theory: Curve, draws: Float[Array, "draw record"]) -> Verdict:
    """The verdict on the whole curve."""
    found, calibration = float(gap(run, theory)), calibrated(draws, theory)
    least = calibration.bound / float(gap(2 * theory, theory))  # as theory in the place of the run, larger by so much
    return _judged(
        (CLAIM, MEANING, MEASURE), "theory/flow/loss", found, calibration.bound, calibration.usual,
        Resolution(least, least, 2 * least, 2 * least), calibration.chance(found),
        (("distance of the run", f"{100 * found:.2g} %"), ("drawn sets", str(len(draws))),
         ("their median", f"{100 * np.median(calibration.gaps):.2g} %")),
    )  # fmt: skip


def of_landmarks(
    clock: Curve, run: Curve, levels: Float[Array, "plateau"], draws: Float[Array, "draw record"],
    kinds: Iterable[Landmark] = (LEVELS, TIMES),
) -> list[Verdict]:  # fmt: skip
    """The verdicts on landmarks, of which those count that every drawn set has."""
    found, drawn = (landmarks(clock, curves, levels) for curves in (run, draws))
    between = {TIMES.variable: blurs(clock, draws, levels), LEVELS.variable: np.zeros(len(found[LEVELS.variable][0]))}
    return [_of_kind(kind, found[kind.variable][0], drawn[kind.variable], between[kind.variable]) for kind in kinds]


def _of_kind(
    kind: Landmark, run: Float[Array, "entry"], draws: Float[Array, "draw entry"], blur: Float[Array, "entry"]
) -> Verdict:
    """The verdict on one kind. `blur` are errors that drawn sets do not show, relative as the landmarks are."""
    from scipy import special

    claim = (kind.variable.replace("/", ", "), kind.meaning, kind.measure)
    there = np.asarray(np.isfinite(draws).all(axis=0))
    names = np.array(names_of(kind, len(run)))[there]
    if not len(names):
        return Verdict(*claim, np.nan, np.nan, "open", reason="training sets of its size have none in common")
    run, draws = run[there], draws[:, there]
    middle, count = draws.mean(axis=0), len(draws)
    scatter = draws.std(axis=0, ddof=1) * np.sqrt(1 + 1 / count)
    error = np.sqrt(scatter**2 + blur[there] ** 2 + ROUNDING**2)
    away = np.nan_to_num(abs(run - middle) / error, nan=np.inf)
    reach, alarm = special.stdtrit(count - 1, [CONFIDENCE, 1 - ALARM / (2 * len(names))])
    told = (alarm * error <= BLUNT) | (away > alarm)  # of the others a run tells next to nothing
    worst = int(np.argmax(np.where(told, away, -1.0) if told.any() else away))
    chance = min(1.0, float(2 * len(names) * special.stdtr(count - 1, -away[worst])))
    evidence = [("largest at", str(names[worst])), ("drawn sets", str(count))]
    for name, own, mean, one, judged in zip(names, run, middle, error, told, strict=True):
        said = f"{np.exp(own):.4g}" if np.isfinite(own) else "none"
        apart = "" if judged else "; not judged, right runs differ too much"
        evidence.append((str(name), f"{said}; drawn sets {np.exp(mean):.4g} ± {100 * one:.2g} %{apart}"))
    widest = float(alarm * np.max(error[told] if told.any() else error))
    deviation = float(abs(np.nan_to_num(run - middle, nan=np.inf))[worst])
    return _judged(
        claim, f"theory/{kind.variable}", deviation, float(alarm * error[worst]), float(reach * error[worst]),
        Resolution(widest, widest, 2 * widest, 2 * widest), chance, tuple(evidence),
    )  # fmt: skip


def _judged(
    claim: tuple[str, str, str], variable: str, found: float, bound: float, reach: float, notices: Resolution,
    chance: float, evidence: tuple[tuple[str, str], ...],
) -> Verdict:  # fmt: skip
    """Beyond its bound a claim does not hold; within one that tells next to nothing it is open."""
    blunt = notices.coarsest > BLUNT
    outcome = "does not hold" if found > bound else "open" if blunt else "holds"
    return Verdict(
        *claim, found + reach, bound + reach, outcome, evidence, p=chance, reason=FEW if outcome == "open" else "",
        notices={variable: notices} if outcome == "holds" else {},
    )  # fmt: skip
