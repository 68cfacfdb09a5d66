"""When does attention learn to continue what it has seen once, and what do its spectra show at that time?

TEXT
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from iclab import figures
from iclab.claims import Bounded
from iclab.numerics import positive, require, whole_number
from iclab.outcomes import quantity
from iclab.studies.network_spectra import (
    LEADING,
    Kind,
    SpectralCurves,
    SpectralLevels,
    curves,
    head_circuits,
    levels,
    panels,
)
from iclab.study import Study

if TYPE_CHECKING:
    import xarray as xr
    from jaxtyping import PRNGKeyArray
    from matplotlib.figure import Figure

Array = np.ndarray
ALONE = 0.42  # accuracy that one layer does not reach
SOLVED = 0.9  # accuracy of two layers that have learned to look back


@dataclass(frozen=True)
class Case:
    """A network of two layers and one of a single layer on the same task. Raises ValueError for impossible numbers."""

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
    every: int = 25  # steps from one state that is looked at to the next
    tested: int = 256  # sequences of the test

    def __post_init__(self) -> None:
        for name in ("vocabulary", "width", "heads", "batch", "steps", "every", "tested"):
            whole_number(name, getattr(self, name))
        positive("rate", self.rate)
        positive("decay", self.decay)
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
    opened: int = quantity("s", words="last step before two layers pass what one layer does not reach")
    solved: int = quantity("s", words="first step at which two layers have solved the task, else one past the end")


@dataclass(frozen=True)
class Pace:
    """How fast effective ranks change, in 100 steps, while the accuracy of two layers rises and else."""

    inside: Float[Array, "matrix"] = quantity("|Δr|", "matrix", words="two layers, while their accuracy rises")
    outside: Float[Array, "matrix"] = quantity("|Δr|", "matrix", words="two layers, at other steps")
    control_inside: Float[Array, "matrix"] = quantity("|Δr|", "matrix", words="one layer, at the steps of the rise")
    control_outside: Float[Array, "matrix"] = quantity("|Δr|", "matrix", words="one layer, at other steps")


def theory(case: Case) -> dict[str, SpectralLevels | Chance]:
    """What is known without training: what random circuits read, and chance."""
    return {"levels": levels(kinds(case)), "chance": Chance(1 / case.vocabulary)}


def simulation(case: Case, *, key: "PRNGKeyArray") -> dict[str, Skill | Pace | SpectralCurves]:
    """Both networks, trained on fresh sequences and tested on the same fixed ones."""
    import jax

    from iclab.simulation.network_runs import accuracy, adamw, weights_along
    from iclab.simulation.networks import Transformer
    from iclab.simulation.sequences import PeriodicSequences

    for_test, *for_networks = jax.random.split(key, 3)
    data = PeriodicSequences(case.vocabulary, case.length, case.shortest, case.longest, case.batch)
    test = data.test((), for_test, case.tested)
    steps = range(0, case.steps + 1, case.every)
    spectra, scores = [], []
    for layers, run in zip((2, 1), for_networks, strict=True):
        network = Transformer(
            length=case.length, outputs=case.vocabulary, vocabulary=case.vocabulary, layers=layers,
            width=case.width, heads=case.heads, positions="shortformer",
        )  # fmt: skip
        asked = [*steps] if layers == 2 else [*steps, case.control_steps]
        states = weights_along(network, data, steps=asked, optimizer=adamw(case.rate, decay=case.decay), key=run)
        scores.append(np.array([accuracy(network, state, test) for state in states]))
        spectra.append(curves(steps, head_circuits(states[: len(steps)], layers - 1, heads=case.heads)))
    two, one = scores
    begin, end = rise(two)
    return {
        "skill": Skill(
            np.array(steps),
            two,
            one[:-1],
            float(np.max(two)),
            float(one[-1]),
            begin * case.every,
            end * case.every,
        ),
        "network": spectra[0],
        "control": spectra[1],
        "pace": pace(case, *spectra, begin, end),
    }


def rise(accuracy: Float[Array, "step"]) -> tuple[int, int]:
    """The states between which the accuracy rises: from the last at or below ALONE to the first above SOLVED.

    The second is one past the end where no state is above.
    """
    end = int(np.argmax(accuracy > SOLVED)) if np.any(accuracy > SOLVED) else len(accuracy)
    low = np.flatnonzero(accuracy[:end] <= ALONE)
    return (int(low[-1]) if len(low) else 0), end


def pace(case: Case, network: SpectralCurves, control: SpectralCurves, begin: int, end: int) -> Pace:
    """Changes of effective ranks from one state to the next, means over the rise and over the rest."""
    interval = np.arange(len(network.later))
    rising = (interval >= begin) & (interval < end)
    found = []
    for one in (network, control):
        change = np.abs(np.diff(one.effective_rank, axis=1)) * 100 / case.every
        found += [
            change[:, part].mean(axis=1) if np.any(part) else np.zeros(len(change)) for part in (rising, ~rising)
        ]
    return Pace(*found)


def figure(result: "xr.DataTree", figure: "Figure") -> None:
    """Accuracy; then ranks, distances and overlaps of the circuits of the last layer, with random levels in grey."""
    runs = (("control", figures.COLORS[1], "one layer"), ("network", figures.COLORS[0], "two layers"))
    skill, below = panels(figure, result, KINDS, runs)
    chance = float(result["theory/chance"].to_dataset().accuracy)
    skill.axhline(chance, color="#777777", lw=0.8, ls=":", label="chance")
    if "simulation" in result.children:
        found = result["simulation/skill"].to_dataset()
        for (_, color, label), name in zip(runs, ("control", "accuracy"), strict=True):
            figures.seed_lines(skill, found.step, found[name].values, color=color, label=label)
    skill.set(title="accuracy on tokens\nseen a period before", ylim=(0, 1))
    below.axis("off")
    below.legend(*skill.get_legend_handles_labels(), loc="upper left")


STUDY = Study(
    name="icl-emergence",
    question=str(__doc__),
    version=1,
    quick=Case(),
    full=replace(Case(), steps=2000, control_steps=3000),
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        Bounded(
            "simulation/skill/reached", f"Two layers pass {SOLVED:g} within the run.", bound=SOLVED, at_most=False
        ),
        Bounded(
            "simulation/skill/control_last",
            f"One layer stays below {ALONE:g}, in half as many steps again.",
            bound=ALONE,
        ),
    ),
    seeds=3,
    full_seeds=8,
    size=(12.0, 4.8),
)
