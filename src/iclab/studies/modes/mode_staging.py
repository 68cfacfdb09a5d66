"""When is each mode learned, and how far do its closed-form curves hold at a finite context length?

A linear transformer of two factors learns the modes of its inputs one after another, largest eigenvalue first.
*Leading order in 1/N*: every mode follows a closed law of its own. *Exact at any N*: the gradient flow in which the
modes compete through a shared term. The gap between the two falls as 1/N and compounds while a mode waits, so that
at the shortest context the leading order misses its worst mode by a large factor. Simulation is one-pass SGD of the
whole transformer on drawn tokens, whose own noise, of order rate/batch, neither theory holds. Of arXiv 2504.12916;
the exact flow is derived in docs/derivations/modes. Findings of earlier runs: docs/studies/mode-staging.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.claims import Misses, Vanishes, WithinErrors
from iclab.figures import legends
from iclab.numerics import Checked, Counts, Multiple, Nonnegatives, Positive, require
from iclab.outcomes import Labeled, ModeCurves, labeled, vocabulary
from iclab.problem import Lengths, Regression
from iclab.studies.modes.training import WORDS, Schedule, strength_panel
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

Law = Callable[..., ModeCurves]
Strengths = Float[np.ndarray, "context_length time mode"]
RECORDS = 50  # of a curve
ORDERS = np.array([50, 200, 1000])  # context lengths over which the order of leading order is fitted


@dataclass(frozen=True)
class Case(Checked):
    """Modes learned from an aligned start at several context lengths."""

    eigenvalues: Nonnegatives = (2.0, 1.0, 0.5, 0.25)  # s, of the input covariance, largest first
    context_lengths: Lengths = (8, 50, 200)  # N, the first is the one that is judged
    initial: Positive = 0.1  # value and key-query weight of every mode at the start
    rate: Positive = 0.02  # η, learning rate on half the mean squared error
    steps: Annotated[int, Multiple(RECORDS, "the records")] = 1500  # steps of gradient descent
    batches: Counts = (200, 16, 8)  # B, contexts of a step, one number for each context length

    def __post_init__(self) -> None:
        super().__post_init__()
        count, given = len(self.context_lengths), len(self.batches)
        require(given == count, f"batches must be as many as context_lengths, {count}; got {self.batches}.")

    @property
    def schedule(self) -> Schedule:
        """Steps and records of training."""
        return Schedule(self.rate, self.steps, RECORDS)


def theory(case: Case) -> dict[str, Labeled]:
    """Mode curves at leading order and exactly, their ends at the first length, and the gap as N grows."""
    from iclab.theory import modes

    laws = {"leading": modes.leading_order, "exact": modes.exact_flow}
    curves = {name: strengths(law, case, case.context_lengths, case.schedule.time) for name, law in laws.items()}
    return {
        **{name: stages(case, strength) for name, strength in curves.items()},
        **{f"{name}_end": labeled({"mode": None}, strength=strength[0, -1]) for name, strength in curves.items()},
        "gap": labeled({"context_length": ORDERS}, gap=[largest_gap(case, length) for length in ORDERS]),
    }


def strengths(law: Law, case: Case, lengths: Sequence[int], time: Float[np.ndarray, "time"]) -> Strengths:
    """Strengths of the modes under a law at several context lengths."""
    from iclab.theory.modes import DiagonalTasks

    tasks, start = [DiagonalTasks(case.eigenvalues, length) for length in lengths], (case.initial, case.initial)
    return np.stack([law(each, start=start, time=time).strength for each in tasks])


def stages(case: Case, strength: Strengths) -> Labeled:
    """Strengths of the modes at the records, at each context length of the case."""
    axes = {"context_length": case.context_lengths, "time": case.schedule.time, "mode": None}
    return labeled(axes, strength=strength)


def largest_gap(case: Case, length: int) -> float:
    """Largest |Δa|/a∞ between leading order and exact flow over modes and times up to 40 τ."""
    from iclab.theory import modes

    laws, time = (modes.leading_order, modes.exact_flow), np.linspace(0, 40, 201)
    leading, exact = (strengths(law, case, [length], time)[0] for law in laws)
    return float(np.max(np.abs(leading - exact) / modes.limits(modes.DiagonalTasks(case.eigenvalues, length))))


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """One-pass stochastic gradient descent of the whole transformer on drawn tokens, at each context length."""
    import jax

    from iclab.simulation.linear.transformer_sgd import transformer_sgd

    settings = {"rate": case.rate, "steps": case.steps, "every": case.schedule.every}
    start, rows = (case.initial, case.initial), []
    for length, batch in zip(case.context_lengths, case.batches, strict=True):
        problem, own = Regression(case.eigenvalues, length), jax.random.fold_in(key, length)
        rows.append(transformer_sgd(problem, start=start, batch=batch, key=own, **settings).strength)
    strength = np.stack(rows)
    return {"trained": stages(case, strength), "end": labeled({"mode": None}, strength=strength[0, -1])}


def figure(view: View, figure: Figure) -> None:
    """A panel for each context length: strengths, simulated, exact and at leading order."""
    exact, leading = (view.theory[name] for name in ("exact", "leading"))
    drawn = view.simulation.trained if view.simulation else None
    labels = ("leading order in 1/N", None if drawn is None else f"one-pass SGD, {figures.seeds(drawn)}")
    panels = figure.subplots(1, exact.sizes["context_length"], sharey=True, squeeze=False)[0]
    for i, axes in enumerate(panels):
        here, spectrum = {"context_length": i}, view.case.eigenvalues
        strength_panel(axes, here, exact, leading, drawn, spectrum=spectrum, labels=labels)
        axes.set_title(f"N = {int(exact.context_length[i])}")
    panels[0].set_ylabel("strength $p\\,q$ of a mode")
    legends.below(figure, panels[0])


FULL = Case(rate=0.01, steps=3000, batches=(512, 128, 64))

STUDY = Study(
    name="mode-staging", question=str(__doc__), version=1, headline=True,
    presets={"quick": Preset(Case(), size=(10.0, 3.8)), "full": Preset(FULL, seeds=16, size=(10.0, 3.8))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        WithinErrors(
            "end/strength", "The exact flow predicts the strengths at the end, at the shortest context.",
            theory="exact_end/strength",
        ),
        Misses(
            "end/strength",
            "At the shortest context the leading order is off by more than a factor of four in its worst mode.",
            factor=4.0, theory="leading_end/strength",
        ),
        Vanishes("gap/gap", "The leading order becomes exact as N grows.", along="context_length", order=1.0),
    ),
    vocabulary=WORDS | vocabulary(gap=("max |Δa|/a∞", "largest gap of a strength, relative to its limit")),
)  # fmt: skip
