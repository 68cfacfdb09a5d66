"""How many tasks must pretraining see before a new one is no harder than a known one?

The gap g between the errors on new tasks and on tasks of the pool closes, for linear attention, where the pool has as
many tasks as inputs have entries, κ = K/D = 1: for infinite context length and pretraining it is 1 − κ below and 0
above. The Bayes estimator that knows the pool (dMMSE) has no such transition. It singles out a task of the pool until
there are exp(s_c D) of them, where s_c is the information of a context on its task. Published as figure 4 of arXiv
2405.11751; the limit of dMMSE goes beyond it.

Theory is the proportional limit, the prediction for a pool of finite dimension, dMMSE for explicit pools, and dMMSE
in the limit, a random-energy model. Simulation draws runs and fits their readouts, and applies dMMSE to drawn
contexts. The claims are that the mean gap of finite pools tends to the limit, that the errors of drawn runs do, and
that dMMSE has the predicted gap.
"""

from dataclasses import dataclass

import numpy as np

from iclab import figures
from iclab.claims import Limit, WithinErrors
from iclab.numerics import Checked, Count, Counts, Magnitude, Magnitudes, Nonnegative, Positive, Positives, require
from iclab.outcomes import Errors, Labeled, labeled, parts, vocabulary
from iclab.problem import ContextLaw, Ratios
from iclab.studies.pretraining.runs import MEANS_TEND, SIZES, Draws, Grid, Run, drawn_runs
from iclab.studies.pretraining.sizes import TASKS, Span, bounds, column, law_of, pool_of, table
from iclab.study import Axes, Figure, Key, Preset, Study, View


@dataclass(frozen=True)
class Case(Checked):
    """Pools of growing size for linear attention and for the Bayes estimator that knows them."""

    alpha: Magnitudes = (6.0, 10.0, 20.0)  # α = N/D, examples of a context; published
    tau_for_alpha: Magnitude = 0.2  # τ/α, pretraining sequences for each example of a context; published
    noise: Nonnegative = 0.01  # ρ, variance of the label noise; published
    kappa: Span = Span(0.2, 100.0)  # κ = K/D, tasks of the pool
    finite_alpha: Positive = 10.0  # α = N/D at finite dimension
    finite_kappa: Positives = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # κ = K/D at finite dimension
    dimension: Counts = (16, 32, 64)  # D of the pool predictions
    pools: Count = 24  # drawn pools whose mean gap is shown
    bayes_dimension: Count = 10  # D of the Bayes estimator
    bayes_alpha: Magnitude = 1.0  # α = N/D of the Bayes estimator with exp(sD) tasks
    bayes_noise: Nonnegative = 0.1  # ρ of the Bayes estimator with exp(sD) tasks
    contexts: Count = 400  # of the quadrature for the Bayes estimator
    drawn_kappa: Positives = (0.5, 1.0, 2.0, 4.0)  # κ of the drawn runs
    draws: Draws = Draws((12, 20, 36), (6, 3, 1), route="preconditioned")  # runs, at finite_alpha
    bayes_kappa: tuple[float, ...] = (0.5, 4.0)  # κ of the Bayes estimator on drawn contexts, of finite_kappa
    drawn_contexts: Count = 20  # contexts drawn for the Bayes estimator and each seed

    def __post_init__(self) -> None:
        super().__post_init__()
        Ratios(np.array(self.alpha), 1.0, self.tau_for_alpha, self.noise)
        Ratios(self.finite_alpha, np.array(self.finite_kappa), 1.0, self.noise)
        Ratios(self.bayes_alpha, 1.0, 1.0, self.bayes_noise)
        require(
            set(self.bayes_kappa) <= set(self.finite_kappa),
            f"bayes_kappa must be among finite_kappa, {self.finite_kappa}; got {self.bayes_kappa}.",
        )

    @property
    def finite_tau(self) -> float:
        """τ at finite dimension."""
        return self.tau_for_alpha * self.finite_alpha

    @property
    def drawn(self) -> Grid:
        """The runs that are drawn, without ridge."""

        def run(dimension: int, kappa: float) -> Run:
            return Run.of(Ratios(self.finite_alpha, kappa, self.finite_tau, self.noise), dimension)

        return Grid.of(run, dimension=self.draws.dimension, kappa=self.drawn_kappa)

    def law(self, dimension: int, kappa: float, pool: int = 0) -> ContextLaw:
        """Contexts at finite dimension, with one of the pools."""
        return law_of(dimension, alpha=self.finite_alpha, kappa=kappa, noise=self.noise, pool=pool)


def theory(case: Case) -> dict[str, Labeled]:
    """The gap of linear attention and of dMMSE, in the limit and in finite dimension."""
    from iclab.theory.estimators import dmmse_errors, pool_dmmse_errors, ridge_error, task_threshold
    from iclab.theory.finite_size import pool_errors
    from iclab.theory.generalization import diversity_gap

    def pool(dimension: int, kappa: float, number: int) -> Errors:
        law = case.law(dimension, kappa, number)
        return pool_errors(law, max(1, round(case.finite_tau * dimension**2)))

    def dmmse_gap(kappa: float) -> float:
        errors = pool_dmmse_errors(case.law(case.bayes_dimension, kappa), contexts=case.contexts)
        return float(errors.icl - errors.idg)

    alpha, kappa, some = column(case.alpha), case.kappa.grid(), np.array(case.finite_kappa)
    pools = table(pool, case.dimension, case.finite_kappa, range(case.pools))
    mean_gap = np.mean(pools["icl"] - pools["idg"], axis=-1)
    threshold = float(task_threshold(case.bayes_alpha, case.bayes_noise))
    below = threshold * (1 - 1e-9)  # errors jump there
    s = np.sort([*np.linspace(0, 1.5, 121) * threshold, below])
    many = dmmse_errors(case.bayes_alpha, case.bayes_noise, s)
    gap = diversity_gap(Ratios(alpha, kappa, case.tau_for_alpha * alpha, case.noise))
    limit = diversity_gap(Ratios(case.finite_alpha, some, case.finite_tau, case.noise))
    return {
        "gap": labeled({"alpha": case.alpha, "kappa": kappa}, gap=gap),
        "lasting": labeled({"kappa": kappa}, gap=diversity_gap(Ratios(np.inf, kappa, np.inf, case.noise))),
        "limit": labeled({"kappa": some}, gap=limit),
        "pool": labeled({"dimension": case.dimension, "kappa": some}, gap=mean_gap),
        "dmmse": labeled(
            {"dimension": [case.bayes_dimension], "kappa": some}, gap=[[*map(dmmse_gap, some.tolist())]]
        ),
        "exponential": labeled({"log_tasks": s}, **parts(many, "icl", "idg")),
        "threshold": labeled({}, log_tasks=threshold, error=ridge_error(case.bayes_alpha, case.bayes_noise)),
        "sizes": case.drawn.sizes(),
        "runs": case.drawn.limit(),
        "bounds": bounds(case.bayes_noise),
    }


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Errors of drawn runs, exact for the readout of each; dMMSE on drawn contexts."""
    import jax

    from iclab.simulation.pretraining import estimators

    fitted, drawn = jax.random.split(key)

    def gap(kappa: float, key: Key) -> float:
        law = case.law(case.bayes_dimension, kappa)
        sample = {"noise": law.noise, "contexts": case.drawn_contexts, "key": key}
        errors = estimators.drawn_dmmse_errors(pool_of(law), law.context_length, **sample)
        return float(np.mean(errors.icl) - np.mean(errors.idg))

    gaps = [[gap(kappa, jax.random.fold_in(drawn, i)) for i, kappa in enumerate(case.bayes_kappa)]]
    return {
        "runs": case.drawn.simulated(case.draws, key=fitted),
        "dmmse": labeled({"dimension": [case.bayes_dimension], "kappa": case.bayes_kappa}, gap=gaps),
    }


def figure(view: View, figure: Figure) -> None:
    """The gap against κ in the limit and in finite dimension, and errors of dMMSE against ln K/D."""
    limit, finite, bayes = figure.subplots(1, 3)
    case, gaps, lasting = view.case, view.theory.gap, view.theory.lasting
    for color, alpha in figures.colored(gaps.alpha.values):
        figures.theory_line(limit, gaps.kappa, gaps.gap.sel(alpha=alpha), color=color, label=f"α = {alpha:g}")
    open_gap = lasting.gap.where(lasting.gap > 0)
    figures.dashed_line(limit, lasting.kappa, open_gap, color=figures.INK, label="α = τ = ∞: 1 − κ")
    _draw_finite(finite, view)
    limit.set_title(f"linear attention: τ = {case.tau_for_alpha:g} α, ρ = {case.noise:g}")
    sizes = f"α = {case.finite_alpha:g}, τ = {case.finite_tau:g}, ρ = {case.noise:g}"
    finite.set_title(f"finite D, and dMMSE: {sizes}")
    for axes in (limit, finite):
        axes.set(xscale="log", yscale="log", xlabel=TASKS)
        axes.legend(fontsize=7)
    limit.set_ylim(bottom=1e-4)
    limit.set_ylabel("gap  ICL − IDG")
    _draw_bayes(bayes, view)


def _draw_finite(axes: Axes, view: View) -> None:
    """Gaps at finite dimension: predictions, mean gaps of runs in the highest dimension, dMMSE on drawn contexts."""
    limit, pool, dmmse = (view.theory[name] for name in ("limit", "pool", "dmmse"))
    figures.theory_line(axes, limit.kappa, limit.gap, label="linear attention, D → ∞")
    for color, dimension in figures.colored(pool.dimension.values):
        gap, label = pool.gap.sel(dimension=dimension), f"pool, D = {dimension}"
        figures.dashed_line(axes, pool.kappa, gap, color=color, label=label)
    bayes, label = dmmse.isel(dimension=0), f"dMMSE, D = {int(dmmse.dimension[0])}"
    figures.theory_line(axes, bayes.kappa, bayes.gap, color=figures.COLORS[3], label=label)
    if view.simulation:
        runs, label = drawn_runs(view)
        figures.mean_points(axes, runs.whole_kappa, runs.icl - runs.idg, color=figures.COLORS[4], label=label)
        drawn = view.simulation.dmmse.isel(dimension=0)
        figures.mean_points(axes, drawn.kappa, drawn.gap, color=figures.COLORS[3])


def _draw_bayes(axes: Axes, view: View) -> None:
    """Errors of dMMSE in the limit, with the threshold from which on a pool is as good as all tasks."""
    many, threshold = view.theory.exponential, float(view.theory.threshold.log_tasks)
    figures.theory_line(axes, many.log_tasks, many.icl, color=figures.COLORS[3], label="dMMSE on new tasks")
    figures.theory_line(axes, many.log_tasks, many.idg, color=figures.COLORS[5], label="dMMSE on the pool")
    figures.level_lines(axes, [*view.theory.bounds.loss.values], label="1 + ρ and ρ")
    axes.axvline(threshold, color=figures.INK, lw=0.8, ls="--", label="$s_c$, tasks enough")
    axes.set(xlabel="$s = \\ln K / D$  (nats)", ylabel="mean squared error")
    axes.set_title(f"dMMSE, D → ∞: α = {view.case.bayes_alpha:g}, ρ = {view.case.bayes_noise:g}")
    axes.set_ylim(bottom=0)
    axes.legend()


_MANY = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
FULL = Case(
    dimension=(32, 64, 128), finite_kappa=_MANY, drawn_kappa=_MANY, draws=Draws((25, 50, 100), (8, 2, 1)),
    bayes_kappa=(0.5, 2.0, 5.0), contexts=2000, drawn_contexts=100,
)  # fmt: skip

STUDY = Study(
    name="task-diversity",
    question=str(__doc__),
    version=2,
    presets={"quick": Preset(Case(), seeds=8, size=(11.0, 3.8)), "full": Preset(FULL, seeds=8, size=(11.0, 3.8))},
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
        MEANS_TEND,
        WithinErrors(
            "theory/dmmse/gap",
            "simulation/dmmse/gap",
            "dMMSE on drawn contexts has the gap that is predicted for its pools.",
        ),
    ),
    vocabulary=SIZES
    | vocabulary(
        {"threshold/log_tasks": ("s_c", "ln K for each dimension at the threshold", "nat")},
        gap=("g", "error on new tasks above that on the pool", "label²"),
        log_tasks=("s", "ln K for each dimension", "nat"),
        error=("e_ridge", "error of ridge regression at ridge ρ", "label²"),
    ),
)
