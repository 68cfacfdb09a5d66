"""Does one formula give the loss of training on contexts of many lengths, and of testing on others?

A layer trained on contexts of mixed lengths learns as if all had one effective length, the harmonic mean. With
another length, noise or covariances the loss of any layer is the same quadratic form with the moments of that law.
Theory is the gradient flow on these lengths, its plateaus, and that formula for the best layer. Simulation trains on
the population moments, whose loss theory shares, and on drawn sequences with every weight that reaches the prediction
free, and tests that layer on drawn contexts. Training follows section 2.2 of arXiv 2501.16265; shifts go beyond it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.attention import MergedAttention, SeparateAttention
from iclab.claims import Agrees, ExactInRate, RestsTend
from iclab.numerics import Count, Floats, require
from iclab.outcomes import Labeled, Trajectory, labeled
from iclab.problem import Lengths, Regression
from iclab.published import separate_units
from iclab.studies.dynamics import training
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case"]

Nonnegatives = Annotated[tuple[float, ...], Floats(at_least=0.0)]
PUBLISHED = separate_units(0.02, context_length=31)
TESTS = {
    "lengths": ("context_length", "context length $N$"),
    "noises": ("noise", "label noise ρ"),
    "inputs": ("tilt", "power of $\\lambda$ in the inputs"),
    "tasks": ("tilt", "power of $\\lambda$ in the tasks"),
}


@dataclass(frozen=True)
class Case(training.TrainingCase):
    """Training on mixed context lengths, then tests under other laws of contexts."""

    problem: Regression = Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=tuple(range(4, 32)))
    heads: int = 5  # H, heads
    initial: float = 0.1  # size of value, key and query of a head at the start
    rate: float = PUBLISHED.rounded_rate  # η, learning rate on half the mean squared error; published
    steps: int = 30000  # steps of gradient descent
    sequences: tuple[int, ...] = (300, 3000, 30000)  # P, sizes of the training sets
    test_lengths: Lengths = (2, 8, 32, 128)  # N, context lengths of the tests
    test_noises: Nonnegatives = (0.0, 0.2, 0.8)  # ρ, label noise of the tests
    input_tilts: Nonnegatives = (0.0, 1.0, 2.0)  # powers of λ that test inputs have as covariance
    task_tilts: Annotated[tuple[float, ...], Floats()] = (-1.0, 0.0, 1.0)  # powers of λ that test tasks have
    test_contexts: Count = 10000  # contexts drawn for each test and seed

    def __post_init__(self) -> None:
        super().__post_init__()
        eigenvalues = self.problem.eigenvalues
        require(min(eigenvalues) > 0, f"problem.eigenvalues must be positive to be tilted; got {eigenvalues}.")

    def laws(self) -> dict[str, list[Regression]]:
        """The laws of the tests: all other numbers as in training, at the longest of its context lengths."""
        usual = replace(self.problem, context_length=max(self.problem.context_lengths))
        inputs, tasks = np.array(usual.eigenvalues), np.array(usual.task_spectrum)
        return {
            "lengths": [replace(usual, context_length=length) for length in self.test_lengths],
            "noises": [replace(usual, noise=noise) for noise in self.test_noises],
            "inputs": [replace(usual, eigenvalues=rescaled(inputs**p, inputs)) for p in self.input_tilts],
            "tasks": [replace(usual, task_eigenvalues=rescaled(tasks * inputs**p, tasks)) for p in self.task_tilts],
        }

    def labeled(self, losses: Mapping[str, Sequence[Any]]) -> dict[str, Labeled]:
        """Losses of the tests along what is varied in each kind."""
        points = (self.test_lengths, self.test_noises, self.input_tilts, self.task_tilts)
        kinds = zip(TESTS.items(), points, strict=True)
        return {name: labeled({axis: along}, loss=losses[name]) for (name, (axis, _)), along in kinds}


def rescaled(spectrum: Float[np.ndarray, "D"], like: Float[np.ndarray, "D"]) -> tuple[float, ...]:
    """The spectrum with the trace of another one."""
    return tuple(float(entry) for entry in spectrum * (np.sum(like) / np.sum(spectrum)))


def theory(case: Case, start: SeparateAttention) -> dict[str, Labeled | Trajectory]:
    """Training on mixed lengths; the loss of its best layer under each test law; the best loss at each length."""
    from iclab.theory import dynamics, population

    moments = population.moments(case.problem)
    gamma = population.best_gamma(moments)
    laws = {name: [population.moments(law) for law in several] for name, several in case.laws().items()}
    best = [population.best_loss(law) for law in laws["lengths"]]
    return {
        "flow": dynamics.separate_flow(moments, start, case.rate * training.log_marks(case.steps)),
        "small": training.small_flow(case, start),
        "levels": labeled({"plateau": None}, loss=training.plateaus(case)),
        "best": labeled({"context_length": case.test_lengths}, loss=best),
        **case.labeled({name: [population.loss(law, gamma) for law in several] for name, several in laws.items()}),
    }


def simulation(case: Case, start: SeparateAttention, *, key: Key) -> dict[str, Labeled]:
    """Gradient descent at three rates and on drawn training sets; tests on drawn contexts."""
    import jax

    from iclab.simulation.linear import contexts, predictions
    from iclab.theory import population

    train_key, *test_keys = jax.random.split(key, 1 + len(TESTS))

    def tests(law: Regression, key: Key) -> list[float]:
        """The best layer of training, and that of the law itself, on the same contexts."""
        drawn = contexts.draw(law, case.test_contexts, key=key)
        gammas = [population.best_gamma(population.moments(one)) for one in (case.problem, law)]
        answers = [predictions.predict(drawn, MergedAttention(np.ones(1), gamma[None])) for gamma in gammas]
        return [float(np.mean((answer - drawn.target) ** 2)) for answer in answers]

    tested = {
        name: np.array([tests(law, jax.random.fold_in(one, i)) for i, law in enumerate(laws)]).T
        for one, (name, laws) in zip(test_keys, case.laws().items(), strict=True)
    }
    steps = training.log_marks(case.steps)
    trained = training.on_sequences(case, start, key=train_key, steps=steps)
    return {
        "rates": training.by_rate(case, start, steps=training.early(steps), finer=training.FINEST),
        "sequences": training.by_sequences(case, trained),
        "best": labeled({"context_length": case.test_lengths}, loss=tested["lengths"][1]),
        **case.labeled({name: found[0] for name, found in tested.items()}),
    }


def figure(view: View, figure: Figure) -> None:
    """Training on mixed lengths, and the loss of its best layer under each kind of test."""
    panels = figure.subplot_mosaic(
        [["training", "lengths", "noises"], ["training", "inputs", "tasks"]], width_ratios=[1.7, 1, 1]
    )
    title = "training on mixed context lengths"
    training.loss_panel(panels["training"], view, title=title)
    best, color = training.first_seed(view.theory.best.loss), figures.COLORS[1]
    figures.dashed_line(panels["lengths"], best.context_length, best, color=color, label="best layer there")
    for name, (axis, label) in TESTS.items():
        axes, exact = panels[name], view.theory[name]
        figures.theory_line(axes, exact[axis], training.first_seed(exact.loss), label="this layer, theory")
        if view.simulation:
            figures.mean_points(axes, exact[axis], view.simulation[name].loss, label="drawn contexts")
        axes.set(xlabel=label, ylabel="test loss")
    panels["lengths"].set_xscale("log", base=2)
    panels["lengths"].legend()


FULL = Case(
    problem=Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=tuple(range(1, 32))),
    initial=0.08, steps=40000, sequences=(5000, 20000, 80000), test_lengths=(2, 4, 8, 16, 32, 64, 128),
    test_noises=(0.0, 0.1, 0.2, 0.4, 0.8), input_tilts=(0.0, 0.5, 1.0, 1.5, 2.0),
    task_tilts=(-1.0, -0.5, 0.0, 0.5, 1.0), test_contexts=20000,
)  # fmt: skip

STUDY = Study(
    name="context-lengths", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), seeds=6, size=(11.0, 4.6)), "full": Preset(FULL, seeds=8, size=(11.0, 4.6))},
    start=training.small_separate, theory=theory, simulation=simulation, figure=figure,
    units=training.units(PUBLISHED.rounded_rate, problem=Case.problem),
    claims=(
        ExactInRate(), training.SMALL_START, RestsTend(),
        *(Agrees(f"{kind}/loss", f"One formula gives the loss of the layer on contexts with other {kind}.", 0.045)
          for kind in TESTS),
        Agrees("best/loss", "The best layer of each length has the predicted loss there.", 0.045),
    ),
    vocabulary=training.LEVELS,
)  # fmt: skip
