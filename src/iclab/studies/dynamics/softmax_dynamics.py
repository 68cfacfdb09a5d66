"""Does softmax attention drop once with merged key and query, and step by step with separate ones?

Softmax attention has no closed theory here: what is judged is whether its loss drops as often as that of linear
attention with as many modes, once if key and query are merged, once for each mode if they are separate. Drops are
counted by the rule of `iclab.numerics.curves.stages`: a stage is a stretch of log-time on which the loss hardly
moves, and a drop sets two stages apart. Theory is linear attention, its plateaus and its number of drops. Simulation
draws sequences and trains on their tokens. Inputs are small, so that scores stay small until something is learned;
with large ones the stages blur. Published as figure 5 of arXiv 2501.16265, without its rates and starts.
"""

from dataclasses import dataclass

import numpy as np

from iclab import figures
from iclab.attention import MergedAttention, SeparateAttention, random_merged, random_separate
from iclab.claims import Share
from iclab.numerics import Checked, Count, Positive
from iclab.numerics.curves import drop_count
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.problem import Regression
from iclab.studies.dynamics import training
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case"]


@dataclass(frozen=True)
class Case(Checked):
    """One run of softmax attention of each kind."""

    problem: Regression = Regression(eigenvalues=(0.008, 0.002), context_length=31)
    heads: Count = 4  # H, heads
    merged_initial: Positive = 0.01  # standard deviation of every entry of the merged layer at the start
    separate_initial: Positive = 0.2  # size of value, key and query of a separate head at the start
    rate: Positive = 800.0  # η, learning rate on half the mean squared error
    merged_steps: Count = 2500  # steps of gradient descent of the merged layer
    separate_steps: Count = 2500  # steps of gradient descent of the separate layer
    sequences: Count = 400  # P, training sequences


def start(case: Case, seed: int) -> tuple[MergedAttention, SeparateAttention]:
    """Small independent normal entries of both layers."""
    rng, dimension = np.random.default_rng(seed), case.problem.dimension
    merged = random_merged(dimension, case.heads, scale=case.merged_initial, rng=rng)
    return merged, random_separate(dimension, case.heads, scale=case.separate_initial, rng=rng)


def theory(case: Case, start: tuple[MergedAttention, SeparateAttention]) -> dict[str, Labeled]:
    """Plateaus of linear attention on the same contexts, and how often it drops."""
    from iclab.theory import dynamics, population

    levels = dynamics.plateaus(population.moments(case.problem))
    drops = min(case.heads, int(np.sum(np.diff(levels) < 0)))
    return {"levels": labeled({"plateau": None}, loss=levels), "drops": labeled({}, merged=1, separate=drops)}


def simulation(case: Case, start: tuple[MergedAttention, SeparateAttention], *, key: Key) -> dict[str, Labeled]:
    """Gradient descent of both layers on the same drawn sequences, and the drops of their losses."""
    from iclab.simulation.linear import contexts, softmax

    drawn = contexts.draw(case.problem, case.sequences, key=key)
    kinds = {"merged": case.merged_steps, "separate": case.separate_steps}
    runs = {
        kind: softmax.on_tokens(drawn, layer, rate=case.rate, steps=training.log_marks(steps, 120))
        for (kind, steps), layer in zip(kinds.items(), start, strict=True)
    }
    curves = {kind: labeled({"time": run.time}, loss=run.loss) for kind, run in runs.items()}
    drops = {kind: drop_count(run.time, run.loss) for kind, run in runs.items()}
    return {**curves, "drops": labeled({}, **drops)}


def figure(view: View, figure: Figure) -> None:
    """Loss of both layers against the logarithm of time, every seed, and the plateaus of linear attention."""
    panels = figure.subplots(1, 2, sharey=True)
    levels = training.first_seed(view.theory.levels.loss).values
    for axes, name, shown in ((panels[0], "merged", levels[[0, -1]]), (panels[1], "separate", levels)):
        figures.level_lines(axes, shown, label="plateaus of linear attention")
        if view.simulation:
            run = view.simulation[name]
            label = f"softmax attention, {figures.seeds(run)}"
            figures.seed_lines(axes, run.time[1:], run.loss.values[:, 1:], color=figures.COLORS[0], label=label)
        figures.loss_axes(axes, title=f"softmax attention, {name} key and query", scale="log")
    panels[0].legend(loc="lower left")


FULL = Case(merged_steps=3000, separate_steps=5000, sequences=2000)

STUDY = Study(
    name="softmax-dynamics", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=3, size=(9.0, 3.6)), "full": Preset(FULL, seeds=3, size=(9.0, 3.6))},
    start=start, theory=theory, simulation=simulation, figure=figure,
    units=lambda case: {"steps": case.rate},
    claims=tuple(
        Share(f"drops/{kind}", f"The loss of softmax attention with {kind} key and query drops {often}.")
        for kind, often in (("merged", "once"), ("separate", "once for each mode"))
    ),
    unjudged={"theory/levels/loss": "levels of linear attention, for the eye: softmax attention has no theory here"},
    vocabulary=training.LEVELS | vocabulary(
        merged=("n", "drops with merged key and query"), separate=("n", "drops with separate key and query"),
    ),
)  # fmt: skip
