"""What studies of training dynamics share: the form of a case, two simulations, and the panel of the loss."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from iclab import figures
from iclab.attention import MergedAttention, SeparateAttention
from iclab.numerics import require_positive, whole_number
from iclab.outcomes import LossByRate, LossBySequences, Trajectory
from iclab.problem import Regression, checked_lengths

if TYPE_CHECKING:
    import xarray as xr
    from jaxtyping import PRNGKeyArray
    from matplotlib.axes import Axes

    from iclab.theory.population import Moments

FINER = np.array([1, 3, 10])  # by which the step of gradient descent is divided to see its order


@dataclass(frozen=True)
class TrainingCase:
    """One run of linear attention by gradient descent. Raises ValueError for impossible numbers."""

    problem: Regression
    heads: int
    initial: float
    rate: float
    steps: int
    sequences: tuple[int, ...]

    def __post_init__(self) -> None:
        whole_number("heads", self.heads)
        whole_number("steps", self.steps)
        require_positive("initial", self.initial)
        require_positive("rate", self.rate)
        object.__setattr__(self, "sequences", checked_lengths(self.sequences, "sequences"))


def marks(steps: int) -> Int[np.ndarray, "record"]:
    """Steps at which losses are recorded: evenly spaced, and closer near the start."""
    even, early = np.linspace(0, steps, 301), np.geomspace(1, steps, 60)
    return np.unique(np.round(np.concatenate([even, early])).astype(int))


def by_rate(moments: "Moments", start: MergedAttention | SeparateAttention, *, rate: float, steps: int) -> LossByRate:
    """Gradient descent on the population moments themselves, at the rate and at finer ones, to the same time."""
    from iclab.simulation import descent
    from iclab.simulation.statistics import Statistics

    population = Statistics(moments.cross, moments.second, moments.input_covariance, np.asarray(moments.null_loss))
    curves = [
        descent.on_statistics(population, start, rate=rate / finer, steps=finer * marks(steps)).loss
        for finer in FINER
    ]
    return LossByRate(rate / FINER, rate * marks(steps), np.stack(curves))


def on_sequences(
    case: TrainingCase, start: MergedAttention | SeparateAttention, *, key: "PRNGKeyArray"
) -> Trajectory:
    """Gradient descent on drawn training sets of each size, all weights that reach the prediction free.

    The sizes are the leading axis of the trajectory.
    """
    import jax

    from iclab.simulation import contexts, descent
    from iclab.simulation.statistics import stack, statistics

    free = start.unrestricted()
    drawn = (contexts.draw(case.problem, size, key=jax.random.fold_in(key, size)) for size in case.sequences)
    data = stack([statistics(sample, free) for sample in drawn])
    return descent.on_statistics(data, free, rate=case.rate, steps=marks(case.steps))


def by_sequences(case: TrainingCase, trained: Trajectory) -> LossBySequences:
    """The losses of training on each size."""
    return LossBySequences(np.array(case.sequences), trained.time, trained.loss)


def loss_panel(axes: "Axes", result: "xr.DataTree", *, title: str, epoch: float) -> None:
    """Loss against time: theory, every seed of the largest training set, plateau levels, published epochs."""
    flow, levels = result["theory/flow"].to_dataset(), result["theory/levels"].to_dataset().loss
    figures.level_lines(axes, np.atleast_2d(levels.values)[0], label="plateaus of theory")
    figures.theory_line(axes, flow.time, flow.loss.values[0], label="gradient flow of the population loss")
    for curve in flow.loss.values[1:]:
        figures.theory_line(axes, flow.time, curve)
    if "simulation" in result.children:
        drawn = result["simulation/sequences"].to_dataset().isel(sequences=-1)
        label = f"gradient descent on {int(drawn.sequences)} sequences, {drawn.sizes['seed']} seeds"
        figures.seed_lines(axes, drawn.time, drawn.loss.values, label=label)
    figures.loss_axes(axes, title=title)
    figures.epoch_axis(axes, epoch)
    axes.legend()
