"""Is a longer context always better?

Longer contexts tell more of their task, but linear attention that was pretrained on few tasks, or on few
sequences, can become worse with them: its error on new tasks then has a least value at a finite context length,
α = N/D. So has the error on tasks of the pool, for τ < 1 and pools of middle size. Theory is the proportional limit
without ridge, the best length of each curve, and the error of tests at other lengths than those of pretraining:
longer test contexts always lower it, to a floor that the length of pretraining sets. Published as figure 2 of
arXiv 2405.11751; tests at other lengths go beyond it.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from iclab import figures
from iclab import theory as theories
from iclab.error_curves import BestLengths, ErrorsByTasksAndLength, ErrorsByTestLength
from iclab.numerics import require
from iclab.outcomes import Levels
from iclab.problem import Ratios
from iclab.studies.pretraining import LENGTH, Span, bounds, column, error_axes
from iclab.study import Study

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Panel:
    """Pools of several sizes, pretrained on equally many sequences. Raises ValueError for impossible numbers."""

    kappa: tuple[float, ...]  # κ = K/D, tasks of the pool
    tau: float  # τ = n/D², pretraining sequences
    noise: float  # ρ, variance of the label noise

    def __post_init__(self) -> None:
        Ratios(1.0, np.array(self.kappa), self.tau, self.noise)


@dataclass(frozen=True)
class Case:
    """Three panels of the published figure, and tests at another length."""

    known: Panel = Panel((0.1, 0.3, 0.5, 0.7, 2.0), tau=0.5, noise=0.5)  # tasks of the pool, few sequences; published
    few: Panel = Panel((0.2, 0.4, 0.5, 0.6, 1.5), tau=0.5, noise=0.1)  # new tasks, few sequences; published
    many: Panel = Panel((0.25, 0.75, 1.0, 1.1, 2.0), tau=20.0, noise=0.5)  # new tasks, many sequences; published
    alpha: Span = Span(0.5, 3000.0)  # α = N/D, examples of a context
    tested: Panel = Panel((2.0,), tau=20.0, noise=0.1)  # pretraining of the tests at other lengths
    tested_alpha: tuple[float, ...] = (1.0, 10.0, 100.0)  # α of pretraining in the tests at other lengths

    def __post_init__(self) -> None:
        require(len(self.tested.kappa) == 1, f"tested.kappa must be one number; got {self.tested.kappa}.")
        Ratios(np.array(self.tested_alpha), 1.0, 1.0, 0.0)


PANELS = {"known": "idg", "few": "icl", "many": "icl"}


def theory(case: Case) -> dict[str, ErrorsByTasksAndLength | BestLengths | ErrorsByTestLength | Levels]:
    """Errors against the context length and their least values; errors of tests at other lengths."""
    generalization = theories.generalization
    alpha, tested = case.alpha.grid(), case.tested
    found: dict[str, ErrorsByTasksAndLength | BestLengths | ErrorsByTestLength | Levels] = {}
    for name, target in PANELS.items():
        panel: Panel = getattr(case, name)
        kappa = np.array(panel.kappa)
        curves = generalization.errors(Ratios(alpha, column(kappa), panel.tau, panel.noise))
        best = generalization.best_alpha(kappa, panel.tau, panel.noise, target=target)
        least = generalization.errors(Ratios(best, kappa, panel.tau, panel.noise))
        found[name] = ErrorsByTasksAndLength(kappa, alpha, curves.icl, curves.idg)
        found[f"best_{name}"] = BestLengths(kappa, best, getattr(least, target))
    pretraining = Ratios(column(case.tested_alpha), tested.kappa[0], tested.tau, tested.noise)
    tests = generalization.errors(pretraining, shift=generalization.Shift(alpha=alpha))
    found["tests"] = ErrorsByTestLength(np.array(case.tested_alpha), alpha, tests.icl, tests.idg)
    return {**found, "bounds": bounds(tested.noise)}


def figure(result: "xr.DataTree", figure: "Figure") -> None:
    """Errors against the context length with their least values marked, and tests at other lengths."""
    panels = dict(zip([*PANELS, "tests"], figure.subplots(2, 2).flat, strict=True))
    for name, target in PANELS.items():
        curves, best = result[f"theory/{name}"].to_dataset(), result[f"theory/best_{name}"].to_dataset()
        axes = panels[name]
        for color, kappa in zip(figures.COLORS, curves.kappa.values, strict=False):
            curve, least = curves.sel(kappa=kappa), best.sel(kappa=kappa)
            figures.theory_line(axes, curve.alpha, curve[target], color=color, label=f"κ = {kappa:g}")
            inside = curve.alpha.min() <= least.alpha <= curve.alpha.max()
            axes.plot(least.alpha.where(inside), least.error.where(inside), "o", color=color, ms=5, zorder=4)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(LENGTH)
        axes.set_ylabel("mean squared error")
        axes.set_title(_TITLES[name])
        axes.legend()
    tests = result["theory/tests"].to_dataset()
    for color, alpha in zip(figures.COLORS, tests.alpha.values, strict=False):
        curve = tests.sel(alpha=alpha)
        figures.theory_line(
            panels["tests"], curve.test_alpha, curve.icl, color=color, label=f"pretrained at α = {alpha:g}"
        )
    error_axes(
        panels["tests"], result, "examples of a test context  $N/D$", title="new tasks, tested at another length"
    )
    panels["tests"].legend()


_TITLES = {
    "known": "tasks of the pool (IDG), few sequences",
    "few": "new tasks (ICL), few sequences",
    "many": "new tasks (ICL), many sequences",
}

STUDY = Study(
    name="context-length",
    question=str(__doc__),
    version=1,
    quick=Case(),
    full=replace(Case(), alpha=Span(0.1, 10000.0, 601)),
    theory=theory,
    simulation=None,
    figure=figure,
    claims=(),
    size=(9.0, 6.8),
)
