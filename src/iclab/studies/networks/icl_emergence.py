"""Is there a mark in the spectra of attention when it learns to continue what it has seen once?

Two layers of attention alone, and one layer as control, train on random tokens that repeat with a random period; a
prediction counts where the token has occurred one period before. arXiv 2504.12916 reports that spectral measures of
attention mark the time at which in-context learning appears. Theory is the accuracy by chance and the null level, in
gray: mean over heads and spread of each measure over random circuits of the same shapes. Simulation measures the
query-key and output-value circuits of the last layer; distances fall to zero at the last state by construction. No
mark that coincides with the rise and is absent in the control is claimed, and no mechanism of the heads. Findings of
earlier runs: docs/studies/icl-emergence.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from jaxtyping import Float, Int

from iclab import figures
from iclab.claims import above, below
from iclab.numerics import Checked, Count, Positive, Whole, require
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.spectra.observation import row_spaces
from iclab.spectra.observation.row_spaces import Kind
from iclab.studies.networks import spectra
from iclab.studies.networks.spectra import Heads, first_above
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

Array = np.ndarray
ALONE = 0.42  # accuracy that one layer is claimed not to reach
KINDS = ("query-key", "output-value")
SOLVED = 0.9  # accuracy of two layers that have learned to look back


@dataclass(frozen=True)
class Case(Checked):
    """Two layers, and one layer as control, on the same task."""

    vocabulary: Annotated[int, Whole(least=2)] = 32  # different tokens
    length: Count = 32  # tokens of a sequence
    shortest: Count = 12  # least period of a sequence
    longest: Count = 16  # largest period of a sequence
    width: Count = 64  # entries of the residual stream
    heads: Heads = 2  # attention heads of a layer; one spans all that its layer reads
    batch: Count = 32  # fresh sequences of a step
    rate: Positive = 0.002  # learning rate of AdamW
    decay: Positive = 0.01  # weight decay
    steps: Count = 1000  # steps along which both networks are measured
    control_steps: Count = 1500  # steps after which one layer is tested again
    every: Count = 50  # steps from one measured state to the next
    tested: Count = 256  # sequences of the test

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            1 <= self.shortest <= self.longest <= self.length - 2,
            f"shortest and longest must be in order, from 1 to length - 2 = {self.length - 2}; got {self.shortest} "
            f"and {self.longest}.",
        )
        spectra.require_heads(self.heads, self.width)
        require(
            self.steps % self.every == 0 and self.steps >= 4 * self.every,
            f"steps must be four or more times every = {self.every}, a whole number; got {self.steps}.",
        )
        most = self.control_steps
        require(most > self.steps, f"control_steps must be above steps = {self.steps}; got {most}.")


def kinds(case: Case) -> tuple[Kind, ...]:
    """The circuits of the heads of the last layer."""
    shape = (case.width, case.width // case.heads, case.width)
    return tuple(Kind(name, shape, case.heads) for name in KINDS)


def theory(case: Case) -> dict[str, Labeled]:
    """Null levels and chance, known without training."""
    return {"levels": row_spaces.levels(kinds(case)), "chance": labeled({}, accuracy=1 / case.vocabulary)}


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Both networks, trained on fresh sequences and tested on the same fixed ones."""
    import jax

    from iclab.simulation.networks import Transformer
    from iclab.simulation.networks.optimizers import adamw
    from iclab.simulation.networks.runs import accuracy, weights_along
    from iclab.simulation.sequences import PeriodicSequences

    for_test, *for_networks = jax.random.split(key, 3)
    data = PeriodicSequences(case.vocabulary, case.length, case.shortest, case.longest, case.batch)
    test, steps = data.test((), for_test, case.tested), range(0, case.steps + 1, case.every)

    def trained(layers: int, marks: list[int], run: Key) -> tuple[Float[Array, "_"], Labeled]:
        network = Transformer(
            length=case.length, outputs=case.vocabulary, vocabulary=case.vocabulary, layers=layers,
            width=case.width, heads=case.heads, positions="shortformer",
        )  # fmt: skip
        along = weights_along(network, data, steps=marks, optimizer=adamw(case.rate, decay=case.decay), key=run)
        scores = np.array([accuracy(network, state, test) for state in along])
        circuits = row_spaces.head_circuits(along[: len(steps)], layers - 1, heads=case.heads)
        return scores, row_spaces.curves(steps, circuits)

    two, network = trained(2, [*steps], for_networks[0])
    one, control = trained(1, [*steps, case.control_steps], for_networks[1])
    begin, end = rise(two)
    opened, solved, half = begin * case.every, end * case.every, half_way(network)
    pace = {}
    for prefix, run in (("", network), ("control_", control)):
        pace[f"{prefix}inside"], pace[f"{prefix}outside"] = paces(run.effective_rank / case.every, begin, end)
    axes, lead = {"matrix": None}, float(network.marginal_rank[0, -1] - control.marginal_rank[0, -1])
    return {
        "skill": labeled({"step": steps}, accuracy=two, control=one[:-1], reached=np.max(two), control_last=one[-1]),
        "network": network,
        "control": control,
        "timing": labeled(
            axes, opened=opened, solved=solved, half_way=half, wait=half - opened, control_half_way=half_way(control)
        ),
        "pace": labeled(axes, **pace, lead=lead),
    }


def rise(accuracy: Float[Array, "step"]) -> tuple[int, int]:
    """The states between which the accuracy rises: from the last at or below ALONE to the first above SOLVED.

    The second is one past the end where no state is above.
    """
    end = first_above(accuracy, SOLVED, none=len(accuracy))
    low = np.flatnonzero(accuracy[:end] <= ALONE)
    return (int(low[-1]) if len(low) else 0), end


def half_way(circuits: Labeled) -> Int[Array, "matrix"]:
    """First step at which the distance to the last state is less than half of that of the start."""
    return circuits.step[np.argmax(circuits.distance < circuits.distance[:, :1] / 2, axis=1)]


def paces(ranks: Float[Array, "matrix step"], begin: int, end: int) -> list[Float[Array, "matrix"]]:
    """Mean size of the change from one state to the next, in the rise and at other times; 0 where there are none."""
    change = np.abs(np.diff(ranks, axis=1))
    interval = np.arange(change.shape[1])
    rising = (interval >= begin) & (interval < end)
    return [np.mean(change, axis=1, where=part) if np.any(part) else 0 * change[:, 0] for part in (rising, ~rising)]


def figure(view: View, figure: Figure) -> None:
    """Accuracy; then ranks, distances and overlaps of the circuits of the last layer, with null levels in gray."""
    runs = (("control", figures.COLORS[1], "one layer"), ("network", figures.COLORS[0], "two layers"))
    skill, rest = spectra.panels(figure, view, KINDS, runs, scale="linear")
    skill.axhline(float(view.theory.chance.accuracy), color="#777777", lw=0.8, ls=":", label="chance")
    if view.simulation:
        found, rise = view.simulation.skill, view.simulation.timing.median("seed")
        for (_, color, label), name in zip(runs, ("control", "accuracy"), strict=True):
            figures.seed_lines(skill, found.step, found[name].values, color=color, label=label)
        label = f"two layers rise from\n{ALONE:g} to {SOLVED:g}, median"
        for panel in (axes for axes in figure.axes if axes is not rest):
            panel.axvspan(float(rise.opened), float(rise.solved), color="#fdf3c4", lw=0, zorder=-1, label=label)
    skill.set(title="accuracy on tokens\nseen a period before", xlabel="steps of training", ylim=(0, 1))
    skill.tick_params(labelbottom=True)
    rest.axis("off")
    rest.legend(*skill.get_legend_handles_labels(), loc="upper left")


WORDS = vocabulary(
    {"chance/accuracy": ("1/V", "accuracy by chance")},
    accuracy=("A", "accuracy of two layers on tokens seen before"),
    control=("A₁", "accuracy of one layer on tokens seen before"),
    reached=("A", "largest accuracy of two layers"),
    control_last=("A₁", "accuracy of one layer after control_steps"),
    opened=("s", "last step before two layers pass what one layer does not reach"),
    solved=("s", "first step at which two layers have solved the task, else one past the end"),
    half_way=("s", "first step at half the distance of the start"),
    wait=("Δs", "steps from the begin of the rise until half way"),
    control_half_way=("s", "first step at half the distance of the start, one layer"),
    inside=("|Δr|", "mean change of the effective rank in a step, two layers, while their accuracy rises"),
    outside=("|Δr|", "mean change of the effective rank in a step, two layers, at other steps"),
    control_inside=("|Δr|", "mean change of the effective rank in a step, one layer, at the steps of the rise"),
    control_outside=("|Δr|", "mean change of the effective rank in a step, one layer, at other steps"),
    lead=("Δr₁", "last query-key rank without its leading value, two layers over one layer"),
)

FULL = Case(steps=2000, control_steps=3000, every=25)
STUDY = Study(
    name="icl-emergence", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=3, size=(12.0, 4.8)), "full": Preset(FULL, seeds=8, size=(12.0, 4.8))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        above("skill/reached", f"Two layers pass {SOLVED:g} within the run.", SOLVED),
        below("skill/control_last", f"One layer is still below {ALONE:g} after its longer training.", ALONE),
        above("timing/wait", "No circuit of two layers is half way to its last state before the rise.", 0),
        above("pace/lead", "The query-key rank without its leading value ends higher than in one layer.", 1),
    ),
    unjudged=spectra.NULL_LEVELS | {"theory/chance/accuracy": "one over the number of tokens"},
    vocabulary=spectra.SPECTRA | WORDS,
)  # fmt: skip
