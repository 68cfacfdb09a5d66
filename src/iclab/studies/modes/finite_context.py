"""Where does training end at a finite context length, and which modes does noise switch off?

A two-factor linear transformer settles on a strength for each mode. *Leading order in 1/N*: one over the mean square
of the context, whatever the noise, and every mode is on. *Exact at any N*: the global minimum of the population loss
over diagonal weights; a mode whose signal does not pay for the noise it lets through is off, so short contexts and
noisy labels select a rank. Simulation draws contexts token by token and fits diagonal weights to them, each combined
with all drawn tasks and queries; P contexts leave a bias of order 1/P. Of arXiv 2504.12916; the exact fixed point is
derived in docs/derivations/modes.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from jaxtyping import Int

from iclab import figures
from iclab.claims import Tends
from iclab.figures import legends
from iclab.numerics import Checked, Counts, Nonnegatives, Reals, require
from iclab.outcomes import Labeled, labeled
from iclab.problem import Regression
from iclab.studies.modes.training import FORMULAS, WORDS
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

LONG = (10_000, 20_000, 40_000)  # context lengths from which the gap of the leading order is extrapolated


@dataclass(frozen=True)
class Case(Checked):
    """Fixed points at several context lengths and noises."""

    eigenvalues: Nonnegatives = (2.0, 1.0, 0.5, 0.25)  # s, of the input covariance, largest first
    context_lengths: Counts = (4, 8, 32)  # N, at which contexts are drawn
    noises: Annotated[tuple[float, ...], Reals(at_least=0.0)] = (0.0, 1.0)  # ρ, variances of the label noise
    sequences: Counts = (1000, 4000, 16_000)  # P, contexts that the weights are fitted to

    def __post_init__(self) -> None:
        super().__post_init__()
        require(len(self.noises) > 0, "noises must hold at least one variance; got none.")


def theory(case: Case) -> dict[str, Labeled]:
    """Exact fixed points and those at leading order: along a line of lengths, and at long ones."""
    line = np.round(np.geomspace(1, 10 * max(case.context_lengths), 120)).astype(int)
    lengths = np.unique([*line, *case.context_lengths, *LONG])
    return {"exact": exact_strengths(case, lengths), "leading": leading_strengths(case, lengths)}


def exact_strengths(case: Case, lengths: Int[np.ndarray, "context_length"]) -> Labeled:
    """Exact fixed points for each noise and length."""
    from iclab.theory.modes import DiagonalTasks, exact_fixed_point

    laws = [[DiagonalTasks(case.eigenvalues, int(n), noise=noise) for n in lengths] for noise in case.noises]
    rows = [[exact_fixed_point(tasks) for tasks in row] for row in laws]
    return labeled({"noise": case.noises, "context_length": lengths, "mode": None}, strength=rows)


def leading_strengths(case: Case, lengths: Int[np.ndarray, "context_length"]) -> Labeled:
    """Fixed points at leading order, the same for every noise."""
    from iclab.theory import modes

    row = [modes.limits(modes.DiagonalTasks(case.eigenvalues, int(n))) for n in lengths]
    return labeled({"noise": case.noises, "context_length": lengths, "mode": None}, strength=[row] * len(case.noises))


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Diagonal weights fitted to drawn contexts, for each number of contexts, noise and length."""
    import jax

    from iclab.simulation.linear.two_factor import combined, least_weights

    keys = jax.random.split(key, (len(case.noises), len(case.context_lengths)))
    strength = np.empty((len(case.sequences), *keys.shape, len(case.eigenvalues)))
    for i, j in np.ndindex(*keys.shape):
        problem = Regression(case.eigenvalues, case.context_lengths[j], case.noises[i])
        drawn = combined(problem, case.sequences, key=keys[i, j])
        strength[:, i, j] = [np.prod(least_weights(drawn.at(k)), axis=0) for k in range(len(case.sequences))]
    axes = {"noise": case.noises, "context_length": case.context_lengths, "mode": None}
    return {"fitted": labeled({"sequences": case.sequences, **axes}, strength=strength)}


def figure(view: View, figure: Figure) -> None:
    """A panel for each noise: strengths against the context length, drawn, exact and at leading order."""
    shown = {"context_length": slice(None, 10 * max(view.case.context_lengths))}
    exact, leading = (view.theory[name].sel(shown) for name in ("exact", "leading"))
    panels = figure.subplots(1, exact.sizes["noise"], sharey=True, squeeze=False)[0]
    for i, axes in enumerate(panels):
        for color, mode in figures.colored(range(exact.sizes["mode"])):
            here, label = {"noise": i, "mode": mode}, None if mode else "exact fixed point"
            law = exact.strength.isel(here)
            figures.theory_line(axes, exact.context_length, law, color=color, label=label)
            figures.end_label(axes, f"s = {view.case.eigenvalues[mode]:g}", float(law[-1]), color=color)
            label = None if mode else "leading order in 1/N"
            figures.dashed_line(axes, leading.context_length, leading.strength.isel(here), color=color, label=label)
            if view.simulation:
                drawn, contexts = view.simulation.fitted.isel(sequences=-1), max(view.case.sequences)
                label = None if mode else f"fitted to {contexts} contexts, {figures.seeds(drawn)}"
                figures.seed_dots(axes, drawn.context_length, drawn.strength.isel(here), color=color, label=label)
        axes.set(title=f"label noise {float(exact.noise[i]):g}", xlabel="context length $N$", xscale="log")
        axes.set_ylim(-0.1, None)
    panels[0].set_ylabel("strength $p\\,q$ of a mode")
    legends.below(figure, panels[0])


FULL = Case(context_lengths=(4, 8, 32, 128), noises=(0.0, 0.25, 1.0), sequences=(16_000, 64_000, 256_000))

STUDY = Study(
    name="finite-context", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), seeds=6, size=(8.0, 3.9)), "full": Preset(FULL, seeds=6, size=(8.0, 3.9))},
    theory=theory, simulation=simulation, figure=figure, formulas=FORMULAS,
    claims=(
        Tends(
            "fitted/strength",
            "Weights fitted to many contexts have the strengths of the exact fixed point, zero where modes are off.",
            0.02, "sequences", theory="exact/strength", unit="mode",
        ),
        Tends("theory/leading/strength", "The leading order becomes exact as N grows, for every mode.",
              1e-3, "context_length", theory="exact/strength", at={"context_length": list(LONG)}),
    ),
    vocabulary=WORDS,
)  # fmt: skip
