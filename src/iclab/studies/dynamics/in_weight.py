"""When do weights store one task, and when do they learn from the context?

A fraction of the training sequences has a fresh task each, which only the context tells; the others share one task,
which weights can store. The layer is tested on fresh tasks (in-context) and on the stored task with contexts that
tell nothing (in-weight). Theory is the gradient flow of the exact loss of the mixture, and the exact losses of its
layer in both tests. Simulation is gradient descent: on the exact moments, which becomes the flow as the learning rate
falls, and on drawn sequences, with drawn test sequences. Published as figure 14 of arXiv 2501.16265.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from iclab import figures
from iclab.attention import MergedAttention
from iclab.claims import Agrees, ExactInRate
from iclab.numerics import Distinct, Floats
from iclab.numerics.curves import half_drop_time
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.problem import Regression, checked_mixture
from iclab.published import merged_units
from iclab.studies.dynamics import training
from iclab.study import Figure, Key, Preset, Study, View

if TYPE_CHECKING:
    from iclab.theory.tokens.mixture import MixtureMoments

__all__ = ["STUDY", "Case"]

PUBLISHED = merged_units(0.0005, context_length=31)
CURVES = {"training": "training loss", "in_context": "in-context test", "in_weight": "in-weight test"}


@dataclass(frozen=True)
class Case(training.TrainingCase):
    """Runs of merged key-query attention on mixtures with several fractions of fresh tasks."""

    problem: Regression = Regression(eigenvalues=(0.25,) * 4, context_length=31)
    fractions: Annotated[tuple[float, ...], Floats(), Distinct()] = (0.0, 0.4, 0.6, 1.0)  # p, of fresh tasks
    in_weight_task: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)  # w*, the task that the other sequences share
    heads: int = 8  # H, heads
    initial: float = round(1e-6 * PUBLISHED.weight_scale, 8)  # standard deviation of entries at the start; published
    rate: float = PUBLISHED.rounded_rate  # η, learning rate on half the mean squared error; published
    steps: int = 5000  # steps of gradient descent; published
    sequences: tuple[int, ...] = (400, 2500, 16000)  # P, sizes of the training sets and of the test sets

    def __post_init__(self) -> None:
        super().__post_init__()
        for fraction in self.fractions:
            object.__setattr__(self, "in_weight_task", checked_mixture(self.problem, fraction, self.in_weight_task))


def start(case: Case, seed: int) -> MergedAttention:
    """Small independent normal entries where a restricted layer has its own, zeros elsewhere."""
    return training.small_merged(case, seed).unrestricted()


def mixed(case: Case, fraction: float) -> "MixtureMoments":
    """The exact law of a mixture; as published, labels are random where nothing is fresh."""
    from iclab.theory.tokens import mixture

    return mixture.mixture_moments(case.problem, fraction, np.array(case.in_weight_task), random_labels=fraction == 0)


def theory(case: Case, start: MergedAttention) -> dict[str, Labeled]:
    """The flow for each fraction: its own loss, and the losses of its layer in both tests."""
    from iclab.theory.tokens import mixture

    task, time = np.array(case.in_weight_task), case.rate * training.marks(case.steps)
    tests = (mixture.in_context_test(case.problem), mixture.in_weight_test(case.problem, task))
    found = []
    for fraction in case.fractions:
        flow = mixture.flow(mixed(case, fraction), start, time)
        found.append([flow.loss, *(mixture.loss(test, flow.weights) for test in tests)])
    axes, rows = {"fraction": case.fractions, "time": time}, np.stack(found, axis=1)
    curves = {name: labeled(axes, loss=row) for name, row in zip(CURVES, rows, strict=True)}
    return {**curves, "ends": ends(case, time, rows)}


def ends(case: Case, time: np.ndarray, curves: np.ndarray) -> Labeled:
    """The losses at the end, and the half-drop time of training, for each fraction."""
    half = [half_drop_time(time, curve) for curve in curves[0]]
    last = dict(zip(CURVES, curves[..., -1], strict=True))
    return labeled({"fraction": case.fractions}, half_drop=half, **last)


def simulation(case: Case, start: MergedAttention, *, key: Key) -> dict[str, Labeled]:
    """Gradient descent on drawn mixtures of each size, tested on drawn sequences as many."""
    import jax

    from iclab.simulation.linear import descent, mixtures, predictions
    from iclab.simulation.linear.statistics import Statistics, stack, statistics

    laws = [mixed(case, fraction) for fraction in case.fractions]
    data = [Statistics.of_features(*law.distinct(), law.null_loss) for law in laws]
    exact = [training.by_rate(case, start, data=one) for one in data]
    task, steps = np.array(case.in_weight_task), training.marks(case.steps)

    def drawn(size: int, fraction: float, role: int) -> mixtures.Contexts:
        own = jax.random.fold_in(jax.random.fold_in(key, size), role)
        silent = fraction == 0  # as published: true labels in every mixture, random ones where nothing is fresh
        return mixtures.draw(case.problem, fraction, task, sequences=size, random_labels=silent, key=own)

    def tested(test: mixtures.Contexts, layer: MergedAttention) -> np.ndarray:
        return np.mean((predictions.predict(test, layer) - test.target) ** 2, axis=-1)

    tests = [[drawn(size, fraction, role) for size in case.sequences] for role, fraction in enumerate((1.0, 0.0))]
    found = []
    for role, fraction in enumerate(case.fractions, start=len(tests)):
        data = stack([statistics(drawn(size, fraction, role), start) for size in case.sequences])
        run = descent.on_statistics(data, start, rate=case.rate, steps=steps)
        losses = [[tested(test, run.weights[i]) for i, test in enumerate(several)] for several in tests]
        found.append([run.loss, *losses])
    axes = {"fraction": case.fractions, "sequences": case.sequences, "time": case.rate * steps}
    rows = np.swapaxes(np.array(found), 0, 1)
    curves = {name: labeled(axes, loss=row) for name, row in zip(CURVES, rows, strict=True)}
    largest = ends(case, case.rate * steps, rows[:, :, -1])
    return {**curves, "ends": largest, "rates": training.stacked("fraction", case.fractions, exact)}


def figure(view: View, figure: Figure) -> None:
    """Training loss and both test losses against time, a color for each fraction; one seed."""
    for (name, title), axes in zip(CURVES.items(), figure.subplots(1, 3), strict=True):
        exact = view.theory[name].isel(seed=0)
        for color, i in figures.colored(range(exact.sizes["fraction"])):
            label = f"{float(exact.fraction[i]):g}"
            figures.theory_line(axes, exact.time, exact.loss.isel(fraction=i), color=color, label=label)
            if view.simulation:
                drawn = view.simulation[name].isel(seed=0, fraction=i, sequences=-1)
                figures.dashed_line(axes, drawn.time, drawn.loss, color=figures.INK)
        figures.loss_axes(axes, title=title)
        if name == "in_context":
            axes.legend(title="fresh tasks; dashed: drawn", title_fontsize=8)


FULL = Case(fractions=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0), sequences=(1000, 5000, 25000))

STUDY = Study(
    name="in-weight", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), seeds=5, size=(11.0, 3.8)), "full": Preset(FULL, seeds=3, size=(11.0, 3.8))},
    start=start, theory=theory, simulation=simulation, figure=figure,
    units=training.units(PUBLISHED.rounded_rate, problem=Case.problem),
    claims=(
        ExactInRate("training/loss"),
        *(Agrees(f"ends/{name}", f"On the largest training set the {title} ends at the loss of the flow.", 0.045)
          for name, title in CURVES.items()),
        Agrees("ends/half_drop", "On the largest training set training drops when the flow does.", 0.045),
    ),
    vocabulary=vocabulary({f"ends/{name}": ("L", f"{title} at the end", "label²") for name, title in CURVES.items()}),
    unjudged={
        f"theory/{name}/loss": "a loss of the layers of the flow, which is judged in training; its end is judged here"
        for name in ("in_context", "in_weight")
    },
)  # fmt: skip
