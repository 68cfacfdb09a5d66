"""Do heads with several key-query pairs learn several principal components at once?

A head of rank R that has learned one mode learns the next R − 1 soon after, for its value weight is large by then.
So the visible plateaus are those after R, 2R, ... modes. Theory is the gradient flow of the population loss from the
same start, and the losses of these plateaus, with which the flow from a thirtieth of the start is compared.
Simulation is gradient descent: on the population moments, whose loss theory shares, which becomes that flow as the
learning rate falls, compared over the first fifth of the run, and on drawn sequences with every weight that reaches
the prediction free. Published as figure 4 of arXiv 2501.16265.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from iclab import figures
from iclab.attention import SeparateAttention
from iclab.claims import ExactInRate
from iclab.numerics import Counts, Distinct
from iclab.outcomes import Labeled, labeled
from iclab.problem import Regression
from iclab.published import eigenvalues, separate_units
from iclab.studies.dynamics import training
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case"]

PUBLISHED = separate_units(0.02, context_length=31)


@dataclass(frozen=True)
class Case(training.TrainingCase):
    """Runs of separate key-query attention with heads of several ranks."""

    problem: Regression = Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31)
    ranks: Annotated[Counts, Distinct()] = (1, 2, 4)  # R, key-query pairs of a head
    heads: int = 5  # H, heads
    initial: float = 0.2  # size of value, keys and queries of a head at the start
    rate: float = PUBLISHED.rounded_rate  # η, learning rate on half the mean squared error; published
    steps: int = 11000  # steps of gradient descent
    sequences: tuple[int, ...] = (500, 4000, 32000)  # P, sizes of the training sets


def start(case: Case, seed: int) -> tuple[SeparateAttention, ...]:
    """Small independent normal entries for each rank, heads of equal strength."""
    return tuple(training.small_separate(case, (seed, rank), rank) for rank in case.ranks)


def theory(case: Case, start: tuple[SeparateAttention, ...]) -> dict[str, Labeled]:
    """The gradient flow of each rank, and the losses of its visible plateaus."""
    from iclab.theory import dynamics, population

    moments, dimension = population.moments(case.problem), case.problem.dimension
    time, rank = case.rate * training.log_marks(case.steps), np.array(case.ranks)
    learned = np.arange(-(-dimension // rank.min()) + 1) * rank[:, None]
    flows = [dynamics.separate_flow(moments, layer, time).loss for layer in start]
    levels = dynamics.plateaus(moments)[np.minimum(learned, np.minimum(dimension, case.heads * rank)[:, None])]
    small = [training.small_flow(case, layer) for layer in start]
    return {
        "flow": labeled({"rank": rank, "time": time}, loss=np.stack(flows)),
        "levels": labeled({"rank": rank, "plateau": None}, loss=levels),
        "ends": labeled({"rank": rank}, loss=levels[:, -1]),
        "small": labeled({"rank": rank, "time": small[0].time}, loss=np.stack([one.loss for one in small])),
    }


def simulation(case: Case, start: tuple[SeparateAttention, ...], *, key: Key) -> dict[str, Labeled]:
    """Gradient descent on the population moments at three rates, and on drawn training sets of several sizes."""
    layers = [with_idle_pairs(layer, max(case.ranks)) for layer in start]  # of one shape, to compile once
    data = training.drawn_statistics(case, layers[0], key=key)
    steps = training.log_marks(case.steps)
    trained = [training.by_sequences(case, training.on_drawn(case, data, layer, steps=steps)) for layer in layers]
    rates = [training.by_rate(case, layer, steps=training.early(steps), finer=training.FINEST) for layer in layers]
    return {
        "rates": training.stacked("rank", case.ranks, rates),
        "sequences": training.stacked("rank", case.ranks, trained),
        "ends": labeled(
            {"rank": case.ranks, "sequences": case.sequences}, loss=np.stack([one.loss[:, -1] for one in trained])
        ),
    }


def with_idle_pairs(layer: SeparateAttention, rank: int) -> SeparateAttention:
    """The same layer with `rank` pairs in each head: a pair whose key and query are zero never moves."""
    added = ((0, 0), (0, rank - layer.rank), (0, 0))
    return SeparateAttention(layer.value, np.pad(layer.key, added), np.pad(layer.query, added))


def figure(view: View, figure: Figure) -> None:
    """A panel for each rank: loss against time, every seed, and the levels of the visible plateaus."""
    flow, levels, ranks = view.theory.flow, training.first_seed(view.theory.levels.loss), view.case.ranks
    columns = min(4, len(ranks))
    rows = -(-len(ranks) // columns)
    figure.set_size_inches(2.75 * columns, 0.6 + 2.6 * rows)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes, rank in zip(panels.flat, ranks, strict=False):
        figures.level_lines(axes, np.unique(levels.sel(rank=rank)), label="visible plateaus")
        training.flow_lines(axes, flow.time, flow.loss.sel(rank=rank), label="gradient flow")
        if view.simulation:
            training.drawn_lines(axes, view.simulation.sequences.sel(rank=rank).isel(sequences=-1))
        figures.loss_axes(axes, title=f"rank {rank}")
        axes.set_xlim(0, training.settled(flow.time, flow.loss))
        axes.label_outer()
    for axes in panels.flat[len(ranks) :]:
        axes.set_visible(False)
    panels.flat[0].legend(loc="upper right")


FULL = Case(
    problem=Regression(eigenvalues=eigenvalues(8), context_length=31), ranks=(1, 2, 4, 8, 3, 5, 6, 7), heads=9,
    initial=0.0157, steps=20000, sequences=(5000, 20000, 80000),
)  # fmt: skip

STUDY = Study(
    name="rank-staircase", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), seeds=3, size=(11.0, 3.2)), "full": Preset(FULL, seeds=3, size=(11.0, 3.2))},
    start=start, theory=theory, simulation=simulation, figure=figure,
    units=training.units(PUBLISHED.rounded_rate, problem=Case.problem),
    formulas=(training.PLATEAU_FORMULA, training.FLOW_FORMULA),
    claims=(
        ExactInRate(), training.SMALL_START,
        training.tends("ends/loss", "On many drawn sequences heads of every rank end at the least loss."),
    ),
    vocabulary=training.LEVELS,
)  # fmt: skip
