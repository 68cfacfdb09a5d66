"""Which ridge is best, and does it remove the peak?

A ridge λ on the readout smooths the peak of the error at τ = n/D² = 1. The best one removes it: the error then falls
with every further pretraining sequence. The best ridge for new tasks is not the best for tasks of the pool, unless
every context has a fresh task. Theory is the proportional limit at any ridge, without one, and at the best one for
each target; the formulas with ridge tend to those without at first order in it. Simulation draws runs and fits their
readouts. The curves are published as figure 1 of arXiv 2405.11751; the best ridges go beyond it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from iclab import figures
from iclab.claims import SLACK, Verdict, fitted_order
from iclab.claims.paths import group
from iclab.numerics import Checked, Magnitude, Nonnegative, Nonnegatives, Positives, Reals
from iclab.outcomes import Labeled, labeled, parts, vocabulary
from iclab.problem import Ratios
from iclab.studies.pretraining.panels import SEQUENCES, TITLES, error_axes, run_points, theory_curves
from iclab.studies.pretraining.runs import ERRORS, MEANS_TEND, SIZES, Draws, Grid, simulated
from iclab.studies.pretraining.sizes import Span, around, bounds, column
from iclab.study import Figure, Preset, Study, View

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["STUDY", "Case", "figure", "theory"]


@dataclass(frozen=True)
class Case(Checked):
    """One pool, pretrained on more and more sequences at several ridges."""

    alpha: Magnitude = 10.0  # α = N/D, examples of a context; published
    kappa: Magnitude = 2.0  # κ = K/D, tasks of the pool; published: a fresh task for each context (inf)
    noise: Nonnegative = 0.01  # ρ, variance of the label noise; published
    ridge: Annotated[tuple[float, ...], Reals(at_least=0.0, infinite=True)] = (1e-5, 0.1, 1.0)  # λ; published
    tau: Span = Span(0.1, 10.0, 122)  # τ = n/D², pretraining sequences
    small_ridge: Positives = (1e-6, 1e-7, 1e-8)  # λ in place of none
    drawn_ridge: Nonnegatives = (0.1, 1.0)  # λ of the drawn runs
    drawn_tau: Positives = (0.5, 1.0, 2.0)  # τ of the drawn runs
    draws: Draws = Draws((12, 20, 36), (6, 3, 1), route="plain")  # runs

    def __post_init__(self) -> None:
        super().__post_init__()
        Ratios(self.alpha, self.kappa, 1.0, self.noise)

    @property
    def drawn(self) -> Grid:
        """The runs that are drawn."""
        sizes = {"ridge": self.drawn_ridge, "tau": self.drawn_tau}
        return Grid.over(self.draws.dimension, **sizes, **parts(self, "alpha", "kappa", "noise"))


def theory(case: Case) -> dict[str, Labeled]:
    """Errors at several ridges, without one, and at the best ridge for each target."""
    from iclab.theory.generalization import best_ridge, errors

    tau = around(case.tau.grid(), [1.0])
    ratios = Ratios(case.alpha, case.kappa, tau, case.noise)

    def at(ridge: tuple[float, ...]) -> Labeled:
        return labeled({"ridge": ridge, "tau": tau}, **parts(errors(ratios, ridge=column(ridge)), *ERRORS))

    best = {target: best_ridge(ratios, target=target) for target in TITLES}
    least = {target: getattr(errors(ratios, ridge=ridge), target) for target, ridge in best.items()}
    return {
        "curves": at(case.ridge),
        "small": at(case.small_ridge),
        "none": labeled({"tau": tau}, **parts(errors(ratios), *ERRORS)),
        "best": labeled({"tau": tau}, **{f"{target}_ridge": ridge for target, ridge in best.items()}, **least),
        "sizes": case.drawn.sizes(),
        "runs": case.drawn.limit(),
        "bounds": bounds(case.noise),
    }


def figure(view: View, figure: Figure) -> None:
    """Errors on new tasks and on the pool at several ridges and at the best; the best ridges."""
    *panels, ridges = figure.subplots(1, 3)
    curves, best = view.theory.curves, view.theory.best
    for axes, (target, title) in zip(panels, TITLES.items(), strict=True):
        theory_curves(axes, curves[target], "tau", by="ridge")
        figures.dashed_line(axes, best.tau, best[target], color=figures.INK, label="best λ at each τ")
        run_points(axes, view, target, "tau", by="ridge", curves=curves.ridge)
        error_axes(axes, view, SEQUENCES, title=title)
    panels[0].legend(loc="upper left")
    figures.theory_line(ridges, best.tau, best.icl_ridge, color=figures.COLORS[0], label="for new tasks")
    figures.theory_line(ridges, best.tau, best.idg_ridge, color=figures.COLORS[1], label="for tasks of the pool")
    ridges.set(title="best ridge", xlabel=SEQUENCES, ylabel="ridge  λ", xscale="log")
    ridges.set_yscale("symlog", linthresh=1e-3)  # best ridges may be 0
    ridges.set_ylim(bottom=0)
    ticks = [0, *(10.0**power for power in range(-3, 10) if 10.0**power <= ridges.get_ylim()[1])]
    ridges.set_yticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    ridges.set_yticks([], minor=True)
    ridges.legend()


@dataclass(frozen=True)
class ExactWithoutRidge:
    """Errors with a small ridge against errors without: the largest relative gap away from the peak."""

    far: float = 0.2  # |ln τ| that counts as away from τ = 1, where the gap vanishes like √λ

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """Order in the ridge at which the gap vanishes."""
        small, none = group(result, "theory", "small"), group(result, "theory", "none")
        away = abs(np.log(none.tau)) > self.far
        gaps = np.maximum(*(abs(small[name] / none[name] - 1).where(away).max("tau").values for name in TITLES))
        shown = zip(small.ridge.values, gaps, strict=True)
        return Verdict(
            claim="exact without ridge",
            meaning="The formulas with ridge become those without as the ridge vanishes.",
            measure="order of the largest relative gap in the ridge",
            value=fitted_order(small.ridge.values, gaps),
            yardstick=1.0 - SLACK,
            evidence=tuple((f"largest gap at ridge {ridge:.0e}", f"{gap:.2e}") for ridge, gap in shown),
        )


FULL = Case(
    kappa=np.inf, tau=Span(0.05, 20.0, 402), drawn_ridge=(1e-5, 0.1, 1.0), drawn_tau=(0.5, 0.85, 1.15, 1.5, 2.0),
    draws=Draws((25, 50, 100), (8, 2, 1)),
)  # fmt: skip
STUDY = Study(
    name="ridge", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), seeds=8, size=(11.0, 3.8)), "full": Preset(FULL, seeds=8, size=(11.0, 3.8))},
    theory=theory, simulation=simulated, figure=figure,
    claims=(ExactWithoutRidge(), MEANS_TEND),
    vocabulary=SIZES
    | vocabulary(
        icl_ridge=("λ_ICL", "ridge of least error on new tasks"),
        idg_ridge=("λ_IDG", "ridge of least error on tasks of the pool"),
    ),
)  # fmt: skip
