"""How many tasks must pretraining see before a new one is no harder than a known one?

The gap g between the error on new tasks and on tasks of the pool closes, for linear attention, where the pool has as
many tasks as inputs have entries, κ = K/D = 1: with contexts and pretraining without end it is 1 − κ below and
nothing above. The Bayes estimator that knows the pool (dMMSE) has no such transition. It singles a task of the pool
out until there are exp(s_c D) of them, where s_c is what a context tells of its task. Theory is the proportional
limit, the prediction for a pool of finite dimension, dMMSE for pools that are written out, and dMMSE in the limit, a
random-energy model. Simulation draws runs and fits their readouts, and asks dMMSE about drawn contexts. The claims
are that the mean gap of finite pools tends to the limit, that the errors of drawn runs do, and that dMMSE has the gap
that is predicted. Published as figure 4 of arXiv 2405.11751; the limit of dMMSE goes beyond it.
"""

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from iclab import figures
from iclab.claims import Limit, LimitOfMeans, WithinErrors
from iclab.numerics import checked, require, whole_number, whole_numbers
from iclab.outcomes import Errors, Labelled, Levels
from iclab.outcomes.errors import (
    ErrorsByLogTasks,
    GapByDimensionAndTasks,
    GapByTasks,
    GapByTasksAndLength,
    TaskThreshold,
)
from iclab.problem import Pretraining, Ratios
from iclab.studies.pretraining.runs import Draws, Grid, Run
from iclab.studies.pretraining.sizes import TASKS, Span, bounds, column, law_of, pool_of, table
from iclab.study import Axes, Figure, Key, Preset, Study, View

if TYPE_CHECKING:
    from iclab.problem import ContextLaw


@dataclass(frozen=True)
class Case:
    """Pools of growing size for linear attention and for the Bayes estimator that knows them."""

    alpha: tuple[float, ...] = (6.0, 10.0, 20.0)  # α = N/D, examples of a context; published
    tau_for_alpha: float = 0.2  # τ/α, pretraining sequences for each example of a context; published
    noise: float = 0.01  # ρ, variance of the label noise; published
    kappa: Span = Span(0.2, 100.0)  # κ = K/D, tasks of the pool
    finite_alpha: float = 10.0  # α = N/D at finite dimension
    finite_kappa: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # κ = K/D at finite dimension
    dimension: tuple[int, ...] = (16, 32, 64)  # D of the pool predictions
    pools: int = 24  # drawn pools whose mean gap is shown
    bayes_dimension: int = 10  # D of the Bayes estimator
    bayes_alpha: float = 1.0  # α = N/D of the Bayes estimator with exp(sD) tasks
    bayes_noise: float = 0.1  # ρ of the Bayes estimator with exp(sD) tasks
    contexts: int = 400  # of the quadrature for the Bayes estimator
    drawn_kappa: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)  # κ of the drawn runs
    draws: Draws = Draws((12, 20, 36), (6, 3, 1), route="preconditioned")  # runs, at finite_alpha
    bayes_kappa: tuple[float, ...] = (0.5, 4.0)  # κ of the Bayes estimator on drawn contexts, of finite_kappa
    drawn_contexts: int = 20  # contexts drawn for the Bayes estimator and each seed

    def __post_init__(self) -> None:
        Ratios(np.array(self.alpha), 1.0, self.tau_for_alpha, self.noise)
        Ratios(self.finite_alpha, np.array(self.finite_kappa), 1.0, self.noise)
        Ratios(self.bayes_alpha, 1.0, 1.0, self.bayes_noise)
        checked("finite_alpha", self.finite_alpha, above=0.0, infinite=False)
        checked("finite_kappa", self.finite_kappa, above=0.0, infinite=False)
        whole_numbers("dimension", self.dimension)
        whole_number("pools", self.pools)
        whole_number("bayes_dimension", self.bayes_dimension)
        whole_number("contexts", self.contexts)
        whole_number("drawn_contexts", self.drawn_contexts)
        checked("drawn_kappa", self.drawn_kappa, above=0.0, infinite=False)
        require(
            set(self.bayes_kappa) <= set(self.finite_kappa),
            f"bayes_kappa must be among finite_kappa, {self.finite_kappa}; got {self.bayes_kappa}.",
        )

    @property
    def drawn(self) -> Grid:
        """The runs that are drawn, without ridge."""

        def run(dimension: int, kappa: float) -> Run:
            ratios = Ratios(self.finite_alpha, kappa, self.tau_for_alpha * self.finite_alpha, self.noise)
            return Run(Pretraining.of(ratios, dimension), 0.0)

        return Grid.of(run, dimension=self.draws.dimension, kappa=self.drawn_kappa)

    def known(self, kappa: float) -> "ContextLaw":
        """The contexts, with their pool, that the Bayes estimator knows."""
        return law_of(self.bayes_dimension, alpha=self.finite_alpha, kappa=kappa, noise=self.noise)


Answers = (
    GapByTasks | GapByTasksAndLength | GapByDimensionAndTasks | ErrorsByLogTasks | TaskThreshold | Labelled | Levels
)


def theory(case: Case) -> dict[str, Answers]:
    """The gap of linear attention and of dMMSE, in the limit and in finite dimension."""
    from iclab.theory import estimators, finite_size, generalization

    gap, estimators = generalization.diversity_gap, estimators
    alpha, kappa, some = np.array(case.alpha), case.kappa.grid(), np.array(case.finite_kappa)
    finite_tau = case.tau_for_alpha * case.finite_alpha

    def pool(dimension: int, kappa: float, number: int) -> Errors:
        law = law_of(dimension, alpha=case.finite_alpha, kappa=kappa, noise=case.noise, pool=number)
        return finite_size.pool_errors(law, max(1, round(finite_tau * dimension**2)))

    pools = table(pool, case.dimension, case.finite_kappa, range(case.pools))
    mean_gap = np.mean(pools["icl"] - pools["idg"], axis=-1)
    limit = gap(Ratios(case.finite_alpha, some, finite_tau, case.noise))
    threshold = float(estimators.task_threshold(case.bayes_alpha, case.bayes_noise))
    below = threshold * (1 - 1e-9)  # errors jump there
    s = np.sort([*np.linspace(0, 1.5, 121) * threshold, below])
    many = estimators.dmmse_errors(case.bayes_alpha, case.bayes_noise, s)
    return {
        "gap": GapByTasksAndLength(
            alpha, kappa, gap(Ratios(column(alpha), kappa, case.tau_for_alpha * column(alpha), case.noise))
        ),
        "lasting": GapByTasks(kappa, gap(Ratios(np.inf, kappa, np.inf, case.noise))),
        "limit": GapByTasks(some, limit),
        "pool": GapByDimensionAndTasks(np.array(case.dimension), some, mean_gap),
        "dmmse": GapByDimensionAndTasks(
            np.array([case.bayes_dimension]), some, np.array([[_dmmse_gap(case, one) for one in case.finite_kappa]])
        ),
        "exponential": ErrorsByLogTasks(s, many.icl, many.idg),
        "threshold": TaskThreshold(threshold, estimators.ridge_error(case.bayes_alpha, case.bayes_noise)),
        "sizes": case.drawn.sizes(),
        "runs": case.drawn.limit(),
        "bounds": bounds(case.bayes_noise),
    }


def _dmmse_gap(case: Case, kappa: float) -> float:
    from iclab.theory import estimators

    errors = estimators.pool_dmmse_errors(case.known(kappa), contexts=case.contexts)
    return float(errors.icl - errors.idg)


def simulation(case: Case, *, key: Key) -> dict[str, Labelled | GapByDimensionAndTasks]:
    """Errors of drawn runs, exact for the readout of each; dMMSE on drawn contexts."""
    import jax

    from iclab.simulation.pretraining import estimators

    fitted, drawn = jax.random.split(key)

    def gap(kappa: float, key: Key) -> float:
        law = case.known(kappa)
        errors = estimators.drawn_dmmse_errors(
            pool_of(law),
            law.context_length,
            noise=law.noise,
            contexts=case.drawn_contexts,
            key=key,
        )
        return float(np.mean(errors.icl) - np.mean(errors.idg))

    some = np.array(case.bayes_kappa)
    gaps = [[gap(kappa, jax.random.fold_in(drawn, i)) for i, kappa in enumerate(case.bayes_kappa)]]
    return {
        "runs": case.drawn.simulated(case.draws, key=fitted),
        "dmmse": GapByDimensionAndTasks(np.array([case.bayes_dimension]), some, np.array(gaps)),
    }


def figure(view: View, figure: Figure) -> None:
    """The gap against κ in the limit and in finite dimension, and errors of dMMSE against ln K/D."""
    limit, finite, bayes = figure.subplots(1, 3)
    gaps, lasting = view.theory.gap, view.theory.lasting
    for color, alpha in figures.colored(gaps.alpha.values):
        figures.theory_line(limit, gaps.kappa, gaps.gap.sel(alpha=alpha), color=color, label=f"α = {alpha:g}")
    open_gap = lasting.gap.where(lasting.gap > 0)
    figures.dashed_line(limit, lasting.kappa, open_gap, color=figures.INK, label="α = τ = ∞: 1 − κ")
    pool, dmmse = view.theory.pool, view.theory.dmmse
    exact = view.theory.limit
    figures.theory_line(finite, exact.kappa, exact.gap, label="linear attention, D → ∞")
    for color, dimension in figures.colored(pool.dimension.values):
        figures.dashed_line(
            finite, pool.kappa, pool.gap.sel(dimension=dimension), color=color, label=f"pool, D = {dimension}"
        )
    for dimension in dmmse.dimension.values:
        gap, label = dmmse.gap.sel(dimension=dimension), f"dMMSE, D = {dimension}"
        figures.theory_line(finite, dmmse.kappa, gap, color=figures.COLORS[3], label=label)
    if view.simulation:
        _draw_drawn(finite, view)
    case = json.loads(view.attrs["case"])
    slope, alpha, noise = (case[name] for name in ("tau_for_alpha", "finite_alpha", "noise"))
    for axes, title in (
        (limit, f"linear attention: τ = {slope:g} α, ρ = {noise:g}"),
        (finite, f"finite D, and dMMSE: α = {alpha:g}, τ = {slope * alpha:g}, ρ = {noise:g}"),
    ):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(TASKS)
        axes.set_title(title)
        axes.legend(fontsize=7)
    limit.set_ylim(bottom=1e-4)
    limit.set_ylabel("gap  ICL − IDG")
    many, threshold = view.theory.exponential, view.theory.threshold
    figures.theory_line(bayes, many.log_tasks, many.icl, color=figures.COLORS[3], label="dMMSE on new tasks")
    figures.theory_line(bayes, many.log_tasks, many.idg, color=figures.COLORS[5], label="dMMSE on the pool")
    figures.level_lines(bayes, [*view.theory.bounds.loss.values], label="1 + ρ and ρ")
    bayes.axvline(float(threshold.log_tasks), color=figures.INK, lw=0.8, ls="--", label="$s_c$, tasks enough")
    bayes.set_xlabel("$s = \\ln K / D$  (nats)")
    bayes.set_ylabel("mean squared error")
    bayes.set_title(f"dMMSE, D → ∞: α = {case['bayes_alpha']:g}, ρ = {case['bayes_noise']:g}")
    bayes.set_ylim(bottom=0)
    bayes.legend()


def _draw_drawn(axes: Axes, view: View) -> None:
    """Mean gaps of runs in the highest dimension, at the κ of their whole sizes, and of dMMSE on drawn contexts."""
    runs, sizes = view.simulation.runs, view.theory.sizes
    largest = runs.dimension.values[-1]
    own = runs.sel(dimension=largest)
    kappa, label = sizes.tasks.sel(dimension=largest) / largest, f"drawn runs, D = {largest}"
    figures.mean_points(axes, kappa, own.icl - own.idg, color=figures.COLORS[4], label=label)
    dmmse = view.simulation.dmmse
    for dimension in dmmse.dimension.values:
        figures.mean_points(axes, dmmse.kappa, dmmse.gap.sel(dimension=dimension), color=figures.COLORS[3])


STUDY = Study(
    name="task-diversity",
    question=str(__doc__),
    version=2,
    presets={
        "quick": Preset(Case(), seeds=8, size=(11.0, 3.8)),
        "full": Preset(
            replace(
                Case(),
                dimension=(32, 64, 128),
                finite_kappa=(0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0),
                drawn_kappa=(0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0),
                draws=Draws((25, 50, 100), (8, 2, 1)),
                bayes_kappa=(0.5, 2.0, 5.0),
                contexts=2000,
                drawn_contexts=100,
            ),
            seeds=8,
            size=(11.0, 3.8),
        ),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        Limit(
            "theory/limit/gap",
            "theory/pool/gap",
            "The gap that is predicted for given pools tends to that of the proportional limit.",
            along="dimension",
            order=1.0,
        ),
        LimitOfMeans(
            "theory/runs",
            "simulation/runs",
            "Means of drawn runs tend to the proportional limit, on new tasks and on tasks of the pool.",
        ),
        WithinErrors(
            "theory/dmmse/gap",
            "simulation/dmmse/gap",
            "dMMSE on drawn contexts has the gap that is predicted for its pools.",
        ),
    ),
)
