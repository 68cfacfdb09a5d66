"""Can the times of all drops be read off the random start?

From a small start every head of separate key-query attention grows on its own until one of them escapes, at a time
that an integral gives; the others go on under what force is left. So the time of each drop follows from the weights
at the start, without integrating the flow. Theory is this prediction. Simulation is gradient descent from the same
start: on the population moments, whose loss theory shares, and on drawn sequences with every weight that reaches the
prediction free, whose drops approach the predicted ones with many sequences. Goes beyond section 4 of arXiv
2501.16265, which explains how long plateaus last up to a constant.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int

from iclab import figures
from iclab.attention import SeparateAttention, random_separate
from iclab.claims import Limit, Within
from iclab.outcomes import Labelled, Levels, LossCurve, labelled
from iclab.outcomes.curves import rests_and_drops
from iclab.problem import Regression
from iclab.studies.dynamics.training import TrainingCase, drawn_statistics, first_seed, on_drawn, on_population
from iclab.study import Figure, Key, Preset, Study, View


@dataclass(frozen=True)
class Case(TrainingCase):
    """Runs of separate key-query attention from small random starts."""

    problem: Regression = Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31)
    heads: int = 6  # H, heads
    initial: float = 0.02  # size of value, key and query of a head at the start
    rate: float = 0.4  # η, step of gradient descent on half the mean squared error
    steps: int = 40000  # steps of gradient descent
    sequences: tuple[int, ...] = (500, 5000, 50000)  # P, sizes of the training sets


def start(case: Case, seed: int) -> SeparateAttention:
    """Small independent normal entries, heads of equal strength."""
    rng = np.random.default_rng(seed)
    return random_separate(case.problem.dimension, case.heads, scale=case.initial, rng=rng)


def theory(case: Case, start: SeparateAttention) -> dict[str, Labelled | Levels]:
    """The predicted time of each drop, and the levels between which the loss drops."""
    from iclab.theory import dynamics, population

    moments = population.moments(case.problem)
    return {
        "drops": labelled({"drop": None}, half_drop=dynamics.drop_times(moments, start)),
        "levels": Levels(dynamics.plateaus(moments)),
    }


def simulation(case: Case, start: SeparateAttention, *, key: Key) -> dict[str, Labelled | LossCurve]:
    """Times at which gradient descent passes the middles between levels; NaN for drops after the last step."""
    from iclab.theory import dynamics, population

    moments, steps = population.moments(case.problem), fine_marks(case.steps)
    levels = dynamics.plateaus(moments)
    exact = on_population(moments, start, rate=case.rate, steps=steps)
    drawn = on_drawn(case, drawn_statistics(case, start, key=key), start, steps=steps)
    times = [rests_and_drops(drawn.time, loss, levels)[1] for loss in drawn.loss]
    return {
        "drops": labelled({"drop": None}, half_drop=rests_and_drops(exact.time, exact.loss, levels)[1]),
        "sequences": labelled({"sequences": np.array(case.sequences), "drop": None}, half_drop=np.stack(times)),
        "curve": LossCurve(drawn.time, drawn.loss[-1]),
    }


def fine_marks(steps: int) -> Int[np.ndarray, "record"]:
    """Steps spaced by a ratio of 1.003, so that the time of a drop is known far better than it is predicted."""
    return np.unique(np.round(np.concatenate([[0], np.geomspace(max(1, steps / 400), steps, 2000)])).astype(int))


def figure(view: View, figure: Figure) -> None:
    """One run with the predicted drops; simulated against predicted times of all drops and seeds."""
    run, times = figure.subplots(1, 2, width_ratios=[1.4, 1])
    predicted = view.theory.drops.half_drop
    figures.level_lines(run, first_seed(view.theory.levels.loss), label="plateaus of theory")
    for i, time in enumerate(first_seed(predicted).values):
        run.axvline(time, color=figures.INK, lw=1, ls="--", label="predicted drops" if i == 0 else None)
    if view.simulation:
        curve, drawn = view.simulation.curve, view.simulation.sequences
        size = int(drawn.sequences[-1])
        figures.seed_lines(run, curve.time[1:], curve.loss.values[:1, 1:], label=f"descent on {size} sequences")
        exact = view.simulation.drops.half_drop
        for color, mode in figures.colored(range(exact.sizes["drop"])):
            at = predicted.isel({"drop": mode})
            times.plot(at, exact.isel({"drop": mode}), "o", ms=5, color=color, mfc="none", label=f"drop {mode + 1}")
            times.plot(at, drawn.half_drop.isel({"drop": mode, "sequences": -1}), "x", ms=4, color=color)
        ends = [float(predicted.min()), float(predicted.max())]
        times.plot(ends, ends, color=figures.INK, lw=0.8)
        times.legend(title=f"○ population  × {size} sequences", title_fontsize=7)
    figures.loss_axes(run, title="drops of seed 0")
    run.set_xscale("log")
    run.legend()
    times.set(xscale="log", yscale="log", title="all seeds; line: as predicted")
    times.set(xlabel="predicted time  (units of $\\tau$)", ylabel="simulated time  (units of $\\tau$)")


STUDY = Study(
    name="drop-times",
    question=str(__doc__),
    version=1,
    presets={
        "quick": Preset(Case(), seeds=8, size=(9.0, 3.6)),
        "full": Preset(
            replace(Case(), initial=0.003, steps=300000, sequences=(5000, 20000, 80000)), seeds=8, size=(9.0, 3.6)
        ),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        Within(
            "theory/drops/half_drop",
            "simulation/drops/half_drop",
            "Most drops on the population moments come when they are predicted.",
            most=0.01,
            quantile=0.5,
        ),
        Within(
            "theory/drops/half_drop",
            "simulation/drops/half_drop",
            "Nearly all drops on the population moments come when they are predicted.",
            most=0.1,
            quantile=0.9,
        ),
        Limit(
            "theory/drops/half_drop",
            "simulation/sequences/half_drop",
            "On many drawn sequences drops come when they are predicted.",
            along="sequences",
            order=0.5,
        ),
    ),
    start=start,
)
