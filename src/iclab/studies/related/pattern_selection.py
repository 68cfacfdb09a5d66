"""How does attention pick the examples that matter, and which neurons use them?

Inputs carry one pattern that decides the label and a little of another that does not; a task names two relevant
patterns. *The paper's*, of arXiv 2402.15607: training concentrates attention on examples with the query's pattern,
from some tasks to unseen ones; contexts must be longer the fewer examples matter; patterns outside the domain work if
they are strong enough sums of known ones; pruning small neurons costs little, large ones at least in proportion.
*Derived here*: only the floor of the mechanism, ½ (1 − α/2)^N, where no example has the query's pattern,
docs/derivations/pattern_matching; no other closed form is claimed. *Simulated*: all the rest, by one softmax layer
with a ReLU network trained on six of thirty tasks. Other parts of the setting are ours: orthonormal patterns, fixed
output signs, and examples that do not matter have labels by chance.
"""

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.claims import Bounded
from iclab.numerics import increasing_grid, positive, require, share, whole_number
from iclab.outcomes import quantity
from iclab.problem import checked_lengths
from iclab.study import Figure, Key, Preset, Study, View

if TYPE_CHECKING:
    from iclab.simulation.related.patterns import Patterns, Weights

Array = np.ndarray


@dataclass(frozen=True)
class Case:
    """One training run and its tests. Raises ValueError for impossible numbers."""

    patterns: int = 6  # relevant patterns; the training tasks are the neighbours among them, in a ring
    others: int = 24  # irrelevant patterns
    strength: float = 3.0  # β, norm of a relevant pattern
    relevant: float = 0.8  # α, fraction of examples that carry a pattern of the task
    context_length: int = 20  # N, labelled examples before the query
    neurons: int = 100  # of the hidden layer
    batch: int = 128  # contexts of a step
    steps: int = 800  # steps of training
    rate: float = 0.5  # step of SGD on the hinge loss
    fractions: tuple[float, ...] = (0.8, 0.4, 0.2, 0.1)  # α of the tests in other contexts
    lengths: tuple[int, ...] = (10, 20, 40, 80)  # N of the tests in other contexts, α N constant
    sums: tuple[float, ...] = (0.3, 0.5, 0.7, 1.0, 1.2, 2.0)  # coefficient sums of patterns out of the domain
    pruned: tuple[float, ...] = (0.05, 0.1, 0.15, 0.3)  # fractions of neurons that are pruned
    contexts: int = 40_000  # contexts of a test

    def __post_init__(self) -> None:
        for name, least in (("patterns", 4), ("others", 1), ("neurons", 2), ("contexts", 1000)):
            whole_number(name, getattr(self, name), least=least)
        for name in ("batch", "steps", "context_length"):
            whole_number(name, getattr(self, name))
        positive("strength", self.strength)
        positive("rate", self.rate)
        object.__setattr__(self, "lengths", checked_lengths(self.lengths, "lengths"))
        require(
            len(self.fractions) == len(self.lengths),
            f"fractions must be as many as lengths, {len(self.lengths)}; got {len(self.fractions)}.",
        )
        share("relevant", self.relevant)
        for fraction in self.fractions:
            share("fractions", fraction)
        increasing_grid("sums", np.array(self.sums))
        increasing_grid("pruned", np.array(self.pruned))
        require(max(self.pruned) < 1, f"pruned must be below 1; got {self.pruned}.")


def _error(*axes: str) -> Any:
    return quantity("P(wrong)", *axes, words="fraction of wrong signs")


@dataclass(frozen=True)
class Floors:
    """Error of ideal attention in other contexts."""

    context_length: Float[Array, "context_length"] = quantity("N", "context_length", words="labelled examples")
    error: Float[Array, "context_length"] = _error("context_length")


@dataclass(frozen=True)
class OtherContexts(Floors):
    """Error of trained attention in other contexts, and its ratio to the floor."""

    ratio: Float[Array, "context_length"] = quantity("P/P₀", "context_length", words="error over the floor")


@dataclass(frozen=True)
class Unseen:
    """Tests on unseen tasks, before and after training."""

    attention: float = quantity("Σ a", words="attention on examples with the query's pattern")
    error: float = _error()
    attention_before: float = quantity("Σ a", words="attention on them before training")
    error_before: float = _error()


@dataclass(frozen=True)
class OutOfDomain:
    """Error on patterns that are sums of known ones."""

    coefficients: Float[Array, "coefficients"] = quantity("S₁", "coefficients", words="sum of the coefficients")
    error: Float[Array, "coefficients"] = _error("coefficients")
    rise: Float[Array, "step"] = quantity("ΔP", "step", words="change of the error from sum to sum")
    weak: float = quantity("P(wrong)", words="least error at sums up to a half")
    strong: float = quantity("P(wrong)", words="largest error at sums from 1.2 on")


@dataclass(frozen=True)
class Pruning:
    """Hinge loss without the smallest and without the largest neurons."""

    pruned: Float[Array, "pruned"] = quantity("R", "pruned", words="fraction of neurons pruned")
    small: Float[Array, "pruned"] = quantity("hinge", "pruned", words="hinge loss without the smallest neurons")
    large: Float[Array, "pruned"] = quantity("hinge", "pruned", words="hinge loss without the largest neurons")
    tenth_small: float = quantity("hinge", words="hinge loss without the smallest tenth")
    tenth_large: float = quantity("hinge", words="hinge loss without the largest tenth")


def theory(case: Case) -> dict[str, Floors]:
    """The floor, in contexts of the tests."""
    from iclab.theory import related

    lengths = np.array(case.lengths, dtype=float)
    floor = related.pattern_matching.matching_floor(np.array(case.fractions), lengths)
    return {"floor": Floors(lengths, np.asarray(floor))}


def simulation(case: Case, *, key: Key) -> dict[str, Unseen | OtherContexts | OutOfDomain | Pruning]:
    """Training on neighbouring patterns; tests on all other pairs, in other contexts, out of the domain, pruned."""
    import jax

    from iclab.simulation.related import patterns as networks

    for_start, for_training, for_tests = jax.random.split(key, 3)
    ring, unseen = tasks(case)
    before = networks.start(case.patterns + case.others, case.neurons, key=for_start)
    weights = networks.train(
        before,
        laid_out(case, ring),
        relevant=case.relevant,
        length=case.context_length,
        batch=case.batch,
        steps=case.steps,
        rate=case.rate,
        key=for_training,
    )
    asked = laid_out(case, unseen)

    def test(layer: "Weights", patterns: "Patterns", number: int, relevant: float, length: int) -> Any:
        place = jax.random.fold_in(for_tests, number)
        return networks.tested(layer, patterns, relevant=relevant, length=length, contexts=case.contexts, key=place)

    here = (case.relevant, case.context_length)
    first, last = (test(layer, asked, 0, *here) for layer in (before, weights))
    others = [test(weights, asked, 1, *one).error for one in zip(case.fractions, case.lengths, strict=True)]
    sums = [test(weights, summed(case, total), 2, *here).error for total in case.sums]

    def without(fraction: float, largest: bool) -> float:
        return test(networks.pruned(weights, fraction, largest=largest), asked, 3, *here).hinge

    floor = theory(case)["floor"]
    small, large = (np.array([without(fraction, which) for fraction in case.pruned]) for which in (False, True))
    total, wrong = np.array(case.sums), np.array(sums)
    return {
        "unseen": Unseen(last.attention, last.error, first.attention, first.error),
        "others": OtherContexts(floor.context_length, np.array(others), np.array(others) / floor.error),
        "sums": OutOfDomain(
            total,
            wrong,
            np.diff(wrong),
            float(wrong[total <= 0.5].min(initial=1.0)),
            float(wrong[total >= 1.2].max(initial=0.0)),
        ),
        "pruning": Pruning(np.array(case.pruned), small, large, without(0.1, False), without(0.1, True)),
    }


def tasks(case: Case) -> tuple[Array, Array]:
    """Training tasks, neighbours in the ring, and all other ordered pairs."""
    ring = [(i, (i + 1) % case.patterns) for i in range(case.patterns)]
    return np.array(ring), np.array(
        [pair for pair in itertools.permutations(range(case.patterns), 2) if pair not in ring]
    )


def laid_out(case: Case, pairs: Array) -> "Patterns":
    """Orthogonal patterns, the relevant ones first, with tasks."""
    from iclab.simulation.related.patterns import Patterns

    basis = np.eye(case.patterns + case.others)
    return Patterns(case.strength * basis[: case.patterns], basis[case.patterns :], pairs)


def summed(case: Case, total: float) -> "Patterns":
    """Patterns that are equal sums of two known ones, with coefficients that sum to `total`, and all their pairs."""
    known = laid_out(case, tasks(case)[0])
    count = case.patterns // 2
    sums = total / 2 * (known.relevant[: 2 * count : 2] + known.relevant[1 : 2 * count : 2])
    return known._replace(relevant=sums, tasks=np.array(list(itertools.permutations(range(count), 2))))


def figure(view: View, figure: Figure) -> None:
    """Error against length with its floor; error out of the domain; hinge loss of pruned networks."""
    contexts, sums, pruning = figure.subplots(1, 3)
    floor = view.theory.floor
    figures.theory_line(contexts, floor.context_length, floor.error, label="floor of ideal attention")
    if view.simulation:
        seeds = view.simulation.others
        label = f"trained, {figures.seeds(seeds)}"
        figures.seed_dots(contexts, seeds.context_length, seeds.error.values, color=figures.COLORS[0], label=label)
        outside = view.simulation.sums
        figures.seed_lines(sums, outside.coefficients, outside.error.values, color=figures.COLORS[1])
        cut = view.simulation.pruning
        for name, color in (("small", 0), ("large", 1)):
            label = f"the {name}est neurons" if name == "small" else "the largest neurons"
            figures.seed_lines(pruning, cut.pruned, cut[name].values, color=figures.COLORS[color], label=label)
        pruning.legend()
    contexts.set(
        xscale="log", xlabel="context length $N$, $\\alpha N$ constant", ylabel="wrong signs", ylim=(0, None)
    )
    contexts.set_title("other contexts, unseen tasks")
    contexts.legend()
    sums.set(xlabel="sum of coefficients $S_1$", ylabel="wrong signs", title="patterns out of the domain")
    pruning.set(xlabel="fraction of neurons pruned", ylabel="hinge loss", title="pruning")


STUDY = Study(
    name="pattern-selection",
    question=str(__doc__),
    version=1,
    presets={
        "quick": Preset(Case(), seeds=3, size=(11.0, 3.6)),
        "full": Preset(replace(Case(), contexts=200_000), seeds=3, size=(11.0, 3.6)),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        Bounded(
            "simulation/unseen/attention",
            "On unseen tasks attention goes to examples with the query's pattern.",
            bound=0.95,
            at_most=False,
        ),
        Bounded("simulation/unseen/error", "Unseen tasks are solved.", bound=0.005),
        Bounded(
            "simulation/others/ratio", "In other contexts errors stay above the floor.", bound=1.0, at_most=False
        ),
        Bounded("simulation/others/ratio", "They stay below three times the floor.", bound=3.0),
        Bounded("simulation/sums/rise", "Out of the domain the error falls with the sum of coefficients.", bound=0.0),
        Bounded("simulation/sums/weak", "Weak sums of patterns fail.", bound=0.1, at_most=False),
        Bounded("simulation/sums/strong", "Strong sums of patterns succeed.", bound=0.015),
        Bounded("simulation/pruning/tenth_small", "The smallest tenth of the neurons is of no use.", bound=0.02),
        Bounded("simulation/pruning/tenth_large", "The largest tenth is.", bound=0.08, at_most=False),
    ),
)
