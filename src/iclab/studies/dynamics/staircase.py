"""Does attention with separate key and query learn one principal component after another?

Linear attention whose heads have a key and a query of their own passes from saddle to saddle: each plateau of
its loss is the least loss with one mode more, and each head ends up holding one eigenvector of the inputs.
Theory is the gradient flow of the population loss from the same start, and the scalar equation of an aligned
head, entered so that it drops when the flow does. Simulation is gradient descent: on the population moments,
to show that it becomes that flow as its step shrinks, and on drawn sequences with every weight that reaches
the prediction free, to show where a finite training set rests. Published as figure 3 of arXiv 2501.16265.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from iclab import figures
from iclab.attention import SeparateAttention, random_separate
from iclab.claims import ExactInRate, LimitInSequences
from iclab.outcomes import HeadCurves, Labelled, Levels, Trajectory, ValueCurves
from iclab.outcomes.curves import rests_and_drops
from iclab.problem import Regression
from iclab.studies.dynamics.published import separate_units
from iclab.studies.dynamics.training import TrainingCase, by_rate, by_sequences, loss_panel, marks, on_sequences
from iclab.study import Figure, Key, Preset, Study, View

if TYPE_CHECKING:
    from iclab.theory.population import Moments

PUBLISHED = separate_units(0.02, context_length=31)


@dataclass(frozen=True)
class Case(TrainingCase):
    """One run of separate key-query attention with heads of rank one."""

    problem: Regression = Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31)
    heads: int = 5  # H, heads
    initial: float = 0.08  # size of value, key and query of a head at the start; published .01 × ∛31
    rate: float = PUBLISHED.rate  # η, step of gradient descent on half the mean squared error; published
    steps: int = 10000  # steps of gradient descent; published
    sequences: tuple[int, ...] = (2000, 8000, 32000)  # P, sizes of the training sets


def start(case: Case, seed: int) -> SeparateAttention:
    """Small independent normal entries, heads of equal strength."""
    rng = np.random.default_rng(seed)
    return random_separate(case.problem.dimension, case.heads, scale=case.initial, rng=rng)


def theory(case: Case, start: SeparateAttention) -> dict[str, HeadCurves | ValueCurves | Levels]:
    """The gradient flow with its heads, the scalar equation of each mode's head, and the plateaus."""
    from iclab.theory import dynamics, population

    moments = population.moments(case.problem)
    flow = dynamics.separate_flow(moments, start, case.rate * marks(case.steps))
    return {
        "flow": head_curves(flow),
        "scalar": scalar_values(moments, case.problem, flow),
        "levels": Levels(dynamics.plateaus(moments)),
    }


def simulation(case: Case, start: SeparateAttention, *, key: Key) -> dict[str, Labelled | HeadCurves]:
    """Gradient descent on the population moments at three rates, and on drawn training sets of several sizes."""
    from iclab.theory import population

    trained = on_sequences(case, start, key=key)
    largest = SeparateAttention(trained.weights.value[-1], trained.weights.key[-1], trained.weights.query[-1])
    return {
        "rates": by_rate(population.moments(case.problem), start, rate=case.rate, steps=case.steps),
        "sequences": by_sequences(case, trained),
        "heads": head_curves(Trajectory(trained.time, trained.loss[-1], largest)),
    }


def scalar_values(moments: "Moments", problem: Regression, flow: Trajectory) -> ValueCurves:
    """The scalar equation dv = g v² − h v⁵ of each mode's head, entered so that it drops when the flow does.

    Modes drop in the order of their growth g. A head that blows up at T, half_drop_shift after half of its drop,
    starts with strength 1/(g T). Modes that the flow does not reach stay at zero.
    """
    from iclab.theory import dynamics

    growth, damping = np.diag(moments.cross), np.diag(moments.second) * np.diag(moments.input_covariance)
    drops, shifts = np.empty_like(growth), np.empty_like(growth)
    drops[np.argsort(-growth, kind="stable")] = rests_and_drops(flow.time, flow.loss, dynamics.plateaus(moments))[1]
    worth = np.divide(growth**2, damping, out=np.zeros_like(growth), where=damping > 0)
    shifts[np.argsort(-worth, kind="stable")] = dynamics.half_drop_shift(moments)
    reached = np.isfinite(drops) & (growth > 0)
    strengths = 1 / np.where(reached, growth * (drops - shifts), 1.0)
    return ValueCurves(flow.time, np.where(reached, dynamics.aligned_values(problem, strengths, flow.time), 0.0))


def head_curves(run: Trajectory) -> HeadCurves:
    """For each mode, the head that holds most of it at the end: its value weight and its alignment over time.

    Zero for modes that no head holds.
    The modes of a problem with diagonal covariances are the axes of the inputs.
    """
    weights: SeparateAttention = run.weights
    dimension = weights.dimension
    value = weights.value if weights.restricted else weights.value[..., -1]
    key, query = weights.key[..., 0, :dimension], weights.query[..., 0, :]
    held = np.abs(value[-1][:, None] * key[-1] * query[-1])  # (head, mode)
    head, mode = np.argmax(held, axis=0), np.arange(dimension)
    cosines = [np.abs(part) / np.linalg.norm(part, axis=-1, keepdims=True) for part in (key, query)]
    alignment = np.minimum(*cosines)[:, head, mode]
    own = np.argmax(held, axis=1)[head] == mode  # a head holds one mode; the others are nobody's
    return HeadCurves(run.time, run.loss, np.abs(value[:, head]) * own, alignment * own)


def figure(view: View, figure: Figure) -> None:
    """Loss against time; value weights of the heads; alignment of their keys and queries with the eigenvectors."""
    loss, values, alignments = figure.subplots(1, 3, width_ratios=[1.7, 1, 1])
    loss_panel(loss, view, title="separate key and query: a staircase", epoch=PUBLISHED.rate)
    heads = {"theory": view.theory.flow}
    if view.simulation:
        heads["simulation"] = view.simulation.heads
    scalar = view.theory.scalar
    for color, mode in figures.colored(range(scalar.sizes["mode"])):
        first = {name: curves.isel(seed=0, mode=mode) for name, curves in heads.items()}
        label = f"mode {mode}"
        figures.theory_line(values, scalar.time, scalar.value.isel(seed=0, mode=mode), color=color, label=label)
        figures.theory_line(alignments, first["theory"].time, first["theory"].alignment, color=color, label=label)
        if "simulation" in first:
            figures.dashed_line(values, first["simulation"].time, first["simulation"].value, color=color)
            figures.dashed_line(alignments, first["simulation"].time, first["simulation"].alignment, color=color)
    values.set(title="values; dashed: simulation, seed 0", ylabel="|value| of the mode's head")
    alignments.set(title="keys and queries, seed 0", ylabel="|cosine| with the eigenvector")
    for axes in (values, alignments):
        axes.set_xlabel("training time $t$  (units of $\\tau$)")
    alignments.legend(loc="lower right")


STUDY = Study(
    name="staircase",
    question=str(__doc__),
    version=1,
    presets={
        "quick": Preset(Case(), seeds=8, size=(11.0, 3.6)),
        "full": Preset(
            replace(Case(), initial=0.01 * PUBLISHED.weight_scale, sequences=(5000, 20000, 80000)),
            seeds=8,
            size=(11.0, 3.6),
        ),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(ExactInRate(), LimitInSequences()),
    start=start,
    headline=True,
)
