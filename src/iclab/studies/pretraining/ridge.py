"""Which ridge is best, and does it remove the peak?

A ridge λ on the readout smooths the peak of the error at τ = n/D² = 1. The best one removes it: the error then falls
with every further pretraining sequence. The best ridge for new tasks is not the best for tasks of the pool, unless
every context has a fresh task. Theory is the proportional limit at any ridge, without one, and at the best one for
each target; the formulas with ridge tend to those without at first order in it. Simulation draws runs and fits their
readouts, on the same sequences at three ridges about the best one: the parabola through their errors has its vertex
where the predicted errors have theirs. The curves are published as figure 1 of arXiv 2405.11751; the best ridges go
beyond it.
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.claims import Agrees, Tends
from iclab.numerics import Checked, Count, Magnitude, Nonnegative, Nonnegatives, Positive, Positives, Reals
from iclab.numerics.minima import scanned, vertex
from iclab.outcomes import Labeled, labeled, parts, vocabulary
from iclab.problem import Ratios
from iclab.studies.pretraining import links
from iclab.studies.pretraining.panels import FORMULAS, SEQUENCES, TITLES, error_axes, run_points, theory_curves
from iclab.studies.pretraining.runs import ERRORS, Draws, Grid
from iclab.studies.pretraining.sizes import Span, around, bounds, column
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

FACTORS = np.array([1 / 3, 1.0, 3.0])  # of the ridges whose errors have a parabola in log λ
SCAN = np.geomspace(1e-12, 1e6, 3601)  # ridges among which the least error is looked for
FAR_FROM_PEAK = 0.2  # |ln τ| beyond which errors with a small ridge are those without: at τ = 1 they differ like √λ


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
    draws: Draws = Draws((24,), (8,), below=2)  # runs
    best_tau: Positive = 0.5  # τ of the drawn runs about the best ridge, in the lowest dimension
    best_runs: Count = 64  # of them for each seed
    far_tau: Positives = (0.5, 2.0)  # τ at which the pool prediction is extrapolated

    def __post_init__(self) -> None:
        super().__post_init__()
        Ratios(self.alpha, self.kappa, 1.0, self.noise)

    @property
    def drawn(self) -> Grid:
        """The runs that are drawn."""
        sizes = {"ridge": self.drawn_ridge, "tau": self.drawn_tau}
        return Grid.over(self.draws.dimension, **sizes, **parts(self, "alpha", "kappa", "noise"))

    @property
    def about_best(self) -> Grid:
        """Runs at three ridges about the best ones, of equal sizes."""
        from iclab.theory.generalization import best_ridge

        ratios = Ratios(self.alpha, self.kappa, self.best_tau, self.noise)
        middle = np.sqrt(np.prod([float(best_ridge(ratios, target=target)) for target in TITLES]))
        sizes: dict[str, Any] = parts(self, "alpha", "kappa", "noise") | {"tau": self.best_tau}
        return Grid.over(self.draws.dimension[:1], ridge=tuple(middle * FACTORS), **sizes)


def theory(case: Case) -> dict[str, Labeled]:
    """Errors at several ridges, without one, and at the best ridge for each target."""
    from iclab.theory.generalization import best_ridge, errors

    tau = around({*case.tau.grid(), *case.far_tau}, [1.0])

    def at(ridge: tuple[float, ...], tau: Float[np.ndarray, "tau"]) -> Labeled:
        found = errors(Ratios(case.alpha, case.kappa, tau, case.noise), ridge=column(ridge))
        return labeled({"ridge": ridge, "tau": tau}, **parts(found, *ERRORS))

    ratios = Ratios(case.alpha, case.kappa, tau, case.noise)
    best = {target: best_ridge(ratios, target=target) for target in TITLES}
    least = {target: getattr(errors(ratios, ridge=ridge), target) for target, ridge in best.items()}
    many, scan = errors(ratios, ridge=SCAN[:, None]), {}
    for name in TITLES:
        scan[name] = np.min(getattr(many, name), axis=0)
        own = partial(lambda ridge, name: getattr(errors(ratios, ridge=ridge), name), name=name)
        scan[f"{name}_ridge"] = scanned(own, SCAN, lowest=0.0)
    far = links.far_runs(ridge=case.ridge, tau=case.far_tau, **parts(case, "alpha", "kappa", "noise"))
    return {
        "curves": at(case.ridge, tau),
        "small": at(case.small_ridge, tau[abs(np.log(tau)) > FAR_FROM_PEAK]),
        "none": labeled({"tau": tau}, **parts(errors(ratios), *ERRORS)),
        "best": labeled({"tau": tau}, **{f"{target}_ridge": ridge for target, ridge in best.items()}, **least),
        "scanned": labeled({"tau": tau}, **scan),
        "far": far.predicted(partial(links.pool_mean, more=2)),
        "leverage": case.drawn.predicted(links.leverage_mean),
        "vertex": vertices(case.about_best.predicted(partial(links.pool_mean, pools=links.POOLS))),
        "sizes": case.drawn.sizes(),
        "bounds": bounds(case.noise),
    }


def vertices(found: Labeled) -> Labeled:
    """The ridges of least error of runs about the best ridge."""
    shape = {name: vertex(found.ridge[1], getattr(found, name)[0], FACTORS[-1]) for name in TITLES}
    return labeled({}, **{f"{name}_ridge": ridge for name, ridge in shape.items()})


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Errors of drawn runs, exact for the readout of each; the ridges of least error on the same sequences."""
    import jax

    from iclab.simulation.pretraining import RidgeSolver

    keys, grid = jax.random.split(jax.random.fold_in(key, 1), case.best_runs), case.about_best
    about = grid.predicted(lambda run: run.mean_errors(RidgeSolver(route=case.draws.route), keys))
    return links.simulated(case, key=key) | {"vertex": vertices(about)}


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


FULL = Case(
    kappa=np.inf, tau=Span(0.05, 20.0, 402), drawn_ridge=(1e-5, 0.1, 1.0), drawn_tau=(0.5, 0.85, 1.15, 1.5, 2.0),
    draws=Draws((25, 50, 100), (8, 2, 1)),
)  # fmt: skip
STUDY = Study(
    name="ridge", question=str(__doc__), version=3,
    presets={"quick": Preset(Case(), seeds=8, size=(11.0, 3.8)), "full": Preset(FULL, seeds=8, size=(11.0, 3.8))},
    theory=theory, simulation=simulation, figure=figure, formulas=FORMULAS,
    claims=(
        *(Agrees(f"theory/scanned/{name}{what}", f"A scan finds the best ridge, {links.WORDS[name]}: {words}.", 1e-3,
                 f"best/{name}{what}")
          for name in TITLES for what, words in (("_ridge", "the ridge"), ("", "the error"))),
        *(Agrees(f"vertex/{name}_ridge", f"Drawn errors {links.WORDS[name]} are least where predicted.", 0.045)
          for name in TITLES),
        *(Tends(f"theory/small/{name}", f"Without ridge errors {links.WORDS[name]} are those of a vanishing one.",
                1e-3, along="ridge", theory=f"none/{name}", orders=(-1.0, -2.0))
          for name in TITLES),
        *links.linked(), *links.SCORED,
    ),
    unjudged=links.BOUNDS,
    vocabulary=links.VOCABULARY | vocabulary(
        icl_ridge=("λ_ICL", "ridge of least error on new tasks"),
        idg_ridge=("λ_IDG", "ridge of least error on tasks of the pool"),
    ),
)  # fmt: skip
