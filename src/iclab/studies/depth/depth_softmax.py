"""Near which stack of linear attention does a trained softmax transformer of the same depth lie?

Softmax transformers, with or without hidden layers between attention, are trained on the problem for which the stack
of linear attention is solved: white inputs, a fresh linear task in every context, label noise. No theory of them is
claimed. Their loss per depth is laid beside four exact levels at the same dimension and context length: the best
equal layers, the best different ones, layers that rewrite inputs (for two of them), and ridge, the Bayes error, below
which nothing lies. To which it is nearest is measured; a run that is not trained to its end lies above what its
network can reach. The quick case is a sketch of two depths, the full one takes several minutes for each seed.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from iclab import figures
from iclab.claims import Bounded
from iclab.numerics import Checked, Count, Nonnegative, Positive, Whole, divides, require
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.problem import Lengths
from iclab.studies.depth.samples import WORDS, white_problem
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case"]

WARM_UP = 100  # steps of rising learning rate


@dataclass(frozen=True)
class Case(Checked):
    """Softmax transformers of several depths on white contexts."""

    dimension: Count = 3  # D, entries of an input
    context_length: Count = 6  # N, labeled examples before the query
    noise: Nonnegative = 0.1  # ρ, variance of the label noise, where the signal has variance 1
    depths: Lengths = (1, 2)  # L, layers of the networks
    width: Count = 24  # of the residual stream
    heads: Count = 2  # of a layer
    mlp: Annotated[int, Whole(least=0)] = 0  # hidden neurons after the attention of a layer; 0: attention alone
    batch: Count = 64  # contexts of a step
    rate: Positive = 0.005  # largest learning rate of Adam
    steps: Annotated[int, Whole(least=WARM_UP + 1)] = 600  # steps of training
    tested: Annotated[int, Whole(least=100)] = 20_000  # fresh contexts of the test

    def __post_init__(self) -> None:
        super().__post_init__()
        divides("heads", self.heads, "width", self.width)
        require(len(set(self.depths)) == len(self.depths), f"depths must differ; got {self.depths}.")


def theory(case: Case) -> dict[str, Labeled]:
    """Exact losses of equal layers, of different ones, of two that rewrite inputs, and of ridge."""
    from iclab.theory import depth

    problem = depth.stack_problem(white_problem(case.dimension, case.context_length, case.noise))
    law, ratio = problem.law, problem.noise_ratio
    rewriting = depth.rewriting_optimum(law, noise_ratio=ratio).excess
    return {
        "stacks": labeled(
            {"depth": case.depths},
            tied=[depth.tied_excess(law, one, noise_ratio=ratio) for one in case.depths],
            untied=[depth.best_excess(law, one, noise_ratio=ratio) for one in case.depths],
        ),
        "others": labeled({}, rewriting=rewriting, ridge=depth.ridge_excess(law, noise_ratio=ratio)),
    }


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Excess of trained networks; that of ridge on the same contexts, and the distance between the two in errors."""
    import jax

    from iclab.simulation.networks import Transformer
    from iclab.simulation.networks.regression_runs import predictions_in_training
    from iclab.simulation.pretraining.baselines import ridge
    from iclab.simulation.sequences import RegressionContexts

    law = RegressionContexts(case.dimension, case.context_length, case.noise, batch_size=case.batch)
    excess, score = [], []
    for place, count in enumerate(case.depths):
        network = Transformer(
            law.length,
            1,
            features=law.features,
            layers=count,
            width=case.width,
            heads=case.heads,
            mlp=case.mlp,
            last_only=True,
        )
        run = predictions_in_training(
            network, law, steps=(case.steps,), rate=case.rate, tested=case.tested, key=jax.random.fold_in(key, place)
        )
        inputs, labels, predictions = run.predictions["new"]
        squares = (predictions[-1, :, -1] - labels[:, -1]) ** 2
        best = (ridge(inputs, labels, noise=max(case.noise, 1e-12))[:, -1] - labels[:, -1]) ** 2
        excess.append(squares.mean() - case.noise)
        score.append((squares - best).mean() / ((squares - best).std(ddof=1) / np.sqrt(case.tested)))
    return {"networks": labeled({"depth": case.depths}, excess=excess, score=score)}


def figure(view: View, figure: Figure) -> None:
    """Excess against depth: stacks of linear attention, ridge, and trained networks."""
    axes, stacks, others = figure.subplots(), view.theory.stacks, view.theory.others
    for color, (name, label) in figures.colored({"tied": "equal layers", "untied": "different layers"}.items()):
        figures.theory_line(axes, stacks.depth, stacks[name], color=color, label=f"{label}, linear attention")
    figures.level_lines(axes, [float(others.ridge)], label="ridge")
    axes.plot(2, float(others.rewriting), "s", color=figures.COLORS[2], label="two layers that rewrite inputs")
    if view.simulation:
        run = view.simulation.networks
        figures.mean_points(axes, run.depth, run.excess, color=figures.INK, label="softmax, trained")
    case = view.case
    title = f"D = {case.dimension}, N = {case.context_length}, noise {case.noise:g}, {case.steps} steps"
    axes.set(xlabel="layers $L$", ylabel="excess", yscale="log", title=title)
    axes.legend()


FULL = Case(
    dimension=4, context_length=8, depths=(1, 2, 3, 4), width=64, heads=4, mlp=256, batch=256, rate=0.002,
    steps=15_000, tested=100_000,
)  # fmt: skip
NETWORKS = "of linear attention; networks are laid beside it, and no agreement is claimed"

STUDY = Study(
    name="depth-softmax", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=2), "full": Preset(FULL, seeds=3)},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        Bounded(
            "networks/score", "No trained network beats ridge, the Bayes error, on the contexts of its test.",
            bound=-3.0, at_most=False,
        ),
    ),
    unjudged={
        "theory/stacks/tied": NETWORKS, "theory/stacks/untied": NETWORKS, "theory/others/rewriting": NETWORKS,
        "theory/others/ridge": "the Bayes error, judged in regression-training",
    },
    vocabulary=WORDS | vocabulary(
        rewriting=("F", "excess of the best two layers that rewrite inputs", "label²"),
        ridge=("F_ridge", "excess of Bayes-optimal ridge", "label²"),
        score=("z", "excess loss over ridge on the same contexts, in standard errors"),
    ),
)  # fmt: skip
