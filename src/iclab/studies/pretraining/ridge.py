"""Which ridge is best, and does it remove the peak?

A ridge λ on the readout smooths the peak of the error at τ = n/D² = 1. The best one removes it: the error then falls
with every further pretraining sequence. New tasks want another ridge than tasks of the pool, unless every context
has a fresh task. Theory is the proportional limit at any ridge, without one, and at the best one for each target.
Simulation draws runs and fits their readouts. The claims are that the formulas with ridge meet those without, at
first order in the ridge, and that the means of runs tend to the limit with a gap of order 1/D. The curves with
several ridges are published as figure 1 of arXiv 2405.11751; the best ridges go beyond it.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from iclab import figures
from iclab.claims import SLACK, LimitOfMeans, Verdict, fitted_order
from iclab.numerics import checked
from iclab.outcomes import Labelled, Levels
from iclab.outcomes.errors import BestRidges, ErrorsByRidgeAndSequences, ErrorsBySequences
from iclab.problem import Pretraining, Ratios
from iclab.studies.pretraining.runs import Draws, Grid, Run
from iclab.studies.pretraining.sizes import SEQUENCES, Span, around, bounds, column, error_axes
from iclab.study import Axes, Figure, Key, Preset, Study, View

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Case:
    """One pool, pretrained on more and more sequences at several ridges."""

    alpha: float = 10.0  # α = N/D, examples of a context; published
    kappa: float = 2.0  # κ = K/D, tasks of the pool; published: a fresh task for each context (inf)
    noise: float = 0.01  # ρ, variance of the label noise; published
    ridge: tuple[float, ...] = (1e-5, 0.1, 1.0)  # λ, ridges of the curves; published
    tau: Span = Span(0.1, 10.0, 122)  # τ = n/D², pretraining sequences
    small_ridge: tuple[float, ...] = (1e-6, 1e-7, 1e-8)  # λ that stand for none
    drawn_ridge: tuple[float, ...] = (0.1, 1.0)  # λ of the drawn runs
    drawn_tau: tuple[float, ...] = (0.5, 1.0, 2.0)  # τ of the drawn runs
    draws: Draws = Draws((12, 20, 36), (6, 3, 1), route="plain")  # runs

    def __post_init__(self) -> None:
        Ratios(self.alpha, self.kappa, 1.0, self.noise)
        checked("ridge", self.ridge, at_least=0.0)
        checked("small_ridge", self.small_ridge, above=0.0, infinite=False)
        checked("drawn_ridge", self.drawn_ridge, at_least=0.0, infinite=False)
        checked("drawn_tau", self.drawn_tau, above=0.0, infinite=False)

    @property
    def drawn(self) -> Grid:
        """The runs that are drawn."""

        def run(dimension: int, ridge: float, tau: float) -> Run:
            return Run(Pretraining.of(Ratios(self.alpha, self.kappa, tau, self.noise), dimension), ridge)

        return Grid.of(run, dimension=self.draws.dimension, ridge=self.drawn_ridge, tau=self.drawn_tau)


def theory(case: Case) -> dict[str, ErrorsByRidgeAndSequences | ErrorsBySequences | BestRidges | Labelled | Levels]:
    """Errors at several ridges, without one, and at the best ridge for each target."""
    from iclab.theory import generalization

    tau = around(case.tau.grid(), [1.0])
    ratios = Ratios(case.alpha, case.kappa, tau, case.noise)

    def at(ridges: tuple[float, ...]) -> ErrorsByRidgeAndSequences:
        found = generalization.errors(ratios, ridge=column(ridges))
        return ErrorsByRidgeAndSequences(np.array(ridges), tau, found.icl, found.idg, found.train)

    without = generalization.errors(ratios)
    new, known = (generalization.best_ridge(ratios, target=target) for target in ("icl", "idg"))
    return {
        "curves": at(case.ridge),
        "small": at(case.small_ridge),
        "none": ErrorsBySequences.of(tau, without),
        "best": BestRidges(
            tau,
            new,
            known,
            generalization.errors(ratios, ridge=new).icl,
            generalization.errors(ratios, ridge=known).idg,
        ),
        "sizes": case.drawn.sizes(),
        "runs": case.drawn.limit(),
        "bounds": bounds(case.noise),
    }


def simulation(case: Case, *, key: Key) -> dict[str, Labelled]:
    """Errors of drawn runs, exact for the readout of each."""
    return {"runs": case.drawn.simulated(case.draws, key=key)}


def figure(view: View, figure: Figure) -> None:
    """Errors on new tasks and on the pool at several ridges and at the best; the best ridges."""
    *panels, ridges = figure.subplots(1, 3)
    curves, best = view.theory.curves, view.theory.best
    titles = {"icl": "on new tasks (ICL)", "idg": "on tasks of the pool (IDG)"}
    for axes, (target, title) in zip(panels, titles.items(), strict=True):
        for color, ridge in figures.colored(curves.ridge.values):
            figures.theory_line(
                axes, curves.tau, curves[target].sel(ridge=ridge), color=color, label=f"λ = {ridge:g}"
            )
        figures.dashed_line(axes, best.tau, best[target], color=figures.INK, label="best λ at each τ")
        if view.simulation:
            _draw_runs(axes, view, target)
        error_axes(axes, view, SEQUENCES, title=title)
    panels[0].legend(
        loc="upper left",
    )
    figures.theory_line(ridges, best.tau, best.icl_ridge, color=figures.COLORS[0], label="for new tasks")
    figures.theory_line(ridges, best.tau, best.idg_ridge, color=figures.COLORS[1], label="for tasks of the pool")
    ridges.set_xscale("log")
    ridges.set_yscale("symlog", linthresh=1e-3)
    ridges.set_ylim(bottom=0)
    ticks = [0, *(10.0**power for power in range(-3, 10) if 10.0**power <= ridges.get_ylim()[1])]
    ridges.set_yticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    ridges.set_yticks([], minor=True)
    ridges.set_xlabel(SEQUENCES)
    ridges.set_ylabel("ridge  λ")
    ridges.set_title("best ridge")
    ridges.legend()


def _draw_runs(axes: Axes, view: View, target: str) -> None:
    """Means of runs in the highest dimension, at the τ of their whole sizes, in the colors of their ridges."""
    sizes, runs = view.theory.sizes, view.simulation.runs
    ridges, largest = list(view.theory.curves.ridge.values), runs.dimension.values[-1]
    for i, ridge in enumerate(runs.ridge.values):
        tau = sizes.sequences.sel(dimension=largest, ridge=ridge) / largest**2
        color = figures.colors(len(ridges))[ridges.index(ridge)] if ridge in ridges else figures.INK
        label = f"drawn runs, D = {largest}" if i == 0 else None
        figures.mean_points(axes, tau, runs[target].sel(dimension=largest, ridge=ridge), color=color, label=label)


@dataclass(frozen=True)
class ExactWithoutRidge:
    """Errors with a small ridge against errors without: the largest relative gap away from the peak."""

    order: float = 1.0
    far: float = 0.2  # |ln τ| that counts as away from τ = 1, where the gap vanishes like √λ

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """Order in the ridge at which the gap vanishes."""
        small, none = result["theory/small"].to_dataset(), result["theory/none"].to_dataset()
        away = abs(np.log(none.tau)) > self.far
        icl, idg = (abs(small[name] / none[name] - 1).where(away).max("tau").values for name in ("icl", "idg"))
        gaps = np.maximum(icl, idg)
        return Verdict(
            claim="exact without ridge",
            meaning="The formulas with ridge become those without as the ridge vanishes.",
            measure="order of the largest relative gap in the ridge",
            value=fitted_order(small.ridge.values, gaps),
            yardstick=self.order - SLACK,
            evidence=tuple(
                (f"largest gap at ridge {ridge:.0e}", f"{gap:.2e}")
                for ridge, gap in zip(small.ridge.values, gaps, strict=True)
            ),
        )


STUDY = Study(
    name="ridge",
    question=str(__doc__),
    version=2,
    presets={
        "quick": Preset(Case(), seeds=8, size=(11.0, 3.8)),
        "full": Preset(
            replace(
                Case(),
                kappa=float("inf"),
                tau=Span(0.05, 20.0, 402),
                drawn_ridge=(1e-5, 0.1, 1.0),
                drawn_tau=(0.5, 0.85, 1.15, 1.5, 2.0),
                draws=Draws((25, 50, 100), (8, 2, 1)),
            ),
            seeds=8,
            size=(11.0, 3.8),
        ),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        ExactWithoutRidge(),
        LimitOfMeans(
            "theory/runs",
            "simulation/runs",
            "Means of drawn runs tend to the proportional limit, on new tasks and on tasks of the pool.",
        ),
    ),
)
