"""Does attention rest at counts of tokens before it learns to count what follows them?

Small networks of softmax attention alone predict Markov chains that are fresh in every sequence. *The paper's*, of
arXiv 2402.11004: two layers learn in stages, first the counts of all tokens (unigram), then of what followed the last
one (bigram), which is the Bayes law. *Derived here*: exact losses of both laws at finite length,
docs/derivations/strategies. *Simulated*: two layers, and one layer as the control, with a learned number for each
head and distance; the score of the second layer for what followed this token, and that of the first for the token
before. Both scores are those of the largest head.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.claims import Agrees, Share, below
from iclab.numerics import Checked, Count, Positive, Whole, divides, require
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

_BEGUN = 100  # steps after which the rest is measured
_RESTS = 0.6  # of the steps to the middle of the drop
_SCORED = 100  # sequences whose attention is scored


@dataclass(frozen=True)
class Case(Checked):
    """Two layers of attention, and one, on Markov chains."""

    states: Annotated[int, Whole(least=2)] = 3  # S, of a chain
    length: Annotated[int, Whole(least=8)] = 32  # T, predictions of a sequence
    concentration: Positive = 1.0  # α of the Dirichlet law of rows
    width: Count = 32  # of the residual stream
    heads: Count = 2  # of a layer
    batch: Count = 32  # sequences of a step
    rate: Positive = 0.005  # learning rate of AdamW
    steps: Annotated[int, Whole(least=101)] = 1200  # steps of training
    every: Count = 50  # steps between tests
    tested: Annotated[int, Whole(least=_SCORED)] = 1000  # sequences of a test

    def __post_init__(self) -> None:
        super().__post_init__()
        divides("heads", self.heads, "width", self.width)
        require(
            self.steps % self.every == 0 and self.every <= _BEGUN,
            f"every must divide steps and be at most {_BEGUN}; got every {self.every} and steps {self.steps}.",
        )


def theory(case: Case) -> dict[str, Labeled]:
    """Exact losses of both laws, mean over positions; and what the stages are to be."""
    from iclab.theory.sequences import markov_loss

    law = {"states": case.states, "length": case.length, "concentration": case.concentration}
    unigram, bigram = (float(markov_loss(name, **law).mean()) for name in ("unigram", "bigram"))
    return {
        "levels": labeled({}, unigram=unigram, bigram=bigram),
        "stages": labeled({}, rest=1.0, passed=1, control_stays=1, matches_first=1),
    }


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Losses and scores along the training of two layers and of one, and the stages in them."""
    from jax.random import split

    from iclab.simulation.sequences import MarkovSequences, counted_laws

    for_two, for_one, for_test = split(key, 3)
    law = MarkovSequences(case.states, case.length, case.concentration, None, case.batch)
    tokens = np.asarray(law.test((), for_test, case.tested).tokens)
    alone, after = counted_laws(tokens, symbols=case.states, concentration=case.concentration)
    unigram, bigram = (-float(np.mean(np.sum(after * np.log(said), axis=-1))) for said in (alone, after))
    two = _trained(case, law, 2, tokens, after, for_two)
    one = _trained(case, law, 1, tokens, after, for_one)
    steps, middle = np.arange(0, case.steps + 1, case.every), (unigram + bigram) / 2
    below_middle = two["loss"] < middle
    half = float(steps[np.argmax(below_middle)]) if below_middle.any() else float(case.steps)
    resting = (steps >= _BEGUN) & (steps <= max(_BEGUN, _RESTS * half))
    first, second = (_half_way(steps, two[name]) for name in ("previous", "matching"))
    axes = {"step": steps}
    return {
        "losses": labeled(axes, two=two["loss"], one=one["loss"]),
        "scores": labeled(axes, previous=two["previous"], matching=two["matching"]),
        "levels": labeled({}, unigram=unigram, bigram=bigram),
        "stages": labeled(
            {}, rest=float(two["loss"][resting].mean()) / unigram, passed=int(below_middle.any()),
            end=float(two["loss"][-1]) - bigram, control_stays=int(one["loss"].min() > middle),
            matches_first=int(second <= first), half=half,
        ),
    }  # fmt: skip


def _trained(case: Case, law, layers: int, tokens: np.ndarray, after: np.ndarray, key: Key) -> dict[str, np.ndarray]:  # noqa: ANN001
    """Loss at each test, and of two layers the scores of the largest heads."""
    from iclab.simulation import networks
    from iclab.simulation.networks import Transformer
    from iclab.simulation.networks.optimizers import adamw
    from iclab.simulation.networks.training import State, train
    from iclab.spectra import scores

    network = Transformer(
        length=case.length, outputs=case.states, vocabulary=case.states, layers=layers, width=case.width,
        heads=case.heads, positions="relative",
    )  # fmt: skip
    scored = tokens[:_SCORED]
    found: dict[str, list[float]] = {"loss": [], "previous": [], "matching": []}

    def record(_: int, state: State) -> None:
        logits = networks.apply(network, state["parameters"], tokens).astype(float)
        logits -= logits.max(axis=-1, keepdims=True)
        said = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        found["loss"].append(-float(np.mean(np.sum(after * said, axis=-1))))
        if layers > 1:
            seen = networks.patterns(network, state["parameters"], scored)
            found["previous"].append(float(scores.previous(seen[:, 0]).score.mean(axis=0).max()))
            found["matching"].append(float(scores.matching(seen[:, 1], scored[:, None]).score.mean(axis=0).max()))

    optimizer = adamw(case.rate, decay=0.01)
    train(network, law, steps=range(0, case.steps + 1, case.every), optimizer=optimizer, key=key, checkpoints=record)
    return {name: np.array(values) for name, values in found.items()}


def _half_way(steps: np.ndarray, score: Float[np.ndarray, "step"]) -> float:
    """The first step at which a score is half way from its start to its maximum."""
    return float(steps[np.argmax(score >= (score[0] + score.max()) / 2)])


def figure(view: View, figure: Figure) -> None:
    """Loss of two layers and of one against steps, with both levels; scores of both layers."""
    losses, scores = figure.subplots(1, 2)
    levels = view.theory.levels
    figures.level_lines(losses, [float(levels.unigram), float(levels.bigram)], label="unigram and bigram law, exact")
    if view.simulation:
        run, heads = view.simulation.losses, view.simulation.scores
        for color, (name, words) in figures.colored({"two": "two layers", "one": "one layer"}.items()):
            figures.seed_lines(
                losses, run.step, run[name].values, color=color, label=f"{words}, {figures.seeds(run)}"
            )
        names = {"matching": "layer 2, what followed this token", "previous": "layer 1, the token before"}
        for color, (name, words) in figures.colored(names.items()):
            figures.seed_lines(scores, heads.step, heads[name].values, color=color, label=words)
        scores.legend()
    losses.set(xlabel="steps", ylabel="loss, nats", title="Markov chains in context")
    scores.set(xlabel="steps", ylabel="score of the largest head", title="attention", ylim=(0, 1))
    losses.legend()


FULL = Case(steps=3000)
STUDY = Study(
    name="markov-stages", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=5, size=(9.0, 3.6)), "full": Preset(FULL, seeds=8, size=(9.0, 3.6))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        Agrees("levels/unigram", "On drawn sequences the unigram law has its exact loss.", 0.01),
        Agrees("levels/bigram", "So has the bigram law.", 0.01),
        Agrees("stages/rest", "Before the drop two layers rest at the unigram loss.", 0.02),
        Share("stages/passed", "Two layers pass half way to the bigram loss in most runs.", least=0.5),
        below("stages/end", "They end near the bigram law, in nats.", bound=0.035),
        Share("stages/control_stays", "One layer does not pass half way in most runs.", least=0.5),
        Share("stages/matches_first", "The second layer matches no later than the first looks back.", least=0.5),
    ),
    vocabulary=vocabulary(
        unigram=("L₁", "loss of the unigram law", "nat"),
        bigram=("L₂", "loss of the bigram law", "nat"),
        two=("L", "loss of two layers", "nat"),
        one=("L", "loss of one layer", "nat"),
        previous=("a₋₁", "attention to the token before, layer 1"),
        matching=("a_m", "attention to what followed this token, layer 2"),
        rest=("L/L₁", "loss before the drop over that of the unigram law"),
        passed=("passed", "1 where the loss passes half way to the bigram law"),
        end=("L − L₂", "loss at the end above that of the bigram law", "nat"),
        control_stays=("stays", "1 where one layer does not pass half way"),
        matches_first=("first", "1 where the second layer matches no later than the first looks back"),
        half=("n½", "step of the middle of the drop"),
    ),
)  # fmt: skip
