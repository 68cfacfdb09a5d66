"""Does a larger start shorten the plateaus until none is left?

The same random weights, scaled, start separate key-query attention from near zero to far from it. From a small start
the loss waits at every plateau, for times in inverse proportion to the start; from a large one all modes move at
once, and the loss falls without rest. Theory is the gradient flow of the population loss from each start. Simulation
is gradient descent: on the population moments, whose loss theory shares, to show that it becomes that flow as its
step shrinks, large starts included, and on drawn sequences with every weight that reaches the prediction free.
Published as figure 6 of arXiv 2501.16265, without its scales.
"""

from dataclasses import dataclass, replace

import numpy as np

from iclab import figures
from iclab.attention import SeparateAttention, random_separate
from iclab.claims import ExactInRate, LimitInSequences, RestsNearLevels
from iclab.numerics import require
from iclab.outcomes import Labelled, Levels, labelled
from iclab.problem import Regression
from iclab.studies.dynamics.training import FINER, TrainingCase, drawn_statistics, log_marks, on_drawn, on_population
from iclab.study import Figure, Key, Preset, Study, View


@dataclass(frozen=True)
class Case(TrainingCase):
    """Runs of separate key-query attention with heads of rank one, from starts of several sizes."""

    problem: Regression = Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31)
    heads: int = 5  # H, heads
    initial: float = 0.15  # size of value, key and query of a head at the smallest start
    factors: tuple[float, ...] = (1.0, 2.5, 5.0, 10.0)  # by which starts exceed the smallest one
    rate: float = 0.1  # η, step of gradient descent on half the mean squared error
    steps: int = 8000  # steps of gradient descent
    sequences: tuple[int, ...] = (800, 8000, 80000)  # P, sizes of the training sets

    def __post_init__(self) -> None:
        super().__post_init__()
        factors = tuple(float(factor) for factor in self.factors)
        require(
            len(factors) > 0 and factors[0] >= 1 and all(np.isfinite(factors)) and bool(np.all(np.diff(factors) > 0)),
            f"factors must increase from 1 or more; got {self.factors!r}.",
        )
        object.__setattr__(self, "factors", factors)


def start(case: Case, seed: int) -> SeparateAttention:
    """The same independent normal entries at every size; sizes are the leading axis."""
    rng = np.random.default_rng(seed)
    one = random_separate(case.problem.dimension, case.heads, scale=case.initial, rng=rng)
    factor = np.array(case.factors)[:, None]
    return SeparateAttention(
        factor * one.value, factor[..., None, None] * one.key, factor[..., None, None] * one.query
    )


def theory(case: Case, start: SeparateAttention) -> dict[str, Labelled | Levels]:
    """The gradient flow from each start, and the plateaus."""
    from iclab.theory import dynamics, population

    moments, time = population.moments(case.problem), case.rate * log_marks(case.steps)
    flows = [dynamics.separate_flow(moments, one, time).loss for one in layers(start)]
    return {
        "flow": labelled({"initial": sizes(case), "time": time}, loss=np.stack(flows)),
        "levels": Levels(dynamics.plateaus(moments)),
    }


def simulation(case: Case, start: SeparateAttention, *, key: Key) -> dict[str, Labelled]:
    """Gradient descent from each start on the population moments at three rates, and on drawn training sets."""
    from iclab.theory import population

    moments, steps = population.moments(case.problem), log_marks(case.steps)
    rates = [on_population(moments, start, rate=case.rate / finer, steps=finer * steps).loss for finer in FINER]
    data = drawn_statistics(case, start, key=key)
    trained = [on_drawn(case, data, one, steps=steps).loss for one in layers(start)]
    time = case.rate * steps
    return {
        "rates": labelled(
            {"initial": sizes(case), "rate": case.rate / FINER, "time": time}, loss=np.stack(rates, axis=1)
        ),
        "sequences": labelled(
            {"initial": sizes(case), "sequences": np.array(case.sequences), "time": time}, loss=np.stack(trained)
        ),
    }


def layers(start: SeparateAttention) -> list[SeparateAttention]:
    """The starts one by one."""
    return [start[i] for i in range(len(start.value))]


def sizes(case: Case) -> np.ndarray:
    """Size of each start."""
    return case.initial * np.array(case.factors)


def figure(view: View, figure: Figure) -> None:
    """Loss against the logarithm of time, a color for each size of the start."""
    axes = figure.subplots()
    flow, levels = view.theory.flow, view.theory.levels.loss
    figures.level_lines(axes, np.atleast_2d(levels.values)[0], label="plateaus of theory")
    drawn = view.simulation.sequences if view.simulation else None
    for i, (color, initial) in enumerate(figures.colored(flow["initial"].values)):
        curve = flow.loss.isel(initial=i)
        axes.plot(curve.time[1:], curve.values[0, 1:], color=color, lw=1.8, label=f"start of size {initial:.2g}")
        if drawn is not None:
            figures.dashed_line(axes, curve.time[1:], drawn.loss.isel(initial=i, seed=0, sequences=-1)[1:], color="k")
    figures.loss_axes(axes, title="larger starts rest less; one seed")
    axes.set_xscale("log")
    axes.legend(title="dashed: on drawn sequences", title_fontsize=8)


STUDY = Study(
    name="initial-scale",
    question=str(__doc__),
    version=1,
    presets={
        "quick": Preset(Case(), seeds=3),
        "full": Preset(replace(Case(), initial=0.03, factors=(1.0, 4.0, 16.0, 50.0), steps=60000), seeds=3),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(ExactInRate(), LimitInSequences(), RestsNearLevels()),
    start=start,
)
