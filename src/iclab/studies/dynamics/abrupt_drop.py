"""Does attention with merged key and query learn in context in one abrupt drop?

Linear attention whose key and query are one matrix for each head has two fixed points: nothing learned, and the
least loss. From a small start it waits near the first and then drops to the second. Theory is the gradient flow of
the population loss, and the few scalars it reduces to from a small start. Simulation is gradient descent: on the
population moments, which becomes that flow as the learning rate falls, and on drawn sequences with every weight that
reaches the prediction free, to show where a finite training set ends and how often its loss drops, by the rule of
`iclab.numerics.curves.stages`. Published as figure 1 of arXiv 2501.16265; levels and flow for any covariance are
derived in docs/derivations/population and docs/derivations/dynamics.
"""

from dataclasses import dataclass

import numpy as np

from iclab import figures
from iclab.attention import MergedAttention
from iclab.claims import Agrees, ExactInRate, RestsAtLevels, RestsTend, Share
from iclab.numerics.curves import drop_count, half_drop_time
from iclab.outcomes import Labeled, LossCurve, labeled, vocabulary
from iclab.problem import Regression
from iclab.published import merged_units
from iclab.studies.dynamics import following, training
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case"]

PUBLISHED = merged_units(0.001, context_length=31)


@dataclass(frozen=True)
class Case(training.TrainingCase):
    """One run of merged key-query attention."""

    problem: Regression = Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31)
    heads: int = 8  # H, heads
    initial: float = 1e-6 * PUBLISHED.weight_scale  # standard deviation of every entry at the start; published
    rate: float = PUBLISHED.rate  # η, learning rate on half the mean squared error; published
    steps: int = 6000  # steps of gradient descent; published
    sequences: tuple[int, ...] = (2000, 8000, 32000)  # P, sizes of the training sets


def theory(case: Case, start: MergedAttention) -> dict[str, LossCurve | Labeled]:
    """The gradient flow, its two levels, and the D + 1 scalars that it reduces to from a small start."""
    from iclab.theory import dynamics, population

    moments = population.moments(case.problem)
    time = case.rate * training.marks(case.steps)
    return {
        "flow": dynamics.merged_flow(moments, start, time),
        "reduced": dynamics.reduced_merged_flow(moments, dynamics.growing_amplitude(moments, start), time),
        "levels": labeled({"plateau": None}, loss=[moments.null_loss, population.best_loss(moments)]),
        "drops": labeled({}, count=1),
        "limits": following.limits(case, start),
    }


def simulation(case: Case, start: MergedAttention, *, key: Key) -> dict[str, Labeled]:
    """Gradient descent on the population moments at three rates, and on drawn training sets of several sizes."""
    trained = training.on_sequences(case, start, key=key)
    return {
        "rates": training.by_rate(case, start),
        "sequences": training.by_sequences(case, trained),
        "drops": labeled({}, count=drop_count(trained.time, trained.loss[-1])),
    }


def figure(view: View, figure: Figure) -> None:
    """Loss against time: theory, every seed of the largest training set, both levels."""
    axes = figure.subplots()
    reduced = view.theory.reduced.isel(seed=0)
    figures.dashed_line(axes, reduced.time, reduced.loss, color=figures.COLORS[1], label="D + 1 scalars, seed 0")
    training.loss_panel(axes, view, title="merged key and query: one abrupt drop")


def answer(view: View) -> str:
    """The drops of the loss on the largest training set, where they lead, and when."""
    drawn, flow = view.simulation.sequences.isel(sequences=-1), view.theory.flow
    once, levels = int((view.simulation.drops["count"] == 1).sum()), training.first_seed(view.theory.levels.loss)
    half, exact = (
        np.median([half_drop_time(run.time.values, curve) for curve in run.loss.values]) for run in (drawn, flow)
    )
    return (
        f"In {once} of {figures.seeds(drawn)} the loss drops once, from {levels[0]:.3g} to {levels[-1]:.3g}; half of "
        f"the drop is done at t = {half:.3g} τ in the median (theory: {exact:.3g} τ)."
    )


STUDY = Study(
    name="abrupt-drop", question=str(__doc__), version=2, headline=True,
    presets={"quick": Preset(Case(), seeds=8), "full": Preset(Case(sequences=(5000, 20000, 80000)), seeds=8)},
    start=training.small_merged, theory=theory, simulation=simulation, figure=figure,
    units=training.units(PUBLISHED.rate, problem=Case.problem),
    claims=(
        ExactInRate(), RestsAtLevels(tolerance=0.005),
        Agrees("theory/flow/loss", "The D + 1 scalars follow the flow.", 0.01, theory="reduced/loss", unit="range"),
        RestsTend(), Share("drops/count", "On the largest training set the loss drops once.", least=0.5),
    ),
    vocabulary=training.LEVELS | following.WORDS | vocabulary(count=("n", "drops of the loss")),
    formulas=(training.PLATEAU_FORMULA, training.FLOW_FORMULA), answer=answer, cost=following.cost,
    unjudged=following.NOT_JUDGED, settle=following.settled(training.small_merged),
)  # fmt: skip
