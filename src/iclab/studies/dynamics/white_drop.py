"""Does a logistic curve give the loss of merged attention on white inputs, from start to end?

When inputs and tasks are white, attention whose key and query are one matrix learns a multiple of the identity, and
that multiple is a logistic function of time. Its one constant is the length of the growing part of the start. Theory
is this closed form and its half-drop time. Simulation is gradient descent from the same start: on the population
moments, whose loss theory shares, which becomes the closed form as the learning rate falls, and on drawn sequences
with every weight that reaches the prediction free. Published as equation 10 of arXiv 2501.16265.
"""

from dataclasses import dataclass

from iclab.attention import MergedAttention
from iclab.claims import ExactInRate, RestsAtLevels, RestsTend, Tends
from iclab.numerics import require
from iclab.numerics.curves import half_drop_time
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.problem import Regression
from iclab.published import merged_units
from iclab.studies.dynamics import training
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case"]

PUBLISHED = merged_units(0.001, context_length=31)
INITIAL = round(1e-6 * PUBLISHED.weight_scale, 8)  # published standard deviation of every entry at the start


@dataclass(frozen=True)
class Case(training.TrainingCase):
    """One run of merged key-query attention on white inputs and tasks."""

    problem: Regression = Regression(eigenvalues=(0.25,) * 4, context_length=31)
    heads: int = 8  # H, heads
    initial: float = 1e-4  # standard deviation of every entry at the start
    rate: float = PUBLISHED.rounded_rate  # η, learning rate on half the mean squared error; published
    steps: int = 2400  # steps of gradient descent
    sequences: tuple[int, ...] = (2000, 8000, 32000)  # P, sizes of the training sets

    def __post_init__(self) -> None:
        super().__post_init__()
        spectra = {"eigenvalues": self.problem.eigenvalues, "task_eigenvalues": self.problem.task_spectrum}
        for name, spectrum in spectra.items():
            words = f"problem.{name} must all be equal; got {spectrum}. For others run abrupt-drop."
            require(len(set(spectrum)) == 1, words)


def theory(case: Case, start: MergedAttention) -> dict[str, Labeled]:
    """The logistic curve of this start, its half-drop time, and its two levels."""
    from iclab.theory import dynamics, population

    moments = population.moments(case.problem)
    amplitude, time = dynamics.growing_amplitude(moments, start), case.rate * training.marks(case.steps)
    return {
        "closed_form": labeled({"time": time}, loss=dynamics.white_merged_loss(case.problem, amplitude, time)),
        "half_drop": labeled({}, half_drop=dynamics.white_drop_time(case.problem, amplitude)),
        "levels": labeled({"plateau": None}, loss=[moments.null_loss, population.best_loss(moments)]),
    }


def simulation(case: Case, start: MergedAttention, *, key: Key) -> dict[str, Labeled]:
    """Gradient descent on the population moments at three rates, and on drawn training sets of several sizes."""
    trained, rates = training.on_sequences(case, start, key=key), training.by_rate(case, start)
    drawn, exact = ([half_drop_time(run.time, loss) for loss in run.loss] for run in (trained, rates))
    return {
        "rates": rates,
        "sequences": training.by_sequences(case, trained),
        "half_drop": labeled({"sequences": case.sequences}, half_drop=drawn),
        "population": labeled({"divisor": training.FINER}, half_drop=exact),
    }


def figure(view: View, figure: Figure) -> None:
    """Loss against time: the closed form, every seed of the largest training set, both levels."""
    title = "white inputs, merged key and query: a logistic drop"
    exact = ("closed_form", "closed form, one start for each seed")
    training.loss_panel(figure.subplots(), view, title=title, exact=exact)


FULL = Case(initial=INITIAL, steps=3600, sequences=(5000, 20000, 80000))

STUDY = Study(
    name="white-drop", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), seeds=8), "full": Preset(FULL, seeds=8)},
    start=training.small_merged, theory=theory, simulation=simulation, figure=figure,
    units=training.units(PUBLISHED.rounded_rate, problem=Case.problem),
    claims=(
        ExactInRate(flow="closed_form/loss"),
        RestsAtLevels("theory/closed_form/loss", "The closed form ends at the predicted level.", 0.005),
        Tends(
            "population/half_drop", "At a small learning rate the half-drop time is the predicted one.", 0.01,
            along="divisor", theory="half_drop/half_drop",
        ),
        RestsTend(flow="closed_form/loss"),
        training.tends("half_drop/half_drop", "On many drawn sequences the half-drop time is the predicted one."),
    ),
    vocabulary=training.LEVELS | vocabulary(divisor=("η₀/η", "divisor of the learning rate")),
)  # fmt: skip
