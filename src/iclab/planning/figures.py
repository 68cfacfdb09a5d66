"""Figures of `iclab plan`: the curve behind each answer."""

from typing import TYPE_CHECKING, Any

import numpy as np

from iclab import figures
from iclab.planning import inverse
from iclab.problem import Ratios
from iclab.theory import depth, estimators, generalization

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from iclab.planning.depths import Deep
    from iclab.planning.gaps import Diversity, TaskLaw
    from iclab.planning.spectrum import PlannedSpectrum
    from iclab.theory.depth import SpectralLaw

__all__ = [
    "SIZES", "depth_figure", "depth_split_figure", "diversity_figure", "forecast_figure", "gap_figure", "pool_figure",
    "requirement_figure", "ridge_figure", "spectrum_figure", "split_figure",
]  # fmt: skip

SIZES = {
    "alpha": "examples of a context  $\\alpha = N/D$",
    "kappa": "tasks of the pool  $\\kappa = K/D$",
    "tau": "pretraining sequences  $\\tau = n/D^2$",
}


def requirement_figure(figure: "Figure", question: Any, quantity: str, found: inverse.Required) -> None:
    """The error against the size in question; sizes that reach the error are shaded."""
    ends = [end for interval in found.intervals for end in interval if 0 < end < np.inf]
    sizes = np.geomspace(min([0.1, *ends]) / 3, max([30.0, *ends]) * 3, 500)
    curve = inverse.error_of(
        Ratios(**{**question.sizes(), quantity: sizes}, noise=question.noise), question.ridge, question.target
    )
    axes = figure.subplots()
    figures.theory_line(axes, sizes, curve)
    figures.level_lines(axes, [question.error])
    for low, high in found.intervals:
        axes.axvspan(max(low, sizes[0]), min(high, sizes[-1]), color=figures.COLORS[5], alpha=0.25, lw=0)
    ridge = "the best ridge" if question.ridge == inverse.BEST else f"ridge {question.ridge:g}"
    _labeled(axes, SIZES[quantity], f"{question.target} error at {ridge}; shaded: at most {question.error:g}")


def split_figure(figure: "Figure", question: Any, found: inverse.Split) -> None:
    """The error against the context length, at a fixed number of labeled examples."""
    lengths = np.unique(np.round(np.geomspace(1, question.tokens, 300)))
    sizes = {
        "alpha": lengths / question.dimension,
        "tau": np.floor(question.tokens / lengths) / question.dimension**2,
    }
    curve = inverse.error_of(
        Ratios(kappa=found.ratios.kappa, noise=question.noise, **sizes), question.ridge, question.target
    )
    axes = figure.subplots()
    figures.theory_line(axes, lengths, curve)
    axes.plot(found.context_length, found.error, "o", color=figures.COLORS[1])
    _labeled(axes, "examples of a context  $N$", f"{question.target} error of {question.tokens} labeled examples")


def ridge_figure(figure: "Figure", ratios: Ratios, best: dict[str, float]) -> None:
    """Both errors against the ridge, with the best ones marked where they are positive."""
    strengths = np.geomspace(1e-6, 1e2, 300)
    errors = generalization.errors(ratios, ridge=strengths)
    axes = figure.subplots()
    for color, (target, ridge) in figures.colored(best.items()):
        figures.theory_line(axes, strengths, getattr(errors, target), color=color, label=target)
        if 0 < ridge < np.inf:
            axes.plot(ridge, getattr(generalization.errors(ratios, ridge=ridge), target), "o", color=color)
    axes.legend()
    _labeled(axes, "ridge  λ", "errors on new tasks and on the pool")


def gap_figure(figure: "Figure", ratios: Ratios, ridge: float, critical_kappa: float) -> None:
    """The gap against the size of the pool, with the given κ and κ_c."""
    kappa = np.geomspace(0.05, 100, 400)
    gap = generalization.diversity_gap(Ratios(ratios.alpha, kappa, ratios.tau, ratios.noise), ridge=ridge)
    axes = figure.subplots()
    figures.theory_line(axes, kappa, gap)
    axes.axvline(critical_kappa, color=figures.COLORS[1], lw=1, ls="--", label="$\\kappa_c$")
    if np.isfinite(ratios.kappa):
        axes.axvline(float(ratios.kappa), color=figures.COLORS[0], lw=1, label="given κ")
    axes.legend()
    _labeled(axes, SIZES["kappa"], f"gap between new and pool tasks, ridge {ridge:.3g}", error="gap  ICL − IDG")


def forecast_figure(figure: "Figure", question: Any, found: inverse.Forecast) -> None:
    """The limit against the number of sequences, and the best approximation of the run."""
    tau = np.geomspace(0.1, 10, 300) * max(1.0, float(found.ratios.tau))
    ratios = found.ratios
    curve = generalization.errors(Ratios(ratios.alpha, ratios.kappa, tau, ratios.noise), ridge=question.ridge)
    axes = figure.subplots()
    for color, target in figures.colored(("icl", "idg")):
        figures.theory_line(axes, tau, getattr(curve, target), color=color, label=f"{target}, D → ∞")
        axes.plot(
            ratios.tau, getattr(found.leverage or found.pool, target), "x", color=color, label=f"{target}, this run"
        )
    axes.legend()
    _labeled(axes, SIZES["tau"], f"a run in {question.dimension} dimensions")


def depth_figure(figure: "Figure", law: "SpectralLaw", found: "Deep", *, noise: float) -> None:
    """The excess of untied and tied layers against their number, with the least number that is enough."""
    counts = np.arange(1, found.depth + 3 if noise > 0 else max(9, 2 * found.depth + 1))
    axes = figure.subplots()
    untied, tied = (
        [one(law, int(count), noise_ratio=noise) for count in counts]
        for one in (depth.best_excess, depth.tied_excess)
    )
    figures.theory_line(axes, counts, untied, label="best layers")
    figures.dashed_line(axes, counts, tied, color=figures.COLORS[1], label="equal layers")
    figures.level_lines(axes, [found.ridge] if found.ridge > 0 else [], label="ridge")
    axes.plot(found.depth, found.excess, "o", color=figures.COLORS[0])
    axes.legend()
    _labeled(axes, "layers  $L$", f"{found.depth} layers are enough", error="excess over signal variance")


def depth_split_figure(figure: "Figure", question: Any, depths: np.ndarray, heights: np.ndarray) -> None:
    """The excess against the number of layers, at a fixed number of layers times examples."""
    axes = figure.subplots()
    figures.theory_line(axes, depths, heights)
    place = int(np.argmin(heights))
    axes.plot(depths[place], heights[place], "o", color=figures.COLORS[1])
    title = f"{question.budget} layers times examples, D = {question.dimension}"
    _labeled(axes, "layers  $L$", title, error="excess over signal variance")


def spectrum_figure(
    figure: "Figure", new: np.ndarray, found: "PlannedSpectrum", best: "PlannedSpectrum | None"
) -> None:
    """Planned variances against those of the tests, with the line where they are the same."""
    axes = figure.subplots()
    plans = {"planned": found, "chosen": best} if best is not None else {"planned": found}
    seen = new > 0
    for color, (name, plan) in figures.colored(plans.items()):
        c = plan.task_eigenvalues
        used = seen & (c > 0)
        axes.plot(new[used], c[used], "o", ms=4, color=color, label=f"{name}: error {plan.error:.3g}")
    ends = np.array([np.min(new[seen]), np.max(new)])
    level = np.mean(found.task_eigenvalues) / np.mean(new)
    figures.dashed_line(axes, ends, level * ends, color=figures.INK, label=f"as the test: {found.matched_error:.3g}")
    axes.legend()
    count = int(np.sum(found.task_eigenvalues > 0))
    _labeled(axes, "variance at test  $c_t$", f"{count} of {len(new)} directions trained", error="trained  $c$")


def pool_figure(figure: "Figure", spectrum: np.ndarray, vectors: np.ndarray) -> None:
    """The second moment of a pool, direction by direction, on the spectrum it was chosen for."""
    axes, j = figure.subplots(), np.arange(1, len(spectrum) + 1)
    figures.theory_line(axes, j, spectrum)
    axes.plot(j, np.mean(vectors**2, axis=0), "o", ms=4, color=figures.COLORS[1])
    axes.set(xlabel="direction  $j$", ylabel="variance", title=f"{len(vectors)} chosen tasks")


def diversity_figure(figure: "Figure", law: "TaskLaw", found: "Diversity") -> None:
    """The gap against the size of the pool: both bounds, their limit, and drawn pools at K."""
    last = 30 * max(found.memory_fades, found.tasks or 1)
    tasks = np.geomspace(1, last, 400)
    least, most = estimators.gap_bounds(law.information, law.chi_square, tasks)
    axes = figure.subplots()
    figures.theory_line(axes, tasks, most, label="at most")
    figures.theory_line(axes, tasks, np.where(least > 0, least, np.nan), color=figures.COLORS[1], label="at least")
    limit = estimators.gap_limit(law.chi_square, tasks)
    figures.dashed_line(
        axes, tasks, np.where(limit < most, limit, np.nan), color=figures.COLORS[0], label="$\\chi^2/2K$"
    )
    for place, name in ((found.memory_pays, "$e^I$"), (found.memory_fades, "$1 + \\chi^2$")):
        axes.axvline(place, color=figures.INK, lw=0.8, ls=":", label=name)
    if found.tasks is not None and found.drawn is not None and found.error is not None:
        axes.errorbar([found.tasks], [found.drawn], [2 * found.error], fmt="o", color=figures.INK)
    axes.legend()
    _labeled(axes, "tasks of the pool  $K$", "loss that memory of the pool saves", error="gap of a context in nats")


def _labeled(axes: "Axes", sizes: str, title: str, *, error: str = "mean squared error") -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(sizes)
    axes.set_ylabel(error)
    axes.set_title(title)
