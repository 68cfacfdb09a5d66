"""Do spectra mark the time at which a network that has memorized sums learns the rule behind them?

A perceptron or a transformer of one layer trains on a fraction of all sums modulo a number and is tested on the
others, with weight decay and, from the same start, without. arXiv 2504.12916 reports that where generalization comes
long after memorization, subspaces of the weights settle with it. Theory is the null level, in gray: mean and spread
of each measure over random matrices of their shapes. Simulation measures effective ranks of both, distances to the
last state, zero there by construction, so that only the control tells whether weights settle with generalization, and
overlaps of leading directions from state to state. Findings of earlier runs: docs/studies/grokking.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np

from iclab import figures
from iclab.claims import above, below
from iclab.numerics import Checked, Count, Fraction, OneOf, Positive, Whole, require
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.spectra.observation import row_spaces
from iclab.spectra.observation.row_spaces import Kind
from iclab.studies.networks import spectra
from iclab.studies.networks.spectra import Heads, first_above
from iclab.study import Figure, Key, Preset, Study, View

if TYPE_CHECKING:
    from iclab.simulation.networks.parts import Network
    from iclab.simulation.sequences import ModularAddition

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

Architecture = Annotated[str, OneOf(("mlp", "transformer"))]
KNOWN = 0.99  # accuracy of what is learned
EARLY = (0, 25, 50, 75, 100, 150, 200, 250, 300)  # first measured steps


@dataclass(frozen=True)
class Case(Checked):
    """A network that learns sums modulo a number, with weight decay and without."""

    network: Architecture = "mlp"  # mlp: perceptron of one hidden layer; else of one layer
    modulus: Annotated[int, Whole(least=2)] = 53  # p, of the sums
    fraction: Fraction = 0.5  # of all pairs that are trained on
    width: Count = 64  # entries of an embedding
    hidden: Count = 256  # neurons
    heads: Heads = 2  # attention heads of the transformer; one spans all that its layer reads
    rate: Positive = 0.002  # learning rate of AdamW, on all training pairs
    decay: Positive = 1.0  # weight decay
    steps: Count = 3500  # steps of training
    every: Count = 100  # steps from one measured state to the next, after the first ones

    def __post_init__(self) -> None:
        super().__post_init__()
        pairs, perceptron = self.modulus**2, self.network == "mlp"
        require(
            0 < round(self.fraction * pairs) < pairs,
            f"fraction must be in (0, 1), with pairs to train on and to hold out; got {self.fraction} of {pairs}.",
        )
        require(self.steps > EARLY[-1], f"steps must be above {EARLY[-1]}; got {self.steps}.")
        inputs = 2 * self.width if perceptron else self.width
        require(
            self.hidden > inputs,
            f"hidden must be above the {inputs} inputs of a neuron, else no weights span less than all neurons; got "
            f"{self.hidden}.",
        )
        require(
            not perceptron or self.width > self.modulus,
            f"width must be above the modulus {self.modulus}, else embeddings span all of it; got {self.width}.",
        )
        if not perceptron:
            spectra.require_heads(self.heads, self.width)

    @property
    def marks(self) -> list[int]:
        """Steps at which the networks are measured."""
        return sorted({*EARLY, *range(self.every, self.steps + 1, self.every), self.steps})


def kinds(case: Case) -> tuple[Kind, ...]:
    """Matrices to measure: neurons by what they write, others by what they read."""
    if case.network == "mlp":
        return Kind("MLP input", (2 * case.width, case.hidden)), Kind("embedding", (case.modulus, case.width))
    head = (case.width, case.width // case.heads, case.width)
    return Kind("output-value", head, case.heads), Kind("MLP input", (case.width, case.hidden))


def theory(case: Case) -> dict[str, Labeled]:
    """Null levels, known without training."""
    return {"levels": row_spaces.levels(kinds(case))}


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """The network and its control: the same start and the same pairs, with weight decay and without."""
    from iclab.simulation.networks.optimizers import adamw
    from iclab.simulation.networks.runs import accuracy, weights_along
    from iclab.simulation.networks.training import roles

    network, data = described(case)
    pairs, step = data.fixed(roles(key).fixed), np.array(case.marks)
    batches = {"train": data.batch(pairs, key), "test": data.held_out(pairs)}
    layer = "" if case.network == "mlp" else "layers.0."
    scores, measured, gate = {}, {}, {}
    for name, decay in (("", case.decay), ("control_", 0.0)):
        along = weights_along(network, data, steps=case.marks, optimizer=adamw(case.rate, decay=decay), key=key)
        for which, batch in batches.items():
            scores[name + which] = np.array([accuracy(network, state, batch) for state in along])
        neurons = [state[f"{layer}mlp_in.weight"].T for state in along]
        if case.network == "mlp":
            matrices = [[neurons], [[state["embed.weight"] for state in along]]]
        else:
            attended, written = row_spaces.head_circuits(along, 0, heads=case.heads)
            matrices, gate[f"{name}norm"] = [written, [neurons]], row_spaces.least_norms(attended)
        measured[name] = row_spaces.curves(case.marks, matrices)
    heights = (("train", KNOWN), ("test", 0.5), ("test", KNOWN))
    moments = [first_above(scores[which], height, none=len(step) - 1) for which, height in heights]
    measures = ("distance", "effective_rank")
    at = {name + one: getattr(found, one)[:, moments] for name, found in measured.items() for one in measures}
    reached = {f"{name}reached": scores[f"{name}test"].max() for name in measured}
    memorized, _, generalized = step[moments]
    times = {"memorized": memorized, "generalized": generalized, "delay": generalized / memorized}
    excess = at["distance"][0, 0] - at["control_distance"][0, 0]
    return {
        "skill": labeled({"step": step}, **scores, **reached, **times),
        "network": measured[""],
        "control": measured["control_"],
        "moments": labeled({"matrix": None, "moment": None}, excess=excess, step=("moment", step[moments]), **at),
        **({"gate": labeled({"step": step}, **gate)} if gate else {}),
    }


def described(case: Case) -> "tuple[Network, ModularAddition]":
    """The network of a case and the pairs that it learns from."""
    from iclab.simulation.networks import Perceptron, Transformer
    from iclab.simulation.sequences import ModularAddition

    if case.network == "mlp":
        data = ModularAddition(case.modulus, case.fraction, "pair")
        return Perceptron(data.vocabulary, data.outputs, width=case.width, hidden=case.hidden), data
    data = ModularAddition(case.modulus, case.fraction, "equation")
    network = Transformer(
        length=data.length, outputs=data.outputs, vocabulary=data.vocabulary, layers=1, width=case.width,
        heads=case.heads, mlp=case.hidden, activation="relu", norm="none", last_only=True,
    )  # fmt: skip
    return network, data


def figure(view: View, figure: Figure) -> None:
    """Accuracy; then ranks, distances and overlaps of two kinds of matrices, with null levels in gray."""
    runs = (("control", figures.COLORS[1], "no weight decay"), ("network", figures.COLORS[0], "weight decay"))
    held_out, train = spectra.panels(figure, view, [kind.name for kind in kinds(view.case)], runs, scale="log")
    if view.simulation:
        found = view.simulation.skill
        for (_, color, label), control in zip(runs, ("control_", ""), strict=True):
            for panel, pairs in ((held_out, "test"), (train, "train")):
                figures.seed_lines(panel, found.step, found[control + pairs].values, color=color, label=label)
        held_out.legend()
    for panel, pairs in ((held_out, "held-out"), (train, "training")):
        panel.set(title=f"accuracy on {pairs} pairs", ylim=(-0.02, 1.02))


BOTH = spectra.SPECTRA | vocabulary(  # of the network and its control
    train=("A", "accuracy on the training pairs"),
    test=("A", "accuracy on the held-out pairs"),
    reached=("A", "largest accuracy on the held-out pairs"),
)
CONTROL = {f"control_{name}": replace(one, words=f"{one.words}, no decay") for name, one in BOTH.items()}
WORDS = vocabulary(
    {"moments/step": ("s", "first measured step of a moment: memorized, half of the held-out pairs known, all")},
    memorized=("s", "first measured step with the training pairs known, else the last"),
    generalized=("s", "first measured step with the held-out pairs known, else the last"),
    delay=("s/s", "step at which the held-out pairs are known over that of the training pairs"),
    excess=("Δδ", "distance of the first kind of matrix over that without decay, when training pairs are known"),
)
FULL = Case(network="transformer", fraction=0.4, width=48, hidden=192, rate=0.004, steps=4500)
STUDY = Study(
    name="grokking", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=3, size=(12.0, 4.8)), "full": Preset(FULL, seeds=3, size=(12.0, 4.8))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        below("skill/memorized", "The training pairs are learned early.", 300),
        above("skill/reached", "The held-out pairs are learned by the end of the run.", KNOWN),
        above("skill/delay", "That takes five times as many steps, or more.", 5),
        below("skill/control_reached", "Without weight decay they are not.", KNOWN),
        above("moments/excess", "At memorization the first matrix is farther from its end than in the control.", 0.1),
        above("network/least_norm", "No measured matrix has faded.", spectra.FADED),
    ),
    unjudged=spectra.NULL_LEVELS,
    vocabulary=BOTH | CONTROL | WORDS,
)  # fmt: skip
