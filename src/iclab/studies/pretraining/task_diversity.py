"""How many tasks must pretraining see before a new one is no harder than a known one?

The gap g between the errors on new tasks and on tasks of the pool closes, for linear attention, where the pool has as
many tasks as inputs have entries, κ = K/D = 1. The Bayes estimator that knows the pool (dMMSE) has no such
transition: it singles out a task until there are exp(s_c D) of them, s_c being the information of a context on its
task. Theory is the proportional limit, the prediction for given pools, and dMMSE for these and in the limit, a
random-energy model. Simulation draws runs and fits their readouts, and applies dMMSE to drawn contexts. Published as
figure 4 of arXiv 2405.11751; the limit of dMMSE goes beyond it.
"""

from dataclasses import dataclass

import numpy as np

from iclab import figures
from iclab.claims import WithinErrors
from iclab.numerics import Checked, Count, Counts, Magnitude, Magnitudes, Nonnegative, Positive, Positives, require
from iclab.outcomes import Errors, Labeled, labeled, parts, vocabulary
from iclab.problem import ContextLaw, Ratios
from iclab.studies.pretraining.panels import TASKS, drawn_runs, theory_curves
from iclab.studies.pretraining.runs import MEANS_TEND, SIZES, Draws, Grid, in_dimension
from iclab.studies.pretraining.sizes import Span, bounds, column, law_of, pool_of, table
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]


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
        sizes = {"alpha": self.finite_alpha, "tau": self.finite_tau, "noise": self.noise}
        return Grid.over(self.draws.dimension, kappa=self.drawn_kappa, **sizes)

    def law(self, dimension: int, kappa: float, pool: int = 0) -> ContextLaw:
        """Contexts at finite dimension, with one of the pools."""
        return law_of(dimension, alpha=self.finite_alpha, kappa=kappa, noise=self.noise, pool=pool)


def theory(case: Case) -> dict[str, Labeled]:
    """The gap of linear attention and of dMMSE, in the limit and in finite dimension."""
    from iclab.theory.estimators import dmmse_errors, pool_dmmse_errors, ridge_error, task_threshold
    from iclab.theory.finite_size import pool_errors
    from iclab.theory.generalization import diversity_gap

    def pool(dimension: int, kappa: float, number: int) -> Errors:
        return pool_errors(case.law(dimension, kappa, number), max(1, round(case.finite_tau * dimension**2)))

    kappa, some = case.kappa.grid(), np.array(case.finite_kappa)
    alpha, bayes = column(case.alpha), (case.bayes_alpha, case.bayes_noise)
    pools = table(pool, dimension=case.dimension, kappa=case.finite_kappa, number=range(case.pools))
    threshold = float(task_threshold(*bayes))
    s = np.sort([*np.linspace(0, 1.5, 121) * threshold, threshold * (1 - 1e-9)])  # errors jump at the threshold
    gap = diversity_gap(Ratios(alpha, kappa, case.tau_for_alpha * alpha, case.noise))
    limit = diversity_gap(Ratios(case.finite_alpha, some, case.finite_tau, case.noise))
    known = [pool_dmmse_errors(case.law(case.bayes_dimension, one), contexts=case.contexts) for one in some.tolist()]
    dmmse = [[float(one.icl - one.idg) for one in known]]
    return {
        "gap": labeled({"alpha": case.alpha, "kappa": kappa}, gap=gap),
        "lasting": labeled({"kappa": kappa}, gap=diversity_gap(Ratios(np.inf, kappa, np.inf, case.noise))),
        "limit": labeled({"kappa": some}, gap=limit),
        "pool": labeled({"dimension": case.dimension, "kappa": some}, gap=np.mean(pools.icl - pools.idg, axis=-1)),
        "dmmse": labeled({"dimension": [case.bayes_dimension], "kappa": some}, gap=dmmse),
        "exponential": labeled({"log_tasks": s}, **parts(dmmse_errors(*bayes, s), "icl", "idg")),
        "threshold": labeled({}, log_tasks=threshold, error=ridge_error(*bayes)),
        "sizes": case.drawn.sizes(),
        "runs": case.drawn.limit(),
        "bounds": bounds(case.bayes_noise),
    }


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Errors of drawn runs, exact for the readout of each; dMMSE on drawn contexts."""
    import jax

    from iclab.simulation.pretraining import estimators

    fitted, drawn = jax.random.split(key)
    gaps = []
    for i, kappa in enumerate(case.bayes_kappa):
        law, own = case.law(case.bayes_dimension, kappa), jax.random.fold_in(drawn, i)
        sample = {"noise": law.noise, "contexts": case.drawn_contexts, "key": own}
        errors = estimators.drawn_dmmse_errors(pool_of(law), law.context_length, **sample)
        gaps.append(float(np.mean(errors.icl) - np.mean(errors.idg)))
    return {
        "runs": case.drawn.simulated(case.draws, key=fitted),
        "dmmse": labeled({"dimension": [case.bayes_dimension], "kappa": case.bayes_kappa}, gap=[gaps]),
    }


def figure(view: View, figure: Figure) -> None:
    """The gap against κ in the limit and in finite dimension, and errors of dMMSE against ln K/D."""
    limit, finite, bayes = figure.subplots(1, 3)
    case, theory = view.case, view.theory
    theory_curves(limit, theory.gap.gap, "kappa", by="alpha")
    open_gap = theory.lasting.gap.where(theory.lasting.gap > 0)
    figures.dashed_line(limit, open_gap.kappa, open_gap, color=figures.INK, label="α = τ = ∞: 1 − κ")
    limit.set(title=f"linear attention: τ = {case.tau_for_alpha:g} α, ρ = {case.noise:g}", ylabel="gap  ICL − IDG")
    figures.theory_line(finite, theory.limit.kappa, theory.limit.gap, label="linear attention, D → ∞")
    theory_curves(finite, theory.pool.gap, "kappa", by="dimension", label="pool, D", line=figures.dashed_line)
    dmmse, label = theory.dmmse.isel(dimension=0), f"dMMSE, D = {int(theory.dmmse.dimension[0])}"
    figures.theory_line(finite, dmmse.kappa, dmmse.gap, color=figures.COLORS[3], label=label)
    if view.simulation:
        runs, label = drawn_runs(view)
        figures.mean_points(finite, runs.whole_kappa, runs.icl - runs.idg, color=figures.COLORS[4], label=label)
        drawn = view.simulation.dmmse.isel(dimension=0)
        figures.mean_points(finite, drawn.kappa, drawn.gap, color=figures.COLORS[3])
    finite.set_title(f"finite D, and dMMSE: α = {case.finite_alpha:g}, τ = {case.finite_tau:g}, ρ = {case.noise:g}")
    for axes in (limit, finite):
        axes.set(xscale="log", yscale="log", xlabel=TASKS)
        axes.legend(fontsize=7)
    limit.set_ylim(bottom=1e-4)
    many, threshold = theory.exponential, float(theory.threshold.log_tasks)
    figures.theory_line(bayes, many.log_tasks, many.icl, color=figures.COLORS[3], label="dMMSE on new tasks")
    figures.theory_line(bayes, many.log_tasks, many.idg, color=figures.COLORS[5], label="dMMSE on the pool")
    figures.level_lines(bayes, theory.bounds.loss.values, label="1 + ρ and ρ")
    bayes.axvline(threshold, color=figures.INK, lw=0.8, ls="--", label="$s_c$, tasks enough")
    title = f"dMMSE, D → ∞: α = {case.bayes_alpha:g}, ρ = {case.bayes_noise:g}"
    bayes.set(title=title, xlabel="$s = \\ln K / D$  (nats)", ylabel="mean squared error", ylim=(0, None))
    bayes.legend()


_MANY = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
FULL = Case(
    dimension=(32, 64, 128), finite_kappa=_MANY, drawn_kappa=_MANY, draws=Draws((25, 50, 100), (8, 2, 1)),
    bayes_kappa=(0.5, 2.0, 5.0), contexts=2000, drawn_contexts=100,
)  # fmt: skip
STUDY = Study(
    name="task-diversity", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), seeds=8, size=(11.0, 3.8)), "full": Preset(FULL, seeds=8, size=(11.0, 3.8))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        in_dimension("theory/pool/gap", "The mean gap of given pools tends to the limit.", theory="limit/gap"),
        MEANS_TEND,
        WithinErrors("dmmse/gap", "dMMSE on drawn contexts has the predicted gap."),
    ),
    vocabulary=SIZES
    | vocabulary(
        {"threshold/log_tasks": ("s_c", "ln K for each dimension at the threshold", "nat")},
        gap=("g", "error on new tasks above that on the pool", "label²"),
        log_tasks=("s", "ln K for each dimension", "nat"),
        error=("e_ridge", "error of ridge regression at ridge ρ", "label²"),
    ),
)  # fmt: skip
