"""What does attention know at each plateau: principal component regression in context?

Separate key-query attention that has learned m modes is predicted to regress, in context, on the first m principal
components of the inputs, with a shrinkage that the context length sets. Theory is the loss and the answers of that
regression on given contexts. Simulation trains on drawn sequences with every weight that reaches the prediction free,
takes the layer where its loss rests, and asks it about the same contexts; the gap between the answers vanishes with
many training sequences. The two witnesses share nothing but the contexts that they are asked about. Published as
equation 22 of arXiv 2501.16265.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.attention import SeparateAttention, random_separate
from iclab.claims import Limit
from iclab.numerics import positive, whole_number
from iclab.outcomes import Labelled, Levels, Trajectory, labelled
from iclab.outcomes.curves import rests_and_drops
from iclab.problem import Regression
from iclab.studies.dynamics.training import TrainingCase, by_sequences, first_seed, log_marks, on_sequences
from iclab.study import Figure, Key, Preset, Study, View


@dataclass(frozen=True)
class Case(TrainingCase):
    """One run of separate key-query attention with a head for each mode, and contexts to ask it about."""

    problem: Regression = Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31)
    heads: int = 4  # H, heads
    initial: float = 0.05  # size of value, key and query of the first head at the start
    weaker: float = 0.8  # size of each head as a share of the one before, so that they escape one by one
    rate: float = 0.4  # η, step of gradient descent on half the mean squared error
    steps: int = 50000  # steps of gradient descent
    sequences: tuple[int, ...] = (500, 5000, 50000)  # P, sizes of the training sets
    asked: int = 100  # contexts that the layer is asked about

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("weaker", self.weaker)
        whole_number("asked", self.asked)


class Start(NamedTuple):
    """Initial weights, and the contexts to ask about."""

    layer: SeparateAttention
    inputs: Float[np.ndarray, "P N D"]
    labels: Float[np.ndarray, "P N"]
    query: Float[np.ndarray, "P D"]


def start(case: Case, seed: int) -> Start:
    """Independent normal entries, each head weaker than the one before; contexts of one length and their queries."""
    problem, rng = case.problem, np.random.default_rng(seed)
    equal = random_separate(problem.dimension, case.heads, scale=case.initial, rng=rng)
    size = case.weaker ** np.arange(case.heads)
    layer = SeparateAttention(size * equal.value, size[:, None, None] * equal.key, size[:, None, None] * equal.query)
    length = max(problem.context_lengths)
    inputs = rng.standard_normal((case.asked, length + 1, problem.dimension)) * np.sqrt(problem.eigenvalues)
    tasks = rng.standard_normal((case.asked, problem.dimension)) * np.sqrt(problem.task_spectrum)
    noise = np.sqrt(problem.noise) * rng.standard_normal((case.asked, length))
    labels = np.einsum("pnd,pd->pn", inputs[:, :-1], tasks) + noise
    return Start(layer, inputs[:, :-1], labels, inputs[:, -1])


def theory(case: Case, start: Start) -> dict[str, Labelled | Levels]:
    """Answers of principal component regression with 1, ..., D components, and the losses of the plateaus."""
    from iclab.theory import dynamics, population

    moments = population.moments(case.problem)
    predicted = [
        dynamics.plateau_prediction(moments, range(learned), start.inputs, start.labels, start.query)
        for learned in range(1, moments.dimension + 1)
    ]
    return {
        "answers": labelled({"plateau": None, "query": None}, answer=np.stack(predicted)),
        "levels": Levels(dynamics.plateaus(moments)),
    }


def simulation(case: Case, start: Start, *, key: Key) -> dict[str, Labelled]:
    """Training on drawn sets, and the answers of the layers at which the loss rests."""
    from iclab.simulation.linear import contexts, predictions
    from iclab.theory import dynamics, population

    levels = dynamics.plateaus(population.moments(case.problem))
    trained = on_sequences(case, start.layer, key=key, steps=log_marks(case.steps))
    asked = contexts.assemble(start.inputs, start.labels, start.query, np.zeros(case.asked))
    answered = [
        resting(run.time, run.loss, predictions.predict(asked, run.weights), levels)
        for run in (Trajectory(trained.time, loss, trained.weights[i]) for i, loss in enumerate(trained.loss))
    ]
    return {
        "answers": labelled(
            {"sequences": np.array(case.sequences), "plateau": None, "query": None}, answer=np.stack(answered)
        ),
        "sequences": by_sequences(case, trained),
    }


def resting(
    time: Float[np.ndarray, "time"],
    loss: Float[np.ndarray, "time"],
    answers: Float[np.ndarray, "time query"],
    levels: Float[np.ndarray, "plateau"],
) -> Float[np.ndarray, "drop query"]:
    """The answers where the loss rests after each drop; NaN where a drop never comes."""
    rests = rests_and_drops(time, loss, levels)[0]
    places = [np.flatnonzero(loss == rest) for rest in rests]
    return np.stack([answers[found[-1]] if len(found) else np.full(answers.shape[1], np.nan) for found in places])


def figure(view: View, figure: Figure) -> None:
    """The loss and its plateaus; at each plateau the answers of the layer against those of the regression."""
    theory = view.theory.answers.answer
    learned = min(4, theory.sizes["plateau"])
    half = -(-learned // 2)
    rows = [
        [f"{mode}" if mode < learned else "." for mode in range(row * half, (row + 1) * half)] for row in range(2)
    ]
    panels = figure.subplot_mosaic([["loss", *row] for row in rows], width_ratios=[1.5] + [1] * half)
    levels = first_seed(view.theory.levels.loss)
    figures.level_lines(panels["loss"], levels, label="plateaus of theory")
    if view.simulation:
        run = view.simulation.sequences.isel(sequences=-1)
        size = int(run.sequences)
        figures.seed_lines(panels["loss"], run.time[1:], run.loss.values[:, 1:], label=f"descent on {size} sequences")
    figures.loss_axes(panels["loss"], title="training on drawn sequences")
    panels["loss"].set_xscale("log")
    panels["loss"].legend()
    for mode in range(learned):
        axes, color = panels[f"{mode}"], figures.COLORS[mode]
        predicted = first_seed(theory).isel(plateau=mode)
        ends = [float(predicted.min()), float(predicted.max())]
        axes.plot(ends, ends, color=figures.INK, lw=0.8)
        if view.simulation:
            simulated = first_seed(view.simulation.answers.answer)
            axes.plot(predicted, simulated.isel(sequences=-1, plateau=mode), ".", ms=3, color=color)
        axes.set_title(f"{mode + 1} component{'s' if mode else ''}")
        axes.set_xlabel("answer of the regression" if mode + half >= learned else "")
        axes.set_ylabel("answer of the layer" if mode % half == 0 else "")


STUDY = Study(
    name="principal-components",
    question=str(__doc__),
    version=1,
    presets={
        "quick": Preset(Case(), seeds=4, size=(10.0, 4.4)),
        "full": Preset(
            replace(Case(), initial=0.03, steps=120000, sequences=(5000, 20000, 80000), asked=1000),
            seeds=4,
            size=(10.0, 4.4),
        ),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        Limit(
            "theory/answers/answer",
            "simulation/answers/answer",
            "On many training sequences the layer at each plateau answers as the regression does.",
            along="sequences",
            order=0.5,
        ),
    ),
    start=start,
)
