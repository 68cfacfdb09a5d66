"""Why do the two factors of a transformer align with the eigenvectors of its inputs?

*Exact at any N*: the entries of the value and key-query matrices off the diagonal, in the eigenbasis of the inputs,
are damped by what has been learned and driven by nothing, so that the flow from a random start forgets them: that
diagonal weights attract is proved, not assumed. Closed curves mode by mode, of *leading order in 1/N*, assume it and
leave out that modes wait until they are aligned. Simulation is one-pass stochastic gradient descent of the whole
transformer on drawn tokens, whose noise keeps the entries from zero by an amount of order 1/√B. Goes beyond arXiv
2504.12916, which assumes aligned weights; derived in docs/derivations/modes.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from iclab import figures
from iclab.claims import Limit
from iclab.numerics import positive, require, whole_number, whole_numbers
from iclab.outcomes import quantity
from iclab.problem import Regression
from iclab.study import Figure, Key, Preset, Study, View

Array = np.ndarray
RECORDS = 40  # of a run


@dataclass(frozen=True)
class Case:
    """Full matrices from random starts. Raises ValueError for impossible numbers."""

    problem: Regression = Regression(eigenvalues=(1.5, 1.0, 0.6), context_length=16)
    initial: float = 0.3  # standard deviation of every entry of value and key-query at the start
    starts: int = 3  # random starts, the same for every seed
    rate: float = 0.02  # η, step of gradient descent on half the mean squared error
    batches: tuple[int, ...] = (4, 16, 64)  # B, contexts of a step
    steps: int = 800  # steps of gradient descent

    def __post_init__(self) -> None:
        object.__setattr__(self, "batches", whole_numbers("batches", self.batches))
        require(
            len(self.problem.context_lengths) == 1 and self.problem.task_eigenvalues is None,
            "problem must have one context length and standard tasks here. Leave the task eigenvalues out.",
        )
        positive("initial", self.initial)
        positive("rate", self.rate)
        whole_number("starts", self.starts)
        whole_number("steps", self.steps, least=RECORDS)
        require(self.steps % RECORDS == 0, f"steps must be a multiple of {RECORDS}, the records; got {self.steps}.")

    @property
    def time(self) -> Float[Array, "time"]:
        """Times of the records."""
        return self.rate * (self.steps // RECORDS) * np.arange(RECORDS + 1)

    @property
    def matrices(self) -> Float[Array, "factor start D D"]:
        """Value and key-query matrix of each start."""
        shape = (2, self.starts, self.problem.dimension, self.problem.dimension)
        return self.initial * np.random.default_rng(0).standard_normal(shape)


@dataclass(frozen=True)
class Alignment:
    """Full matrices along training, from several starts."""

    time: Float[Array, "time"] = quantity("t", "time", unit="τ", words="training time")
    strength: Float[Array, "start time mode"] = quantity("p q", "start", "time", "mode", words="strength of a mode")
    misalignment: Float[Array, "start time"] = quantity(
        "off/all", "start", "time", words="share of the norm off the diagonals"
    )


@dataclass(frozen=True)
class AlignmentByBatch:
    """Full matrices along training on batches of several sizes, from several starts."""

    batch: Int[Array, "batch"] = quantity("B", "batch", words="contexts of a step")
    time: Float[Array, "time"] = quantity("t", "time", unit="τ", words="training time")
    strength: Float[Array, "batch start time mode"] = quantity(
        "p q", "batch", "start", "time", "mode", words="strength of a mode"
    )
    misalignment: Float[Array, "batch start time"] = quantity(
        "off/all", "batch", "start", "time", words="share of the norm off the diagonals"
    )


def theory(case: Case) -> dict[str, Alignment]:
    """The exact flow of the full matrices from each start, and that of their diagonals alone."""
    from iclab.theory import modes

    problem, everywhere = case.problem, np.ones((case.problem.dimension,) * 2)
    tasks = modes.DiagonalTasks(problem.eigenvalues, problem.context_lengths[0], noise=problem.noise)
    groups = {}
    for name, kept in (("flow", everywhere), ("diagonal", np.eye(problem.dimension))):
        curves = [
            modes.matrix_flow(tasks, start=(p * kept, q * kept), time=case.time)
            for p, q in case.matrices.swapaxes(0, 1)
        ]
        parts = (np.stack([getattr(curve, part) for curve in curves]) for part in ("strength", "misalignment"))
        groups[name] = Alignment(case.time, *parts)
    return groups


def simulation(case: Case, *, key: Key) -> dict[str, AlignmentByBatch]:
    """The whole transformer from each start, on batches of several sizes."""
    import jax

    from iclab.simulation.linear.transformer_sgd import transformer_sgd

    value, key_query = case.matrices
    curves = [
        transformer_sgd(
            case.problem,
            start=(value, key_query),
            rate=case.rate,
            batch=batch,
            steps=case.steps,
            every=case.steps // RECORDS,
            key=jax.random.split(jax.random.fold_in(key, batch), case.starts),
        )
        for batch in case.batches
    ]
    parts = (np.stack([getattr(curve, part) for curve in curves]) for part in ("strength", "misalignment"))
    return {"trained": AlignmentByBatch(np.array(case.batches), case.time, *parts)}


def figure(view: View, figure: Figure) -> None:
    """Share of the norm off the diagonals; strengths of the modes from the first start, aligned or not."""
    share, strengths = figure.subplots(1, 2)
    spectrum = view.case.problem.eigenvalues
    flow, diagonal = (view.theory[name] for name in ("flow", "diagonal"))
    drawn = view.simulation.trained.isel(batch=-1) if view.simulation else None
    for color, start in figures.colored(range(flow.sizes["start"])):
        if drawn is not None:
            label = f"one-pass SGD, B = {int(drawn.batch)}, {figures.seeds(drawn)}" if start == 0 else None
            rows = drawn.misalignment.isel(start=start).values
            figures.seed_lines(share, drawn.time, rows, color=figures.pale(color), label=label)
        label = f"exact flow, start {start}"
        figures.theory_line(share, flow.time, flow.misalignment.isel(start=start), color=color, label=label)
    for color, mode in figures.colored(range(flow.sizes["mode"])):
        here, named = {"start": 0, "mode": mode}, mode == 0
        if drawn is not None:
            rows = drawn.strength.isel(here).values
            figures.seed_lines(strengths, drawn.time, rows, color=figures.pale(color))
        label = f"exact flow, s = {spectrum[mode]:g}"
        figures.theory_line(strengths, flow.time, flow.strength.isel(here), color=color, label=label)
        label = "exact flow of the diagonals alone" if named else None
        figures.dashed_line(strengths, flow.time, diagonal.strength.isel(here), color=color, label=label)
    share.set(title="the off-diagonal part dies", ylabel="share of the norm off the diagonals", ylim=(0, 1))
    strengths.set(title="modes, start 0", ylabel="strength $p\\,q$ of a mode")
    for axes in (share, strengths):
        axes.set_xlabel("training time $t$  (units of $\\tau$)")
        axes.legend()


STUDY = Study(
    name="alignment",
    question=str(__doc__),
    version=1,
    presets={
        "quick": Preset(Case(), size=(9.0, 3.6)),
        "full": Preset(replace(Case(), starts=6, rate=0.01, batches=(16, 64, 256), steps=2400), size=(9.0, 3.6)),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        Limit(
            "theory/flow/misalignment",
            "simulation/trained/misalignment",
            "On large batches the share off the diagonals dies as in the exact flow.",
            along="batch",
            order=0.5,
        ),
        Limit(
            "theory/flow/strength",
            "simulation/trained/strength",
            "On large batches the strengths are those of the exact flow of full matrices.",
            along="batch",
            order=0.5,
        ),
    ),
)
