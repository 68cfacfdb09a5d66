"""Learning rate and steps that a problem of training asks for: stable on drawn sequences, and long enough."""

from collections.abc import Collection, Sequence
from math import ceil, isfinite

from iclab.attention import Layer, MergedAttention
from iclab.problem import Regression

__all__ = ["LONGEST", "done_time", "largest_rate", "paced"]

LONGEST = 10**8  # steps of one run: a day
MARGIN = 2.0  # of the horizon over the last drop predicted, so that the rest after it shows
SHORTEST = 1.2  # margin that is enough where a longer one is not affordable
VISIBLE, EVERY = 2e-3, 1e-4  # how close to its least value the loss is when visible drops are done, and when all are
FINEST = 16.0  # divisor of the largest stable rate, where that many steps are cheap
CHEAP = 0.25  # share of the affordable steps up to which the rate is finer than it must be
SECONDS = 2.0  # of stepping for one seed, so that a run of all takes about a minute at most, with its overhead
FEWEST = 600  # steps, so that records differ


def paced(
    problem: Regression, starts: Sequence[Layer], *, initial: float, sequences: Sequence[int], rate: float,
    steps: int, stated: Collection[str] = (),
) -> tuple[float, int]:  # fmt: skip
    """Learning rate and steps for training from some starts of size `initial` on sets of these sizes.

    Of the rate and the steps given those whose name is `stated` are kept. The rate is the largest that 999 of 1000
    drawn training sets bear, or up to sixteen times finer where that is cheap; the steps reach twice the last drop
    predicted, but end so that a run of the default seeds takes about a minute at most.
    """
    if isinstance(starts[0], MergedAttention):
        starts = starts[:1]  # whose drop knows a start by its log
    most = min(LONGEST, max(FEWEST, int(SECONDS * 1e6 / step_time(problem.dimension, len(sequences)))))
    coarsest = largest_rate(problem, starts[0], initial=initial, sequences=sequences)
    kept = "rate" in stated or not isfinite(coarsest)
    pace = rate if kept else coarsest
    done = max(done_time(problem, one) for one in starts)
    if SHORTEST * done / pace > most:
        done = max(done_time(problem, one, VISIBLE) for one in starts)
    horizon = MARGIN * done
    if not kept:
        cheap = steps if "steps" in stated else CHEAP * most
        pace = _short(min(coarsest, max(coarsest / FINEST, horizon / cheap)))
    if "steps" not in stated:
        steps = _long(min(max(horizon / pace, FEWEST), most))
    return pace, steps


def done_time(problem: Regression, start: Layer, within: float | None = None) -> float:
    """Time until all drops are done, or those that bring the loss within a fraction of its least value."""
    from iclab.theory import dynamics, population

    if within is None:
        within = VISIBLE if isinstance(start, MergedAttention) else EVERY
    return dynamics.settling_time(population.moments(problem), start, within=within)


def largest_rate(problem: Regression, start: Layer, *, initial: float, sequences: Sequence[int]) -> float:
    """Largest learning rate at which 999 of 1000 drawn training sets are stable, from a start of this size."""
    from iclab.theory import dynamics

    if isinstance(start, MergedAttention):
        steepest = dynamics.merged_sharpness(problem, initial=initial)
    else:
        steepest = dynamics.separate_sharpness(problem, heads=start.heads, initial=initial)
    return dynamics.stable_rate(problem, steepest, sequences)


def step_time(dimension: int, sets: int) -> float:
    """Time of a step on all training sets, and of some twenty finer ones on the moments, on one core of 2024."""
    features = dimension * (dimension + 1) * (dimension + 2) / 2
    return 2 + 0.2 * dimension**2 + 1.5e-4 * sets * features**2


def _short(rate: float) -> float:
    """Three digits, downwards."""
    rounded = float(f"{rate:.3g}")
    return rounded if rounded <= rate else float(f"{rate * 0.995:.3g}")


def _long(steps: int | float) -> int:
    """Two digits, upwards."""
    unit = 10 ** max(len(str(ceil(steps))) - 2, 0)
    return ceil(steps / unit) * unit
