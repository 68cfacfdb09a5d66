"""How large must a run be for the limit to describe it?

Means of runs lie off the proportional limit by a term of order 1/D. Theory approximates a run in three ways: by the
limit at the ratios of its whole sizes; by the *pool* prediction, which keeps the pool, the exact moments of contexts
and all D(D + 1) weights; and by the *leverage* prediction, which adds that sequences differ in leverage and is close
to the means in every dimension. Predictions are means over a few pools. Simulation draws runs and fits their
readouts, below and beyond interpolation, τ = 1. The limit is that of arXiv 2405.11751; the two predictions go beyond
it. Findings of earlier runs: docs/studies/finite-size.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from iclab import figures
from iclab.claims import CloseMeans, LimitOfMeans
from iclab.numerics import Checked, Count, Magnitude, Magnitudes, Nonnegative
from iclab.outcomes import Errors, FittedErrors, Labeled, parts
from iclab.problem import Ratios
from iclab.studies.pretraining.panels import TITLES
from iclab.studies.pretraining.runs import SIZES, Draws, Grid, Ridge, Run, mean, simulated
from iclab.studies.pretraining.sizes import law_of
from iclab.study import Figure, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "theory"]


@dataclass(frozen=True)
class Case(Checked):
    """Runs of the same ratios in several dimensions."""

    alpha: Magnitude = 1.0  # α = N/D, examples of a context
    kappa: Magnitude = 2.0  # κ = K/D, tasks of the pool
    noise: Nonnegative = 0.1  # ρ, variance of the label noise
    ridge: Ridge = 1e-3  # λ, ridge of the readout
    tau: Magnitudes = (0.5, 1.5, 2.0)  # τ = n/D², pretraining sequences
    pools: Count = 2  # pools whose mean prediction is shown
    draws: Draws = Draws((16, 24, 40), (8, 4, 2), route="plain")  # runs

    def __post_init__(self) -> None:
        super().__post_init__()
        Ratios(self.alpha, self.kappa, np.array(self.tau), self.noise)

    @property
    def drawn(self) -> Grid:
        """The runs that are drawn."""
        return Grid.over(self.draws.dimension, **parts(self, "alpha", "kappa", "tau", "noise", "ridge"))


def theory(case: Case) -> dict[str, Labeled]:
    """The three approximations of every run."""
    from iclab.theory.finite_size import leverage_errors, pool_errors

    def over_pools(prediction: Callable[..., Errors]) -> Labeled:
        def over(run: Run) -> FittedErrors:
            d, ratios = run.size.dimension, parts(case, "alpha", "kappa", "noise")
            laws = [law_of(d, **ratios, pool=pool) for pool in range(case.pools)]
            return mean([prediction(law, run.size.sequences, ridge=case.ridge) for law in laws])

        return case.drawn.predicted(over)

    return {
        "sizes": case.drawn.sizes(),
        "limit": case.drawn.limit(),
        "pool": over_pools(pool_errors),
        "leverage": over_pools(leverage_errors),
    }


def figure(view: View, figure: Figure) -> None:
    """Errors on new tasks and on the pool against 1/D: three approximations, and means of runs."""
    for axes, (target, title) in zip(figure.subplots(1, 2), TITLES.items(), strict=True):
        for i, (color, tau) in enumerate(figures.colored(view.theory.limit.tau.values)):
            limit, pool, leverage = (view.theory[name][target].sel(tau=tau) for name in ("limit", "pool", "leverage"))
            names = ("pool prediction", "leverage prediction", "drawn runs") if i == 0 else (None, None, None)
            inverse = 1 / limit.dimension
            figures.theory_line(axes, inverse, limit, color=color, label=f"τ = {tau:g}: limit")
            figures.dashed_line(axes, inverse, pool, color=color, label=names[0])
            axes.plot(inverse, leverage, ":", color=color, lw=1.6, label=names[1])
            if view.simulation:
                runs = view.simulation.runs[target].sel(tau=tau)
                figures.mean_points(axes, inverse, runs, color=color, label=names[2])
        axes.set(title=title, xlabel="$1/D$", ylabel="mean squared error")
        axes.set_xlim(left=0)
        axes.legend(fontsize=7)


FULL = Case(tau=(0.5, 1.5, 2.0, 4.0), pools=8, draws=Draws((25, 50, 100), (24, 10, 4)))
STUDY = Study(
    name="finite-size", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=8, size=(8.0, 3.6)), "full": Preset(FULL, seeds=8, size=(8.0, 3.6))},
    theory=theory, simulation=simulated, figure=figure,
    claims=(
        LimitOfMeans("Means of drawn runs tend to the proportional limit.", theory="limit"),
        LimitOfMeans("The pool prediction tends to the means too.", theory="pool"),
        CloseMeans("The leverage prediction is close to the means.", most=0.015, theory="leverage"),
    ),
    vocabulary=SIZES,
)  # fmt: skip
