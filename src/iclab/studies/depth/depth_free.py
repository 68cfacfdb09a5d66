"""What do layers reach that may rewrite inputs as well as labels?

A stack that may write labels alone is descent in the context. Let the value matrix write inputs too, x ← x + c S x,
and the second layer acts on S (1 + c S)²: two layers are then a polynomial of degree four, with a far lower loss. It
is another model, and training finds it. Theory: the best such layers by search, and the best label-writing ones in
closed form. Simulation: Adam on fresh contexts, with every entry of value and key-query matrices free. Rewriting of
inputs is that of arXiv 2212.07677; its theory here is derived in docs/derivations/depth. Deeper stacks with all
weights free are open.
"""

from dataclasses import dataclass

import numpy as np

from iclab import figures
from iclab.claims import Agrees, Misses
from iclab.numerics import Checked, Count, Nonnegative, Positive
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.studies.depth.samples import WORDS, white_problem
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case"]

NOISES = np.linspace(0, 1, 21)  # ρ/T of the curves


@dataclass(frozen=True)
class Case(Checked):
    """Two layers trained on fresh white contexts."""

    dimension: Count = 4  # D, entries of an input
    context_length: Count = 8  # N, labeled examples before the query
    noise: Nonnegative = 0.0  # ρ, variance of the label noise, where the signal has variance 1
    initial: Positive = 0.5  # scalar layers at the start, in units of 1/λ
    scatter: Positive = 0.05  # standard deviation of the random part of every entry at the start
    rate: Positive = 0.01  # largest learning rate of Adam
    batch: Count = 256  # fresh contexts of a step
    steps: Count = 2000  # steps of training
    contexts: Count = 200_000  # fresh contexts of the test


def theory(case: Case) -> dict[str, Labeled]:
    """Best two layers that write labels, or inputs too; both against noise."""
    from iclab.theory import depth

    law = depth.wishart(case.dimension, case.context_length)
    curves = {
        "labels": [depth.best_excess(law, 2, noise_ratio=float(one)) for one in NOISES],
        "all": [depth.rewriting_optimum(law, noise_ratio=float(one)).excess for one in NOISES],
    }
    return {
        "trained": labeled({}, excess=depth.rewriting_optimum(law, noise_ratio=case.noise).excess),
        "label_writing": labeled({}, excess=depth.best_excess(law, 2, noise_ratio=case.noise)),
        "curves": labeled({"noise_ratio": NOISES}, **curves),
    }


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Excess of a stack with all entries trained, from a start near label-writing layers, on fresh contexts."""
    import jax

    from iclab.attention import StackedAttention, stack_of
    from iclab.simulation.keys import generators_of
    from iclab.simulation.linear import depth

    problem = white_problem(case.dimension, case.context_length, case.noise)
    (rng,) = generators_of(key[None])
    plain = stack_of(case.initial * np.stack([np.eye(case.dimension)] * 2)).unrestricted()
    random = (case.scatter * rng.standard_normal(plain.value.shape) for _ in range(2))
    start = StackedAttention(plain.value + next(random), plain.key_query + next(random))
    stack = depth.train_fresh(
        problem,
        start,
        writing="all",
        rate=case.rate,
        batch=case.batch,
        steps=case.steps,
        key=jax.random.fold_in(key, 0),
    )
    tested = depth.fresh_loss(problem, stack, case.contexts, key=jax.random.fold_in(key, 1))
    return {"trained": labeled({}, excess=tested.loss - case.noise)}


def figure(view: View, figure: Figure) -> None:
    """Best excess of both kinds against noise, and trained stacks."""
    axes, curves = figure.subplots(), view.theory.curves
    labels = {"labels": "label-writing layers", "all": "layers that rewrite inputs"}
    for color, (kind, label) in figures.colored(labels.items()):
        figures.theory_line(axes, curves.noise_ratio, curves[kind], color=color, label=label)
    if view.simulation:
        run = view.simulation.trained.excess
        figures.seed_dots(axes, [view.case.noise], [[float(one)] for one in run], color=figures.COLORS[1])
    case = view.case
    axes.set(xlabel="noise over signal $ρ/T$", ylabel="excess", title=f"two layers, D = {case.dimension}, "
             f"N = {case.context_length}; ○ trained")  # fmt: skip
    axes.legend()


FULL = Case(rate=0.008, batch=768, steps=5000, contexts=1_000_000)

STUDY = Study(
    name="depth-free", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=3), "full": Preset(FULL, seeds=6)},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        Agrees("trained/excess", "Trained stacks end near the best layers that rewrite inputs.", 0.25),
        Misses(
            "trained/excess", "The best label-writing layers lose far more than trained stacks do.", 1.8,
            theory="label_writing/excess",
        ),
    ),
    unjudged={
        "theory/curves/labels": "the formula of label_writing/excess, at other noises",
        "theory/curves/all": "the formula of trained/excess, at other noises",
    },
    vocabulary=WORDS | vocabulary(
        labels=("F", "excess of the best label-writing layers", "label²"),
        all=("F", "excess of the best layers that rewrite inputs", "label²"),
    ),
)  # fmt: skip
