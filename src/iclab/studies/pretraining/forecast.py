"""What will one run of finite dimension show, and how far will it lie from the mean?

Theory forecasts the mean of runs: the proportional limit, the prediction for a pool, and the one that adds unequal
leverage. Single runs scatter around it, with their sequences as with their pools. Simulation therefore draws runs and
fits their readouts: the band is their mean, give or take two standard deviations. The claims are that the means are
as forecast, and that the band covers most errors of runs drawn afresh, yet is not so wide as to cover nearly all;
shares are of the runs of all seeds and sizes. Goes beyond arXiv 2405.11751.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from iclab import figures, planning
from iclab.claims import Agrees, Coverage
from iclab.numerics import Checked, Count, Magnitude, Nonnegative, Positives, Whole
from iclab.outcomes import Labeled, labeled, parts, vocabulary
from iclab.problem import Pretraining, Ratios
from iclab.studies.pretraining.links import SCORED, VOCABULARY, WORDS, on_contexts
from iclab.studies.pretraining.panels import SEQUENCES, TITLES
from iclab.studies.pretraining.runs import ERRORS, Draws, Grid, Ridge, Run, largest
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

FORECASTS = {"limit": "_", "pool": "+", "leverage": "x"}  # with their marks


@dataclass(frozen=True)
class Case(Checked):
    """Runs of one dimension, pretrained on more and more sequences."""

    dimension: Count = 24  # D, entries of an input
    alpha: Magnitude = 10.0  # α = N/D, examples of a context
    kappa: Magnitude = 0.5  # κ = K/D, tasks of the pool
    noise: Nonnegative = 0.01  # ρ, variance of the label noise
    ridge: Ridge = 1e-5  # λ, ridge of the readout
    tau: Positives = (0.5, 1.5, 2.0)  # τ = n/D², pretraining sequences
    fits: Annotated[int, Whole(least=32)] = 64  # runs in the band of a seed
    fresh: Count = 32  # runs that it is tested on
    route: str = "auto"  # solver of readouts

    def __post_init__(self) -> None:
        super().__post_init__()
        self.runs()

    def runs(self) -> list[Pretraining]:
        """The whole sizes of the runs, one for each τ."""
        return [self.run(tau) for tau in self.tau]

    def run(self, tau: float) -> Pretraining:
        """The whole sizes of the run at one τ."""
        return Pretraining.of(Ratios(self.alpha, self.kappa, tau, self.noise), self.dimension)


def theory(case: Case) -> dict[str, Labeled]:
    """The forecasts of `planning`, at the whole sizes."""
    axes, sizes = {"tau": case.tau}, ("context_length", "sequences", "tasks", "noise")
    found = [planning.forecast(run.dimension, **parts(run, *sizes), ridge=case.ridge) for run in case.runs()]
    outcomes = {"sizes": labeled(axes, sequences=[run.sequences for run in case.runs()])}
    for name in FORECASTS:
        errors = [getattr(one, name) for one in found]
        outcomes[name] = labeled(axes, **{target: [getattr(one, target) for one in errors] for target in ERRORS})
    return outcomes


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Mean and standard deviation of runs, and the share of fresh runs that their band covers."""
    import jax

    from iclab.simulation import pretraining

    drawn, found = [], {}
    solver = pretraining.RidgeSolver(route=case.route, pad_to=largest(case.runs()))
    for i, run in enumerate(case.runs()):
        keys = jax.random.split(jax.random.fold_in(key, i), case.fits + case.fresh)
        drawn.append([fit.errors() for fit in pretraining.fit_each(run, ridge=case.ridge, solver=solver, keys=keys)])
    for target in TITLES:
        errors = np.array([[getattr(one, target) for one in runs] for runs in drawn])
        band, fresh = errors[:, : case.fits], errors[:, case.fits :]
        mean, deviation = np.mean(band, axis=1), np.std(band, axis=1, ddof=1)
        covered = np.mean(abs(fresh - mean[:, None]) <= 2 * deviation[:, None], axis=1)
        found |= {f"{target}_mean": mean, f"{target}_deviation": deviation, f"{target}_covered": covered}
    grid = Grid.of(lambda _, tau: Run(case.run(tau), case.ridge), dimension=[case.dimension], tau=case.tau)
    contexts = on_contexts(grid, Draws((case.dimension,), (1,), route=case.route), key=key)
    return {"band": labeled({"tau": case.tau}, fresh=((), case.fresh), **found), "contexts": contexts}


def figure(view: View, figure: Figure) -> None:
    """Forecasts against τ, and the band of single runs."""
    tau = view.theory.limit.tau
    for axes, (target, title) in zip(figure.subplots(1, 2), TITLES.items(), strict=True):
        for name, mark in FORECASTS.items():
            forecast = view.theory[name][target]
            axes.plot(tau, forecast, mark, color=figures.INK, ms=7, zorder=5, label=f"forecast: {name}")
        if view.simulation:
            band, style = view.simulation.band, {"fmt": "o", "ms": 4, "color": figures.COLORS[1]}
            mean, deviation = (band[f"{target}_{name}"].mean("seed") for name in ("mean", "deviation"))
            axes.errorbar(tau, mean, yerr=2 * deviation, label="runs, ± 2 deviations", **style)
        axes.set(xscale="log", yscale="log", title=title, xlabel=SEQUENCES, ylabel="mean squared error")
        axes.legend(fontsize=7)


COVERED = {f"band/{name}_covered": WORDS[name] for name in TITLES}
FULL = Case(dimension=40, tau=(0.2, 0.5, 1.5, 2.0, 4.0, 8.0), route="auto")
STUDY = Study(
    name="forecast", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), size=(8.0, 3.6)), "full": Preset(FULL, size=(8.0, 3.6))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        *(Agrees(f"band/{name}_mean", f"Means of runs are as forecast, {WORDS[name]}.", 0.045, f"leverage/{name}")
          for name in TITLES),
        Coverage(0.90, COVERED), Coverage(0.01, COVERED, outside=True), *SCORED,
    ),
    unjudged={
        f"theory/{name}/{target}": "drawn for its distance from the runs; judged in `finite-size`"
        for name in ("limit", "pool")
        for target in TITLES
    },
    vocabulary=VOCABULARY | vocabulary(
        fresh=("m", "runs that the band is tested on"),
        icl_mean=("mean(e_ICL)", "mean over runs: error on new tasks", "label²"),
        idg_mean=("mean(e_IDG)", "mean over runs: error on tasks of the pool", "label²"),
        icl_deviation=("deviation(e_ICL)", "standard deviation of single runs: error on new tasks", "label²"),
        idg_deviation=("deviation(e_IDG)", "standard deviation of single runs: error on tasks of the pool", "label²"),
        icl_covered=("share(e_ICL)", "share of fresh runs in the band: error on new tasks"),
        idg_covered=("share(e_IDG)", "share of fresh runs in the band: error on tasks of the pool"),
    ),
)  # fmt: skip
