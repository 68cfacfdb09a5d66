"""Does a larger start shorten the plateaus until none is left?

The same random weights, scaled, start separate key-query attention from near zero to far from it. From a small start
the loss waits at every plateau, for times in inverse proportion to the start; from a large one all modes move at
once, and the loss falls without rest. Theory is the gradient flow of the population loss from each start, and from a
thirtieth of the smallest; the first drop of a small start; and the least loss, at which all of them end. Simulation
is gradient descent: on the population moments, whose loss theory shares, which becomes that flow as the learning
rate falls, compared over the first fifth of the run, and on drawn sequences with every weight that reaches the
prediction free. Published as figure 6 of arXiv 2501.16265, without its scales.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.attention import SeparateAttention
from iclab.claims import Agrees, ExactInRate, above
from iclab.numerics import Floats, require
from iclab.numerics.curves import drop_count, first_below
from iclab.outcomes import Labeled, Trajectory, labeled, vocabulary
from iclab.problem import Regression
from iclab.studies.dynamics import training
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case"]


@dataclass(frozen=True)
class Case(training.TrainingCase):
    """Runs of separate key-query attention with heads of rank one, from starts of several sizes."""

    problem: Regression = Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31)
    heads: int = 5  # H, heads
    initial: float = 0.15  # size of value, key and query of a head at the smallest start
    factors: Annotated[tuple[float, ...], Floats()] = (1.0, 2.5, 5.0, 10.0)  # by which starts exceed the smallest one
    rate: float = 0.2  # η, learning rate on half the mean squared error
    steps: int = 27000  # steps of gradient descent
    sequences: tuple[int, ...] = (500, 4000, 32000)  # P, sizes of the training sets

    def __post_init__(self) -> None:
        super().__post_init__()
        rising = self.factors[0] >= 1 and bool(np.all(np.diff(self.factors) > 0))
        require(rising, f"factors must increase from 1 or more; got {self.factors!r}.")

    @property
    def sizes(self) -> Float[np.ndarray, "initial"]:
        """Size of each start."""
        return self.initial * np.array(self.factors)


def start(case: Case, seed: int) -> SeparateAttention:
    """The same independent normal entries at every size; sizes are the leading axis."""
    layer, factor = training.small_separate(case, seed), np.array(case.factors)[:, None, None, None]
    return SeparateAttention(factor[..., 0, 0] * layer.value, factor * layer.key, factor * layer.query)


def layers(start: SeparateAttention) -> list[SeparateAttention]:
    """The starts one by one."""
    return [start[i] for i in range(len(start.value))]


def theory(case: Case, start: SeparateAttention) -> dict[str, Labeled | Trajectory]:
    """The gradient flow from each start, the plateaus, the first drop of the smallest start, and where all end."""
    from iclab.theory import dynamics, population

    moments, time = population.moments(case.problem), case.rate * training.log_marks(case.steps)
    flows = [dynamics.separate_flow(moments, layer, time).loss for layer in layers(start)]
    levels = training.plateaus(case)
    first = np.min(dynamics.blow_up_times(moments, start[0])) + dynamics.half_drop_shift(moments)[0]
    return {
        "flow": labeled({"initial": case.sizes, "time": time}, loss=np.stack(flows)),
        "levels": labeled({"plateau": None}, loss=levels),
        "small": training.small_flow(case, start[0]),
        "first": labeled({"initial": case.sizes[:1]}, half_drop=[first]),
        "ends": labeled({"initial": case.sizes}, loss=np.full(len(case.sizes), levels[-1])),
    }


def simulation(case: Case, start: SeparateAttention, *, key: Key) -> dict[str, Labeled]:
    """Gradient descent from each start on the population moments at three rates, and on drawn training sets."""
    steps, data = training.log_marks(case.steps), training.drawn_statistics(case, start, key=key)
    runs = [training.on_drawn(case, data, layer, steps=steps) for layer in layers(start)]
    rates = training.by_rate(case, start, steps=training.early(steps), over={"initial": case.sizes})
    first, last = (drop_count(run.time, run.loss[-1]) for run in (runs[0], runs[-1]))
    middle = float(np.mean(training.plateaus(case)[:2]))
    return {
        "rates": rates,
        "sequences": training.stacked("initial", case.sizes, [training.by_sequences(case, run) for run in runs]),
        "rests": labeled({}, fewer=first - last),
        "first": labeled({"initial": case.sizes[:1]}, half_drop=[first_below(rates.time, rates.loss[0, -1], middle)]),
        "ends": labeled(
            {"initial": case.sizes, "sequences": case.sequences}, loss=np.stack([run.loss[:, -1] for run in runs])
        ),
    }


def figure(view: View, figure: Figure) -> None:
    """Loss against the logarithm of time, a color for each size of the start."""
    axes, flow = figure.subplots(), view.theory.flow
    figures.level_lines(axes, training.first_seed(view.theory.levels.loss), label="plateaus of theory")
    for color, i in figures.colored(range(flow.sizes["initial"])):
        curve = flow.loss.isel(seed=0, initial=i)[1:]
        axes.plot(curve.time, curve, color=color, lw=1.8, label=f"start of size {float(curve.initial):.2g}")
        if view.simulation:
            drawn = view.simulation.sequences.loss.isel(initial=i, seed=0, sequences=-1)[1:]
            figures.dashed_line(axes, drawn.time, drawn, color="k")
    figures.loss_axes(axes, title="larger starts rest less; one seed", scale="log")
    axes.legend(title="dashed: on drawn sequences", title_fontsize=8)


FULL = Case(initial=0.03, factors=(1.0, 4.0, 16.0, 50.0), steps=140000)

STUDY = Study(
    name="initial-scale", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), seeds=3), "full": Preset(FULL, seeds=3)},
    start=start, theory=theory, simulation=simulation, figure=figure,
    units=lambda case: {"steps": case.rate},
    formulas=(training.PLATEAU_FORMULA, training.FLOW_FORMULA),
    claims=(
        ExactInRate(), training.SMALL_START,
        Agrees("first/half_drop", "The smallest start first drops when its heads escape, on the population.", 0.045),
        above("rests/fewer", "On the largest training set a larger start rests less often.", 0.5, share=1 / 3),
        training.tends("ends/loss", "On many drawn sequences every start ends at the least loss."),
    ),
    vocabulary=training.LEVELS | vocabulary(fewer=("Δn", "rests that the largest start has fewer")),
)  # fmt: skip
