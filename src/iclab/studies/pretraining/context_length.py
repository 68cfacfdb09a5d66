"""Is a longer context always better?

Linear attention that was pretrained on few tasks, or on few sequences, can become worse with longer contexts: its
error on new tasks, and on tasks of some pools, is least at a finite context length, α = N/D. Theory is the
proportional limit without ridge, the best length of each curve, and the error at test lengths other than that of
pretraining, where longer contexts always help, down to a floor. Simulation draws runs and fits their readouts. Their
means tend to the limit like 1/D, except perhaps in long contexts with as many sequences as the pool shows features, D
K. Published as figure 2 of arXiv 2405.11751; other test lengths go beyond it. Findings of earlier runs:
docs/studies/context-length.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from iclab import figures
from iclab.claims import LimitOfMeans, Verdict
from iclab.claims.paths import group
from iclab.numerics import Checked, Magnitude, Magnitudes, Nonnegative, require
from iclab.outcomes import Labeled, labeled, parts, vocabulary
from iclab.problem import Ratios
from iclab.studies.pretraining.panels import LENGTH, error_axes, run_points, theory_curves
from iclab.studies.pretraining.runs import SIZES, Draws, Grid
from iclab.studies.pretraining.sizes import Span, bounds, column
from iclab.study import Figure, Key, Preset, Study, View

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

PANELS = {"known": "idg", "few": "icl", "many": "icl"}
TITLES = {"known": "tasks of the pool (IDG)", "few": "new tasks (ICL)", "many": "new tasks (ICL)"}


@dataclass(frozen=True)
class Panel(Checked):
    """Pools of several sizes, pretrained on equally many sequences."""

    kappa: Magnitudes  # κ = K/D, tasks of the pool
    tau: Magnitude  # τ = n/D², pretraining sequences
    noise: Nonnegative  # ρ, variance of the label noise
    drawn_kappa: Magnitudes = (0.5, 2.0)  # κ of the drawn runs

    def __post_init__(self) -> None:
        super().__post_init__()
        Ratios(1.0, np.append(self.kappa, self.drawn_kappa), self.tau, self.noise)


@dataclass(frozen=True)
class Case(Checked):
    """Three panels of the published figure, and tests at another length."""

    known: Panel = Panel((0.1, 0.3, 0.5, 0.7, 2.0), tau=0.5, noise=0.5)  # tasks of the pool, few sequences; published
    few: Panel = Panel((0.2, 0.4, 0.5, 0.6, 1.5), 0.5, 0.1, (0.5, 1.5))  # new tasks, few sequences; published
    many: Panel = Panel((0.25, 0.75, 1.0, 1.1, 2.0), 20.0, 0.5, (0.25, 2.0))  # new tasks, many sequences; published
    alpha: Span = Span(0.5, 3000.0)  # α = N/D, examples of a context
    tested: Panel = Panel((2.0,), tau=20.0, noise=0.1)  # pretraining of the tests at other lengths
    tested_alpha: Magnitudes = (1.0, 10.0, 100.0)  # α of pretraining in the tests at other lengths
    drawn_alpha: Magnitudes = (1.0, 10.0, 100.0)  # α of the drawn runs
    draws: Draws = Draws((12, 18, 30), (6, 3, 1), route="kernel")  # runs on few sequences
    many_draws: Draws = Draws((16,), (1,), route="preconditioned")  # runs on many sequences

    def __post_init__(self) -> None:
        super().__post_init__()
        require(len(self.tested.kappa) == 1, f"tested.kappa must be one number; got {self.tested.kappa}.")
        Ratios(np.append(self.tested_alpha, self.drawn_alpha), 1.0, 1.0, 0.0)

    def drawn(self, name: str) -> Grid:
        """The runs of a panel that are drawn."""
        panel, draws = getattr(self, name), self.many_draws if name == "many" else self.draws
        sizes = {"kappa": panel.drawn_kappa, "alpha": self.drawn_alpha, "tau": panel.tau, "noise": panel.noise}
        return Grid.over(draws.dimension, **sizes)


def theory(case: Case) -> dict[str, Labeled]:
    """Errors against the context length and their least values; errors at other test lengths."""
    from iclab.theory.generalization import Shift, best_alpha, errors

    alpha, tested, found = case.alpha.grid(), case.tested, {"bounds": bounds(case.tested.noise)}
    for name, target in PANELS.items():
        panel: Panel = getattr(case, name)
        kappa, tau, noise = np.array(panel.kappa), panel.tau, panel.noise
        curves = errors(Ratios(alpha, column(kappa), tau, noise))
        best = best_alpha(kappa, tau, noise, target=target)
        least = getattr(errors(Ratios(best, kappa, tau, noise)), target)
        found[name] = labeled({"kappa": kappa, "alpha": alpha}, **parts(curves, "icl", "idg"))
        found[f"best_{name}"] = labeled({"kappa": kappa}, alpha=best, error=least)
        found[f"runs_{name}"], found[f"sizes_{name}"] = case.drawn(name).limit(), case.drawn(name).sizes()
    pretraining = Ratios(column(case.tested_alpha), tested.kappa[0], tested.tau, tested.noise)
    tests = errors(pretraining, shift=Shift(alpha=alpha))
    found["tests"] = labeled({"alpha": case.tested_alpha, "test_alpha": alpha}, **parts(tests, "icl", "idg"))
    return found


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Errors of drawn runs, exact for the readout of each."""
    import jax

    known, few, many = (case.drawn(name) for name in PANELS)
    keys = jax.random.split(key, len(PANELS))
    return {
        "runs_known": known.simulated(case.draws, beside=(few,), key=keys[0]),
        "runs_few": few.simulated(case.draws, beside=(known,), key=keys[1]),
        "runs_many": many.simulated(case.many_draws, key=keys[2]),
    }


def figure(view: View, figure: Figure) -> None:
    """Errors against the context length with their least values marked, and at other test lengths."""
    *panels, last = figure.subplots(2, 2).flat
    for axes, (name, target) in zip(panels, PANELS.items(), strict=True):
        curves, best, panel = view.theory[name], view.theory[f"best_{name}"], getattr(view.case, name)
        theory_curves(axes, curves[target], "alpha", by="kappa")
        shown = best.where((curves.alpha.min() <= best.alpha) & (best.alpha <= curves.alpha.max()))
        for color, kappa in figures.colored(curves.kappa.values):
            least, label = shown.sel(kappa=kappa), "least error" if kappa == curves.kappa[-1] else None
            axes.plot(least.alpha, least.error, "v", color=color, ms=6, zorder=4, label=label)
        axes.set(xscale="log", yscale="log", xlabel=LENGTH, ylabel="mean squared error")
        axes.set_title(f"{TITLES[name]}: τ = {panel.tau:g}, ρ = {panel.noise:g}")
        run_points(axes, view, target, "alpha", by="kappa", curves=curves.kappa, suffix=f"_{name}")
        axes.legend(fontsize=7)
    theory_curves(last, view.theory.tests.icl, "test_alpha", by="alpha", label="pretrained at α")
    tested = view.case.tested
    title = f"new tasks, other test length: κ = {tested.kappa[0]:g}, τ = {tested.tau:g}, ρ = {tested.noise:g}"
    error_axes(last, view, "examples of a test context  $N/D$", title=title)
    last.legend()


@dataclass(frozen=True)
class LeastAtBest:
    """No length of a curve has less error than the best length that is marked."""

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The least relative excess of a curve over its marked least value."""
        excess = {}
        for name, target in PANELS.items():
            curves, best = group(result, "theory", name), group(result, "theory", f"best_{name}")
            excess[name] = float((curves[target] / best.error - 1).min())
        return Verdict(
            claim="least at the best length",
            meaning="The error at the best context length is the least of its curve.",
            measure="least relative excess of any other length",
            value=min(excess.values()),
            yardstick=-1e-12,  # rounding
            evidence=tuple((TITLES[name], f"{value:.1e}") for name, value in excess.items()),
        )


FULL = Case(
    alpha=Span(0.1, 10000.0, 601), drawn_alpha=(1.0, 5.6, 10.0, 100.0, 1000.0),
    draws=Draws((25, 50, 100), (16, 8, 2)), many_draws=Draws((20, 40), (1, 1)),
)  # fmt: skip
_FEW = "Means of drawn runs on few sequences tend to the limit on"
STUDY = Study(
    name="context-length", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), seeds=8, size=(9.0, 6.8)), "full": Preset(FULL, seeds=8, size=(9.0, 6.8))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        LeastAtBest(),
        LimitOfMeans(f"{_FEW} tasks of the pool.", "runs_known", variables=("idg",)),
        LimitOfMeans(f"{_FEW} new tasks.", "runs_few", variables=("icl",)),
    ),
    vocabulary=SIZES
    | vocabulary(
        {f"best_{name}/alpha": ("α*", "best number of examples for each dimension") for name in PANELS},
        error=("e(α*)", "error at the best length", "label²"),
        test_alpha=("α_test", "examples of a test context, N/D"),
    ),
)  # fmt: skip
