"""How does attention pick the examples that matter, and which neurons use them?

Inputs carry one pattern that decides the label and a little of another; a task names two relevant patterns. *The
paper's*, of arXiv 2402.15607: training concentrates attention on examples with the query's pattern, in unseen tasks
too; contexts must be longer the fewer examples matter; strong enough sums of known patterns work out of the domain;
pruning small neurons costs little, large ones at least in proportion. *Derived here*: only the floor ½ (1 − α/2)^N,
where no example has the query's pattern, docs/derivations/pattern_matching. *Simulated*: all the rest, by one softmax
layer with a ReLU network trained on six of thirty tasks; ours in it are orthonormal patterns, fixed output signs, and
labels by chance of examples that do not matter.
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from iclab import figures
from iclab.claims import above, below
from iclab.numerics import Checked, Count, Fraction, Increasing, Positive, Whole, require, share
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.problem import Lengths
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]


@dataclass(frozen=True)
class Case(Checked):
    """One training run and its tests."""

    patterns: Annotated[int, Whole(least=4)] = 6  # relevant patterns; the training tasks are neighbors in their ring
    others: Count = 24  # irrelevant patterns
    strength: Positive = 3.0  # β, norm of a relevant pattern
    relevant: Fraction = 0.8  # α, fraction of examples that carry a pattern of the task
    context_length: Count = 20  # N, labeled examples before the query
    neurons: Annotated[int, Whole(least=2)] = 100  # of the hidden layer
    batch: Count = 128  # contexts of a step
    steps: Count = 800  # steps of training
    rate: Positive = 0.5  # learning rate of SGD on the hinge loss
    fractions: tuple[float, ...] = (0.8, 0.4, 0.2, 0.1)  # α of the tests in other contexts
    lengths: Lengths = (10, 20, 40, 80)  # N of the tests in other contexts, α N constant
    sums: Increasing = (0.3, 0.5, 0.7, 1.0, 1.2, 2.0)  # coefficient sums of patterns out of the domain
    pruned: Increasing = (0.05, 0.1, 0.15, 0.3)  # fractions of neurons that are pruned
    contexts: Annotated[int, Whole(least=1000)] = 40_000  # contexts of a test

    def __post_init__(self) -> None:
        super().__post_init__()
        count, most = len(self.fractions), len(self.lengths)
        require(count == most, f"fractions must be as many as lengths, {most}; got {count}.")
        for fraction in self.fractions:
            share("fractions", fraction)
        require(max(self.pruned) < 1, f"pruned must be below 1; got {self.pruned}.")


def theory(case: Case) -> dict[str, Labeled]:
    """The floor, the error of ideal attention, in contexts of the tests."""
    from iclab.theory.related.pattern_matching import matching_floor

    lengths = np.array(case.lengths, dtype=float)
    return {"floor": labeled({"context_length": lengths}, error=matching_floor(np.array(case.fractions), lengths))}


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Training on neighboring patterns; tests on all other pairs, in other contexts, out of the domain, pruned."""
    import jax

    from iclab.simulation.related import patterns as networks

    for_start, for_training, for_tests = jax.random.split(key, 3)
    laid_out = partial(networks.Patterns.orthogonal, case.patterns, case.others, case.strength)
    ring, unseen = map(laid_out, networks.ring_tasks(case.patterns))
    before = networks.start(case.patterns + case.others, case.neurons, key=for_start)
    here = {"relevant": case.relevant, "length": case.context_length}
    after = networks.train(before, ring, **here, batch=case.batch, steps=case.steps, rate=case.rate, key=for_training)
    draws = [jax.random.fold_in(for_tests, number) for number in range(4)]
    tested = partial(networks.tested, contexts=case.contexts)
    first, last = (tested(weights, unseen, **here, key=draws[0]) for weights in (before, after))
    floor, laws = theory(case)["floor"], zip(case.fractions, case.lengths, strict=True)
    others = np.array([tested(after, unseen, relevant=a, length=n, key=draws[1]).error for a, n in laws])
    wrong = np.array([tested(after, ring.summed(total), **here, key=draws[2]).error for total in case.sums])
    sums, fractions = np.array(case.sums), (*case.pruned, 0.1)
    cuts = [[networks.pruned(after, one, largest=largest) for one in fractions] for largest in (False, True)]
    small, large = ([tested(cut, unseen, **here, key=draws[3]).hinge for cut in row] for row in cuts)
    return {
        "unseen": labeled(
            {}, attention=last.attention, error=last.error, attention_before=first.attention, error_before=first.error
        ),
        "others": labeled({"context_length": floor.context_length}, error=others, ratio=others / floor.error),
        "sums": labeled(
            {"coefficients": sums, "step": None},
            error=("coefficients", wrong),
            rise=("step", np.diff(wrong)),
            weak=wrong[sums <= 0.5].min(initial=1.0),
            strong=wrong[sums >= 1.2].max(initial=0.0),
        ),
        "pruning": labeled(
            {"pruned": case.pruned}, small=small[:-1], large=large[:-1], tenth_small=small[-1], tenth_large=large[-1]
        ),
    }


def figure(view: View, figure: Figure) -> None:
    """Error against length with its floor; error out of the domain; hinge loss of pruned networks."""
    contexts, sums, pruning = figure.subplots(1, 3)
    floor = view.theory.floor
    figures.theory_line(contexts, floor.context_length, floor.error, label="floor of ideal attention")
    if view.simulation:
        others, outside, cut = (view.simulation[name] for name in ("others", "sums", "pruning"))
        label = f"trained, {figures.seeds(others)}"
        figures.seed_dots(contexts, others.context_length, others.error.values, color=figures.COLORS[0], label=label)
        figures.seed_lines(sums, outside.coefficients, outside.error.values, color=figures.COLORS[1])
        for name, label, color in (("small", "the smallest neurons", 0), ("large", "the largest neurons", 1)):
            figures.seed_lines(pruning, cut.pruned, cut[name].values, color=figures.COLORS[color], label=label)
        pruning.legend()
    contexts.set(xlabel="context length $N$, $\\alpha N$ constant", ylabel="wrong signs", xscale="log")
    contexts.set(title="other contexts, unseen tasks", ylim=(0, None))
    contexts.legend()
    sums.set(xlabel="sum of coefficients $S_1$", ylabel="wrong signs", title="patterns out of the domain")
    pruning.set(xlabel="fraction of neurons pruned", ylabel="hinge loss", title="pruning")


FULL = Case(contexts=200_000)
STUDY = Study(
    name="pattern-selection", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=3, size=(11.0, 3.6)), "full": Preset(FULL, seeds=3, size=(11.0, 3.6))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        above("unseen/attention", "On unseen tasks attention goes to examples with the query's pattern.", bound=0.95),
        below("unseen/error", "Unseen tasks are solved.", bound=0.005),
        above("others/ratio", "In other contexts errors stay above the floor.", bound=1.0),
        below("others/ratio", "They stay below three times the floor.", bound=3.0),
        below("sums/rise", "Out of the domain the error falls, or rises by little, from sum to sum.", bound=0.05),
        above("sums/weak", "Weak sums of patterns fail.", bound=0.1),
        below("sums/strong", "Strong sums of patterns succeed.", bound=0.03),
        below("pruning/tenth_small", "The smallest tenth of the neurons is of no use.", bound=0.02),
        above("pruning/tenth_large", "The largest tenth is.", bound=0.03),
    ),
    unjudged={"theory/floor/error": "a lower bound, which others/ratio compares"},
    vocabulary=vocabulary(
        error=("P(wrong)", "fraction of wrong signs"),
        ratio=("P/P₀", "error over the floor"),
        attention=("Σ a", "attention on examples with the query's pattern"),
        attention_before=("Σ a", "attention on them before training"),
        error_before=("P(wrong)", "fraction of wrong signs before training"),
        coefficients=("S₁", "sum of the coefficients"),
        rise=("ΔP", "change of the error from sum to sum"),
        weak=("P(wrong)", "least error at sums up to a half"),
        strong=("P(wrong)", "largest error at sums from 1.2 on"),
        pruned=("R", "fraction of neurons pruned"),
        small=("hinge", "hinge loss without the smallest neurons"),
        large=("hinge", "hinge loss without the largest neurons"),
        tenth_small=("hinge", "hinge loss without the smallest tenth"),
        tenth_large=("hinge", "hinge loss without the largest tenth"),
    ),
)  # fmt: skip
