"""Shared parts of the studies of training dynamics: the form of a case, starts, two simulations, the loss panel."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from jaxtyping import Float, Int

from iclab import figures
from iclab.attention import Layer, MergedAttention, SeparateAttention, random_merged, random_separate
from iclab.claims import RestsAtLevels, Tends
from iclab.numerics import Checked, Count, Counts, Distinct, Positive, require
from iclab.outcomes import Labeled, Trajectory, labeled, vocabulary
from iclab.planning.pace import LONGEST
from iclab.problem import Regression
from iclab.study import Axes, Formula, Key, View

if TYPE_CHECKING:
    import xarray as xr

    from iclab.simulation.linear.contexts import Contexts
    from iclab.simulation.linear.statistics import Statistics

__all__ = [
    "FINER", "FINEST", "FLOW_FORMULA", "LEVELS", "PLATEAU_FORMULA", "SMALLER", "SMALL_START", "Steps", "TrainingCase",
    "by_rate", "by_sequences", "diagonal", "drawn_contexts", "drawn_lines", "drawn_statistics", "early", "first_seed",
    "flow_lines", "log_marks", "loss_panel", "marks", "on_drawn", "on_population", "on_sequences", "plateaus",
    "population_statistics", "settled", "small_flow", "small_merged", "small_separate", "stacked", "tends",
    "units",
]  # fmt: skip

FINER = (1, 3, 10)  # divisors of the learning rate, to extrapolate the gap
FINEST = (2, 6, 20)  # the same where heads escape one by one, and some of them together
SMALLER = 30.0  # by which starts are smaller where the flow is compared with its limit
FLOW = ("flow", "gradient flow of the population loss")  # group of theory that a loss panel shows, and its label
LEVELS = vocabulary({"levels/loss": ("L(M_m)", "loss of a plateau", "label²")})

Steps = Int[np.ndarray, "record"]  # at which a run is recorded
tends = partial(Tends, tolerance=0.045, along="sequences")  # a bias of 1/P
PLATEAU_FORMULA = Formula(
    r"L_m = \mathrm{tr}\,\Lambda + \rho "
    r"- \sum_{d=1}^{m} \frac{\lambda_d}{1 + \frac{1}{N} (1 + \frac{\mathrm{tr}\,\Lambda + \rho}{\lambda_d})}",
    "The loss of a plateau on which the m modes of largest eigenvalue are learned, for tasks of covariance one.",
    {r"\Lambda": "input covariance", r"\lambda_d": "its eigenvalues", r"\rho": "variance of the label noise",
     "N": "labeled examples before the query"},
)  # fmt: skip
FLOW_FORMULA = Formula(
    r"\tau \frac{d W}{d t} = -\frac{1}{2} \nabla L(W)",
    "Gradient flow of the population loss, which gradient descent becomes as its learning rate falls.",
    {"W": "weights of the layer", "L": "mean squared error over fresh contexts",
     "t": "training time: steps times learning rate, in units of τ"},
)  # fmt: skip
SMALL_START = RestsAtLevels(
    "theory/small/loss", "From a start a thirtieth as large the flow rests, and ends, at the predicted levels.", 0.005
)


@dataclass(frozen=True)
class TrainingCase(Checked):
    """One run of linear attention by gradient descent."""

    problem: Regression
    heads: Count
    initial: Positive
    rate: Positive
    steps: Count
    sequences: Annotated[Counts, Distinct("An order is fitted over different sizes.")]

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.steps <= LONGEST, f"steps must be at most {LONGEST}; got {self.steps}. Raise the rate instead.")


def small_merged(case: TrainingCase, seed: int) -> MergedAttention:
    """Merged layer with small independent normal entries."""
    return random_merged(case.problem.dimension, case.heads, scale=case.initial, rng=np.random.default_rng(seed))


def small_separate(case: TrainingCase, seed: int | tuple[int, ...], rank: int = 1) -> SeparateAttention:
    """Separate layer with small independent normal entries, heads of equal strength."""
    rng = np.random.default_rng(seed)
    return random_separate(case.problem.dimension, case.heads, rank, scale=case.initial, rng=rng)


def marks(steps: int) -> Steps:
    """Steps at which losses are recorded: evenly spaced, and closer near the start."""
    even, early = np.linspace(0, steps, 301), np.geomspace(1, steps, 60)
    return np.unique(np.round(np.concatenate([even, early])).astype(int))


def log_marks(steps: int, count: int = 300, *, first: float = 1.0) -> Steps:
    """Steps at which losses are recorded: the start, then spaced by equal ratios from a first one on."""
    return np.unique(np.round(np.concatenate([[0], np.geomspace(first, steps, count)])).astype(int))


def by_rate(
    case: TrainingCase, start: Layer, *, steps: Steps | None = None, over: Mapping[str, Any] = {},
    finer: Sequence[int] = FINER, data: "Statistics | None" = None,
) -> Labeled:  # fmt: skip
    """Gradient descent on the population moments, or on other statistics, to the same time at several learning rates.

    Recorded at `steps`, or at the marks of the case; `over` are the leading axes of the start.
    """
    recorded = marks(case.steps) if steps is None else steps
    curves = [on_population(case, start, steps=recorded, finer=one, data=data).loss for one in finer]
    axes = {**over, "rate": case.rate / np.array(finer), "time": case.rate * recorded}
    return labeled(axes, loss=np.stack(curves, axis=-2))


def on_population(
    case: TrainingCase, start: Layer, *, steps: Steps, finer: int = 1, data: "Statistics | None" = None
) -> Trajectory:
    """Gradient descent on the moments of a restricted layer, or on other data, in steps so many times finer."""
    from iclab.simulation.linear.descent import on_statistics

    exact = population_statistics(case.problem) if data is None else data
    return on_statistics(exact, start, rate=case.rate / finer, steps=finer * steps)


def early(steps: Steps) -> Steps:
    """The steps of the first fifth of a run."""
    return steps[steps <= max(2, steps[-1] // 5)]


def plateaus(case: TrainingCase) -> Float[np.ndarray, "plateau"]:
    """Losses of the plateaus of a small start: with fewer heads than modes the last one stays."""
    from iclab.theory import dynamics, population

    levels = dynamics.plateaus(population.moments(case.problem))
    return levels[np.minimum(np.arange(len(levels)), case.heads)]


def small_flow(case: TrainingCase, start: SeparateAttention, records: int = 1000) -> Trajectory:
    """The gradient flow from a start a thirtieth as large, to thirty times the time, recorded evenly in log-time."""
    from iclab.theory import dynamics, population

    layer = SeparateAttention(*(part / SMALLER for part in vars(start).values()))
    time = SMALLER * case.rate * case.steps * np.concatenate([[0.0], np.geomspace(3e-4, 1, records)])
    return dynamics.separate_flow(population.moments(case.problem), layer, time, tolerance=1e-6)


def population_statistics(problem: Regression) -> "Statistics":
    """The population moments as statistics, for training on infinitely many sequences."""
    from iclab.simulation.linear.statistics import Statistics
    from iclab.theory.population import moments

    return Statistics.of_moments(moments(problem))


def by_sequences(case: TrainingCase, trained: Trajectory) -> Labeled:
    """The losses of training on each size."""
    return labeled({"sequences": case.sequences, "time": trained.time}, loss=trained.loss)


def on_sequences(case: TrainingCase, start: Layer, *, key: Key, steps: Steps | None = None) -> Trajectory:
    """Gradient descent on drawn training sets of each size, all weights that reach the prediction free.

    The sizes are the leading axis of the trajectory. Recorded at `steps`, or at the marks of the case.
    """
    return on_drawn(case, drawn_statistics(case, start, key=key), start, steps=steps)


def on_drawn(case: TrainingCase, data: "Statistics", start: Layer, *, steps: Steps | None = None) -> Trajectory:
    """The training of `on_sequences`, on statistics that were drawn once for several starts."""
    from iclab.simulation.linear import descent

    recorded = marks(case.steps) if steps is None else steps
    return descent.on_statistics(data, start.unrestricted(), rate=case.rate, steps=recorded)


def drawn_statistics(case: TrainingCase, start: Layer, *, key: Key) -> "Statistics":
    """Statistics of drawn training sets of each size, for training with all weights free."""
    from iclab.simulation.linear.statistics import stack, statistics

    drawn = drawn_contexts(case.problem, case.sequences, key=key)
    return stack([statistics(contexts, start.unrestricted()) for contexts in drawn])


def drawn_contexts(problem: Regression, sizes: Sequence[int], *, key: Key) -> "Iterator[Contexts]":
    """Drawn training sets, one at a time; each depends on the key and on its own size alone."""
    import jax

    from iclab.simulation.linear import contexts

    for size in sizes:
        yield contexts.draw(problem, size, key=jax.random.fold_in(key, size))


def stacked(axis: str, points: Any, outcomes: Sequence[Labeled]) -> Labeled:
    """Losses over the same axes as one outcome, along a further axis that leads."""
    return labeled({axis: points, **outcomes[0].axes}, loss=np.stack([one.loss for one in outcomes]))


def units(published: float, *, problem: Regression) -> Callable[[Any], Mapping[str, float]]:
    """The clocks of a study: the time of a step, and that of an epoch of the published run on the problem of that."""

    def of(case: Any) -> Mapping[str, float]:
        return {"steps": case.rate} | ({"published": published} if case.problem == problem else {})

    return of


def first_seed(array: "xr.DataArray") -> "xr.DataArray":
    """The array of the first seed, where it has an axis of seeds."""
    return array.isel(seed=0, drop=True) if "seed" in array.dims else array


def loss_panel(axes: Axes, view: View, *, title: str, exact: tuple[str, str] = FLOW) -> None:
    """Loss against time: theory, every seed of the largest training set, plateau levels."""
    flow = view.theory[exact[0]]
    figures.level_lines(axes, first_seed(view.theory.levels.loss), label="plateaus of theory")
    _sampling_spans(axes, view.case)
    flow_lines(axes, flow.time, flow.loss, label=exact[1])
    if view.simulation:
        drawn = view.simulation.sequences.isel(sequences=-1)
        label = f"gradient descent on {int(drawn.sequences)} sequences, {figures.seeds(drawn)}"
        figures.seed_lines(axes, drawn.time, drawn.loss.values, label=label)
    figures.loss_axes(axes, title=title)
    axes.set_xlim(0, settled(flow.time, flow.loss))
    axes.legend()


def _sampling_spans(axes: Axes, case: TrainingCase) -> None:
    """Bands that the rows leave for the levels, where the spectrum was measured on data."""
    from iclab.theory import dynamics

    if case.problem.sampling is not None:
        band, last = dynamics.level_band(case.problem), case.heads + 1
        figures.level_spans(axes, band.low[:last], band.high[:last], label="95 % of the spectrum's sampling")


def settled(time: "xr.DataArray", loss: "xr.DataArray") -> float:
    """Time a quarter beyond the last one at which a curve is 1 % above its end, or the last time of all."""
    above = loss - loss.isel(time=-1) > 0.01 * loss.isel(time=0)
    return min(
        float(time[-1]), 1.25 * float(time.where(above.any([axis for axis in above.dims if axis != "time"])).max())
    )


def flow_lines(axes: Axes, time: "xr.DataArray", loss: "xr.DataArray", *, label: str) -> None:
    """Loss of theory against time, from the start of every seed."""
    figures.theory_lines(axes, time, loss.values, label=label)


def drawn_lines(axes: Axes, run: "xr.Dataset") -> None:
    """Loss of every seed against time, on drawn sequences of one size."""
    figures.seed_lines(axes, run.time, run.loss.values, label=f"descent on {int(run.sequences)} sequences")


def diagonal(axes: Axes, values: "xr.DataArray") -> None:
    """The line on which both coordinates are equal, from the least to the largest of the values."""
    ends = [float(values.min()), float(values.max())]
    axes.plot(ends, ends, color=figures.INK, lw=0.8)
