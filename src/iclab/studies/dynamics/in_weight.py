"""When do weights store one task, and when do they learn from the context?

A fraction of the training sequences has a fresh task each, which only the context tells; the others share one task,
which weights can store. The layer is tested on fresh tasks (in-context) and on the stored task with contexts that
tell nothing (in-weight). Theory is the gradient flow of the exact loss of the mixture, and the exact losses of its
layer in both tests. Simulation draws training and test sequences, trains by gradient descent and tests the layer on
the drawn tests; the two witnesses share the weights at the start and nothing else. Published as figure 14 of arXiv
2501.16265.
"""

from dataclasses import dataclass, replace

import numpy as np

from iclab import figures
from iclab.attention import MergedAttention, random_merged
from iclab.claims import Limit
from iclab.numerics import require
from iclab.outcomes import Labelled, labelled
from iclab.problem import Regression, checked_mixture
from iclab.studies.dynamics.training import TrainingCase, marks
from iclab.study import Figure, Key, Preset, Study, View

EPOCH = 0.031  # training time of an epoch of the published run: 2 × its rate .0005 × N
CURVES = {"training": "training loss", "in_context": "in-context test", "in_weight": "in-weight test"}


@dataclass(frozen=True)
class Case(TrainingCase):
    """Runs of merged key-query attention on mixtures with several fractions of fresh tasks."""

    problem: Regression = Regression(eigenvalues=(0.25,) * 4, context_length=31)
    fractions: tuple[float, ...] = (0.0, 0.4, 0.6, 1.0)  # p, of sequences with a fresh task
    in_weight_task: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)  # w*, the task that the other sequences share
    heads: int = 8  # H, heads
    initial: float = 5.57e-6  # standard deviation of every entry at the start; published 1e-6, times √31
    rate: float = 0.031  # η, step of gradient descent on half the mean squared error; published
    steps: int = 5000  # steps of gradient descent; published
    sequences: tuple[int, ...] = (400, 2500, 16000)  # P, sizes of the training sets and of the test sets

    def __post_init__(self) -> None:
        super().__post_init__()
        fractions = tuple(float(fraction) for fraction in self.fractions)
        require(len(set(fractions)) == len(fractions) > 0, f"fractions must differ; got {self.fractions!r}.")
        for fraction in fractions:
            object.__setattr__(self, "in_weight_task", checked_mixture(self.problem, fraction, self.in_weight_task))
        object.__setattr__(self, "fractions", fractions)


def start(case: Case, seed: int) -> MergedAttention:
    """Small independent normal entries where a restricted layer has its own, zeros elsewhere."""
    rng = np.random.default_rng(seed)
    return random_merged(case.problem.dimension, case.heads, scale=case.initial, rng=rng).unrestricted()


def theory(case: Case, start: MergedAttention) -> dict[str, Labelled]:
    """The flow for each fraction: its own loss, and the losses of its layer in both tests."""
    from iclab.theory import tokens

    mixture = tokens.mixture
    task, time = np.array(case.in_weight_task), case.rate * marks(case.steps)
    tests = (mixture.in_context_test(case.problem), mixture.in_weight_test(case.problem, task))
    found = []
    for fraction in case.fractions:
        law = mixture.mixture_moments(case.problem, fraction, task, random_labels=fraction == 0)
        flow = mixture.flow(law, start, time)
        found.append([flow.loss, *(mixture.loss(test, flow.weights) for test in tests)])
    rows = np.stack(found, axis=1)
    return {
        name: labelled({"fraction": np.array(case.fractions), "time": time}, loss=row)
        for name, row in zip(CURVES, rows, strict=True)
    }


def simulation(case: Case, start: MergedAttention, *, key: Key) -> dict[str, Labelled]:
    """Gradient descent on drawn mixtures of each size, tested on drawn sequences as many."""
    import jax

    from iclab.simulation.linear import descent, mixtures, predictions
    from iclab.simulation.linear.statistics import stack, statistics

    task, steps = np.array(case.in_weight_task), marks(case.steps)

    def drawn(size: int, fraction: float, role: int) -> mixtures.Contexts:
        place = jax.random.fold_in(jax.random.fold_in(key, size), role)
        silent = fraction == 0  # as published: true labels in every mixture, random ones where nothing is fresh
        return mixtures.draw(case.problem, fraction, task, sequences=size, random_labels=silent, key=place)

    tests = [[drawn(size, fraction, role) for size in case.sequences] for role, fraction in enumerate((1.0, 0.0))]
    found = []
    for role, fraction in enumerate(case.fractions, start=len(tests)):
        data = stack([statistics(drawn(size, fraction, role), start) for size in case.sequences])
        run = descent.on_statistics(data, start, rate=case.rate, steps=steps)
        tested = [
            [
                np.mean((predictions.predict(test, run.weights[i]) - test.target) ** 2, axis=-1)
                for i, test in enumerate(several)
            ]
            for several in tests
        ]
        found.append([run.loss, *tested])
    rows = np.swapaxes(np.array(found), 0, 1)
    return {
        name: labelled(
            {"fraction": np.array(case.fractions), "sequences": np.array(case.sequences), "time": case.rate * steps},
            loss=row,
        )
        for name, row in zip(CURVES, rows, strict=True)
    }


def figure(view: View, figure: Figure) -> None:
    """Training loss and both test losses against time, a color for each fraction; one seed."""
    for (name, title), axes in zip(CURVES.items(), figure.subplots(1, 3), strict=True):
        exact = view.theory[name]
        for i, (color, fraction) in enumerate(figures.colored(exact["fraction"].values)):
            figures.theory_line(
                axes, exact.time, exact.loss.isel(seed=0, fraction=i), color=color, label=f"{fraction:g}"
            )
            if view.simulation:
                tested = view.simulation[name].isel(seed=0, sequences=-1)
                figures.dashed_line(axes, tested.time, tested.loss.isel(fraction=i), color=figures.INK)
        figures.loss_axes(axes, title=title)
        figures.epoch_axis(axes, EPOCH, label="published epochs")
        if name == "in_context":
            axes.legend(title="fresh tasks; dashed: drawn", title_fontsize=8)


STUDY = Study(
    name="in-weight",
    question=str(__doc__),
    version=1,
    presets={
        "quick": Preset(Case(), seeds=3, size=(11.0, 3.8)),
        "full": Preset(
            replace(Case(), fractions=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0), sequences=(1000, 5000, 25000)),
            seeds=3,
            size=(11.0, 3.8),
        ),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=tuple(
        Limit(
            f"theory/{name}/loss",
            f"simulation/{name}/loss",
            f"With many sequences the {title} follows the flow of the exact loss.",
            along="sequences",
            order=0.5,
        )
        for name, title in CURVES.items()
    ),
    start=start,
)
