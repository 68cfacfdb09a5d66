"""Are chosen tasks better to pretrain on than drawn ones?

Errors know a pool by its second moment alone. K orthogonal tasks have that of the whole law of tasks, on K
directions at most, without fluctuation: in the limit they count as infinitely many drawn ones. Runs of finite
dimension lie above that limit by a term of order 1/D which is larger than for drawn tasks, so that in few
dimensions nothing may be won. Tasks are white. Theory is the limit, the pool prediction of far dimensions and the
leverage prediction of drawn runs. Extends arXiv 2405.11751 and 2509.26551, whose pools are drawn.
"""

from dataclasses import dataclass

import numpy as np

from iclab import figures
from iclab.numerics import Checked, Magnitude, Magnitudes, Nonnegative, require
from iclab.outcomes import Labeled, labeled, parts
from iclab.problem import Pretraining, Ratios, orthogonal_pool
from iclab.studies.pretraining.links import FAR, judged_errors, leverage_mean, pool_mean, tending_errors
from iclab.studies.pretraining.panels import TASKS, TITLES
from iclab.studies.pretraining.runs import ERRORS, SIZES, Draws, Grid, Ridge, Run
from iclab.studies.pretraining.sizes import Span
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]


@dataclass(frozen=True)
class Case(Checked):
    """Pretraining on drawn and on chosen pools of white tasks."""

    alpha: Magnitude = 2.0  # α = N/D, examples of a context
    tau: Magnitude = 3.0  # τ = n/D², pretraining sequences
    noise: Nonnegative = 0.1  # ρ, variance of the label noise
    ridge: Ridge = 0.01  # λ, ridge of the readout
    kappa: Span = Span(0.1, 10.0, 41)  # κ = K/D, tasks of the pool, of the curves
    drawn_kappa: Magnitudes = (1.0, 2.0)  # κ of the drawn runs, at least 1
    draws: Draws = Draws((16, 24, 32), (16, 8, 4))  # runs

    def __post_init__(self) -> None:
        super().__post_init__()
        Ratios(self.alpha, np.array(self.drawn_kappa), self.tau, self.noise)
        require(
            min(self.drawn_kappa) >= 1,
            f"drawn_kappa must be at least 1, for white pools to be chosen; got {min(self.drawn_kappa)}.",
        )

    def runs(self, dimension: tuple[int, ...], *, chosen: bool) -> Grid:
        """Runs in several dimensions, with a chosen pool or with drawn ones."""

        def run(dimension: int, kappa: float) -> Run:
            size = Pretraining.of(Ratios(self.alpha, kappa, self.tau, self.noise), dimension)
            white = np.ones(dimension)
            assert size.tasks is not None
            pool = orthogonal_pool(size.tasks, task_eigenvalues=white) if chosen else None
            return Run(size, self.ridge, pool=pool)

        return Grid.of(run, dimension=dimension, kappa=self.drawn_kappa)


def theory(case: Case) -> dict[str, Labeled]:
    """The limits against κ, the pool prediction far out, the leverage prediction of every drawn run."""
    from iclab.theory.generalization import chosen_pool_errors, errors

    kappa = np.union1d(case.kappa.grid(), case.drawn_kappa)
    drawn = errors(Ratios(case.alpha, kappa, case.tau, case.noise), ridge=case.ridge)
    first = Ratios(case.alpha, np.array(case.drawn_kappa), case.tau, case.noise)
    chosen = chosen_pool_errors(first, task_eigenvalues=np.ones(1), ridge=case.ridge)
    chosen = {name: np.broadcast_to(value, len(case.drawn_kappa)) for name, value in parts(chosen, *ERRORS).items()}
    fresh = errors(Ratios(case.alpha, np.inf, case.tau, case.noise), ridge=case.ridge)
    few = [_on_few(case, one) for one in kappa]
    return {
        "drawn_limit": labeled({"kappa": kappa}, **parts(drawn, *ERRORS)),
        "chosen_curve": labeled({"kappa": kappa}, icl=np.array(few)),
        "chosen_limit": labeled({"kappa": case.drawn_kappa}, **chosen),
        "fresh": labeled({}, icl=fresh.icl),
        "sizes": case.runs(case.draws.dimension, chosen=True).sizes(),
        "drawn_leverage": case.runs(case.draws.dimension, chosen=False).predicted(leverage_mean),
        "chosen_leverage": case.runs(case.draws.dimension, chosen=True).predicted(leverage_mean),
        "far": case.runs(FAR, chosen=True).predicted(pool_mean),
    }


def _on_few(case: Case, kappa: float) -> float:
    """The limit of chosen white tasks, on a share κ of the directions below κ = 1, for white tests."""
    from iclab.theory.generalization import low_rank_errors

    fresh = Ratios(case.alpha, np.inf, case.tau, case.noise)
    return float(low_rank_errors(fresh, rank=min(kappa, 1.0), ridge=case.ridge).out_of_distribution)


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Errors of drawn runs on drawn and on chosen pools, exact for the readout of each."""
    return {
        name: case.runs(case.draws.dimension, chosen=name == "chosen").simulated(case.draws, key=key)
        for name in ("drawn", "chosen")
    }


def figure(view: View, figure: Figure) -> None:
    """Errors on new tasks against κ for both kinds of pools, and against 1/D."""
    sizes, gaps = figure.subplots(1, 2)
    theory, (one, two) = view.theory, figures.COLORS[:2]
    figures.theory_line(sizes, theory.drawn_limit.kappa, theory.drawn_limit.icl, color=one, label="drawn, D → ∞")
    figures.theory_line(sizes, theory.chosen_curve.kappa, theory.chosen_curve.icl, color=two, label="chosen, D → ∞")
    figures.level_lines(sizes, [float(theory.fresh.icl)], label="a fresh task each time")
    sizes.set(xscale="log", xlabel=TASKS, ylabel="mean squared error", title=TITLES["icl"])
    least = float(view.case.drawn_kappa[0])
    for name, color in (("drawn", one), ("chosen", two)):
        limit = float(theory[f"{name}_limit"].icl.sel(kappa=least))
        runs = theory[f"{name}_leverage"].icl.sel(kappa=least)
        figures.dashed_line(gaps, 1 / runs.dimension, runs, color=color, label=f"{name}: leverage prediction")
        figures.theory_line(gaps, [0, 1 / runs.dimension.values[-1]], [limit, limit], color=color)
        if view.simulation:
            found = view.simulation[name].icl.sel(kappa=least)
            figures.mean_points(gaps, 1 / found.dimension, found, color=color, label=f"{name}: runs")
            top = view.simulation[name].icl.isel(dimension=-1)
            figures.mean_points(sizes, top.kappa, top, color=color)
    gaps.set(title=f"κ = {least:g}", xlabel="$1/D$", ylabel="mean squared error")
    for axes in (sizes, gaps):
        axes.legend(fontsize=7)


FULL = Case(draws=Draws((24, 48, 96), (16, 6, 2)))
STUDY = Study(
    name="chosen-pool", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=8, size=(8.0, 3.6)), "full": Preset(FULL, seeds=8, size=(8.0, 3.6))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        *judged_errors(0.045, ["icl"], runs="drawn", theory="drawn_leverage", panel=", for drawn pools"),
        *judged_errors(0.045, ["icl"], runs="chosen", theory="chosen_leverage", panel=", for chosen pools"),
        *tending_errors(["icl"], limit="chosen_limit", panel=", for chosen pools"),
    ),
    unjudged={
        "theory/drawn_limit/icl": "the limit of drawn pools, judged by finite-size",
        "theory/chosen_curve/icl": "the curve through the judged limits of chosen pools",
        "theory/fresh/icl": "for comparison: the limit of chosen pools from κ = 1 on",
    },
    vocabulary=SIZES,
)  # fmt: skip
