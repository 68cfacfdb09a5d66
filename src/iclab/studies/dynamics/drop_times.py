"""Can the times of all drops be read off the random start?

From a small start every head of separate key-query attention grows on its own until one escapes, at a time that an
integral gives; the others grow on by the signal that is left. So the time of each drop follows from the weights at
the start, without integrating the flow. Theory is this prediction, and the flow: from the same start, and from a
thirtieth of it, with which the prediction for small starts is compared. Simulation is gradient descent from the same
start: on the population moments, whose loss theory shares, and on drawn sequences with every weight that reaches the
prediction free. Goes beyond section 4 of arXiv 2501.16265, which explains how long plateaus last up to a constant.
"""

from dataclasses import dataclass

import numpy as np

from iclab import figures
from iclab.attention import SeparateAttention
from iclab.claims import Agrees
from iclab.numerics.curves import rests_and_drops
from iclab.outcomes import Labeled, Trajectory, labeled, vocabulary
from iclab.problem import Regression
from iclab.studies.dynamics import training
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case"]


@dataclass(frozen=True)
class Case(training.TrainingCase):
    """Runs of separate key-query attention from small random starts."""

    problem: Regression = Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31)
    heads: int = 6  # H, heads
    initial: float = 0.02  # size of value, key and query of a head at the start
    rate: float = 0.4  # η, learning rate on half the mean squared error
    steps: int = 65000  # steps of gradient descent
    sequences: tuple[int, ...] = (500, 5000, 50000)  # P, sizes of the training sets


def recorded(case: Case) -> training.Steps:
    """Steps spaced by a ratio of 1.003, so that the time of a drop is known far better than it is predicted."""
    return training.log_marks(case.steps, 2000, first=max(1, case.steps / 400))


def theory(case: Case, start: SeparateAttention) -> dict[str, Labeled | Trajectory]:
    """The predicted time of each drop, that of the flow, the levels in between; the same for a smaller start."""
    from iclab.theory import dynamics, population

    moments = population.moments(case.problem)
    levels = training.plateaus(case)
    flow = dynamics.separate_flow(moments, start, case.rate * recorded(case))
    small = training.small_flow(case, start, records=4000)
    own = SeparateAttention(*(part / training.SMALLER for part in vars(start).values()))
    return {
        "drops": labeled({"drop": None}, half_drop=dynamics.drop_times(moments, start)),
        "flow": labeled({"drop": None}, half_drop=rests_and_drops(flow.time, flow.loss, levels)[1]),
        "levels": labeled({"plateau": None}, loss=levels),
        "small": small,
        "small_drops": labeled(
            {"drop": None},
            predicted=dynamics.drop_times(moments, own),
            half_drop=rests_and_drops(small.time, small.loss, levels)[1],
        ),
    }


def simulation(case: Case, start: SeparateAttention, *, key: Key) -> dict[str, Labeled]:
    """Times at which gradient descent passes the middles between levels; NaN for drops after the last step."""
    from iclab.theory import dynamics, population

    steps, levels = recorded(case), dynamics.plateaus(population.moments(case.problem))
    exact = training.on_population(case, start, steps=steps, finer=3)
    drawn = training.on_sequences(case, start, key=key, steps=steps)
    times = [rests_and_drops(drawn.time, loss, levels)[1] for loss in drawn.loss]
    return {
        "drops": labeled({"drop": None}, half_drop=rests_and_drops(exact.time, exact.loss, levels)[1]),
        "sequences": labeled({"sequences": case.sequences, "drop": None}, half_drop=np.stack(times)),
        "curve": labeled({"time": drawn.time}, loss=drawn.loss[-1]),
    }


def figure(view: View, figure: Figure) -> None:
    """One run with the predicted drops; simulated against predicted times of all drops and seeds."""
    run, times = figure.subplots(1, 2, width_ratios=[1.4, 1])
    predicted = view.theory.drops.half_drop
    figures.level_lines(run, training.first_seed(view.theory.levels.loss), label="plateaus of theory")
    for i, time in enumerate(training.first_seed(predicted).values):
        run.axvline(time, color=figures.INK, lw=1, ls="--", label="predicted drops" if i == 0 else None)
    if view.simulation:
        curve, drawn = view.simulation.curve, view.simulation.sequences
        size = int(drawn.sequences[-1])
        figures.seed_lines(run, curve.time[1:], curve.loss.values[:1, 1:], label=f"descent on {size} sequences")
        exact, last = view.simulation.drops.half_drop, drawn.half_drop.isel(sequences=-1)
        for color, i in figures.colored(range(exact.sizes["drop"])):
            own = {"drop": i}  # not isel(drop=i), which has a meaning of its own
            label = f"drop {i + 1}"
            times.plot(predicted.isel(own), exact.isel(own), "o", ms=5, color=color, mfc="none", label=label)
            times.plot(predicted.isel(own), last.isel(own), "x", ms=4, color=color)
        training.diagonal(times, predicted)
        times.legend(title=f"○ population  × {size} sequences", title_fontsize=7)
    figures.loss_axes(run, title="drops of seed 0", scale="log")
    run.legend()
    times.set(xscale="log", yscale="log", title="all seeds; line: as predicted")
    times.set(xlabel="predicted time  (units of $\\tau$)", ylabel="simulated time  (units of $\\tau$)")


FULL = Case(initial=0.003, steps=450000, sequences=(5000, 20000, 80000))

STUDY = Study(
    name="drop-times", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), seeds=6, size=(9.0, 3.6)), "full": Preset(FULL, seeds=8, size=(9.0, 3.6))},
    start=training.small_separate, theory=theory, simulation=simulation, figure=figure,
    units=lambda case: {"steps": case.rate},
    formulas=(training.PLATEAU_FORMULA, training.FLOW_FORMULA),
    claims=(
        Agrees(
            "theory/small_drops/half_drop", "From a thirtieth of the start all drops come when they are predicted.",
            0.005, theory="small_drops/predicted",
        ),
        training.SMALL_START,
        Agrees("drops/half_drop", "The first drop comes when it is predicted.", 0.003, at={"drop": 0}),
        Agrees("drops/half_drop", "All drops are those of the flow.", 0.02, theory="flow/half_drop"),
        training.tends(
            "sequences/half_drop", "On many drawn sequences the first drop comes when it is predicted.",
            theory="drops/half_drop", at={"drop": 0},
        ),
    ),
    vocabulary=training.LEVELS | vocabulary(predicted=("t½", "predicted half-drop time", "τ")),
)  # fmt: skip
