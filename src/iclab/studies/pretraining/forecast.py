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
from iclab.outcomes import VOCABULARY, Labeled, labeled, parts, vocabulary
from iclab.problem import Pretraining, Ratios
from iclab.studies.pretraining.panels import SEQUENCES, TITLES
from iclab.studies.pretraining.runs import ERRORS, SIZES, Ridge, largest
from iclab.study import Figure, Key, Preset, Study, View

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

KINDS = {
    "mean": ("mean", "mean over runs", "label²"),
    "deviation": ("deviation", "standard deviation of single runs", "label²"),
    "covered": ("share", "share of fresh runs in the band", ""),
}
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
        ratios = (Ratios(self.alpha, self.kappa, tau, self.noise) for tau in self.tau)
        return [Pretraining.of(one, self.dimension) for one in ratios]


def theory(case: Case) -> dict[str, Labeled]:
    """The forecasts of `planning`, at the whole sizes."""

    axes, sizes = {"tau": case.tau}, ("context_length", "sequences", "tasks", "noise")
    found = [planning.forecast(run.dimension, **parts(run, *sizes), ridge=case.ridge) for run in case.runs()]

    def errors(name: str) -> Labeled:
        each = [getattr(one, name) for one in found]
        return labeled(axes, **{target: [getattr(one, target) for one in each] for target in ERRORS})

    return {
        "sizes": labeled(axes, sequences=[run.sequences for run in case.runs()]),
        **{name: errors(name) for name in FORECASTS},
    }


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Mean and standard deviation of runs, and the share of fresh runs that their band covers."""
    import jax

    from iclab.simulation import pretraining

    columns: dict[str, list[float]] = {}
    solver = pretraining.RidgeSolver(route=case.route, pad_to=largest(case.runs()))
    for i, run in enumerate(case.runs()):
        keys = jax.random.split(jax.random.fold_in(key, i), case.fits + case.fresh)
        errors = [fit.errors() for fit in pretraining.fit_each(run, ridge=case.ridge, solver=solver, keys=keys)]
        for target in TITLES:
            drawn = np.array([getattr(one, target) for one in errors])
            band, fresh = drawn[: case.fits], drawn[case.fits :]
            mean, deviation = float(np.mean(band)), float(np.std(band, ddof=1))
            found = (mean, deviation, float(np.mean(abs(fresh - mean) <= 2 * deviation)))
            for name, value in zip(KINDS, found, strict=True):
                columns.setdefault(f"{target}_{name}", []).append(value)
    return {"band": labeled({"tau": case.tau}, **columns)}


def figure(view: View, figure: Figure) -> None:
    """Forecasts against τ, and the band of single runs."""
    for axes, (target, title) in zip(figure.subplots(1, 2), TITLES.items(), strict=True):
        tau = view.theory.limit.tau
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


WORDS = {
    f"{target}_{kind}": (f"{symbol}({VOCABULARY[target].symbol})", f"{words}: {VOCABULARY[target].words}", unit)
    for kind, (symbol, words, unit) in KINDS.items()
    for target in TITLES
}
FULL = Case(dimension=40, tau=(0.2, 0.5, 1.5, 2.0, 4.0, 8.0), route="auto")

STUDY = Study(
    name="forecast",
    question=str(__doc__),
    version=1,
    presets={"quick": Preset(Case(), size=(8.0, 3.6)), "full": Preset(FULL, size=(8.0, 3.6))},
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(Coverage(0.90), Coverage(0.99, at_most=True)),
    vocabulary=SIZES | vocabulary(WORDS),
)
