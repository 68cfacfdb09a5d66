"""Remedies: what a run of training lacked for a claim to be decided, and what to try, in words for its verdict.

A study that knows them from theory keeps two numbers in its group theory/limits: `rate`, the largest learning rate at
which descent on drawn sequences is stable, and `steps`, those until training from the start of each seed is done.
"""

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from iclab.claims.paths import present, variable
from iclab.claims.verdict import Verdict

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["LIMITS", "ends_early", "excused", "rises", "steps_to_try"]

LIMITS = "limits"  # the group of theory
DRAWN = "sequences/loss"  # curves of descent on drawn sequences
MARGIN = 1.2  # of the steps that are advised
ROUNDING = 1e-6  # relative rise that rounding explains


def excused(claim: Any, verdict: Verdict, result: "xr.DataTree") -> Verdict:
    """The verdict, unless it holds: open where the run is unstable or not finished, with what to try.

    Curves that rise concern claims about simulation. A claim with the attribute `at_all_times` does not need a
    finished run.
    """
    if verdict.holds or "theory" not in result.children or getattr(claim, "at_all_times", False):
        return verdict
    measured = not str(getattr(claim, "variable", "theory/")).startswith("theory/")
    drawn = measured and present(result, "simulation", DRAWN)
    reason = (rises(result, DRAWN) if drawn else "") or ends_early(result)
    return replace(verdict, outcome="open", reason=reason) if reason else verdict


def ends_early(result: "xr.DataTree") -> str:
    """The reason of a run that ends before training is done, with the steps to try; else nothing."""
    needed, made = _limit(result, "steps"), json.loads(result.attrs.get("case", "{}")).get("steps")
    if needed is None or made is None or not np.any(needed > made):
        return ""
    return f"training ends before the last drop, {_advised(needed)}"


def steps_to_try(result: "xr.DataTree") -> str:
    """Advice about steps, for a run in which drops are missing."""
    needed = _limit(result, "steps")
    return "try more steps" if needed is None else _advised(needed)


def rises(result: "xr.DataTree", path: str) -> str:
    """The reason of curves "group/variable" of full-batch descent that rise by more than sampling explains.

    Descent lowers the loss on its own sequences at every step, unless its rate is too large for them. On P drawn
    ones a rise counts from a relative error 1/√P of the lowest loss so far; on population moments from 10⁻⁶, and
    only at a rate beyond the largest stable one.
    """
    loss = variable(result, "simulation", path).transpose(..., "time")
    rate, stable = json.loads(result.attrs.get("case", "{}")).get("rate"), _limit(result, "rate")
    known = [] if rate is None or stable is None else [float(np.min(stable)), rate / 3]
    if "sequences" not in loss.dims and not (known and rate > known[0]):
        return ""
    lowest = loss.copy(data=np.minimum.accumulate(loss.values, axis=-1))
    allowed = 1 / np.sqrt(loss.sequences) if "sequences" in loss.dims else ROUNDING
    if not bool((loss > lowest * (1 + allowed)).any()):
        return ""
    return "the rate is too large for this training set, try " + (f"≤ {min(known):.2g}" if known else "a smaller one")


def _limit(result: "xr.DataTree", name: str) -> "np.ndarray | None":
    known = LIMITS in result["theory"].children and name in result[f"theory/{LIMITS}"].data_vars
    return variable(result, "theory", f"{LIMITS}/{name}").values if known else None


def _advised(needed: np.ndarray) -> str:
    most = float(np.max(needed))
    if not np.isfinite(most):
        return "this start needs more steps than can be made, take a larger one"
    return f"try --steps {_round_up(MARGIN * most)} (a default run is kept to about a minute)"


def _round_up(number: float) -> int:
    """Two digits, upwards."""
    unit = 10 ** max(int(np.floor(np.log10(max(number, 1)))) - 1, 0)
    return int(np.ceil(number / unit)) * unit
