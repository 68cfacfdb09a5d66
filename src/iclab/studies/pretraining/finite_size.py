"""How large must a run be for the limit to describe it?

Means of runs lie off the proportional limit by a term of order 1/D. Theory approximates a run in three ways: by the
limit at the ratios of its whole sizes; by the *pool* prediction, which keeps the pool, the exact moments of contexts
and all D(D + 1) weights; and by the *leverage* prediction, which adds that sequences differ in leverage and is close
to the means in every dimension. Predictions are means over pools. Simulation draws runs and fits their readouts,
below and beyond interpolation, τ = 1: their means are judged against the leverage prediction, and the pool
prediction, in dimensions far beyond, against the limit. The limit is that of arXiv 2405.11751; the two predictions go
beyond it. Findings of earlier runs: docs/studies/finite-size.
"""

from dataclasses import dataclass

import numpy as np

from iclab import figures
from iclab.numerics import Checked, Count, Magnitude, Magnitudes, Nonnegative
from iclab.outcomes import Labeled, parts
from iclab.problem import Ratios
from iclab.studies.pretraining import links
from iclab.studies.pretraining.panels import TITLES
from iclab.studies.pretraining.runs import Draws, Grid, Ridge
from iclab.study import Figure, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "theory"]


@dataclass(frozen=True)
class Case(Checked):
    """Runs of the same ratios in several dimensions."""

    alpha: Magnitude = 1.0  # α = N/D, examples of a context
    kappa: Magnitude = 2.0  # κ = K/D, tasks of the pool
    noise: Nonnegative = 0.1  # ρ, variance of the label noise
    ridge: Ridge = 1e-3  # λ, ridge of the readout
    tau: Magnitudes = (0.5, 2.0)  # τ = n/D², pretraining sequences
    pools: Count = 128  # pools whose mean leverage prediction is shown
    draws: Draws = Draws((16, 24, 32), (20, 9, 5), below=2)  # runs

    def __post_init__(self) -> None:
        super().__post_init__()
        Ratios(self.alpha, self.kappa, np.array(self.tau), self.noise)

    def runs(self, dimension: tuple[int, ...]) -> Grid:
        """Runs of the ratios in several dimensions."""
        return Grid.over(dimension, **parts(self, "alpha", "kappa", "tau", "noise", "ridge"))

    @property
    def drawn(self) -> Grid:
        """The runs that are drawn."""
        return self.runs(self.draws.dimension)


def theory(case: Case) -> dict[str, Labeled]:
    """The limit and the pool prediction in many dimensions, the leverage prediction of every drawn run."""
    many = case.runs(tuple(sorted({*case.draws.dimension, *links.FAR})))
    return {
        "sizes": case.drawn.sizes(),
        "limit": many.limit(),
        "pool": many.predicted(links.pool_mean),
        "leverage": case.drawn.predicted(lambda run: links.leverage_mean(run, case.pools)),
    }


def figure(view: View, figure: Figure) -> None:
    """Errors on new tasks and on the pool against 1/D: three approximations, and means of runs."""
    for axes, (target, title) in zip(figure.subplots(1, 2), TITLES.items(), strict=True):
        for i, (color, tau) in enumerate(figures.colored(view.theory.limit.tau.values)):
            limit, pool, leverage = (view.theory[name][target].sel(tau=tau) for name in ("limit", "pool", "leverage"))
            names = ("pool prediction", "leverage prediction", "drawn runs") if i == 0 else (None, None, None)
            inverse, drawn = 1 / limit.dimension, 1 / leverage.dimension
            figures.theory_line(axes, inverse, limit, color=color, label=f"τ = {tau:g}: limit")
            figures.dashed_line(axes, inverse, pool, color=color, label=names[0])
            axes.plot(drawn, leverage, ":", color=color, lw=1.6, label=names[1])
            if view.simulation:
                runs = view.simulation.runs[target].sel(tau=tau)
                figures.mean_points(axes, drawn, runs, color=color, label=names[2])
        axes.set(title=title, xlabel="$1/D$", ylabel="mean squared error")
        axes.set_xlim(left=0)
        axes.legend(fontsize=7)


FULL = Case(tau=(0.5, 1.5, 2.0, 4.0), pools=64, draws=Draws((25, 50, 100), (24, 10, 4)))
STUDY = Study(
    name="finite-size", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), seeds=8, size=(8.0, 3.6)), "full": Preset(FULL, seeds=8, size=(8.0, 3.6))},
    theory=theory, simulation=links.simulated, figure=figure,
    claims=(*links.linked(far="pool", limit="limit", at={"dimension": list(links.FAR)}), *links.SCORED),
    vocabulary=links.VOCABULARY,
)  # fmt: skip
