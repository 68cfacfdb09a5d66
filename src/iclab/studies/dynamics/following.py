"""Learning rate and steps that follow from the problem of a case, for those who bring a problem of their own."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from iclab.attention import Layer
from iclab.outcomes import Labeled, labeled, parts, vocabulary
from iclab.planning import pace
from iclab.studies.dynamics.training import TrainingCase
from iclab.study import Cost

__all__ = ["NOT_JUDGED", "WORDS", "cost", "limits", "settled"]

FOLLOWED = "problem", "heads", "initial"  # fields from which the rate and the steps follow
SEEDS = 8  # whose drops are predicted
RECORDS, COPIES = 400, 3  # of the weights along a run; arrays of a kind that are held at once

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
        given = parts(case, "problem", "initial", "sequences", "rate", "steps")
        rate, steps = pace.paced(**given, starts=[start(case, seed) for seed in range(SEEDS)], stated=stated)
        return replace(case, rate=rate, steps=steps)

    return settle


def limits(case: TrainingCase, start: Layer) -> Labeled:
    """Largest stable rate of a case, and the steps until training from a start is done."""
    rate = pace.largest_rate(start=start, **parts(case, "problem", "initial", "sequences"))
    return labeled({}, rate=rate, steps=pace.done_time(case.problem, start) / case.rate)


def cost(case: TrainingCase) -> Cost:
    """The work of one seed: its steps, and the moments of all features that its training sets are."""
    size = case.problem.dimension
    features = size * (size + 1) * (size + 2) / 2
    moments = 1e-9 * sum(case.sequences) * features**2
    kept = RECORDS * case.heads * (1 + size**2)
    return Cost(
        1.0 + 1e-6 * case.steps * pace.step_time(size, len(case.sequences)) + moments,
        8.0 * (COPIES * len(case.sequences) * features**2 + COPIES * kept),
    )
