"""What does attention know at each plateau: principal component regression in context?

Separate key-query attention that has learned m modes is predicted to regress, in context, on the first m principal
components of the inputs, with a shrinkage that the context length sets. Theory is the loss and the predictions of
that regression on given contexts. Simulation trains on drawn sequences with every weight that reaches the prediction
free, takes the layer where its loss rests, and lets it predict on the same contexts; the witnesses share nothing but
these contexts. At the first plateaus of a start of this size the next head has grown already, and the layer predicts
with it; so drawn sequences judge the last one, and the flow from a thirtieth of the start judges all. Published as
equation 22 of arXiv 2501.16265.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.attention import SeparateAttention, random_separate
from iclab.claims import Agrees
from iclab.numerics import Count, Positive
from iclab.numerics.curves import at_rests
from iclab.outcomes import Labeled, Trajectory, labeled
from iclab.problem import Regression
from iclab.studies.dynamics import training
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case"]

Array = np.ndarray
Test = tuple[Float[Array, "test N D"], Float[Array, "test N"], Float[Array, "test D"]]  # inputs, labels and queries


@dataclass(frozen=True)
class Case(training.TrainingCase):
    """One run of separate key-query attention with a head for each mode, and test contexts."""

    problem: Regression = Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31)
    heads: int = 4  # H, heads
    initial: float = 0.08  # size of value, key and query of the first head at the start
    weaker: Positive = 0.85  # size of each head as a share of the one before, so that they escape one by one
    rate: float = 0.4  # η, learning rate on half the mean squared error
    steps: int = 80000  # steps of gradient descent
    sequences: tuple[int, ...] = (500, 5000, 50000)  # P, sizes of the training sets
    asked: Count = 100  # contexts that the layer is tested on


def start(case: Case, seed: int) -> tuple[SeparateAttention, Test]:
    """Independent normal entries, each head weaker than the one before; test contexts of the greatest length."""
    problem, rng = case.problem, np.random.default_rng(seed)
    equal = random_separate(problem.dimension, case.heads, scale=case.initial, rng=rng)
    size = case.weaker ** np.arange(case.heads)
    layer = SeparateAttention(size * equal.value, size[:, None, None] * equal.key, size[:, None, None] * equal.query)
    length = max(problem.context_lengths)
    inputs = rng.standard_normal((case.asked, length + 1, problem.dimension)) * np.sqrt(problem.eigenvalues)
    tasks = rng.standard_normal((case.asked, problem.dimension)) * np.sqrt(problem.task_spectrum)
    noise = np.sqrt(problem.noise) * rng.standard_normal((case.asked, length))
    labels = np.einsum("pnd,pd->pn", inputs[:, :-1], tasks) + noise
    return layer, (inputs[:, :-1], labels, inputs[:, -1])


def theory(case: Case, start: tuple[SeparateAttention, Test]) -> dict[str, Labeled | Trajectory]:
    """Predictions of principal component regression with 1, ..., D components, and the losses of the plateaus."""
    from iclab.theory import dynamics, population

    moments, (layer, test) = population.moments(case.problem), start
    small, (inputs, labels, query) = training.small_flow(case, layer), test
    summary, levels = np.einsum("qn,qnd->qd", labels, inputs) / labels.shape[-1], dynamics.plateaus(moments)
    flow = np.einsum("qi,tij,qj->tq", summary, small.weights.gamma(), query, optimize=True)
    predicted = [dynamics.plateau_prediction(moments, range(m + 1), *test) for m in range(moments.dimension)]
    axes = {"plateau": None, "query": None}
    return {
        "answers": labeled(axes, answer=np.stack(predicted)),
        "small": small,
        "small_answers": labeled(axes, answer=at_rests(small.time, small.loss, flow, levels)),
        "levels": labeled({"plateau": None}, loss=levels),
    }


def simulation(case: Case, start: tuple[SeparateAttention, Test], *, key: Key) -> dict[str, Labeled]:
    """Training on drawn sets, and the predictions of the layers at which the loss rests."""
    from iclab.simulation.linear import contexts, predictions
    from iclab.theory import dynamics, population

    layer, test = start
    levels = dynamics.plateaus(population.moments(case.problem))
    trained = training.on_sequences(case, layer, key=key, steps=training.log_marks(case.steps))
    tests = contexts.assemble(*test, np.zeros(case.asked))
    predicted = [predictions.predict(tests, trained.weights[i]) for i in range(len(case.sequences))]
    found = [at_rests(trained.time, *run, levels) for run in zip(trained.loss, predicted, strict=True)]
    axes = {"sequences": case.sequences, "plateau": None, "query": None}
    return {"answers": labeled(axes, answer=np.stack(found)), "sequences": training.by_sequences(case, trained)}


def figure(view: View, figure: Figure) -> None:
    """The loss and its plateaus; at each plateau the predictions of the layer against those of the regression."""
    learned = min(4, view.theory.answers.sizes["plateau"])
    half = -(-learned // 2)
    names = [f"{mode}" if mode < learned else "." for mode in range(2 * half)]
    widths = [1.5] + [1] * half
    panels = figure.subplot_mosaic([["loss", *names[:half]], ["loss", *names[half:]]], width_ratios=widths)
    loss = panels["loss"]
    figures.level_lines(loss, training.first_seed(view.theory.levels.loss), label="plateaus of theory")
    if view.simulation:
        training.drawn_lines(loss, view.simulation.sequences.isel(sequences=-1, time=slice(1, None)))
    figures.loss_axes(loss, title="training on drawn sequences", scale="log")
    loss.legend()
    for mode, color in enumerate(figures.COLORS[:learned]):
        axes = panels[f"{mode}"]
        predicted = training.first_seed(view.theory.answers.answer).isel(plateau=mode)
        training.diagonal(axes, predicted)
        if view.simulation:
            simulated = view.simulation.answers.answer.isel(seed=0, sequences=-1, plateau=mode)
            axes.plot(predicted, simulated, ".", ms=3, color=color)
        axes.set_title(f"{mode + 1} component{'s' if mode else ''}")
        axes.set_xlabel("prediction of the regression" if mode + half >= learned else "")
        axes.set_ylabel("prediction of the layer" if mode % half == 0 else "")


FULL = Case(initial=0.03, steps=300000, sequences=(5000, 20000, 80000), asked=1000)

STUDY = Study(
    name="principal-components", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), size=(10.0, 4.4)), "full": Preset(FULL, size=(10.0, 4.4))},
    start=start, theory=theory, simulation=simulation, figure=figure,
    units=lambda case: {"steps": case.rate},
    claims=(
        training.SMALL_START,
        Agrees(
            "theory/small_answers/answer", "From a small start the flow predicts as the regression at each plateau.",
            0.005, theory="answers/answer", unit="range",
        ),
        training.tends(
            "answers/answer", "On many training sequences the layer at the end predicts as the regression does.",
            unit="range", at={"plateau": -1},
        ),
    ),
    vocabulary=training.LEVELS,
)  # fmt: skip
