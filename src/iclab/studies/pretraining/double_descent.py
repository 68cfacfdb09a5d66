"""Does more pretraining always help, or does the error first rise to a peak?

Linear attention that is pretrained on n sequences fits them exactly up to n = D(D + 1). At that point, τ = n/D² = 1
for large D, its errors on new tasks and on tasks of the pool peak, and they fall again beyond it, while the error on
the pretraining data itself leaves zero. Theory is the proportional limit and two predictions for finite dimension:
the *pool* prediction, which keeps the pool and the exact moments of its contexts, and the *leverage* prediction,
which adds that sequences differ in leverage. Simulation draws runs and fits their readouts. Means of runs are judged
against the leverage prediction of their own sizes, and the pool prediction, in dimensions far beyond, against the
limit, to which it tends like 1/D. Published as figure 1 of arXiv 2405.11751; finite dimension goes beyond it.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from iclab import figures
from iclab.numerics import Checked, Count, Counts, Magnitude, Magnitudes, Nonnegative, Positive, Positives
from iclab.outcomes import Errors, Labeled, labeled, parts
from iclab.problem import Ratios
from iclab.studies.pretraining import links
from iclab.studies.pretraining.panels import FORMULAS, SEQUENCES, error_axes, run_points, theory_curves
from iclab.studies.pretraining.runs import ERRORS, Draws, Grid, Ridge
from iclab.studies.pretraining.sizes import Span, around, bounds, column, law_of, table
from iclab.study import Figure, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "theory"]


@dataclass(frozen=True)
class Case(Checked):
    """Pretraining of one pool size and ridge, for contexts of several lengths and inputs of several dimensions."""

    alpha: Magnitudes = (1.0, 10.0, 100.0)  # α = N/D, examples of a context; published
    kappa: Magnitude = 0.5  # κ = K/D, tasks of the pool; published
    noise: Nonnegative = 0.01  # ρ, variance of the label noise; published
    ridge: Ridge = 1e-5  # λ, ridge of the readout; published
    tau: Span = Span(0.1, 10.0, 122)  # τ = n/D², pretraining sequences
    finite_alpha: Positive = 10.0  # α = N/D at finite dimension
    finite_tau: Span = Span(0.1, 10.0, 34)  # τ at finite dimension
    dimension: Counts = (16, 32, 64)  # D of the pool predictions
    leverage_tau: Positives = (0.2, 0.5, 2.0)  # τ of the leverage prediction; published, with 0.85, 1.15 and 1.5
    leverage_dimension: Count = 32  # D of the leverage prediction
    drawn_tau: Positives = (0.2, 0.5, 2.0)  # τ of the drawn runs; published, with 0.85, 1.15 and 1.5
    draws: Draws = Draws((32,), (36,), below=3)  # runs, at finite_alpha
    far_tau: Positives = (0.2, 0.7, 1.4, 2.0)  # τ at which the pool prediction is extrapolated

    def __post_init__(self) -> None:
        super().__post_init__()
        Ratios(np.array(self.alpha), self.kappa, 1.0, self.noise)

    def runs(self, dimension: tuple[int, ...], tau: tuple[float, ...]) -> Grid:
        """Runs at finite_alpha."""
        return Grid.over(dimension, alpha=self.finite_alpha, tau=tau, **parts(self, "kappa", "noise", "ridge"))

    @property
    def drawn(self) -> Grid:
        """The runs that are drawn."""
        return self.runs(self.draws.dimension, self.drawn_tau)


def theory(case: Case) -> dict[str, Labeled]:
    """The limit for each context length; pool and leverage predictions, and the limit at the finite one."""
    from iclab.theory.finite_size import pool_errors
    from iclab.theory.generalization import errors

    tau = around({*case.tau.grid(), *case.far_tau}, [1.0])
    some = around(case.finite_tau.grid(), [1.0, *(1 + 1 / np.array(case.dimension))])
    curves = errors(Ratios(column(case.alpha), case.kappa, tau, case.noise), ridge=case.ridge)
    limit = errors(Ratios(case.finite_alpha, case.kappa, some, case.noise), ridge=case.ridge)

    def pool(dimension: int, tau: float) -> Errors:
        law = law_of(dimension, alpha=case.finite_alpha, kappa=case.kappa, noise=case.noise)
        return pool_errors(law, max(1, round(tau * dimension**2)), ridge=case.ridge)

    far = links.far_runs(alpha=case.alpha, tau=case.far_tau, **parts(case, "kappa", "noise", "ridge"))
    dimension = tuple(sorted({*case.draws.dimension, case.leverage_dimension}))
    return {
        "bounds": bounds(case.noise),
        "curves": labeled({"alpha": case.alpha, "tau": tau}, **parts(curves, *ERRORS)),
        "limit": labeled({"tau": some}, **parts(limit, *ERRORS)),
        "pool": table(pool, dimension=case.dimension, tau=some),
        "leverage": case.runs(dimension, case.leverage_tau).predicted(partial(links.leverage_mean, corrected=4)),
        "far": far.predicted(links.pool_mean),
        "sizes": case.drawn.sizes(),
    }


def figure(view: View, figure: Figure) -> None:
    """Errors on new tasks, on the pool and on the data against τ; the limit and finite dimensions."""
    new, known, finite = figure.subplots(1, 3)
    curves = view.theory.curves
    theory_curves(new, curves.icl, "tau", by="alpha")
    theory_curves(known, curves.idg, "tau", by="alpha")
    theory_curves(known, curves.train.where(curves.train > 0), "tau", by="alpha", line=figures.dashed_line)
    limit, pool, leverage = (view.theory[name] for name in ("limit", "pool", "leverage"))
    figures.theory_line(finite, limit.tau, limit.icl, label="D → ∞")
    theory_curves(finite, pool.icl, "tau", by="dimension", label="pool, D", line=figures.dashed_line, first=3)
    dimension = view.case.leverage_dimension
    marks = leverage.icl.sel(dimension=dimension)
    finite.plot(leverage.tau, marks, "x", color=figures.INK, ms=5, label=f"leverage, D = {dimension}")
    run_points(finite, view, "icl", "tau")
    error_axes(new, view, SEQUENCES, title="on new tasks (ICL)")
    error_axes(known, view, SEQUENCES, title="on tasks of the pool (IDG); dashed: on the data")
    error_axes(finite, view, SEQUENCES, title="on new tasks, in finite dimension")
    known.set_ylim(bottom=0.1 * float(curves.idg.min()))
    new.legend()
    finite.legend(fontsize=7, loc="upper right")


_PUBLISHED = (0.2, 0.5, 0.85, 1.15, 1.5, 2.0)
FULL = Case(
    dimension=(32, 64, 128), leverage_dimension=48, tau=Span(0.05, 20.0, 401), leverage_tau=_PUBLISHED,
    drawn_tau=_PUBLISHED, draws=Draws((25, 50, 100), (8, 2, 1)),
)  # fmt: skip
STUDY = Study(
    name="double-descent", question=str(__doc__), version=3,
    presets={"quick": Preset(Case(), seeds=8, size=(11.0, 3.8)), "full": Preset(FULL, seeds=8, size=(11.0, 3.8))},
    theory=theory, simulation=links.simulated, figure=figure, formulas=FORMULAS,
    claims=(*links.linked(0.019), *links.SCORED),
    vocabulary=links.VOCABULARY,
    unjudged=links.BOUNDS | {
        "theory/pool/icl": "the prediction that is extrapolated to the limit, in fewer dimensions",
        "theory/limit/icl": "the limit that is judged for each context length, at one that may lie between",
    },
)  # fmt: skip
