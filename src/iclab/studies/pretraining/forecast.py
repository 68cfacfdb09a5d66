"""What will one run of finite dimension show, and how far will it lie from the mean?

Theory forecasts the mean of runs: the proportional limit, the prediction for a pool, and the one that adds unequal
leverage. Single runs scatter around it, with their sequences as with their pools. Simulation therefore draws runs and
fits their readouts: the band is their mean, give or take two standard deviations. The claims are that it covers most
errors of runs drawn afresh, yet is not so wide as to cover nearly all. Goes beyond arXiv 2405.11751.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from iclab import figures, planning
from iclab.claims import Verdict
from iclab.numerics import Checked, Count, Magnitude, Nonnegative, Positives, Whole
from iclab.outcomes import Labeled, labeled, parts, vocabulary
from iclab.problem import Pretraining, Ratios
from iclab.studies.pretraining.panels import SEQUENCES, TITLES
from iclab.studies.pretraining.runs import ERRORS, SIZES, Ridge, largest
from iclab.study import Figure, Key, Preset, Study, View

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

FORECASTS = {"limit": "_", "pool": "+", "leverage": "x"}  # with their marks


@dataclass(frozen=True)
class Case(Checked):
    """Runs of one dimension, pretrained on more and more sequences."""

    dimension: Count = 16  # D, entries of an input
    alpha: Magnitude = 10.0  # α = N/D, examples of a context
    kappa: Magnitude = 0.5  # κ = K/D, tasks of the pool
    noise: Nonnegative = 0.01  # ρ, variance of the label noise
    ridge: Ridge = 1e-5  # λ, ridge of the readout
    tau: Positives = (0.5, 1.5, 2.0)  # τ = n/D², pretraining sequences
    fits: Annotated[int, Whole(least=32)] = 64  # runs in the band of a seed
    fresh: Count = 32  # runs that it is tested on
    route: str = "plain"  # solver of readouts

    def __post_init__(self) -> None:
        super().__post_init__()
        self.runs()

    def runs(self) -> list[Pretraining]:
        """The whole sizes of the runs, one for each τ."""
        return [Pretraining.of(Ratios(self.alpha, self.kappa, tau, self.noise), self.dimension) for tau in self.tau]


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
    return {"band": labeled({"tau": case.tau}, **found)}


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


@dataclass(frozen=True)
class Coverage:
    """The share of fresh runs in the band, over all seeds, errors and sizes."""

    bound: float
    at_most: bool = False

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The share, at least or at most the bound."""
        band = result["simulation/band"].to_dataset()
        shares = {target: band[f"{target}_covered"] for target in TITLES}
        whole = float(np.mean([float(share.mean()) for share in shares.values()]))
        word = "most" if self.at_most else "least"
        single = ((target, tau, share.sel(tau=tau)) for target, share in shares.items() for tau in share.tau.values)
        return Verdict(
            claim="band of single runs",
            meaning=f"The band of two standard deviations covers at {word} {100 * self.bound:g} % of fresh runs.",
            measure="share of the errors of fresh runs",
            value=whole,
            yardstick=self.bound,
            evidence=tuple((f"{name}, τ = {tau:g}", f"{100 * float(one.mean()):.1f} %") for name, tau, one in single),
            at_most=self.at_most,
        )


FULL = Case(dimension=40, tau=(0.2, 0.5, 1.5, 2.0, 4.0, 8.0), route="auto")
STUDY = Study(
    name="forecast", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), size=(8.0, 3.6)), "full": Preset(FULL, size=(8.0, 3.6))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(Coverage(0.90), Coverage(0.99, at_most=True)),
    vocabulary=SIZES
    | vocabulary(
        icl_mean=("mean(e_ICL)", "mean over runs: error on new tasks", "label²"),
        idg_mean=("mean(e_IDG)", "mean over runs: error on tasks of the pool", "label²"),
        icl_deviation=("deviation(e_ICL)", "standard deviation of single runs: error on new tasks", "label²"),
        idg_deviation=("deviation(e_IDG)", "standard deviation of single runs: error on tasks of the pool", "label²"),
        icl_covered=("share(e_ICL)", "share of fresh runs in the band: error on new tasks"),
        idg_covered=("share(e_IDG)", "share of fresh runs in the band: error on tasks of the pool"),
    ),
)  # fmt: skip
