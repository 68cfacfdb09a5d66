"""How large must a run be for the limit to describe it?

Means of runs lie off the proportional limit by a term of order 1/D. Theory gives three accounts of a run: the limit
at the ratios of its whole sizes; the *pool* prediction, which keeps the pool, the exact moments of contexts and all
D(D + 1) weights; and the *leverage* prediction, which adds that sequences differ in leverage. Predictions are means
over a few pools. Simulation draws runs and fits their readouts, below and beyond interpolation, τ = 1. The claims
are that the gaps of limit and pool prediction fall like 1/D, and that the leverage prediction is close to the means
in every dimension. The limit is that of arXiv 2405.11751; the two predictions go beyond it. Findings of earlier runs:
docs/studies/finite-size.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from iclab import figures
from iclab.claims import CloseMeans, LimitOfMeans
from iclab.numerics import checked, whole_number
from iclab.outcomes import Errors, Labelled
from iclab.problem import Pretraining, Ratios
from iclab.studies.pretraining.runs import Draws, Grid, Run
from iclab.studies.pretraining.sizes import law_of
from iclab.study import Figure, Key, Preset, Study, View


@dataclass(frozen=True)
class Case:
    """Runs of the same ratios in several dimensions."""

    alpha: float = 1.0  # α = N/D, examples of a context
    kappa: float = 2.0  # κ = K/D, tasks of the pool
    noise: float = 0.1  # ρ, variance of the label noise
    ridge: float = 1e-3  # λ, ridge of the readout
    tau: tuple[float, ...] = (0.5, 1.5, 2.0)  # τ = n/D², pretraining sequences
    pools: int = 2  # pools whose mean prediction is shown
    draws: Draws = Draws((16, 24, 40), (8, 4, 2), route="plain")  # runs

    def __post_init__(self) -> None:
        Ratios(self.alpha, self.kappa, np.array(self.tau), self.noise)
        checked("ridge", self.ridge, at_least=0.0)
        whole_number("pools", self.pools)

    @property
    def drawn(self) -> Grid:
        """The runs that are drawn."""

        def run(dimension: int, tau: float) -> Run:
            return Run(Pretraining.of(Ratios(self.alpha, self.kappa, tau, self.noise), dimension), self.ridge)

        return Grid.of(run, dimension=self.draws.dimension, tau=self.tau)


def theory(case: Case) -> dict[str, Labelled]:
    """The three accounts of every run."""
    from iclab.theory import finite_size

    def over_pools(account: Callable[..., Errors]) -> Labelled:
        def mean(run: Run) -> Errors:
            d, n = run.size.dimension, run.size.sequences
            laws = [
                law_of(d, alpha=case.alpha, kappa=case.kappa, noise=case.noise, pool=pool)
                for pool in range(case.pools)
            ]
            found = [account(law, n, ridge=case.ridge) for law in laws]
            names = ("icl", "idg", "train", "effective_ridge")
            return Errors(*(float(np.mean([getattr(one, name) for one in found])) for name in names))

        return case.drawn.predicted(mean)

    return {
        "sizes": case.drawn.sizes(),
        "limit": case.drawn.limit(),
        "pool": over_pools(finite_size.pool_errors),
        "leverage": over_pools(finite_size.leverage_errors),
    }


def simulation(case: Case, *, key: Key) -> dict[str, Labelled]:
    """Errors of drawn runs, exact for the readout of each."""
    return {"runs": case.drawn.simulated(case.draws, key=key)}


def figure(view: View, figure: Figure) -> None:
    """Errors on new tasks and on the pool against 1/D: three accounts, and means of runs."""
    accounts = {name: view.theory[name] for name in ("limit", "pool", "leverage")}
    titles = {"icl": "on new tasks (ICL)", "idg": "on tasks of the pool (IDG)"}
    for axes, (target, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        for i, (color, tau) in enumerate(figures.colored(accounts["limit"].tau.values)):
            label = f"τ = {tau:g}"
            limit, pool, leverage = (account[target].sel(tau=tau) for account in accounts.values())
            inverse = 1 / limit.dimension
            figures.theory_line(axes, inverse, limit, color=color, label=f"{label}: limit")
            figures.dashed_line(axes, inverse, pool, color=color, label="pool prediction" if i == 0 else None)
            axes.plot(inverse, leverage, ":", color=color, lw=1.6, label="leverage prediction" if i == 0 else None)
            if view.simulation:
                runs = view.simulation.runs[target].sel(tau=tau)
                figures.mean_points(axes, inverse, runs, color=color, label="drawn runs" if i == 0 else None)
        axes.set_title(title)
        axes.set_xlim(left=0)
        axes.set_xlabel("$1/D$")
        axes.set_ylabel("mean squared error")
        axes.legend(fontsize=7)


STUDY = Study(
    name="finite-size",
    question=str(__doc__),
    version=1,
    presets={
        "quick": Preset(Case(), seeds=8, size=(8.0, 3.6)),
        "full": Preset(
            replace(Case(), tau=(0.5, 1.5, 2.0, 4.0), pools=8, draws=Draws((25, 50, 100), (24, 10, 4))),
            seeds=8,
            size=(8.0, 3.6),
        ),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        LimitOfMeans("theory/limit", "simulation/runs", "Means of drawn runs tend to the proportional limit."),
        LimitOfMeans("theory/pool", "simulation/runs", "The pool prediction tends to the means too."),
        CloseMeans(
            "theory/leverage",
            "simulation/runs",
            "The leverage prediction is close to the means in every dimension.",
            most=0.015,
        ),
    ),
)
