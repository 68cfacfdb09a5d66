"""Is there a mark in the spectra of attention when it learns to continue what it has seen once?

Two layers of attention alone, and one layer as control, train on random tokens that repeat with a random period; a
prediction counts where the token has occurred one period before. arXiv 2504.12916 reports that measures of the
spectra of attention mark the time at which in-context learning appears. Which mechanism the heads come to use is not
asked.

Theory is the accuracy by chance and the null level, in gray: mean over heads and spread of each measure over random
circuits of the same shapes. Simulation trains both networks and measures the query-key and output-value circuits of
their last layer along training. Distances fall to zero at the last state by construction.

The claims ask that two layers learn the task and one layer does not, that no circuit of two layers comes half way to
its last state before the accuracy rises, and that the query-key rank without its leading value ends higher in two
layers than in one. A mark that coincides with the rise and is absent in the control is not claimed. Findings of
earlier runs: docs/studies/icl-emergence.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from iclab import figures
from iclab.claims import Bounded
from iclab.numerics import divides, positive, require, whole_number
from iclab.outcomes import quantity
from iclab.studies.networks.spectra import (
    LEADING,
    Kind,
    SpectralCurves,
    SpectralLevels,
    curves,
    head_circuits,
    levels,
    panels,
)
from iclab.study import Figure, Key, Preset, Study, View

Array = np.ndarray
ALONE = 0.42  # accuracy that one layer is claimed not to reach
SOLVED = 0.9  # accuracy of two layers that have learned to look back


@dataclass(frozen=True)
class Case:
    """Two layers, and one layer as control, on the same task. Raises ValueError for impossible numbers."""

    vocabulary: int = 32  # different tokens
    length: int = 32  # tokens of a sequence
    shortest: int = 12  # least period of a sequence
    longest: int = 16  # largest period of a sequence
    width: int = 64  # entries of the residual stream
    heads: int = 2  # attention heads of a layer
    batch: int = 32  # fresh sequences of a step
    rate: float = 0.002  # step of AdamW
    decay: float = 0.01  # weight decay
    steps: int = 1000  # steps along which both networks are looked at
    control_steps: int = 1500  # steps after which one layer is asked again
    every: int = 50  # steps from one state that is looked at to the next
    tested: int = 256  # sequences of the test

    def __post_init__(self) -> None:
        for name in ("length", "shortest", "longest", "width", "batch", "steps", "control_steps", "every", "tested"):
            whole_number(name, getattr(self, name))
        for name in ("vocabulary", "heads"):  # one head spans all that its layer reads
            whole_number(name, getattr(self, name), least=2)
        positive("rate", self.rate)
        positive("decay", self.decay)
        require(
            1 <= self.shortest <= self.longest <= self.length - 2,
            f"shortest and longest must be in order, from 1 to length - 2 = {self.length - 2}; got {self.shortest} "
            f"and {self.longest}.",
        )
        divides("heads", self.heads, "width", self.width)
        require(
            self.width > LEADING * self.heads,
            f"width must be above {LEADING} for each head, whose leading directions are compared; got {self.width}.",
        )
        require(
            self.steps % self.every == 0 and self.steps >= 4 * self.every,
            f"steps must be four or more times every = {self.every}, a whole number; got {self.steps}.",
        )
        require(
            self.control_steps > self.steps,
            f"control_steps must be above steps = {self.steps}; got {self.control_steps}.",
        )


KINDS = ("query-key", "output-value")


def kinds(case: Case) -> tuple[Kind, ...]:
    """The circuits of the heads of the last layer."""
    shape = (case.width, case.width // case.heads, case.width)
    return tuple(Kind(name, shape, case.heads) for name in KINDS)


@dataclass(frozen=True)
class Chance:
    """Accuracy of an answer by chance."""

    accuracy: float = quantity("1/V", words="accuracy by chance")


@dataclass(frozen=True)
class Skill:
    """What both networks can do, and when."""

    step: Int[Array, "step"] = quantity("s", "step", words="steps of training")
    accuracy: Float[Array, "step"] = quantity("A", "step", words="accuracy of two layers on tokens seen before")
    control: Float[Array, "step"] = quantity("A₁", "step", words="accuracy of one layer on tokens seen before")
    reached: float = quantity("A", words="largest accuracy of two layers")
    control_last: float = quantity("A₁", words="accuracy of one layer after control_steps")


@dataclass(frozen=True)
class Timing:
    """When the accuracy of two layers rises, and when circuits of the last layer are half way to their last state."""

    opened: int = quantity("s", words="last step before two layers pass what one layer does not reach")
    solved: int = quantity("s", words="first step at which two layers have solved the task, else one past the end")
    half_way: Int[Array, "matrix"] = quantity("s", "matrix", words="first step at half the distance of the start")
    wait: Int[Array, "matrix"] = quantity("Δs", "matrix", words="from the begin of the rise until half way")
    control_half_way: Int[Array, "matrix"] = quantity(
        "s", "matrix", words="first step at half the distance of the start, one layer"
    )


@dataclass(frozen=True)
class Pace:
    """Mean size of the change of effective ranks in a step, while the accuracy of two layers rises and else.

    Last, how ranks differ at the end.
    """

    inside: Float[Array, "matrix"] = quantity("|Δr|", "matrix", words="two layers, while their accuracy rises")
    outside: Float[Array, "matrix"] = quantity("|Δr|", "matrix", words="two layers, at other steps")
    control_inside: Float[Array, "matrix"] = quantity("|Δr|", "matrix", words="one layer, at the steps of the rise")
    control_outside: Float[Array, "matrix"] = quantity("|Δr|", "matrix", words="one layer, at other steps")
    lead: float = quantity("Δr₁", words="last query-key rank without its leading value, two layers over one layer")


def theory(case: Case) -> dict[str, SpectralLevels | Chance]:
    """What is known without training: what random circuits read, and chance."""
    return {"levels": levels(kinds(case)), "chance": Chance(1 / case.vocabulary)}


def simulation(case: Case, *, key: Key) -> dict[str, Skill | Timing | Pace | SpectralCurves]:
    """Both networks, trained on fresh sequences and tested on the same fixed ones."""
    import jax

    from iclab.simulation.networks import Transformer
    from iclab.simulation.networks.optimizers import adamw
    from iclab.simulation.networks.runs import accuracy, weights_along
    from iclab.simulation.sequences import PeriodicSequences

    for_test, *for_networks = jax.random.split(key, 3)
    data = PeriodicSequences(case.vocabulary, case.length, case.shortest, case.longest, case.batch)
    test = data.test((), for_test, case.tested)
    steps = range(0, case.steps + 1, case.every)
    optimizer = adamw(case.rate, decay=case.decay)

    def trained(layers: int, asked: list[int], run: Key) -> tuple[Float[Array, "_"], SpectralCurves]:
        network = Transformer(
            length=case.length, outputs=case.vocabulary, vocabulary=case.vocabulary, layers=layers,
            width=case.width, heads=case.heads, positions="shortformer",
        )  # fmt: skip
        states = weights_along(network, data, steps=asked, optimizer=optimizer, key=run)
        scores = np.array([accuracy(network, state, test) for state in states])
        return scores, curves(steps, head_circuits(states[: len(steps)], layers - 1, heads=case.heads))

    two, network = trained(2, [*steps], for_networks[0])
    one, control = trained(1, [*steps, case.control_steps], for_networks[1])
    begin, end = rise(two)
    opened = begin * case.every
    return {
        "skill": Skill(
            step=np.array(steps),
            accuracy=two,
            control=one[:-1],
            reached=float(np.max(two)),
            control_last=float(one[-1]),
        ),
        "network": network,
        "control": control,
        "timing": Timing(
            opened=opened,
            solved=end * case.every,
            half_way=half_way(network),
            wait=half_way(network) - opened,
            control_half_way=half_way(control),
        ),
        "pace": Pace(
            *paces(network.effective_rank / case.every, begin, end),
            *paces(control.effective_rank / case.every, begin, end),
            lead=float(network.marginal_rank[0, -1] - control.marginal_rank[0, -1]),
        ),
    }


def rise(accuracy: Float[Array, "step"]) -> tuple[int, int]:
    """The states between which the accuracy rises: from the last at or below ALONE to the first above SOLVED.

    The second is one past the end where no state is above.
    """
    end = int(np.argmax(accuracy > SOLVED)) if np.any(accuracy > SOLVED) else len(accuracy)
    low = np.flatnonzero(accuracy[:end] <= ALONE)
    return (int(low[-1]) if len(low) else 0), end


def half_way(circuits: SpectralCurves) -> Int[Array, "matrix"]:
    """First step at which the distance to the last state is less than half of that of the start."""
    return circuits.step[np.argmax(circuits.distance < circuits.distance[:, :1] / 2, axis=1)]


def paces(
    ranks: Float[Array, "matrix step"], begin: int, end: int
) -> tuple[Float[Array, "matrix"], Float[Array, "matrix"]]:
    """Mean size of the change from one state to the next, in the rise and at other times; 0 where there are none."""
    change = np.abs(np.diff(ranks, axis=1))
    interval = np.arange(change.shape[1])
    rising = (interval >= begin) & (interval < end)
    inside, outside = (
        np.mean(change, axis=1, where=part) if np.any(part) else 0 * change[:, 0] for part in (rising, ~rising)
    )
    return inside, outside


def figure(view: View, figure: Figure) -> None:
    """Accuracy; then ranks, distances and overlaps of the circuits of the last layer, with random levels in grey."""
    runs = (("control", figures.COLORS[1], "one layer"), ("network", figures.COLORS[0], "two layers"))
    skill, rest = panels(figure, view, KINDS, runs, scale="linear")
    chance = float(view.theory.chance.accuracy)
    skill.axhline(chance, color="#777777", lw=0.8, ls=":", label="chance")
    if view.simulation:
        found = view.simulation.skill
        for (_, color, label), name in zip(runs, ("control", "accuracy"), strict=True):
            figures.seed_lines(skill, found.step, found[name].values, color=color, label=label)
        rise = view.simulation.timing.median("seed")
        for place in (axes for axes in figure.axes if axes is not rest):
            place.axvspan(
                float(rise.opened), float(rise.solved), color="#fdf3c4", lw=0, zorder=-1,
                label=f"two layers rise from\n{ALONE:g} to {SOLVED:g}, median",
            )  # fmt: skip
    skill.set(title="accuracy on tokens\nseen a period before", xlabel="steps of training", ylim=(0, 1))
    skill.tick_params(labelbottom=True)
    rest.axis("off")
    rest.legend(*skill.get_legend_handles_labels(), loc="upper left")


STUDY = Study(
    name="icl-emergence",
    question=str(__doc__),
    version=1,
    presets={
        "quick": Preset(Case(), seeds=3, size=(12.0, 4.8)),
        "full": Preset(replace(Case(), steps=2000, control_steps=3000, every=25), seeds=8, size=(12.0, 4.8)),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        Bounded(
            "simulation/skill/reached", f"Two layers pass {SOLVED:g} within the run.", bound=SOLVED, at_most=False
        ),
        Bounded(
            "simulation/skill/control_last",
            f"One layer is still below {ALONE:g} after its longer training.",
            bound=ALONE,
        ),
        Bounded(
            "simulation/timing/wait",
            "No circuit of two layers is half way to its last state before the rise: none settles early.",
            bound=0,
            at_most=False,
        ),
        Bounded(
            "simulation/pace/lead",
            "The query-key rank without its leading value ends higher in two layers than in one.",
            bound=1,
            at_most=False,
        ),
    ),
)
