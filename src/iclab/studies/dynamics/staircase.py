"""Does attention with separate key and query learn one principal component after another?

Linear attention whose heads have a key and a query of their own passes from saddle to saddle: each plateau of its
loss is the least loss with one mode more, and each head ends up holding one eigenvector of the inputs. Theory is the
gradient flow of the population loss from the same start, and the scalar equation of an aligned head, entered so that
it drops when the flow does. Levels, alignment and order of the heads are those of small starts: the flow from a
thirtieth of the start is compared with them. Simulation is gradient descent: on the population moments, which becomes
that flow as the learning rate falls, compared over the first fifth of the run, and on drawn sequences with every
weight that reaches the prediction free, to show at which levels a finite training set rests. Published as figure 3 of
arXiv 2501.16265; derived for any covariance in docs/derivations/dynamics.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from iclab import figures
from iclab.attention import SeparateAttention
from iclab.claims import Agrees, ExactInRate, RestsTend, Share
from iclab.numerics.curves import first_below
from iclab.outcomes import Labeled, Trajectory, labeled, vocabulary
from iclab.problem import Regression
from iclab.published import separate_units
from iclab.studies.dynamics import following, training
from iclab.study import Figure, Formula, Key, Preset, Study, View

__all__ = ["STUDY", "Case"]

PUBLISHED = separate_units(0.02, context_length=31)
HALF = np.cbrt(1 - np.sqrt(0.5))  # of a head's value at the end, where half of its drop is done
FINER = (4, 8, 16, 32)  # divisors of the learning rate: heads that escape together need many


@dataclass(frozen=True)
class Case(training.TrainingCase):
    """One run of separate key-query attention with heads of rank one."""

    problem: Regression = Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31)
    heads: int = 5  # H, heads
    initial: float = 0.05  # size of value, key and query of a head at the start; published .01 × ∛31
    rate: float = PUBLISHED.rate  # η, learning rate on half the mean squared error; published
    steps: int = 45000  # steps of gradient descent; published 10000, before the last drop of many starts
    sequences: tuple[int, ...] = (2000, 8000, 32000)  # P, sizes of the training sets


def theory(case: Case, start: SeparateAttention) -> dict[str, Labeled | Trajectory]:
    """The gradient flow with its heads, the scalar equation of each mode's head, and the plateaus.

    For a start a thirtieth as large the loss, and both accounts of where the heads end and when they rise.
    """
    from iclab.theory import dynamics, population

    moments = population.moments(case.problem)
    flows = dynamics.separate_flow(moments, start, case.rate * recorded(case)), training.small_flow(case, start)
    flow, heads = (head_curves(one.time, one.loss, one.weights) for one in flows)
    entered, scalar = (
        labeled({"time": one.time, "mode": None}, value=dynamics.entered_values(case.problem, one.time, one.loss))
        for one in flows
    )
    return {
        "flow": flow,
        "scalar": entered,
        "levels": labeled({"plateau": None}, loss=training.plateaus(case)),
        "small": flows[1],
        "small_ends": ends(heads, unfinished=(scalar.value[-1] == 0) & (heads.value[-1] > 0)),
        "ends": ends(scalar),
        "held": labeled({}, modes=min(moments.dimension, case.heads)),
        "limits": following.limits(case, start),
    }


def simulation(case: Case, start: SeparateAttention, *, key: Key) -> dict[str, Labeled]:
    """Gradient descent on the population moments at several rates, and on drawn training sets of several sizes."""
    steps = recorded(case)
    trained = training.on_sequences(case, start, key=key, steps=steps)
    heads = head_curves(trained.time, trained.loss[-1], trained.weights[-1])
    return {
        "rates": training.by_rate(case, start, steps=training.early(steps), finer=FINER),
        "sequences": training.by_sequences(case, trained),
        "heads": heads,
        "held": labeled({}, modes=np.sum(heads.value[-1] > 0)),
    }


def recorded(case: Case) -> training.Steps:
    """Steps at which losses are recorded, close enough for the time of a drop."""
    return training.log_marks(case.steps, 600)


def head_curves(time: np.ndarray, loss: np.ndarray, weights: SeparateAttention) -> Labeled:
    """Loss, and for each mode the head that holds most of it at the end: its value weight and its alignment.

    Zero for modes that no head holds. The modes of a problem with diagonal covariances are the axes of the inputs.
    """
    value = weights.value if weights.restricted else weights.value[..., -1]
    key, query = weights.key[..., 0, : weights.dimension], weights.query[..., 0, :]
    held = np.abs(value[-1][:, None] * key[-1] * query[-1])  # (head, mode)
    head, mode = np.argmax(held, axis=0), np.arange(weights.dimension)
    cosines = [np.abs(part) / np.linalg.norm(part, axis=-1, keepdims=True) for part in (key, query)]
    alignment = np.minimum(*cosines)[:, head, mode]
    own = np.argmax(held, axis=1)[head] == mode  # a head holds one mode; the others are nobody's
    axes = {"time": time, "mode": None}
    return labeled(axes, loss=("time", loss), value=np.abs(value[:, head]) * own, alignment=alignment * own)


def ends(curves: Labeled, unfinished: Bool[np.ndarray, "mode"] | bool = False) -> Labeled:
    """For each mode the value of its head at the end, its alignment, and the time at which half of its drop is done.

    The scalar equation is that of aligned heads. Zero and infinite for modes that no head holds, NaN for unfinished
    ones.
    """
    last = curves.value[-1]
    aligned = curves.alignment[-1] if "alignment" in curves.arrays else 1.0 * (last > 0)
    rise = [first_below(curves.time, -value, -HALF * value[-1]) for value in curves.value.T]
    found = {"value": last, "alignment": aligned, "rise": np.where(last > 0, rise, np.inf)}
    return labeled({"mode": None}, **{name: np.where(unfinished, np.nan, one) for name, one in found.items()})


def figure(view: View, figure: Figure) -> None:
    """Loss against time; value weights of the heads; alignment of their keys and queries with the eigenvectors."""
    loss, values, alignments = figure.subplots(1, 3, width_ratios=[1.7, 1, 1])
    training.loss_panel(loss, view, title="separate key and query: a staircase")
    for color, mode in figures.colored(range(view.theory.scalar.sizes["mode"])):
        scalar, flow = (view.theory[name].isel(seed=0, mode=mode) for name in ("scalar", "flow"))
        figures.theory_line(values, scalar.time, scalar.value, color=color, label=f"mode {mode}")
        figures.theory_line(alignments, flow.time, flow.alignment, color=color, label=f"mode {mode}")
        if view.simulation:
            heads = view.simulation.heads.isel(seed=0, mode=mode)
            figures.dashed_line(values, heads.time, heads.value, color=color)
            figures.dashed_line(alignments, heads.time, heads.alignment, color=color)
    values.set(title="values; dashed: simulation, seed 0", xlabel=figures.TIME, ylabel="|value| of the mode's head")
    alignments.set(title="keys and queries, seed 0", xlabel=figures.TIME, ylabel="|cosine| with the eigenvector")
    alignments.legend(loc="lower right")
    for axes in (values, alignments):
        axes.set_xlim(loss.get_xlim())


def answer(view: View) -> str:
    """The modes with a head of their own, and the levels at which the loss rests on its way."""
    held, modes = view.simulation.held.modes, int(training.first_seed(view.theory.held.modes))
    every = int((held == modes).sum())
    levels = ", ".join(f"{level:.3g}" for level in training.first_seed(view.theory.levels.loss).values)
    return (
        f"In {every} of {figures.seeds(view.simulation.held)} each of {modes} modes ends with a head of its own, and "
        f"theory lets the loss rest at {levels} on the way."
    )


SCALAR_FORMULA = Formula(
    r"\tau \frac{d v}{d t} = g v^2 - h v^5",
    "The value weight of a head that is aligned with one mode.",
    {"v": "value weight", "g": "signal of the mode, coefficient of growth", "h": "its curvature, of saturation"},
)

WORDS = vocabulary(
    value=("|v|", "value weight of the mode's head"),
    alignment=("|cos|", "alignment of the mode's head: the smaller |cosine| of key and query with the eigenvector"),
    modes=("n", "modes with a head of their own"),
    rise=("t_m", "time at which half of the drop of the mode's head is done", "τ"),
)

SMALL = "From a start a thirtieth as large"
SMALL_ENDS = (
    ("value", "each mode's head ends at the value of the scalar equation", 0.01),
    ("alignment", "each mode's head ends aligned with its eigenvector", 0.02),
    ("rise", "the heads rise in the order of their modes, each with its drop", 0.02),
)

FULL = Case(initial=0.01 * PUBLISHED.weight_scale, steps=70000, sequences=(5000, 20000, 80000))

STUDY = Study(
    name="staircase", question=str(__doc__), version=2, headline=True,
    presets={"quick": Preset(Case(), seeds=6, size=(11.0, 3.6)), "full": Preset(FULL, seeds=6, size=(11.0, 3.6))},
    start=training.small_separate, theory=theory, simulation=simulation, figure=figure,
    units=training.units(PUBLISHED.rate, problem=Case.problem),
    claims=(
        ExactInRate(orders=(1.0, 2.0, 3.0)), training.SMALL_START,
        *(Agrees(f"theory/small_ends/{name}", f"{SMALL} {words}.", tolerance, theory=f"ends/{name}")
          for name, words, tolerance in SMALL_ENDS),
        RestsTend(),
        Share("held/modes", "On the largest training set each mode ends with a head of its own."),
    ),
    vocabulary=training.LEVELS | following.WORDS | WORDS,
    unjudged=following.NOT_JUDGED
    | {
        "theory/scalar/value": "heads of this start share modes; its ends and times are judged from a smaller one",
        "theory/flow/alignment": "in the limit of small starts it ends at 1, which is judged from a smaller start",
    },
    cost=following.cost, settle=following.settled(training.small_separate), answer=answer,
    formulas=(training.PLATEAU_FORMULA, training.FLOW_FORMULA, SCALAR_FORMULA),
)  # fmt: skip
