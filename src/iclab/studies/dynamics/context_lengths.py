"""Does one formula give the loss of training on contexts of many lengths, and of testing on others?

A layer trained on contexts of mixed lengths learns as if each had one effective length, the harmonic mean. The loss
of any layer on contexts of another length, with other noise or other covariances, is the same quadratic form with the
moments of that law. Theory is the gradient flow on the mixed lengths, its plateaus, and that formula for the layer
of least loss. Simulation trains by gradient descent: on the population moments, whose loss theory shares, at three
rates, and on drawn sequences of mixed lengths with every weight that reaches the prediction free. It tests the layer
of least loss on drawn contexts, and its mean squared errors are judged in standard errors. Training follows
section 2.2 of arXiv 2501.16265; the shifts go beyond it.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.attention import MergedAttention, SeparateAttention, random_separate
from iclab.claims import ExactInRate, LimitInSequences, WithinErrors
from iclab.numerics import require, whole_number
from iclab.outcomes import Labelled, Levels, LossCurve, labelled
from iclab.problem import Regression, checked_lengths
from iclab.studies.dynamics.training import (
    TrainingCase,
    by_rate,
    by_sequences,
    first_seed,
    loss_panel,
    marks,
    on_sequences,
    test_panel,
)
from iclab.study import Figure, Key, Preset, Study, View

EPOCH = 0.3947308961  # training time of an epoch of the published run: 2 × its rate .02 × N^(2/3)


@dataclass(frozen=True)
class Case(TrainingCase):
    """Training on mixed context lengths, then tests under other laws of contexts."""

    problem: Regression = Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=tuple(range(4, 32)))
    heads: int = 5  # H, heads
    initial: float = 0.25  # size of value, key and query of a head at the start
    rate: float = 0.3947308961  # η, step of gradient descent on half the mean squared error; published
    steps: int = 2000  # steps of gradient descent
    sequences: tuple[int, ...] = (300, 3000, 30000)  # P, sizes of the training sets
    test_lengths: tuple[int, ...] = (2, 8, 32, 128)  # N, context lengths of the tests
    test_noises: tuple[float, ...] = (0.0, 0.2, 0.8)  # ρ, label noise of the tests
    input_tilts: tuple[float, ...] = (0.0, 1.0, 2.0)  # powers of λ that test inputs have as covariance
    task_tilts: tuple[float, ...] = (-1.0, 0.0, 1.0)  # powers of λ that test tasks have as covariance
    test_contexts: int = 2000  # contexts drawn for each test and seed

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            min(self.problem.eigenvalues) > 0,
            f"problem.eigenvalues must be positive to be tilted; got {self.problem.eigenvalues}.",
        )
        object.__setattr__(self, "test_lengths", checked_lengths(self.test_lengths, "test_lengths"))
        whole_number("test_contexts", self.test_contexts)
        for name, least in (("test_noises", 0.0), ("input_tilts", 0.0), ("task_tilts", -np.inf)):
            several = tuple(float(number) for number in getattr(self, name))
            require(
                len(several) > 0 and all(np.isfinite(several)) and min(several) >= least,
                f"{name} must be finite{' and >= 0' if least == 0 else ''}; got {several}.",
            )
            object.__setattr__(self, name, several)

    def laws(self) -> dict[str, list[Regression]]:
        """The laws of the tests: all other numbers as in training, at the longest of its context lengths."""
        usual = replace(self.problem, context_length=max(self.problem.context_lengths))
        inputs, tasks = np.array(usual.eigenvalues), np.array(usual.task_spectrum)
        return {
            "lengths": [replace(usual, context_length=length) for length in self.test_lengths],
            "noises": [replace(usual, noise=noise) for noise in self.test_noises],
            "inputs": [replace(usual, eigenvalues=rescaled(inputs**tilt, inputs)) for tilt in self.input_tilts],
            "tasks": [
                replace(usual, task_eigenvalues=rescaled(tasks * inputs**tilt, tasks)) for tilt in self.task_tilts
            ],
        }

    def labelled(self, tested: dict[str, Float[np.ndarray, "n"]]) -> dict[str, Labelled]:
        """Losses of the tests as outcomes."""
        return {
            "lengths": labelled({"context_length": np.array(self.test_lengths)}, loss=tested["lengths"]),
            "noises": labelled({"noise": np.array(self.test_noises)}, loss=tested["noises"]),
            "inputs": labelled({"tilt": np.array(self.input_tilts)}, loss=tested["inputs"]),
            "tasks": labelled({"tilt": np.array(self.task_tilts)}, loss=tested["tasks"]),
        }


def rescaled(spectrum: Float[np.ndarray, "D"], like: Float[np.ndarray, "D"]) -> tuple[float, ...]:
    """The spectrum with the trace of another one."""
    return tuple(float(entry) for entry in spectrum * (np.sum(like) / np.sum(spectrum)))


def start(case: Case, seed: int) -> SeparateAttention:
    """Small independent normal entries, heads of equal strength."""
    rng = np.random.default_rng(seed)
    return random_separate(case.problem.dimension, case.heads, scale=case.initial, rng=rng)


def theory(case: Case, start: SeparateAttention) -> dict[str, LossCurve | Levels | Labelled]:
    """Training on mixed lengths; the loss of its best layer under each test law; the best loss at each length."""
    from iclab.theory import dynamics, population

    moments = population.moments(case.problem)
    flow = dynamics.separate_flow(moments, start, case.rate * marks(case.steps))
    gamma = population.best_gamma(moments)
    laws = {name: [population.moments(law) for law in laws] for name, laws in case.laws().items()}
    tested = {name: np.array([population.loss(law, gamma) for law in several]) for name, several in laws.items()}
    best = np.array([population.best_loss(law) for law in laws["lengths"]])
    return {
        "flow": LossCurve(flow.time, flow.loss),
        "levels": Levels(dynamics.plateaus(moments)),
        "best": labelled({"context_length": np.array(case.test_lengths)}, loss=best),
        **case.labelled(tested),
    }


def simulation(case: Case, start: SeparateAttention, *, key: Key) -> dict[str, Labelled]:
    """Gradient descent at three rates and on drawn training sets; tests on drawn contexts."""
    import jax

    from iclab.simulation.linear import contexts, predictions
    from iclab.theory import population

    training, *testing = jax.random.split(key, 1 + len(case.laws()))
    moments = population.moments(case.problem)
    layer = MergedAttention(np.ones(1), population.best_gamma(moments)[None])

    def test(law: Regression, key: Key) -> float:
        drawn = contexts.draw(law, case.test_contexts, key=key)
        return float(np.mean((predictions.predict(drawn, layer) - drawn.target) ** 2))

    tested = {
        name: np.array([test(law, jax.random.fold_in(one, i)) for i, law in enumerate(laws)])
        for one, (name, laws) in zip(testing, case.laws().items(), strict=True)
    }
    return {
        "rates": by_rate(moments, start, rate=case.rate, steps=case.steps),
        "sequences": by_sequences(case, on_sequences(case, start, key=training)),
        **case.labelled(tested),
    }


def figure(view: View, figure: Figure) -> None:
    """Training on mixed lengths, and the loss of its best layer under each kind of test."""
    panels = figure.subplot_mosaic(
        [["training", "lengths", "noises"], ["training", "inputs", "tasks"]], width_ratios=[1.7, 1, 1]
    )
    loss_panel(panels["training"], view, title="training on mixed context lengths", epoch=EPOCH)
    best = view.theory.best
    lengths = best["context_length"]
    figures.dashed_line(
        panels["lengths"], lengths, first_seed(best.loss), color=figures.COLORS[1], label="best layer there"
    )
    for name, (axis, label) in _TESTS.items():
        test_panel(panels[name], view, name, axis, label=label)
    panels["lengths"].set_xscale("log", base=2)
    panels["lengths"].legend()


_TESTS = {
    "lengths": ("context_length", "context length $N$"),
    "noises": ("noise", "label noise ρ"),
    "inputs": ("tilt", "power of $\\lambda$ in the inputs"),
    "tasks": ("tilt", "power of $\\lambda$ in the tasks"),
}

STUDY = Study(
    name="context-lengths",
    question=str(__doc__),
    version=1,
    presets={
        "quick": Preset(Case(), seeds=8, size=(11.0, 4.6)),
        "full": Preset(
            replace(
                Case(),
                problem=Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=tuple(range(1, 32))),
                initial=0.08,
                steps=10000,
                sequences=(5000, 20000, 80000),
                test_lengths=(2, 4, 8, 16, 32, 64, 128),
                test_noises=(0.0, 0.1, 0.2, 0.4, 0.8),
                input_tilts=(0.0, 0.5, 1.0, 1.5, 2.0),
                task_tilts=(-1.0, -0.5, 0.0, 0.5, 1.0),
                test_contexts=20000,
            ),
            seeds=8,
            size=(11.0, 4.6),
        ),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        ExactInRate(),
        LimitInSequences(),
        *(
            WithinErrors(
                f"theory/{name}/loss",
                f"simulation/{name}/loss",
                f"One formula gives the loss of the best layer on contexts with other {name}.",
            )
            for name in _TESTS
        ),
    ),
    start=start,
)
