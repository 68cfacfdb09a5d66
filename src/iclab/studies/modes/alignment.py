"""Why do the two factors of a transformer align with the eigenvectors of its inputs?

*Exact at any N*: the entries of the value and key-query matrices off the diagonal, in the eigenbasis of the inputs,
are damped by what has been learned and driven by nothing, so that the flow from a random start forgets them: that
diagonal weights attract is proved, not assumed. Closed curves mode by mode, of *leading order in 1/N*, assume it and
leave out that modes wait until they are aligned. Simulation is the gradient flow from drawn contexts, and one-pass
SGD of the whole transformer on drawn tokens, whose noise keeps the entries from zero by an amount of order 1/√B and
turns modes that wait at a saddle: of it only the end of alignment is judged. Goes beyond arXiv 2504.12916, which
assumes aligned weights; derived in docs/derivations/modes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.claims import Agrees, below
from iclab.numerics import Checked, Count, Counts, Multiple, Positive, require
from iclab.outcomes import Labeled, MatrixCurves, labeled, vocabulary
from iclab.problem import Regression
from iclab.studies.modes.training import FORMULAS, WORDS, Schedule, drawn_flow, strength_panel, trained_on_batches
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

RECORDS = 40  # of a run


@dataclass(frozen=True)
class Case(Checked):
    """Full matrices from random starts."""

    problem: Regression = Regression(eigenvalues=(1.5, 1.0, 0.6), context_length=16)
    initial: Positive = 0.3  # standard deviation of every entry of value and key-query at the start
    starts: Count = 3  # random starts, the same for every seed
    rate: Positive = 0.02  # η, learning rate on half the mean squared error
    batches: Counts = (16, 32, 64)  # B, contexts of a step
    steps: Annotated[int, Multiple(RECORDS, "the records")] = 800  # steps of gradient descent
    examples: Count = 1_000_000  # in the contexts that the flow is drawn from

    def __post_init__(self) -> None:
        super().__post_init__()
        fits = len(self.problem.context_lengths) == 1 and self.problem.task_eigenvalues is None
        require(fits, "problem must have one context length and standard tasks here. Leave the task eigenvalues out.")

    @property
    def schedule(self) -> Schedule:
        """Steps and records of training."""
        return Schedule(self.rate, self.steps, RECORDS)

    @property
    def matrices(self) -> Float[np.ndarray, "factor start D D"]:
        """Value and key-query matrix of each start."""
        shape = (2, self.starts, self.problem.dimension, self.problem.dimension)
        return self.initial * np.random.default_rng(0).standard_normal(shape)


def theory(case: Case) -> dict[str, Labeled]:
    """The exact flow of the full matrices from each start, and that of their diagonals alone."""
    from iclab.theory import modes

    problem, everywhere = case.problem, np.ones((case.problem.dimension,) * 2)
    tasks = modes.DiagonalTasks(problem.eigenvalues, problem.context_lengths[0], noise=problem.noise)
    time, starts, groups = case.schedule.time, case.matrices.swapaxes(0, 1), {}
    for name, kept in (("flow", everywhere), ("diagonal", np.eye(problem.dimension))):
        curves = [modes.matrix_flow(tasks, start=(p * kept, q * kept), time=time) for p, q in starts]
        groups[name] = alignments(curves, {"start": None, "time": time})
    alone = [modes.exact_flow(tasks, start=(np.diag(p), np.diag(q)), time=time).strength for p, q in starts]
    return {**groups, "modes": labeled({"start": None, "time": time, "mode": None}, strength=alone)}


def alignments(curves: Sequence[MatrixCurves], axes: dict[str, Any]) -> Labeled:
    """Strengths and squared misalignment of several curves, stacked; the axes are all but the modes."""
    strength, share = (np.stack([getattr(curve, name) for curve in curves]) for name in ("strength", "misalignment"))
    return alignment(strength, share, axes)


def alignment(strength: np.ndarray, share: np.ndarray, axes: dict[str, Any]) -> Labeled:
    """Strengths and squared misalignment; the axes are all but the modes."""
    return labeled({**axes, "mode": None}, strength=strength, misalignment=(tuple(axes), share**2))


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """From each start the flow from drawn contexts, and the whole transformer on batches of several sizes."""
    import jax

    start, time, for_flow = tuple(case.matrices), case.schedule.time, jax.random.fold_in(key, 0)  # no batch size
    p, q = drawn_flow(case.problem, case.examples, start=start, time=time, key=for_flow)
    drawn = MatrixCurves.readings(p, q)
    curves = trained_on_batches(case.problem, case.batches, case.schedule, start=start, runs=case.starts, key=key)
    trained = alignments(curves, {"batch": case.batches, "start": None, "time": time})
    return {
        "flow": alignment(drawn["strength"], drawn["misalignment"], {"start": None, "time": time}),
        "trained": trained,
        "end": labeled({"batch": case.batches, "start": None}, misalignment=trained.misalignment[..., -1]),
    }


def figure(view: View, figure: Figure) -> None:
    """Share of the squared norm off the diagonals; strengths of the modes from the first start, aligned or not."""
    share, strengths = figure.subplots(1, 2)
    flow, diagonal = (view.theory[name] for name in ("flow", "diagonal"))
    drawn = view.simulation.trained.isel(batch=-1) if view.simulation else None
    flows = view.simulation.flow if view.simulation else None
    for color, start in figures.colored(range(flow.sizes["start"])):
        if drawn is not None:
            label = f"one-pass SGD, B = {int(drawn.batch)}, {figures.seeds(drawn)}" if start == 0 else None
            rows = drawn.misalignment.isel(start=start).values
            figures.seed_lines(share, drawn.time, rows, color=figures.pale(color), label=label)
        curve = flow.misalignment.isel(start=start)
        figures.theory_line(share, flow.time, curve, color=color, label=f"exact flow, start {start}")
    spectrum, labels = view.case.problem.eigenvalues, ("exact flow of the diagonals alone", None)
    strength_panel(strengths, {"start": 0}, flow, diagonal, drawn, spectrum=spectrum, labels=labels, flow=flows)
    share.set(title="the off-diagonal part dies", ylabel="share of the squared norm", ylim=(0, 1))
    share.set_xlabel(figures.TIME)
    strengths.set(title="modes, start 0", ylabel="strength $p\\,q$ of a mode")
    for axes in (share, strengths):
        axes.legend()


FULL = Case(starts=6, rate=0.01, batches=(16, 64, 256), steps=2400, examples=4_000_000)

STUDY = Study(
    name="alignment", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), size=(9.0, 3.6)), "full": Preset(FULL, size=(9.0, 3.6))},
    theory=theory, simulation=simulation, figure=figure, formulas=FORMULAS[1:],
    units=lambda case: {"steps": case.rate},
    claims=(
        Agrees("flow/misalignment", "From drawn contexts the share off the diagonals dies as in the exact flow.",
               0.04, unit="range"),
        Agrees("flow/strength", "From drawn contexts modes grow as in the exact flow of full matrices.",
               0.04, unit="mode"),
        Agrees("theory/modes/strength", "Diagonal matrices stay diagonal and follow the exact flow of the modes.",
               1e-6, "diagonal/strength", unit="mode"),
        below("end/misalignment",
              "SGD of the whole transformer aligns: little of its squared norm ends off the diagonals.", 0.02),
    ),
    vocabulary=WORDS | vocabulary(misalignment=("off²/all²", "share of the squared norm off the diagonals")),
)  # fmt: skip
