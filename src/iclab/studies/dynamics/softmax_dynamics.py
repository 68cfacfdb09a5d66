"""Does softmax attention drop once with merged key and query, and step by step with separate ones?

Softmax attention has no closed theory here: what is judged is whether its loss drops as often as that of linear
attention with as many modes, once if key and query are merged, once for each mode if they are separate. Drops are
counted by the rule of `iclab.outcomes.curves.stages`: a stage is a stretch of log-time on which the loss hardly
moves, and a drop sets two stages apart. Theory is linear attention, its plateaus and its number of drops. Simulation
draws sequences and trains on their tokens. Inputs are small, so that scores stay small until something is learned;
with large ones the stages blur. Published as figure 5 of arXiv 2501.16265, without its rates and starts.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from iclab import figures
from iclab.attention import MergedAttention, SeparateAttention, random_merged, random_separate
from iclab.claims import Share
from iclab.numerics import positive, whole_number
from iclab.outcomes import DropCounts, Levels, LossCurve
from iclab.outcomes.curves import stages
from iclab.problem import Regression
from iclab.study import Figure, Key, Preset, Study, View


@dataclass(frozen=True)
class Case:
    """One run of softmax attention of each kind."""

    problem: Regression = Regression(eigenvalues=(0.008, 0.002), context_length=31)
    heads: int = 4  # H, heads
    merged_initial: float = 0.01  # standard deviation of every entry of the merged layer at the start
    separate_initial: float = 0.2  # size of value, key and query of a separate head at the start
    rate: float = 800.0  # η, step of gradient descent on half the mean squared error
    merged_steps: int = 1500  # steps of gradient descent of the merged layer
    separate_steps: int = 2500  # steps of gradient descent of the separate layer
    sequences: int = 400  # P, training sequences

    def __post_init__(self) -> None:
        for name in ("merged_initial", "separate_initial", "rate"):
            positive(name, getattr(self, name))
        for name in ("heads", "merged_steps", "separate_steps", "sequences"):
            whole_number(name, getattr(self, name))


class Start(NamedTuple):
    """Initial weights of both layers."""

    merged: MergedAttention
    separate: SeparateAttention


def start(case: Case, seed: int) -> Start:
    """Small independent normal entries."""
    rng, dimension = np.random.default_rng(seed), case.problem.dimension
    return Start(
        random_merged(dimension, case.heads, scale=case.merged_initial, rng=rng),
        random_separate(dimension, case.heads, scale=case.separate_initial, rng=rng),
    )


def theory(case: Case, start: Start) -> dict[str, Levels | DropCounts]:
    """Plateaus of linear attention on the same contexts, and how often it drops."""
    from iclab.theory import dynamics, population

    levels = dynamics.plateaus(population.moments(case.problem))
    return {"levels": Levels(levels), "drops": DropCounts(1, min(case.heads, int(np.sum(np.diff(levels) < 0))))}


def simulation(case: Case, start: Start, *, key: Key) -> dict[str, LossCurve | DropCounts]:
    """Gradient descent of both layers on the same drawn sequences, and the drops of their losses."""
    from iclab.simulation.linear import contexts, softmax

    drawn = contexts.draw(case.problem, case.sequences, key=key)
    merged, separate = (
        softmax.on_tokens(drawn, layer, rate=case.rate, steps=even_marks(steps))
        for layer, steps in ((start.merged, case.merged_steps), (start.separate, case.separate_steps))
    )
    return {
        "merged": LossCurve(merged.time, merged.loss),
        "separate": LossCurve(separate.time, separate.loss),
        "drops": DropCounts(*(max(0, len(stages(run.time, run.loss)) - 1) for run in (merged, separate))),
    }


def even_marks(steps: int) -> Int[np.ndarray, "record"]:
    """The start, and 120 steps even in log-time, as the rule for stages wants them."""
    return np.unique(np.append(0, np.rint(np.geomspace(1, steps, 120)).astype(int)))


def figure(view: View, figure: Figure) -> None:
    """Loss of both layers against the logarithm of time, every seed, and the plateaus of linear attention."""
    panels = figure.subplots(1, 2, sharey=True)
    levels = view.theory.levels.loss.isel(seed=0).values
    for axes, name, shown in ((panels[0], "merged", levels[[0, -1]]), (panels[1], "separate", levels)):
        figures.level_lines(axes, shown, label="plateaus of linear attention")
        if view.simulation:
            run = view.simulation[name]
            label = f"softmax attention, {figures.seeds(run)}"
            figures.seed_lines(axes, run.time[1:], run.loss.values[:, 1:], color=figures.COLORS[0], label=label)
        figures.loss_axes(axes, title=f"softmax attention, {name} key and query")
        axes.set_xscale("log")
    panels[0].legend(loc="lower left")


STUDY = Study(
    name="softmax-dynamics",
    question=str(__doc__),
    version=1,
    presets={
        "quick": Preset(Case(), seeds=3, size=(9.0, 3.6)),
        "full": Preset(
            replace(Case(), merged_steps=3000, separate_steps=5000, sequences=2000), seeds=3, size=(9.0, 3.6)
        ),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        Share(
            "theory/drops/merged",
            "simulation/drops/merged",
            "The loss of softmax attention with merged key and query drops once.",
        ),
        Share(
            "theory/drops/separate",
            "simulation/drops/separate",
            "The loss of softmax attention with separate key and query drops once for each mode.",
        ),
    ),
    start=start,
)
