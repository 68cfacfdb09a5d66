"""Do spectra mark the time at which a network that has memorized sums learns the rule behind them?

A network trains on a fraction of all sums modulo a number and is tested on the held-out ones, with weight decay and,
as a control from the same start and on the same pairs, without. It is a perceptron or a transformer of one layer.
arXiv 2504.12916 reports that where generalization comes long after memorization, subspaces of the weights settle
with it.

Theory is the null level, in gray: mean and spread of each measure over random matrices of the same shapes.
Simulation trains both networks and measures their weights along training: effective ranks, distances to the last
state, overlaps of leading directions from one state to the next. Distances fall to zero at the last state by
construction, so that only the control tells whether weights settle with generalization.

The claims ask that training pairs are learned early and held-out pairs much later, that without weight decay the
held-out pairs are not learned, that at memorization the first kind of matrix is farther from its last state than in
the control, and that no measured matrix has faded. Findings of earlier runs: docs/studies/grokking.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from iclab import figures
from iclab.claims import Bounded
from iclab.numerics import divides, one_of, positive, require, share, whole_number
from iclab.outcomes import quantity
from iclab.studies.networks.spectra import (
    FADED,
    LEADING,
    Kind,
    SpectralCurves,
    SpectralLevels,
    curves,
    head_circuits,
    least_norms,
    levels,
    panels,
)
from iclab.study import Figure, Key, Preset, Study, View

if TYPE_CHECKING:
    from iclab.simulation.networks.parts import Network
    from iclab.simulation.sequences import ModularAddition
    from iclab.spectra.measures.factors import Matrix

Array = np.ndarray
KNOWN = 0.99  # accuracy of what is learned
EARLY = (0, 25, 50, 75, 100, 150, 200, 250, 300)  # first steps that are looked at
MOMENTS = ("memorized", "half", "generalized")


@dataclass(frozen=True)
class Case:
    """A network that learns sums modulo a number, with weight decay and without. Raises ValueError for bad ones."""

    network: str = "mlp"  # mlp, a perceptron of one hidden layer, or transformer, of one layer
    modulus: int = 53  # p, of the sums
    fraction: float = 0.5  # of all pairs that are trained on
    width: int = 64  # entries of an embedding
    hidden: int = 256  # neurons
    heads: int = 2  # attention heads of the transformer
    rate: float = 0.002  # step of AdamW, on all training pairs
    decay: float = 1.0  # weight decay
    steps: int = 3500  # steps of training
    every: int = 100  # steps from one state that is looked at to the next, after the first ones

    def __post_init__(self) -> None:
        one_of("network", self.network, ("mlp", "transformer"))
        for name in ("width", "hidden", "steps", "every"):
            whole_number(name, getattr(self, name))
        whole_number("heads", self.heads, least=2)  # one head spans all that its layer reads
        pairs = whole_number("modulus", self.modulus, least=2) ** 2
        require(
            0 < round(share("fraction", self.fraction) * pairs) < pairs,
            f"fraction must be in (0, 1), with pairs to train on and to hold out; got {self.fraction} of {pairs}.",
        )
        positive("rate", self.rate)
        positive("decay", self.decay)
        require(self.steps > EARLY[-1], f"steps must be above {EARLY[-1]}; got {self.steps}.")
        inputs = 2 * self.width if self.network == "mlp" else self.width
        require(
            self.hidden > inputs,
            f"hidden must be above the {inputs} inputs of a neuron, else no weights span less than all neurons; got "
            f"{self.hidden}.",
        )
        require(
            self.network != "mlp" or self.width > self.modulus,
            f"width must be above the modulus {self.modulus}, else embeddings span all of it; got {self.width}.",
        )
        if self.network == "transformer":
            divides("heads", self.heads, "width", self.width)
        require(
            self.network != "transformer" or self.width > LEADING * self.heads,
            f"width must be above {LEADING} for each head, whose leading directions are compared; got {self.width}.",
        )

    @property
    def marks(self) -> list[int]:
        """Steps at which the networks are looked at."""
        return sorted({*EARLY, *range(self.every, self.steps + 1, self.every), self.steps})


@dataclass(frozen=True)
class Skill:
    """What the network and the control without weight decay know, and when."""

    step: Int[Array, "step"] = quantity("s", "step", words="steps of training")
    train: Float[Array, "step"] = quantity("A", "step", words="accuracy on the training pairs")
    test: Float[Array, "step"] = quantity("A", "step", words="accuracy on the held-out pairs")
    control_train: Float[Array, "step"] = quantity("A", "step", words="accuracy on the training pairs, no decay")
    control_test: Float[Array, "step"] = quantity("A", "step", words="accuracy on the held-out pairs, no decay")
    reached: float = quantity("A", words="largest accuracy on the held-out pairs")
    control_reached: float = quantity("A", words="largest accuracy on the held-out pairs, no decay")
    memorized: int = quantity("s", words="first step that is looked at with the training pairs known")
    generalized: int = quantity(
        "s", words="first step that is looked at with the held-out pairs known, else the last"
    )
    delay: float = quantity("s/s", words="step at which the held-out pairs are known over that of the training pairs")


@dataclass(frozen=True)
class Moments:
    """Spectra when training pairs are known, when half of the held-out ones are, and when those are known too.

    The last state stands for a moment that does not come.
    """

    excess: float = quantity(
        "Δδ", words="distance of the first kind of matrix over that without decay, when training pairs are known"
    )
    step: Int[Array, "moment"] = quantity("s", "moment", words="first step that is looked at")
    distance: Float[Array, "matrix moment"] = quantity("δ", "matrix", "moment", words="distance to the last state")
    effective_rank: Float[Array, "matrix moment"] = quantity("r", "matrix", "moment", words="effective rank")
    control_distance: Float[Array, "matrix moment"] = quantity(
        "δ", "matrix", "moment", words="distance to the last state, no decay, at the same steps"
    )
    control_effective_rank: Float[Array, "matrix moment"] = quantity(
        "r", "matrix", "moment", words="effective rank, no decay, at the same steps"
    )


@dataclass(frozen=True)
class Gate:
    """Norms of the query-key circuits of a transformer: where they have faded, ranks are those of rounding noise."""

    step: Int[Array, "step"] = quantity("s", "step", words="steps of training")
    norm: Float[Array, "step"] = quantity("n", "step", words="least norm of a head over its own largest")
    control_norm: Float[Array, "step"] = quantity(
        "n", "step", words="least norm of a head over its own largest, no decay"
    )


def kinds(case: Case) -> tuple[Kind, ...]:
    """What is measured of a network, on which side: neurons by what they write, others by what they read."""
    if case.network == "mlp":
        return Kind("MLP input", (2 * case.width, case.hidden)), Kind("embedding", (case.modulus, case.width))
    head = (case.width, case.width // case.heads, case.width)
    return Kind("output-value", head, case.heads), Kind("MLP input", (case.width, case.hidden))


def theory(case: Case) -> dict[str, SpectralLevels]:
    """What is known without training: what random matrices read."""
    return {"levels": levels(kinds(case))}


def simulation(case: Case, *, key: Key) -> dict[str, Skill | Moments | SpectralCurves | Gate]:
    """The network and its control: the same start and the same pairs, with weight decay and without."""
    from iclab.simulation.networks.optimizers import adamw
    from iclab.simulation.networks.runs import accuracy, weights_along
    from iclab.simulation.networks.training import roles

    network, data = described(case)
    pairs = data.fixed(roles(key).fixed)
    batches = {"train": data.batch(pairs, key), "test": data.held_out(pairs)}
    scores: dict[str, Float[Array, "step"]] = {}
    spectra, norms = {}, []
    for name, decay in (("", case.decay), ("control_", 0.0)):
        states = weights_along(network, data, steps=case.marks, optimizer=adamw(case.rate, decay=decay), key=key)
        for which, batch in batches.items():
            scores[name + which] = np.array([accuracy(network, state, batch) for state in states])
        spectra[name] = curves(case.marks, matrices(case, states))
        norms += [least_norms(head_circuits(states, 0, heads=case.heads)[0])] if case.network == "transformer" else []
    moments = [first_above(scores["train"], KNOWN), *(first_above(scores["test"], one) for one in (0.5, KNOWN))]
    step = np.array(case.marks)
    memorized, _, generalized = step[moments]
    at = {
        name + measure: getattr(one, measure)[:, moments]
        for name, one in spectra.items()
        for measure in ("distance", "effective_rank")
    }
    return {
        "skill": Skill(
            step=step,
            **scores,
            reached=float(scores["test"].max()),
            control_reached=float(scores["control_test"].max()),
            memorized=int(memorized),
            generalized=int(generalized),
            delay=float(generalized / memorized),
        ),
        "network": spectra[""],
        "control": spectra["control_"],
        "moments": Moments(
            excess=float(at["distance"][0, 0] - at["control_distance"][0, 0]), step=step[moments], **at
        ),
        **({"gate": Gate(step, *norms)} if norms else {}),
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


def matrices(case: Case, states: Sequence[Mapping[str, Any]]) -> "Sequence[Sequence[Sequence[Matrix]]]":
    """The matrices (kind, copy, state) whose spectra are taken."""
    if case.network == "mlp":
        return [[[state["mlp_in.weight"].T for state in states]], [[state["embed.weight"] for state in states]]]
    _, written = head_circuits(states, 0, heads=case.heads)
    return [written, [[state["layers.0.mlp_in.weight"].T for state in states]]]


def first_above(curve: Float[Array, "step"], height: float) -> int:
    """Index of the first entry above a height, of the last one if there is none."""
    return int(np.argmax(curve > height)) if np.any(curve > height) else len(curve) - 1


def figure(view: View, figure: Figure) -> None:
    """Accuracy; then ranks, distances and overlaps of two kinds of matrices, with random levels in grey."""
    runs = (("control", figures.COLORS[1], "no weight decay"), ("network", figures.COLORS[0], "weight decay"))
    names = [kind.name for kind in kinds(view.case)]
    held_out, train = panels(figure, view, names, runs, scale="log")
    if view.simulation:
        found = view.simulation.skill
        for (_, color, label), control in zip(runs, ("control_", ""), strict=True):
            for place, pairs in ((held_out, "test"), (train, "train")):
                figures.seed_lines(place, found.step, found[control + pairs].values, color=color, label=label)
        held_out.legend()
    for place, pairs in ((held_out, "held-out"), (train, "training")):
        place.set(title=f"accuracy on {pairs} pairs", ylim=(-0.02, 1.02))


STUDY = Study(
    name="grokking",
    question=str(__doc__),
    version=1,
    presets={
        "quick": Preset(Case(), seeds=3, size=(12.0, 4.8)),
        "full": Preset(
            replace(Case(), network="transformer", fraction=0.4, width=48, hidden=192, rate=0.004, steps=4500),
            seeds=3,
            size=(12.0, 4.8),
        ),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        Bounded("simulation/skill/memorized", "The training pairs are learned early.", bound=300),
        Bounded(
            "simulation/skill/reached",
            "The held-out pairs are learned by the end of the run.",
            bound=KNOWN,
            at_most=False,
        ),
        Bounded("simulation/skill/delay", "That takes five times as many steps, or more.", bound=5, at_most=False),
        Bounded("simulation/skill/control_reached", "Without weight decay they are not.", bound=KNOWN),
        Bounded(
            "simulation/moments/excess",
            "At memorization the first matrix is farther from its last state than without decay.",
            bound=0.1,
            at_most=False,
        ),
        Bounded("simulation/network/least_norm", "No measured matrix has faded.", bound=FADED, at_most=False),
    ),
)
