"""Shared parts of the studies of modes: SGD on batches, flow from drawn contexts, strengths of modes, words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.numerics import Counts
from iclab.outcomes import TransformerCurves, vocabulary
from iclab.problem import Regression
from iclab.study import Axes, Formula, Key

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["FORMULAS", "WORDS", "Schedule", "drawn_flow", "strength_panel", "trained_on_batches"]

Matrices = Float[np.ndarray, "*run time D D"]
Weights = tuple[Any, Any]  # value and key-query matrices, or numbers that every mode shares
WORDS = vocabulary(
    batch=("B", "contexts of a step"),
    strength=("p q", "strength of a mode"),
    value=("p", "value weight"),
    key_query=("q", "key-query weight"),
)


FORMULAS = (
    Formula(
        r"\tau \frac{d p}{d t} = s^2 q (1 - \frac{p q}{a_\infty}), \quad "
        r"\tau \frac{d q}{d t} = s^2 p (1 - \frac{p q}{a_\infty}), \quad "
        r"a_\infty = \frac{N}{(N + 1) s + \mathrm{tr}\,\Lambda}",
        "Leading order in 1/N: each mode on its own.",
        {"p": "value weight", "q": "key-query weight", "s": "eigenvalue of the mode", "N": "context length",
         r"\Lambda": "input covariance"},
    ),
    Formula(
        r"L = \sum_d (s_d - 2 a_d s_d^2 + (1 + \frac{1}{N}) a_d^2 s_d^3) "
        r"\quad + \frac{1}{N} (\sum_d s_d p_d^2) (\sum_d s_d^2 q_d^2)",
        "Exact at any N, without noise: the loss whose gradient flow couples the modes through its last term.",
        {"a_d": "strength p q of a mode", "s_d": "its eigenvalue", "N": "context length"},
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Schedule:
    """Steps of gradient descent at one learning rate, with evenly spaced records from the start to the end."""

    rate: float
    steps: int
    records: int

    @property
    def every(self) -> int:
        """Steps from one record to the next."""
        return self.steps // self.records

    @property
    def time(self) -> Float[np.ndarray, "time"]:
        """Times of the records."""
        return self.rate * self.every * np.arange(self.records + 1)


def trained_on_batches(
    problem: Regression, batches: Counts, schedule: Schedule, *, start: Weights, runs: int | None = None, key: Key
) -> list[TransformerCurves]:
    """One-pass SGD of the whole transformer on drawn tokens, for each batch size; of several runs one for each start.

    Every size has a key of its own, so that other sizes change nothing.
    """
    import jax

    from iclab.simulation.linear.transformer_sgd import transformer_sgd

    settings, curves = {"rate": schedule.rate, "steps": schedule.steps, "every": schedule.every}, []
    for batch in batches:
        own = jax.random.fold_in(key, batch)
        keys = own if runs is None else jax.random.split(own, runs)
        curves.append(transformer_sgd(problem, start=start, batch=batch, key=keys, **settings))
    return curves


def drawn_flow(
    problem: Regression, examples: int, *, start: Weights, time: Float[np.ndarray, "time"], key: Key
) -> tuple[Matrices, Matrices]:
    """Value and key-query matrices along the gradient flow from drawn contexts with so many examples together.

    Matrices at the start may have axes in front, a run for each place.
    """
    from iclab.simulation.linear import two_factor

    contexts = max(1, examples // problem.context_lengths[0])
    drawn = two_factor.combined(problem, (contexts,), key=key).at(0)
    return two_factor.flow(drawn, start=start, time=time)


def strength_panel(
    axes: Axes,
    here: Mapping[str, int],
    exact: "xr.Dataset",
    other: "xr.Dataset",
    drawn: "xr.Dataset | None",
    *,
    spectrum: Sequence[float],
    labels: tuple[str, str | None],
    flow: "xr.Dataset | None" = None,
) -> None:
    """Strengths of the modes against time at one place: every seed behind the exact flow, another law dashed.

    The labels are those of the other law and of the seeds. Means of flows from drawn contexts are dots.
    """
    for color, mode in figures.colored(range(exact.sizes["mode"])):
        place, (dashed, seeds) = {**here, "mode": mode}, labels if mode == 0 else (None, None)
        if drawn is not None:
            rows = drawn.strength.isel(place).values
            figures.seed_lines(axes, drawn.time, rows, color=figures.pale(color), label=seeds)
        if flow is not None:
            some = flow.isel({**place, "time": slice(None, None, 4)})
            label = None if mode else "flow from drawn contexts"
            figures.mean_points(axes, some.time, some.strength, color=color, label=label)
        law = exact.strength.isel(place)
        figures.theory_line(axes, exact.time, law, color=color, label=None if mode else "exact flow")
        figures.end_label(axes, f"s = {spectrum[mode]:g}", float(law[-1]), color=color)
        figures.dashed_line(axes, exact.time, other.strength.isel(place), color=color, label=dashed)
    axes.set_xlabel(figures.TIME)
