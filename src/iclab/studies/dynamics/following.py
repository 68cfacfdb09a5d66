"""Learning rate and steps that follow from the problem of a case, for those who bring a problem of their own."""

from collections.abc import Callable
from dataclasses import replace
from math import ceil, isfinite
from typing import Any

from iclab.attention import Layer, MergedAttention
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.studies.dynamics.training import LONGEST, TrainingCase
from iclab.study import Cost

__all__ = ["NOT_JUDGED", "WORDS", "cost", "limits", "settled"]

FOLLOWED = "problem", "heads", "initial"  # fields from which the rate and the steps follow
SEEDS = 8  # whose drops are predicted
MARGIN = 2.0  # of the horizon over the last drop predicted, so that the rest after it shows
SHORTEST = 1.2  # margin that is enough where a longer one is not affordable
VISIBLE, EVERY = 2e-3, 1e-4  # how close to its least value the loss is when visible drops are done, and when all are
FINEST = 16.0  # divisor of the largest stable rate, where that many steps are cheap
CHEAP = 0.25  # share of the affordable steps up to which the rate is finer than it must be
SECONDS = 2.0  # of stepping for one seed, so that a run of all takes about a minute at most, with its overhead
RECORDS, COPIES = 400, 3  # of the weights along a run; arrays of a kind that are held at once
FEWEST = 600  # steps, so that records differ

WORDS = vocabulary(
    {
        "limits/rate": ("η_c", "largest learning rate at which 999 of 1000 drawn training sets are stable"),
        "limits/steps": ("n", "steps until training from this start is done", "1"),
    }
)
NOT_JUDGED = {
    "theory/limits/rate": "a bound for choosing the rate; docs/derivations/stable_rate checks it on drawn sets",
    "theory/limits/steps": "a horizon for choosing the steps; drop-times judges the times that it is made of",
}


def settled(start: Callable[[Any, int], Layer]) -> Callable[[Any, frozenset[str], Any], Any]:
    """The hook `settle` of a study of training with these starts; its docstring is shown by `iclab run`."""

    def settle(case: TrainingCase, stated: frozenset[str], like: TrainingCase) -> TrainingCase:
        """Rate and steps follow from problem, heads and initial where these are changed, unless flags state them.

        The rate is the largest that 999 of 1000 drawn training sets bear, or up to sixteen times finer where that is
        cheap; the steps reach twice the last drop predicted, but end so that a run of the default seeds takes about a
        minute at most.
        """
        if {"rate", "steps"} <= stated or all(getattr(case, name) == getattr(like, name) for name in FOLLOWED):
            return case
        starts = [start(case, seed) for seed in range(SEEDS)]
        starts = (
            starts[:1] if isinstance(starts[0], MergedAttention) else starts
        )  # whose drop knows a start by its log
        most = min(LONGEST, max(FEWEST, int(SECONDS * 1e6 / _microseconds(case))))
        coarsest = _stable_rate(case, starts[0])
        pace = case.rate if "rate" in stated or not isfinite(coarsest) else coarsest
        done = max(_time(case, one) for one in starts)
        if SHORTEST * done / pace > most and not isinstance(starts[0], MergedAttention):  # whose time this is already
            done = max(_time(case, one, VISIBLE) for one in starts)
        horizon = MARGIN * done
        rate, steps = pace, case.steps
        if "rate" not in stated and isfinite(coarsest):
            cheap = steps if "steps" in stated else CHEAP * most
            rate = _short(min(coarsest, max(coarsest / FINEST, horizon / cheap)))
        if "steps" not in stated:
            steps = _long(min(max(horizon / rate, FEWEST), most))
        return replace(case, rate=rate, steps=steps)

    return settle


def limits(case: TrainingCase, start: Layer) -> Labeled:
    """Largest stable rate of a case, and the steps until training from a start is done."""
    return labeled({}, rate=_stable_rate(case, start), steps=_time(case, start) / case.rate)


def _time(case: TrainingCase, start: Layer, within: float | None = None) -> float:
    """Time until all drops are done, or those that bring the loss within a fraction of its least value."""
    from iclab.theory import dynamics, population

    if within is None:
        within = VISIBLE if isinstance(start, MergedAttention) else EVERY
    return dynamics.settling_time(population.moments(case.problem), start, within=within)


def _stable_rate(case: TrainingCase, start: Layer) -> float:
    from iclab.theory import dynamics

    if isinstance(start, MergedAttention):
        steepest = dynamics.merged_sharpness(case.problem, initial=case.initial)
    else:
        steepest = dynamics.separate_sharpness(case.problem, heads=case.heads, initial=case.initial)
    return dynamics.stable_rate(case.problem, steepest, case.sequences)


def cost(case: TrainingCase) -> Cost:
    """The work of one seed: its steps, and the moments of all features that its training sets are."""
    size = case.problem.dimension
    features = size * (size + 1) * (size + 2) / 2
    moments = 1e-9 * sum(case.sequences) * features**2
    kept = RECORDS * case.heads * (1 + size**2)
    return Cost(
        1.0 + 1e-6 * case.steps * _microseconds(case) + moments,
        8.0 * (COPIES * len(case.sequences) * features**2 + COPIES * kept),
    )


def _microseconds(case: TrainingCase) -> float:
    """Time of a step on all training sets, and of some twenty finer ones on the moments, on one core of 2024."""
    size = case.problem.dimension
    features = size * (size + 1) * (size + 2) / 2
    return 2 + 0.2 * size**2 + 1.5e-4 * len(case.sequences) * features**2


def _short(rate: float) -> float:
    """Three digits, downwards."""
    rounded = float(f"{rate:.3g}")
    return rounded if rounded <= rate else float(f"{rate * 0.995:.3g}")


def _long(steps: float) -> int:
    """Two digits, upwards."""
    unit = 10 ** max(len(str(ceil(steps))) - 2, 0)
    return ceil(steps / unit) * unit
