"""When do tasks of low rank let attention generalize?

Tasks of pretraining fill a share s of all directions. With infinite pretraining and long contexts attention
generalizes to new tasks in their subspace where the pool has more tasks than it has directions, s < κ, and never
beyond it. Short contexts wash that transition out. Theory has order parameters of the Wishart spectrum of the pool,
and beside them the fixed point of a spectrum with zeros, which knows nothing of them; drawn runs are judged against
their leverage prediction. After arXiv 2510.04548.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from iclab import figures
from iclab.claims import Agrees
from iclab.numerics import Checked, Count, Magnitude, Magnitudes, Nonnegative
from iclab.outcomes import Labeled, labeled, parts, vocabulary
from iclab.problem import ContextLaw, Pretraining, Ratios, SphereTasks
from iclab.studies.pretraining.links import judged_errors, leverage_mean, pool_mean, tending_errors
from iclab.studies.pretraining.runs import SIZES, Draws, Grid, Ridge, Run
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

KINDS = ("matched", "in_distribution", "out_of_distribution")
STEP = 0.002  # of the ranks among which the largest curvature is sought


@dataclass(frozen=True)
class Case(Checked):
    """Pretraining on tasks of low rank."""

    kappa: Magnitude = 0.5  # κ = K/D, tasks of the pool
    alpha: Magnitudes = (10.0, 1e3, 1e5)  # α = N/D, examples of a context, of the curves
    noise: Nonnegative = 0.1  # ρ, variance of the label noise
    points: Count = 40  # ranks of the curves, in equal steps
    drawn_alpha: Magnitude = 4.0  # α of the drawn runs
    drawn_tau: Magnitude = 3.0  # τ = n/D² of the drawn runs
    ridge: Ridge = 0.01  # λ of the drawn runs
    drawn_rank: Magnitudes = (0.25, 0.75)  # s of the drawn runs
    draws: Draws = Draws((16, 24, 32), (12, 6, 3))  # runs

    def __post_init__(self) -> None:
        super().__post_init__()
        Ratios(np.array(self.alpha), self.kappa, self.drawn_tau, self.noise)
        _ = [_spectrum(self.draws.dimension[0], rank) for rank in self.drawn_rank]

    @property
    def rank(self) -> np.ndarray:
        """The ranks of the curves."""
        return np.arange(1, self.points + 1) / self.points

    def runs(self, dimension: tuple[int, ...]) -> Grid:
        """Runs in several dimensions, tested on white tasks of the whole space."""

        def run(dimension: int, rank: float) -> Run:
            ratios = Ratios(self.drawn_alpha, self.kappa, self.drawn_tau, self.noise)
            size = Pretraining.of(ratios, dimension, balanced=False)
            new = ContextLaw(SphereTasks(dimension), size.context_length, self.noise)
            return Run(size, self.ridge, tasks=tuple(_spectrum(dimension, rank).tolist()), new=new)

        return Grid.of(run, dimension=dimension, share=self.drawn_rank)


def _spectrum(dimension: int, rank: float) -> np.ndarray:
    """Variances of tasks of a rank, of mean 1."""
    held = max(1, round(rank * dimension))
    return np.where(np.arange(dimension) < held, dimension / held, 0.0)


def theory(case: Case) -> dict[str, Labeled]:
    """Curves by order parameters and by the spectrum with zeros; the transition; predictions of drawn runs."""
    from iclab.theory.generalization import errors, low_rank_errors, structured_errors

    def curves(rank: np.ndarray, alpha: np.ndarray) -> dict[str, np.ndarray]:
        return parts(low_rank_errors(Ratios(alpha, case.kappa, np.inf, case.noise), rank=rank), *KINDS)

    def spectral(rank: float) -> np.ndarray:
        c = _spectrum(case.points, rank)
        given = Ratios(np.array(case.alpha), case.kappa, np.inf, case.noise)
        inside = structured_errors(given, task_eigenvalues=c)
        outside = structured_errors(given, task_eigenvalues=c, test_task_eigenvalues=np.ones(case.points))
        return np.array([inside.idg, inside.icl, outside.icl])

    alpha = np.array(case.alpha)
    axes = {"alpha": alpha, "share": case.rank}
    whole = np.moveaxis(np.array([spectral(rank) for rank in case.rank]), 0, -1)
    fine = np.arange(STEP, 1, STEP)
    long = curves(fine, np.array([[1e5]]))["in_distribution"][0]
    bend = fine[1 + int(np.argmax(np.diff(long, 2)))]
    at = curves(np.array(case.kappa), np.array([1e4]))
    drawn = Ratios(case.drawn_alpha, case.kappa, case.drawn_tau, case.noise)
    limit = low_rank_errors(drawn, rank=np.array(case.drawn_rank), ridge=case.ridge)
    white = errors(Ratios(alpha[:, None] / case.rank, case.kappa / case.rank, np.inf, case.noise)).icl
    far = (64, 128, 256)
    return {
        "orders": labeled(axes, **curves(case.rank, alpha[:, None])),
        "spectrum": labeled(axes, **dict(zip(KINDS, whole, strict=True))),
        "white": labeled(axes, in_distribution=white),
        "bend": labeled({}, share=bend, kappa=min(case.kappa, 1.0)),
        "gap": labeled(
            {},
            gap=float((at["in_distribution"] - at["matched"])[0]),
            closed=0.5 * np.sqrt(min(case.kappa, 1.0) * (1 + case.noise) / 1e4),
        ),
        "limit": labeled({"share": case.drawn_rank}, icl=limit.out_of_distribution, idg=limit.matched),
        "far": case.runs(far).predicted(partial(pool_mean, more=2)),
        "leverage": case.runs(case.draws.dimension).predicted(leverage_mean),
        "sizes": case.runs(case.draws.dimension).sizes(),
    }


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Errors of drawn runs on white tasks and on the pool, exact for the readout of each."""
    return {"runs": case.runs(case.draws.dimension).simulated(case.draws, key=key)}


def figure(view: View, figure: Figure) -> None:
    """Errors in and out of the subspace against its share, for several context lengths."""
    curves, drawn = view.theory.orders, view.case.drawn_alpha
    titles = {"in_distribution": "new tasks of the subspace", "out_of_distribution": "tasks of another subspace"}
    for axes, (name, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        for color, alpha in figures.colored(curves.alpha.values):
            figures.theory_line(
                axes, curves.share, curves[name].sel(alpha=alpha), color=color, label=f"α = {alpha:g}"
            )
        axes.axvline(view.case.kappa, color=figures.INK, lw=0.8, ls="--", label="s = κ")
        axes.set(title=title, xlabel="share of directions  $s$", ylabel="mean squared error")
        if view.simulation and name == "out_of_distribution":
            top = view.simulation.runs.icl.isel(dimension=-1)
            figures.mean_points(axes, top.share, top, color=figures.INK, label=f"runs, α = {drawn:g}")
        axes.legend(fontsize=7)


WORDS = {
    "matched": "tasks of the pool", "in_distribution": "new tasks of the subspace",
    "out_of_distribution": "tasks of another subspace",
}  # fmt: skip
FULL = Case(points=80, draws=Draws((24, 48, 96), (16, 6, 2)))
STUDY = Study(
    name="rank-transition", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=8, size=(8.0, 3.6)), "full": Preset(FULL, seeds=8, size=(8.0, 3.6))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        *(
            Agrees(f"theory/orders/{name}", f"Order parameters are the spectrum with zeros, on {words}.", 1e-9,
                   f"spectrum/{name}")
            for name, words in WORDS.items()
        ),
        Agrees("theory/orders/in_distribution", "Low rank is white at other ratios.", 1e-9, "white/in_distribution"),
        Agrees("theory/bend/share", "The error bends most where s = κ.", 0.01, "bend/kappa", unit="one"),
        Agrees("theory/gap/gap", "At the transition the gap closes like the root of 1/α.", 0.02, "gap/closed"),
        *judged_errors(0.06, ["icl", "idg"]),
        *tending_errors(["icl", "idg"], limit="limit"),
    ),
    vocabulary=SIZES | vocabulary(
        share=("s", "share of directions that tasks of pretraining have"),
        matched=("e", "error on tasks of the pool", "label²"),
        in_distribution=("e_in", "error on new tasks of the subspace", "label²"),
        out_of_distribution=("e_out", "error on tasks of another subspace", "label²"),
        closed=("½√(s(1 + ρ)/α)", "gap at the transition in closed form", "label²"),
    ),
)  # fmt: skip
