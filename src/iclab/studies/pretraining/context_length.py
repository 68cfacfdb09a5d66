"""Is a longer context always better?

Linear attention that was pretrained on few tasks, or on few sequences, can become worse with longer contexts: its
error on new tasks, and on tasks of some pools, is least at a finite context length, α = N/D. Theory is the
proportional limit without ridge, the best length of each curve, which a scan of all lengths must find too, and the
error at test lengths other than that of pretraining, where longer contexts always help, down to a floor. Simulation
draws runs and fits their readouts: their means are judged against the leverage prediction, and the pool prediction,
in dimensions far beyond, against the limit. Published as figure 2 of arXiv 2405.11751; other test lengths go beyond
it. Findings of earlier runs, and where the limit is approached slowly: docs/studies/context-length.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.claims import Agrees
from iclab.numerics import Checked, Magnitude, Magnitudes, Nonnegative, require
from iclab.numerics.minima import scanned
from iclab.outcomes import Labeled, labeled, parts, vocabulary
from iclab.problem import ContextLaw, Ratios, SphereTasks
from iclab.studies.pretraining import links
from iclab.studies.pretraining.panels import FORMULAS, LENGTH, error_axes, run_points, theory_curves
from iclab.studies.pretraining.runs import Draws, Grid, Run
from iclab.studies.pretraining.sizes import Span, bounds, column
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

PANELS = {"known": "idg", "few": "icl", "many": "icl"}
SCAN = np.geomspace(1e-12, 1e18, 6001)  # context lengths α among which the least error is looked for
TITLES = {"known": "tasks of the pool (IDG)", "few": "new tasks (ICL)", "many": "new tasks (ICL)"}


@dataclass(frozen=True)
class Panel(Checked):
    """Pools of several sizes, pretrained on equally many sequences."""

    kappa: Magnitudes  # κ = K/D, tasks of the pool
    tau: Magnitude  # τ = n/D², pretraining sequences
    noise: Nonnegative  # ρ, variance of the label noise
    drawn_kappa: Magnitudes = (0.7, 2.0)  # κ of the drawn runs, and of the extrapolated predictions

    def __post_init__(self) -> None:
        super().__post_init__()
        Ratios(1.0, np.append(self.kappa, self.drawn_kappa), self.tau, self.noise)

    def ratios(self, alpha: Any) -> Ratios:
        """Ratios of every pool at given context lengths, pools along the last axis."""
        return Ratios(alpha, np.array(self.kappa), self.tau, self.noise)


@dataclass(frozen=True)
class Case(Checked):
    """Three panels of the published figure, and tests at another length."""

    known: Panel = Panel((0.1, 0.3, 0.5, 0.7, 2.0), tau=0.5, noise=0.5)  # tasks of the pool, few sequences; published
    few: Panel = Panel((0.2, 0.4, 0.5, 0.6, 1.5), 0.5, 0.1, (0.4, 1.5))  # new tasks, few sequences; published
    many: Panel = Panel((0.25, 0.75, 1.0, 1.1, 2.0), 20.0, 0.5, (0.75, 2.0))  # new tasks, many sequences; published
    alpha: Span = Span(0.5, 3000.0)  # α = N/D, examples of a context
    tested: Panel = Panel((2.0,), tau=20.0, noise=0.1)  # pretraining of the tests at other lengths
    tested_alpha: Magnitudes = (1.0, 10.0, 100.0)  # α of pretraining in the tests at other lengths
    drawn_alpha: Magnitudes = (1.0, 10.0, 30.0)  # α of the drawn runs
    draws: Draws = Draws((20,), (24,), route="kernel")  # runs on few sequences
    many_draws: Draws = Draws((12,), (14,), route="preconditioned")  # runs on many sequences
    far_alpha: Magnitudes = (1.0, 30.0)  # α at which the pool prediction is extrapolated, at test too

    def __post_init__(self) -> None:
        super().__post_init__()
        require(len(self.tested.kappa) == 1, f"tested.kappa must be one number; got {self.tested.kappa}.")
        Ratios(np.append(self.tested_alpha, self.drawn_alpha), 1.0, 1.0, 0.0)

    def drawn(self, name: str) -> Grid:
        """The runs of a panel that are drawn."""
        panel, draws = getattr(self, name), self.many_draws if name == "many" else self.draws
        sizes = {"kappa": panel.drawn_kappa, "alpha": self.drawn_alpha, "tau": panel.tau, "noise": panel.noise}
        return Grid.over(draws.dimension, **sizes)

    def far(self, name: str) -> Grid:
        """Runs of a panel far beyond those that are drawn."""
        panel = getattr(self, name)
        return links.far_runs(kappa=panel.drawn_kappa, alpha=self.far_alpha, tau=panel.tau, noise=panel.noise)

    @property
    def far_tests(self) -> Grid:
        """The same for the tests at other lengths."""
        one, axes = self.tested, {"alpha": self.tested_alpha, "test_alpha": self.far_alpha}

        def run(dimension: int, alpha: float, test_alpha: float) -> Run:
            ratios = {"alpha": alpha, "kappa": one.kappa[0], "tau": one.tau, "noise": one.noise}
            new = ContextLaw(SphereTasks(dimension), max(1, round(test_alpha * dimension)), one.noise)
            return links.far_runs((dimension,), **ratios).runs.item()._replace(new=new)

        return Grid.of(run, dimension=links.FAR, **axes)


def theory(case: Case) -> dict[str, Labeled]:
    """Errors against the context length and their least values; errors at other test lengths."""
    from iclab.theory.generalization import Shift, errors

    alpha, tested = np.union1d(case.alpha.grid(), case.far_alpha), case.tested
    pretraining = Ratios(column(case.tested_alpha), tested.kappa[0], tested.tau, tested.noise)
    tests = errors(pretraining, shift=Shift(alpha=alpha))
    found = {}
    for name, target in PANELS.items():
        found |= {f"{what}{name}": one for what, one in curves(case, name, target, alpha).items()}
    found["tests"] = labeled({"alpha": case.tested_alpha, "test_alpha": alpha}, **parts(tests, "icl", "idg"))
    return found | {"far_tests": case.far_tests.predicted(links.pool_mean), "bounds": bounds(tested.noise)}


def curves(case: Case, name: str, target: str, alpha: Float[np.ndarray, "alpha"]) -> dict[str, Labeled]:
    """Of one panel: errors, their least values by formula and by scan, predictions for runs and beyond."""
    from iclab.theory.generalization import best_alpha, errors

    panel: Panel = getattr(case, name)
    axis, best = {"kappa": panel.kappa}, best_alpha(np.array(panel.kappa), panel.tau, panel.noise, target=target)
    along = errors(Ratios(alpha, column(panel.kappa), panel.tau, panel.noise))

    def error(length: Any) -> Any:
        return getattr(errors(panel.ratios(length)), target)

    return {
        "": labeled({**axis, "alpha": alpha}, **parts(along, "icl", "idg")),
        "best_": labeled(axis, alpha=best, error=error(best)),
        "scanned_": labeled(
            axis, alpha=scanned(error, SCAN, lowest=SCAN[0]), error=np.min(error(SCAN[:, None]), axis=0)
        ),
        "leverage_": case.drawn(name).predicted(partial(links.leverage_mean, corrected=1)),
        "far_": case.far(name).predicted(links.pool_mean),
        "sizes_": case.drawn(name).sizes(),
    }


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Errors of drawn runs, exact for the readout of each."""
    import jax

    known, few, many = (case.drawn(name) for name in PANELS)
    keys = jax.random.split(key, len(PANELS))
    return {
        "runs_known": known.simulated(case.draws, beside=(few,), key=keys[0]),
        "runs_few": few.simulated(case.draws, beside=(known,), key=keys[1]),
        "runs_many": many.simulated(case.many_draws, key=keys[2]),
        "contexts": links.on_contexts(few, case.draws, key=key),
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


FULL = Case(
    alpha=Span(0.1, 10000.0, 601), drawn_alpha=(1.0, 5.6, 10.0, 100.0, 1000.0),
    draws=Draws((25, 50, 100), (16, 8, 2)), many_draws=Draws((20, 40), (1, 1)),
)  # fmt: skip
_MARKS = {"alpha": 1e-3, "error": 1e-4}  # of a curve at its best length, with tolerances
_AMONG = {"known": ", few sequences, tasks known", "few": ", few sequences", "many": ", many sequences"}
_PANELS = tuple(
    claim
    for name, target in PANELS.items()
    for claim in (
        *(Agrees(f"theory/scanned_{name}/{what}", f"A scan finds the {what} of the best length{_AMONG[name]}.",
                 tolerance, f"best_{name}/{what}")
          for what, tolerance in _MARKS.items()),
        *links.judged_errors(0.045, [target], runs=f"runs_{name}", theory=f"leverage_{name}", panel=_AMONG[name]),
        *links.tending_errors([target], far=f"far_{name}", limit=name, panel=_AMONG[name]),
    )
)  # fmt: skip
STUDY = Study(
    name="context-length", question=str(__doc__), version=3,
    presets={"quick": Preset(Case(), seeds=8, size=(9.0, 6.8)), "full": Preset(FULL, seeds=8, size=(9.0, 6.8))},
    theory=theory, simulation=simulation, figure=figure, formulas=FORMULAS,
    claims=(
        *_PANELS,
        *links.tending_errors(["icl"], far="far_tests", limit="tests", panel=", at other test lengths"),
        *links.SCORED,
    ),
    unjudged=links.BOUNDS,
    vocabulary=links.VOCABULARY | vocabulary(
        dict.fromkeys(
            (f"{found}_{name}/alpha" for found in ("best", "scanned") for name in PANELS),
            ("α*", "best number of examples for each dimension"),
        ),
        error=("e(α*)", "error at the best length", "label²"),
        test_alpha=("α_test", "examples of a test context, N/D"),
    ),
)  # fmt: skip
