"""Is a longer context always better?

Longer contexts tell more of their task, but linear attention that was pretrained on few tasks, or on few sequences,
can become worse with them: its error on new tasks then has a least value at a finite context length, α = N/D. So has
the error on tasks of the pool, for τ < 1 and pools of middle size. Published as figure 2 of arXiv 2405.11751; tests
at other lengths go beyond it.

Theory is the proportional limit without ridge, the best length of each curve, and the error of tests at other
lengths than those of pretraining: longer test contexts always lower it, to a floor that the length of pretraining
sets. Simulation draws runs without ridge and fits their readouts. The claims ask that the best lengths are the least
points of the curves, and that the means of runs on few sequences tend to the limit with a gap of order 1/D. That
order can fail in long contexts where sequences are as many as the features of the pool, D K. Findings of earlier
runs: docs/studies/context-length.
"""

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from iclab import figures
from iclab.claims import LimitOfMeans, Verdict
from iclab.numerics import require
from iclab.outcomes import Labelled, Levels
from iclab.outcomes.errors import BestLengths, ErrorsByTasksAndLength, ErrorsByTestLength
from iclab.problem import Pretraining, Ratios
from iclab.studies.pretraining.runs import Draws, Grid, Run
from iclab.studies.pretraining.sizes import LENGTH, Span, bounds, column, error_axes
from iclab.study import Axes, Figure, Key, Preset, Study, View

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Panel:
    """Pools of several sizes, pretrained on equally many sequences. Raises ValueError for impossible numbers."""

    kappa: tuple[float, ...]  # κ = K/D, tasks of the pool
    tau: float  # τ = n/D², pretraining sequences
    noise: float  # ρ, variance of the label noise
    drawn_kappa: tuple[float, ...] = (0.5, 2.0)  # κ of the drawn runs

    def __post_init__(self) -> None:
        for kappa in (self.kappa, self.drawn_kappa):
            Ratios(1.0, np.array(kappa), self.tau, self.noise)

    def drawn(self, dimension: tuple[int, ...], alpha: tuple[float, ...]) -> Grid:
        """The runs of this panel that are drawn, without ridge."""

        def run(dimension: int, kappa: float, alpha: float) -> Run:
            return Run(Pretraining.of(Ratios(alpha, kappa, self.tau, self.noise), dimension), 0.0)

        return Grid.of(run, dimension=dimension, kappa=self.drawn_kappa, alpha=alpha)


@dataclass(frozen=True)
class Case:
    """Three panels of the published figure, and tests at another length."""

    known: Panel = Panel((0.1, 0.3, 0.5, 0.7, 2.0), tau=0.5, noise=0.5)  # tasks of the pool, few sequences; published
    few: Panel = Panel((0.2, 0.4, 0.5, 0.6, 1.5), 0.5, 0.1, (0.5, 1.5))  # new tasks, few sequences; published
    many: Panel = Panel((0.25, 0.75, 1.0, 1.1, 2.0), 20.0, 0.5, (0.25, 2.0))  # new tasks, many sequences; published
    alpha: Span = Span(0.5, 3000.0)  # α = N/D, examples of a context
    tested: Panel = Panel((2.0,), tau=20.0, noise=0.1)  # pretraining of the tests at other lengths
    tested_alpha: tuple[float, ...] = (1.0, 10.0, 100.0)  # α of pretraining in the tests at other lengths
    drawn_alpha: tuple[float, ...] = (1.0, 10.0, 100.0)  # α of the drawn runs
    draws: Draws = Draws((12, 18, 30), (6, 3, 1), route="kernel")  # runs on few sequences
    many_draws: Draws = Draws((16,), (1,), route="preconditioned")  # runs on many sequences

    def __post_init__(self) -> None:
        require(len(self.tested.kappa) == 1, f"tested.kappa must be one number; got {self.tested.kappa}.")
        for alpha in (self.tested_alpha, self.drawn_alpha):
            Ratios(np.array(alpha), 1.0, 1.0, 0.0)

    def draws_of(self, name: str) -> Draws:
        """How often the runs of a panel are drawn."""
        return self.many_draws if name == "many" else self.draws

    def drawn(self, name: str) -> Grid:
        """The runs of a panel that are drawn."""
        panel: Panel = getattr(self, name)
        return panel.drawn(self.draws_of(name).dimension, self.drawn_alpha)


PANELS = {"known": "idg", "few": "icl", "many": "icl"}


Answers = ErrorsByTasksAndLength | BestLengths | ErrorsByTestLength | Labelled | Levels


def theory(case: Case) -> dict[str, Answers]:
    """Errors against the context length and their least values; errors of tests at other lengths."""
    from iclab.theory import generalization

    alpha, tested = case.alpha.grid(), case.tested
    found: dict[str, Answers] = {}
    for name, target in PANELS.items():
        panel: Panel = getattr(case, name)
        kappa = np.array(panel.kappa)
        curves = generalization.errors(Ratios(alpha, column(kappa), panel.tau, panel.noise))
        best = generalization.best_alpha(kappa, panel.tau, panel.noise, target=target)
        least = generalization.errors(Ratios(best, kappa, panel.tau, panel.noise))
        found[name] = ErrorsByTasksAndLength(kappa, alpha, curves.icl, curves.idg)
        found[f"best_{name}"] = BestLengths(kappa, best, getattr(least, target))
        found[f"runs_{name}"] = case.drawn(name).limit()
        found[f"sizes_{name}"] = case.drawn(name).sizes()
    pretraining = Ratios(column(case.tested_alpha), tested.kappa[0], tested.tau, tested.noise)
    tests = generalization.errors(pretraining, shift=generalization.Shift(alpha=alpha))
    found["tests"] = ErrorsByTestLength(np.array(case.tested_alpha), alpha, tests.icl, tests.idg)
    return {**found, "bounds": bounds(tested.noise)}


def simulation(case: Case, *, key: Key) -> dict[str, Labelled]:
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
    """Errors against the context length with their least values marked, and tests at other lengths."""
    case = json.loads(view.attrs["case"])
    panels = dict(zip([*PANELS, "tests"], figure.subplots(2, 2).flat, strict=True))
    for name, target in PANELS.items():
        curves, best = view.theory[name], view.theory[f"best_{name}"]
        axes = panels[name]
        for color, kappa in figures.colored(curves.kappa.values):
            curve, least = curves.sel(kappa=kappa), best.sel(kappa=kappa)
            figures.theory_line(axes, curve.alpha, curve[target], color=color, label=f"κ = {kappa:g}")
            inside = curve.alpha.min() <= least.alpha <= curve.alpha.max()
            label = "least error" if kappa == curves.kappa[-1] else None
            axes.plot(
                least.alpha.where(inside), least.error.where(inside), "v", color=color, ms=6, zorder=4, label=label
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(LENGTH)
        axes.set_ylabel("mean squared error")
        panel = case[name]
        axes.set_title(f"{_TITLES[name]}: τ = {panel['tau']:g}, ρ = {panel['noise']:g}")
        if view.simulation:
            _draw_runs(axes, view, name)
        axes.legend(fontsize=7)
    tests = view.theory.tests
    for color, alpha in figures.colored(tests.alpha.values):
        curve = tests.sel(alpha=alpha)
        figures.theory_line(
            panels["tests"], curve.test_alpha, curve.icl, color=color, label=f"pretrained at α = {alpha:g}"
        )
    pretrained = case["tested"]
    title = "new tasks, other test length: κ = {:g}, τ = {tau:g}, ρ = {noise:g}"
    error_axes(
        panels["tests"],
        view,
        "examples of a test context  $N/D$",
        title=title.format(pretrained["kappa"][0], tau=pretrained["tau"], noise=pretrained["noise"]),
    )
    panels["tests"].legend()


def _draw_runs(axes: Axes, view: View, name: str) -> None:
    """Means of runs in the highest dimension, in the colors of their pools, at the α of whole sizes."""
    runs, curves = view.simulation[f"runs_{name}"], view.theory[name]
    largest, known = runs.dimension.values[-1], list(curves.kappa.values)
    sizes = view.theory[f"sizes_{name}"].sel(dimension=largest)
    for i, kappa in enumerate(runs.kappa.values):
        color = figures.colors(len(known))[known.index(kappa)] if kappa in known else figures.INK
        label = f"drawn runs, D = {largest}" if i == 0 else None
        alpha, errors = sizes.context_length.sel(kappa=kappa) / largest, runs[PANELS[name]]
        figures.mean_points(axes, alpha, errors.sel(dimension=largest, kappa=kappa), color=color, label=label)


_TITLES = {
    "known": "tasks of the pool (IDG)",
    "few": "new tasks (ICL)",
    "many": "new tasks (ICL)",
}


@dataclass(frozen=True)
class LeastAtBest:
    """No length of a curve has less error than the best length that is marked."""

    def verdict(self, result: "xr.DataTree") -> Verdict:
        """The least relative excess of a curve over its marked least value."""
        excess = {}
        for name, target in PANELS.items():
            curves, best = result[f"theory/{name}"].to_dataset(), result[f"theory/best_{name}"].to_dataset()
            excess[name] = float((curves[target] / best.error - 1).min())
        return Verdict(
            claim="least at the best length",
            meaning="The error at the best context length is the least of its curve.",
            measure="least relative excess of any other length",
            value=min(excess.values()),
            yardstick=-1e-12,  # rounding
            evidence=tuple((_TITLES[name], f"{value:.1e}") for name, value in excess.items()),
        )


STUDY = Study(
    name="context-length",
    question=str(__doc__),
    version=2,
    presets={
        "quick": Preset(Case(), seeds=8, size=(9.0, 6.8)),
        "full": Preset(
            replace(
                Case(),
                alpha=Span(0.1, 10000.0, 601),
                drawn_alpha=(1.0, 5.6, 10.0, 100.0, 1000.0),
                draws=Draws((25, 50, 100), (16, 8, 2)),
                many_draws=Draws((20, 40), (1, 1)),
            ),
            seeds=8,
            size=(9.0, 6.8),
        ),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        LeastAtBest(),
        LimitOfMeans(
            "theory/runs_known",
            "simulation/runs_known",
            "Means of drawn runs on few sequences tend to the proportional limit on tasks of the pool.",
            variables=("idg",),
        ),
        LimitOfMeans(
            "theory/runs_few",
            "simulation/runs_few",
            "Means of drawn runs on few sequences tend to the proportional limit on new tasks.",
            variables=("icl",),
        ),
    ),
)
