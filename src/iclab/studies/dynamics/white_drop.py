"""Does a logistic curve give the loss of merged attention on white inputs, from start to end?

When inputs and tasks are white, attention whose key and query are one matrix learns a multiple of the identity,
and that multiple is a logistic function of time. Its one constant is the length of the growing part of the start.
Theory is this closed form, with the time of the half drop, both without any integration. Simulation is gradient
descent from the same random start: on the population moments, whose loss theory shares, to show that it becomes
the closed form as its step shrinks, and on drawn sequences with every weight that reaches the prediction free, to
show when and where a finite training set drops. Published as equation 10 of arXiv 2501.16265.
"""

from dataclasses import dataclass, replace

import numpy as np

from iclab.attention import MergedAttention, random_merged
from iclab.claims import ExactInRate, Limit, LimitInSequences
from iclab.numerics import require
from iclab.outcomes import Labelled, Levels, LossCurve, labelled
from iclab.problem import Regression
from iclab.studies.dynamics.training import (
    TrainingCase,
    by_rate,
    by_sequences,
    half_drop,
    loss_panel,
    marks,
    on_sequences,
)
from iclab.study import Figure, Key, Preset, Study, View

EPOCH = 0.062  # training time of an epoch of the published run: 2 × its rate .001 × N


@dataclass(frozen=True)
class Case(TrainingCase):
    """One run of merged key-query attention on white inputs and tasks."""

    problem: Regression = Regression(eigenvalues=(0.25,) * 4, context_length=31)
    heads: int = 8  # H, heads
    initial: float = 1e-4  # standard deviation of every entry at the start
    rate: float = 0.062  # η, step of gradient descent on half the mean squared error; published
    steps: int = 2400  # steps of gradient descent
    sequences: tuple[int, ...] = (500, 4000, 32000)  # P, sizes of the training sets

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, spectrum in (
            ("eigenvalues", self.problem.eigenvalues),
            ("task_eigenvalues", self.problem.task_spectrum),
        ):
            require(
                len(set(spectrum)) == 1,
                f"problem.{name} must all be equal; got {spectrum}. For others run abrupt-drop.",
            )


def start(case: Case, seed: int) -> MergedAttention:
    """Small independent normal entries."""
    return random_merged(case.problem.dimension, case.heads, scale=case.initial, rng=np.random.default_rng(seed))


def theory(case: Case, start: MergedAttention) -> dict[str, LossCurve | Labelled | Levels]:
    """The logistic curve of this start, the time of its half drop, and its two levels."""
    from iclab.theory import dynamics, population

    moments = population.moments(case.problem)
    amplitude, time = dynamics.growing_amplitude(moments, start), case.rate * marks(case.steps)
    return {
        "closed_form": LossCurve(time, np.asarray(dynamics.white_merged_loss(case.problem, amplitude, time))),
        "half_drop": labelled({}, half_drop=dynamics.white_drop_time(case.problem, amplitude)),
        "levels": Levels(np.array([moments.null_loss, population.best_loss(moments)])),
    }


def simulation(case: Case, start: MergedAttention, *, key: Key) -> dict[str, Labelled]:
    """Gradient descent on the population moments at three rates, and on drawn training sets of several sizes."""
    from iclab.theory import population

    moments = population.moments(case.problem)
    trained = on_sequences(case, start, key=key)
    times = np.array([half_drop(trained.time, loss) for loss in trained.loss])
    return {
        "rates": by_rate(moments, start, rate=case.rate, steps=case.steps),
        "sequences": by_sequences(case, trained),
        "half_drop": labelled({"sequences": np.array(case.sequences)}, half_drop=times),
    }


def figure(view: View, figure: Figure) -> None:
    """Loss against time: the closed form, every seed of the largest training set, both levels."""
    label = "closed form, one start for each seed"
    loss_panel(
        figure.subplots(),
        view,
        title="white inputs, merged key and query: a logistic drop",
        epoch=EPOCH,
        exact=("closed_form", label),
    )


STUDY = Study(
    name="white-drop",
    question=str(__doc__),
    version=1,
    presets={
        "quick": Preset(Case(), seeds=8),
        "full": Preset(replace(Case(), initial=5.57e-6, steps=3600, sequences=(5000, 20000, 80000)), seeds=8),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        ExactInRate(flow="theory/closed_form"),
        LimitInSequences(flow="theory/closed_form"),
        Limit(
            "theory/half_drop/half_drop",
            "simulation/half_drop/half_drop",
            "On many drawn sequences the half drop comes when the closed form says.",
            along="sequences",
            order=0.5,
        ),
    ),
    start=start,
)
