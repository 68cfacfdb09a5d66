"""How many tasks must pretraining see before a new one is no harder than a known one?

The gap g between the errors on new tasks and on tasks of the pool closes, for linear attention, where the pool has as
many tasks as inputs have entries, κ = K/D = 1. The Bayes estimator that knows the pool (dMMSE) has no such
transition: it singles out a task until there are exp(s_c D) of them, s_c being the information of a context on its
task. Theory is the proportional limit, the prediction for given pools, and dMMSE for these and in the limit, a
random-energy model. Simulation draws runs and fits their readouts, and applies dMMSE to drawn contexts, also with
so many tasks that only the fittest are drawn. The threshold is compared with an integral over the spectrum of a
context. Published as figure 4 of arXiv 2405.11751; the limit of dMMSE goes beyond it.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.claims import Agrees, Tends
from iclab.numerics import Checked, Count, Counts, Magnitude, Magnitudes, Nonnegative, Positive, Positives, require
from iclab.outcomes import Errors, Labeled, labeled, parts, vocabulary
from iclab.problem import ContextLaw, Ratios
from iclab.studies.pretraining import links
from iclab.studies.pretraining.panels import FORMULAS, TASKS, drawn_runs, theory_curves
from iclab.studies.pretraining.runs import Draws, Grid
from iclab.studies.pretraining.sizes import Span, bounds, column, law_of, table
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

PARTS = ("icl", "idg")
LONG = (100.0, 1000.0, 10_000.0)  # context lengths α from which the lasting gap is extrapolated


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
    contexts: Count = 4000  # of the quadrature for the Bayes estimator
    drawn_kappa: Positives = (0.5, 1.0, 2.0, 4.0)  # κ of the drawn runs
    draws: Draws = Draws((24,), (9,), route="preconditioned")  # runs, at finite_alpha
    bayes_kappa: tuple[float, ...] = (0.5, 4.0)  # κ of the Bayes estimator on drawn contexts, of finite_kappa
    drawn_contexts: Count = 300  # contexts drawn for the Bayes estimator and each seed
    many_dimension: Count = 96  # D of the Bayes estimator with exp(sD) tasks on drawn contexts
    many_share: Positives = (0.4,)  # s of the same, over the threshold
    many_contexts: Count = 64  # contexts drawn for the same and each seed
    far_kappa: Positives = (0.5, 2.0, 4.0)  # κ at which the pool prediction is extrapolated

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
        sizes: dict[str, Any] = {"alpha": self.finite_alpha, "tau": self.finite_tau, "noise": self.noise}
        return Grid.over(self.draws.dimension, kappa=self.drawn_kappa, **sizes)

    @property
    def many_log_tasks(self) -> Float[np.ndarray, "s"]:
        """s of the Bayes estimator with exp(sD) tasks on drawn contexts."""
        from iclab.theory.estimators import task_threshold

        return np.array(self.many_share) * task_threshold(self.bayes_alpha, self.bayes_noise)

    def law(self, dimension: int, kappa: float, pool: int = 0) -> ContextLaw:
        """Contexts at finite dimension, with one of the pools."""
        return law_of(dimension, alpha=self.finite_alpha, kappa=kappa, noise=self.noise, pool=pool)


def theory(case: Case) -> dict[str, Labeled]:
    """The gap of linear attention and of dMMSE, in the limit and in finite dimension."""
    from iclab.theory import estimators
    from iclab.theory.finite_size import pool_errors
    from iclab.theory.generalization import diversity_gap, errors

    def pool(dimension: int, kappa: float, number: int) -> Errors:
        return pool_errors(case.law(dimension, kappa, number), max(1, round(case.finite_tau * dimension**2)))

    kappa, some = case.kappa.grid(), np.array(case.finite_kappa)
    alpha, bayes = column(case.alpha), (case.bayes_alpha, case.bayes_noise)
    pools = table(pool, dimension=case.dimension, kappa=case.finite_kappa, number=range(case.pools))
    threshold = float(estimators.task_threshold(*bayes))
    sides = threshold * np.array([1 - 1e-9, 1 + 1e-9])  # errors jump at the threshold
    s = np.sort([*np.linspace(0, 1.5, 122) * threshold, *case.many_log_tasks, *sides])
    curves = Ratios(alpha, kappa, case.tau_for_alpha * alpha, case.noise)
    limit = Ratios(case.finite_alpha, some, case.finite_tau, case.noise)
    whole = errors(limit)
    laws = [case.law(case.bayes_dimension, one) for one in some.tolist()]
    known = [estimators.pool_dmmse_errors(law, contexts=case.contexts) for law in laws]
    icl, idg = np.array([[one.icl, one.idg] for one in known]).T
    away = kappa[abs(np.log(kappa)) > 0.2]  # at κ = 1 the gap closes like α^-1/2
    long = Ratios(column(LONG), away, np.inf, case.noise)
    far = links.far_runs(kappa=case.far_kappa, alpha=case.finite_alpha, tau=case.finite_tau, noise=case.noise)
    return {
        "gap": labeled({"alpha": case.alpha, "kappa": kappa}, gap=diversity_gap(curves)),
        "difference": labeled({"alpha": case.alpha, "kappa": kappa}, gap=errors(curves).icl - errors(curves).idg),
        "lasting": labeled({"kappa": kappa}, gap=diversity_gap(Ratios(np.inf, kappa, np.inf, case.noise))),
        "long": labeled({"alpha": LONG, "kappa": away}, gap=diversity_gap(long)),
        "limit": labeled({"kappa": some}, gap=diversity_gap(limit), **parts(whole, "icl", "idg", "train")),
        "far": far.predicted(partial(links.pool_mean, more=2)),
        "pool": labeled({"dimension": case.dimension, "kappa": some}, gap=np.mean(pools.icl - pools.idg, axis=-1)),
        "leverage": case.drawn.predicted(links.leverage_mean),
        "dmmse": labeled({"dimension": [case.bayes_dimension], "kappa": some}, icl=[icl], idg=[idg], gap=[icl - idg]),
        "exponential": labeled({"log_tasks": s}, **parts(estimators.dmmse_errors(*bayes, s), *PARTS)),
        "threshold": labeled({}, log_tasks=threshold, error=estimators.ridge_error(*bayes)),
        **by_integrals(case, s),
        "sizes": case.drawn.sizes(),
        "bounds": bounds(case.bayes_noise),
    }


def by_integrals(case: Case, s: Float[np.ndarray, "s"]) -> dict[str, Labeled]:
    """dMMSE where integrals tell its errors: beyond the threshold ridge regression, below it tasks are known."""
    from iclab.theory.estimators import spectral_integrals

    threshold, error = spectral_integrals(case.bayes_alpha, case.bayes_noise)
    many = s > threshold
    ends = s[many | (s == 0)]  # at s = 0 nothing is known of new tasks
    return {
        "integral": labeled({}, log_tasks=threshold, error=error),
        "known_new": labeled({"log_tasks": ends}, icl=np.where(ends > 0, error, case.bayes_noise + 2)),
        "known_pool": labeled({"log_tasks": s}, idg=np.where(many, error, case.bayes_noise)),
    }


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Errors of drawn runs, exact for the readout of each; dMMSE on drawn contexts."""
    from jax.random import fold_in, split

    from iclab.simulation.pretraining import estimators

    drawn, several = split(fold_in(key, 1))
    laws = [case.law(case.bayes_dimension, kappa) for kappa in case.bayes_kappa]
    icl, idg = estimators.mean_dmmse_errors(laws, contexts=case.drawn_contexts, key=drawn)
    law = {"alpha": case.bayes_alpha, "noise": case.bayes_noise, "contexts": case.many_contexts}
    many = estimators.mean_fittest_errors(case.many_dimension, case.many_log_tasks, **law, key=several)
    axes = {"dimension": [case.bayes_dimension], "kappa": case.bayes_kappa}
    return links.simulated(case, key=key) | {
        "dmmse": labeled(axes, icl=[icl], idg=[idg], gap=[icl - idg]),
        "many": labeled({"log_tasks": case.many_log_tasks}, icl=many),
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
    known, label = theory.dmmse.isel(dimension=0), f"dMMSE, D = {int(theory.dmmse.dimension[0])}"
    figures.theory_line(finite, known.kappa, known.gap, color=figures.COLORS[3], label=label)
    if view.simulation:
        runs, label = drawn_runs(view)
        figures.mean_points(finite, runs.whole_kappa, runs.icl - runs.idg, color=figures.COLORS[4], label=label)
        drawn = view.simulation.dmmse.isel(dimension=0)
        figures.mean_points(finite, drawn.kappa, drawn.gap, color=figures.COLORS[3])
        many, label = view.simulation.many, f"D = {case.many_dimension}"
        figures.mean_points(bayes, many.log_tasks, many.icl, color=figures.COLORS[3], label=label)
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
    bayes_kappa=(0.5, 2.0, 5.0), drawn_contexts=100,
)  # fmt: skip
_BAYES = (
    *(Agrees(f"dmmse/{name}", f"dMMSE errs as predicted for its pool, {links.WORDS[name]}.", 0.045)
      for name in PARTS),
    Agrees("many/icl", "So does dMMSE with exponentially many tasks.", 0.045, "exponential/icl"),
    Agrees("theory/known_new/icl", "Without tasks, and with enough, dMMSE errs as it must on new ones.", 1e-4,
           "exponential/icl"),
    Agrees("theory/known_pool/idg", "dMMSE knows its tasks up to the threshold of the integral.", 1e-4,
           "exponential/idg"),
    Agrees("theory/integral/log_tasks", "The threshold is an integral.", 1e-4, "threshold/log_tasks"),
    Agrees("theory/integral/error", "The error of ridge regression is an integral.", 1e-4, "threshold/error"),
)  # fmt: skip
STUDY = Study(
    name="task-diversity", question=str(__doc__), version=4,
    presets={"quick": Preset(Case(), seeds=8, size=(11.0, 3.8)), "full": Preset(FULL, seeds=8, size=(11.0, 3.8))},
    theory=theory, simulation=simulation, figure=figure, formulas=FORMULAS,
    claims=(
        *links.linked(limit="limit"),
        Agrees("theory/difference/gap", "The gap is the difference of the errors.", 1e-6, "gap/gap"),
        Tends("theory/long/gap", "In long contexts the gap tends to the lasting one.", 0.005, "alpha",
              theory="lasting/gap", unit="range"),
        *_BAYES, *links.SCORED,
    ),
    unjudged=links.BOUNDS | {
        "theory/pool/gap": "the prediction that is extrapolated to the limit, in fewer dimensions",
        "theory/limit/gap": "the function of theory/gap/gap, whose errors are judged, at another context length",
        "theory/dmmse/gap": "the difference of the two errors that are judged",
    },
    vocabulary=links.VOCABULARY | vocabulary(
        dict.fromkeys(
            ("threshold/log_tasks", "integral/log_tasks"), ("s_c", "ln K for each dimension at the threshold", "nat")
        ),
        gap=("g", "error on new tasks above that on the pool", "label²"),
        log_tasks=("s", "ln K for each dimension", "nat"),
        error=("e_ridge", "error of ridge regression at ridge ρ", "label²"),
    ),
)  # fmt: skip
