"""Do heads with several key-query pairs learn several principal components at once?

A head of rank R that has learned one mode learns the next R − 1 soon after, for its value weight is large by then.
So the plateaus that show are those after R, 2R, ... modes. Theory is the gradient flow of the population loss from
the same start, and the losses of these plateaus. Simulation is gradient descent: on the population moments, whose
loss theory shares, to show that it becomes that flow as its step shrinks, and on drawn sequences with every weight
that reaches the prediction free, to show where a finite training set rests. Published as figure 4 of arXiv
2501.16265.
"""

from dataclasses import dataclass

import numpy as np

from iclab import figures
from iclab.attention import SeparateAttention, random_separate
from iclab.claims import ExactInRate, LimitInSequences, RestsNearLevels
from iclab.numerics import require, whole_numbers
from iclab.outcomes import Labelled, labelled
from iclab.problem import Regression
from iclab.studies.dynamics.training import TrainingCase, by_rate, drawn_statistics, marks, on_drawn
from iclab.study import Figure, Key, Preset, Study, View

EPOCH = 0.3947308961  # training time of an epoch of the published run: 2 × its rate .02 × N^(2/3)


@dataclass(frozen=True)
class Case(TrainingCase):
    """Runs of separate key-query attention with heads of several ranks."""

    problem: Regression = Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31)
    ranks: tuple[int, ...] = (1, 2, 4)  # R, key-query pairs of a head
    heads: int = 5  # H, heads
    initial: float = 0.14  # size of value, keys and queries of a head at the start
    rate: float = 0.3947308961  # η, step of gradient descent on half the mean squared error; published
    steps: int = 3200  # steps of gradient descent
    sequences: tuple[int, ...] = (800, 8000, 80000)  # P, sizes of the training sets

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "ranks", whole_numbers("ranks", self.ranks))
        require(len(set(self.ranks)) == len(self.ranks), f"ranks must differ; got {self.ranks}.")


def start(case: Case, seed: int) -> tuple[SeparateAttention, ...]:
    """Small independent normal entries for each rank, heads of equal strength."""
    return tuple(
        random_separate(
            case.problem.dimension, case.heads, rank, scale=case.initial, rng=np.random.default_rng([seed, rank])
        )
        for rank in case.ranks
    )


def theory(case: Case, start: tuple[SeparateAttention, ...]) -> dict[str, Labelled]:
    """The gradient flow of each rank, and the losses of its conspicuous plateaus."""
    from iclab.theory import dynamics, population

    moments = population.moments(case.problem)
    time, rank = case.rate * marks(case.steps), np.array(case.ranks)
    levels = dynamics.plateaus(moments)
    learned = np.arange(-(-case.problem.dimension // rank.min()) + 1) * rank[:, None]
    flows = [dynamics.separate_flow(moments, one, time).loss for one in start]
    return {
        "flow": labelled({"rank": rank, "time": time}, loss=np.stack(flows)),
        "levels": labelled({"rank": rank, "plateau": None}, loss=levels[np.minimum(learned, case.problem.dimension)]),
    }


def simulation(case: Case, start: tuple[SeparateAttention, ...], *, key: Key) -> dict[str, Labelled]:
    """Gradient descent on the population moments at three rates, and on drawn training sets of several sizes."""
    from iclab.theory import population

    moments, rank = population.moments(case.problem), np.array(case.ranks)
    layers = [with_idle_pairs(one, max(case.ranks)) for one in start]  # of one shape, to compile once
    rates = [by_rate(moments, one, rate=case.rate, steps=case.steps) for one in layers]
    data = drawn_statistics(case, layers[0], key=key)
    trained = [on_drawn(case, data, one) for one in layers]
    return {
        "rates": labelled({"rank": rank, **rates[0].axes}, loss=np.stack([one.loss for one in rates])),
        "sequences": labelled(
            {"rank": rank, "sequences": np.array(case.sequences), "time": trained[0].time},
            loss=np.stack([one.loss for one in trained]),
        ),
    }


def with_idle_pairs(layer: SeparateAttention, rank: int) -> SeparateAttention:
    """The same layer with `rank` pairs in each head: a pair whose key and query are zero never moves."""
    added = ((0, 0), (0, rank - layer.rank), (0, 0))
    return SeparateAttention(layer.value, np.pad(layer.key, added), np.pad(layer.query, added))


def figure(view: View, figure: Figure) -> None:
    """A panel for each rank: loss against time, every seed, and the levels of the conspicuous plateaus."""
    flow, levels = view.theory.flow, view.theory.levels.loss
    levels = levels.isel(seed=0) if "seed" in levels.dims else levels
    columns = min(4, flow.sizes["rank"])
    rows = -(-flow.sizes["rank"] // columns)
    figure.set_size_inches(2.75 * columns, 0.6 + 2.6 * rows)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes, rank in zip(panels.flat, flow["rank"].values, strict=False):
        figures.level_lines(axes, np.unique(levels.sel(rank=rank)), label="conspicuous plateaus")
        for i, curve in enumerate(flow.loss.sel(rank=rank).values):
            figures.theory_line(axes, flow.time, curve, label="gradient flow" if i == 0 else None)
        if view.simulation:
            drawn = view.simulation.sequences.isel(sequences=-1)
            label = f"descent on {int(drawn.sequences)} sequences"
            figures.seed_lines(axes, drawn.time, drawn.loss.sel(rank=rank).values, label=label)
        figures.loss_axes(axes, title=f"rank {rank}")
        axes.label_outer()
    for axes in panels.flat[flow.sizes["rank"] :]:
        axes.set_visible(False)
    for axes in panels[0]:
        figures.epoch_axis(axes, EPOCH, label="published epochs")
    panels.flat[0].legend(loc="upper right")


STUDY = Study(
    name="rank-staircase",
    question=str(__doc__),
    version=1,
    presets={
        "quick": Preset(Case(), seeds=3, size=(11.0, 3.2)),
        "full": Preset(
            Case(
                problem=Regression(eigenvalues=tuple(share / 36 for share in range(8, 0, -1)), context_length=31),
                ranks=(1, 2, 4, 8, 3, 5, 6, 7),
                heads=9,
                initial=0.0157,
                steps=20000,
                sequences=(5000, 20000, 80000),
            ),
            seeds=3,
            size=(11.0, 3.2),
        ),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(ExactInRate(), LimitInSequences(), RestsNearLevels()),
    start=start,
)
