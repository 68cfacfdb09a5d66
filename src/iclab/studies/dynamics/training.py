"""What studies of training dynamics share: the form of a case, two simulations, and the panel of the loss."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from iclab import figures
from iclab.attention import MergedAttention, SeparateAttention
from iclab.numerics import Checked, Count, Counts, Positive, require
from iclab.outcomes import Labelled, Trajectory, labelled
from iclab.outcomes.curves import first_below
from iclab.problem import Regression
from iclab.study import Axes, Key, View

if TYPE_CHECKING:
    import xarray as xr

    from iclab.simulation.linear.statistics import Statistics
    from iclab.theory.population import Moments

LONGEST = 10**8  # steps of one run: a day
FINER = np.array([1, 3, 10])  # by which the step of gradient descent is divided to see its order


@dataclass(frozen=True)
class TrainingCase(Checked):
    """One run of linear attention by gradient descent."""

    problem: Regression
    heads: Count
    initial: Positive
    rate: Positive
    steps: Count
    sequences: Counts

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.steps <= LONGEST, f"steps must be at most {LONGEST}; got {self.steps}. Raise the rate instead.")
        require(
            len(set(self.sequences)) == len(self.sequences),
            f"sequences must differ; got {self.sequences}. An order is fitted over different sizes.",
        )


def marks(steps: int) -> Int[np.ndarray, "record"]:
    """Steps at which losses are recorded: evenly spaced, and closer near the start."""
    even, early = np.linspace(0, steps, 301), np.geomspace(1, steps, 60)
    return np.unique(np.round(np.concatenate([even, early])).astype(int))


def log_marks(steps: int) -> Int[np.ndarray, "record"]:
    """Steps at which losses are recorded: the start, then spaced by equal ratios."""
    return np.unique(np.round(np.concatenate([[0], np.geomspace(1, steps, 300)])).astype(int))


def by_rate(moments: "Moments", start: MergedAttention | SeparateAttention, *, rate: float, steps: int) -> Labelled:
    """Gradient descent on the population moments themselves, at the rate and at finer ones, to the same time."""
    recorded = marks(steps)
    curves = [on_population(moments, start, rate=rate / finer, steps=finer * recorded).loss for finer in FINER]
    return labelled({"rate": rate / FINER, "time": rate * recorded}, loss=np.stack(curves))


def on_population(
    moments: "Moments",
    start: MergedAttention | SeparateAttention,
    *,
    rate: float,
    steps: Int[np.ndarray, "record"],
) -> Trajectory:
    """Gradient descent of a restricted layer on the population moments."""
    from iclab.simulation.linear import descent
    from iclab.simulation.linear.statistics import Statistics

    population = Statistics(moments.cross, moments.second, moments.input_covariance, np.asarray(moments.null_loss))
    return descent.on_statistics(population, start, rate=rate, steps=steps)


def on_sequences(
    case: TrainingCase,
    start: MergedAttention | SeparateAttention,
    *,
    key: Key,
    steps: Int[np.ndarray, "record"] | None = None,
) -> Trajectory:
    """Gradient descent on drawn training sets of each size, all weights that reach the prediction free.

    The sizes are the leading axis of the trajectory. Recorded at `steps`, or at the marks of the case.
    """
    return on_drawn(case, drawn_statistics(case, start, key=key), start, steps=steps)


def drawn_statistics(case: TrainingCase, start: MergedAttention | SeparateAttention, *, key: Key) -> "Statistics":
    """Statistics of drawn training sets of each size, for training with all weights free."""
    import jax

    from iclab.simulation.linear import contexts
    from iclab.simulation.linear.statistics import stack, statistics

    drawn = (contexts.draw(case.problem, size, key=jax.random.fold_in(key, size)) for size in case.sequences)
    return stack([statistics(sample, start.unrestricted()) for sample in drawn])


def on_drawn(
    case: TrainingCase,
    data: "Statistics",
    start: MergedAttention | SeparateAttention,
    *,
    steps: Int[np.ndarray, "record"] | None = None,
) -> Trajectory:
    """Gradient descent on statistics of drawn training sets, their sizes the leading axis of the trajectory.

    Recorded at `steps`, or at the marks of the case.
    """
    from iclab.simulation.linear import descent

    return descent.on_statistics(
        data, start.unrestricted(), rate=case.rate, steps=marks(case.steps) if steps is None else steps
    )


def by_sequences(case: TrainingCase, trained: Trajectory) -> Labelled:
    """The losses of training on each size."""
    return labelled({"sequences": np.array(case.sequences), "time": trained.time}, loss=trained.loss)


def half_drop(time: Float[np.ndarray, "time"], loss: Float[np.ndarray, "time"]) -> float:
    """Time at which a curve has fallen half-way from its first to its last loss."""
    return first_below(time, loss, 0.5 * float(loss[0] + loss[-1]))


def test_panel(axes: Axes, view: View, name: str, axis: str, *, label: str) -> None:
    """Loss of one layer along one kind of test: theory, and means over seeds with their standard errors."""
    exact = view.theory[name]
    figures.theory_line(axes, exact[axis], first_seed(exact.loss), label="this layer, theory")
    if view.simulation:
        tested = view.simulation[name].loss
        figures.mean_points(axes, tested[axis], tested, label="drawn contexts")
    axes.set(xlabel=label, ylabel="test loss")


def first_seed(array: "xr.DataArray") -> "xr.DataArray":
    """What the first seed found, where seeds matter."""
    return array.isel(seed=0, drop=True) if "seed" in array.dims else array


def loss_panel(
    axes: Axes,
    view: View,
    *,
    title: str,
    epoch: float,
    exact: tuple[str, str] = ("flow", "gradient flow of the population loss"),
) -> None:
    """Loss against time: theory, every seed of the largest training set, plateau levels, published epochs.

    `exact` is the group of theory that holds the curve, and its label.
    """
    flow, levels = view.theory[exact[0]], view.theory.levels.loss
    figures.level_lines(axes, np.atleast_2d(levels.values)[0], label="plateaus of theory")
    figures.theory_line(axes, flow.time, flow.loss.values[0], label=exact[1])
    for curve in flow.loss.values[1:]:
        figures.theory_line(axes, flow.time, curve)
    if view.simulation:
        drawn = view.simulation.sequences.isel(sequences=-1)
        label = f"gradient descent on {int(drawn.sequences)} sequences, {figures.seeds(drawn)}"
        figures.seed_lines(axes, drawn.time, drawn.loss.values, label=label)
    figures.loss_axes(axes, title=title)
    figures.epoch_axis(axes, epoch)
    axes.legend()
