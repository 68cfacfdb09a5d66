"""Can pretraining on other tasks than the test's be better?

Tests have tasks of a power-law spectrum; pretraining is on a pool of few drawn tasks, either of that spectrum or of
the one planned for least error at the same trace and ridge. Where the pool has fewer tasks than there are
directions a steeper spectrum on fewer of them is better; with more tasks, long contexts and infinite pretraining a
flatter one. Theory is the limit, the pool prediction of far dimensions in which every eigenvalue comes more often,
and the leverage prediction of drawn runs, whose seeds are shared by both spectra. Extends arXiv 2509.26551, which
gives the error for given spectra.
"""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from iclab import figures
from iclab.claims import Agrees, Tends, above
from iclab.numerics import Checked, Count, Magnitude, Magnitudes, Nonnegative, Positive, require
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.planning import PlannedSpectrum, planned_spectrum
from iclab.problem import ContextLaw, Pretraining, Ratios, SphereTasks
from iclab.studies.pretraining.links import judged_errors, leverage_mean, pool_mean
from iclab.studies.pretraining.panels import TASKS
from iclab.studies.pretraining.runs import SIZES, Draws, Grid, Ridge, Run
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

TIMES = (4, 8, 16)  # as often comes every eigenvalue where the pool prediction is extrapolated
KINDS = ("matched", "planned")


@dataclass(frozen=True)
class Case(Checked):
    """Pretraining on matched and on planned spectra."""

    power: Positive = 1.0  # tests have variances in proportion to j^-power
    alpha: Magnitude = 2.0  # α = N/D, examples of a context
    tau: Magnitude = 3.0  # τ = n/D², pretraining sequences
    noise: Nonnegative = 0.01  # ρ, variance of the label noise
    ridge: Ridge = 0.03  # λ, ridge of the readout
    kappa: Magnitudes = (0.15, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # κ = K/D, tasks of the pool, of the curves
    drawn_kappa: Magnitudes = (0.25, 0.5)  # κ of the drawn runs
    long_alpha: Magnitude = 64.0  # α at which the best exponent is found, with infinite pretraining
    directions: Count = 40  # of the spectrum at which it is found
    draws: Draws = Draws((24,), (10,))  # runs; dimensions are multiples of the first one

    def __post_init__(self) -> None:
        super().__post_init__()
        Ratios(self.alpha, np.array(self.kappa), self.tau, self.noise)
        least = self.draws.dimension[0]
        require(
            all(dimension % least == 0 for dimension in self.draws.dimension),
            f"draws.dimension must be multiples of the first, {least}; got {self.draws.dimension}.",
        )

    @property
    def new(self) -> np.ndarray:
        """Variances of the tests' tasks in the lowest drawn dimension."""
        return _power_law(self.draws.dimension[0], self.power)

    def plan(self, kappa: float) -> PlannedSpectrum:
        """The planned spectrum of a pool."""
        ratios = Ratios(self.alpha, kappa, self.tau, self.noise)
        return planned_spectrum(ratios, test_task_eigenvalues=self.new, ridge=self.ridge)

    @cached_property
    def _plans(self) -> dict[float, PlannedSpectrum]:
        return {kappa: self.plan(kappa) for kappa in self.drawn_kappa}

    def runs(self, dimension: tuple[int, ...], kind: str) -> Grid:
        """Runs on one kind of spectrum, tested on the test's."""
        least = self.draws.dimension[0]

        def run(dimension: int, kappa: float) -> Run:
            ratios = Ratios(self.alpha, kappa, self.tau, self.noise)
            size = Pretraining.of(ratios, dimension, balanced=False)
            own = self.new if kind == "matched" else self._plans[kappa].task_eigenvalues
            c, tests = (np.repeat(spectrum, dimension // least) for spectrum in (own, self.new))
            new = ContextLaw(SphereTasks(dimension, np.diag(tests)), size.context_length, self.noise)
            return Run(size, self.ridge, tasks=tuple(c.tolist()), new=new)

        return Grid.of(run, dimension=dimension, kappa=self.drawn_kappa)


def _power_law(count: int, power: float) -> np.ndarray:
    c = np.arange(1, count + 1.0) ** -power
    return c / np.mean(c)


def theory(case: Case) -> dict[str, Labeled]:
    """Matched, planned and chosen in the limit; predictions of drawn runs; the κ from which flatter is better."""
    plans = [case.plan(kappa) for kappa in case.kappa]
    chosen = [_chosen(case, kappa) for kappa in case.kappa]
    some = [case.plan(kappa) for kappa in case.drawn_kappa]
    least = case.draws.dimension[0]
    far = {kind: case.runs(tuple(times * least for times in TIMES), kind).predicted(partial(pool_mean, more=4))
           for kind in KINDS}  # fmt: skip
    sizes = np.geomspace(0.4, 2.5, 12)
    exponents = np.array([_best_exponent(case, kappa) for kappa in sizes])
    kinds = {kind: case.runs(case.draws.dimension, kind) for kind in KINDS}
    return {
        "limit": labeled(
            {"kappa": case.kappa}, matched=np.array([plan.matched_error for plan in plans]),
            planned=np.array([plan.error for plan in plans]), chosen=np.array(chosen),
        ),
        "spectrum": labeled(
            {"kappa": case.drawn_kappa, "direction": np.arange(1, least + 1)},
            variance=np.array([plan.task_eigenvalues for plan in some]),
        ),
        "gain": labeled({"kappa": case.drawn_kappa}, icl=np.array([one.matched_error - one.error for one in some])),
        "far_gain": _gain(far["matched"], far["planned"]),
        "exponent": labeled({"kappa": sizes}, exponent=exponents),
        "crossing": labeled({}, kappa=_crossing(sizes, exponents - case.power), one=1.0),
        "sizes": kinds["planned"].sizes(),
        **{f"{kind}_leverage": kinds[kind].predicted(leverage_mean) for kind in KINDS},
    }  # fmt: skip


def _chosen(case: Case, kappa: float) -> float:
    ratios = Ratios(case.alpha, kappa, case.tau, case.noise)
    return planned_spectrum(ratios, test_task_eigenvalues=case.new, ridge=case.ridge, pool="chosen").error


def _gain(matched: Labeled, planned: Labeled) -> Labeled:
    """The difference of ICL errors, with the labels of both."""
    return labeled(matched.axes, icl=matched.icl - planned.icl)


def _best_exponent(case: Case, kappa: float) -> float:
    """The p of least error among c ∝ j^-p, with long contexts and infinite pretraining without ridge."""
    from scipy import optimize

    from iclab.theory.generalization import test_costs

    ratios, new = Ratios(case.long_alpha, kappa, np.inf, 0.1), _power_law(case.directions, case.power)

    def error(power: float) -> float:
        constant, costs = test_costs(ratios, task_eigenvalues=_power_law(case.directions, power))
        return constant + float(np.mean(new * costs))

    return float(np.asarray(optimize.fminbound(error, 0.0, 6.0)).item())


def _crossing(sizes: np.ndarray, excess: np.ndarray) -> float:
    """The size at which an excess first falls through 0; inf where it does not."""
    falls = np.flatnonzero((excess[:-1] > 0) & (excess[1:] <= 0))
    if not len(falls):
        return float("inf")
    i = falls[0]
    return float(sizes[i] * (sizes[i + 1] / sizes[i]) ** (excess[i] / (excess[i] - excess[i + 1])))


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Errors of drawn runs on both spectra, exact for the readout of each, and what the planned one gains."""
    found = {kind: case.runs(case.draws.dimension, kind).simulated(case.draws, key=key) for kind in KINDS}
    return found | {"gain": _gain(found["matched"], found["planned"])}


def figure(view: View, figure: Figure) -> None:
    """Errors against κ for matched, planned and chosen pools; planned variances; the best exponent."""
    errors, spectra, best = figure.subplots(1, 3)
    theory, limit = view.theory, view.theory.limit
    for color, kind in figures.colored((*KINDS, "chosen")):
        figures.theory_line(errors, limit.kappa, limit[kind], color=color, label=f"{kind}, D → ∞")
        if view.simulation and kind in KINDS:
            for i, runs in enumerate(view.simulation[kind].icl.transpose("dimension", ...)):
                label = None if i else f"{kind}: runs"
                figures.mean_points(errors, runs.kappa, runs, color=color, label=label)
    errors.set(xscale="log", xlabel=TASKS, ylabel="mean squared error", title="on tests of the given spectrum")
    for color, kappa in figures.colored(theory.spectrum.kappa.values):
        c = theory.spectrum.variance.sel(kappa=kappa).values
        used = c > 0
        spectra.plot(view.case.new[used], c[used], "o", ms=3, color=color, label=f"κ = {kappa:g}")
    ends = np.array([view.case.new[-1], view.case.new[0]])
    figures.dashed_line(spectra, ends, ends, color=figures.INK, label="as the test")
    spectra.set(xscale="log", yscale="log", xlabel="variance at test", ylabel="planned variance", title="spectra")
    figures.theory_line(best, theory.exponent.kappa, theory.exponent.exponent)
    figures.level_lines(best, [view.case.power], label="as the test")
    best.axvline(float(theory.crossing.kappa), color=figures.COLORS[1], lw=1, ls="--", label="crossing")
    best.set(xscale="log", xlabel=TASKS, ylabel="best exponent", title=f"α = {view.case.long_alpha:g}, τ = ∞")
    for axes in (errors, spectra, best):
        axes.legend(fontsize=7)


FULL = Case(draws=Draws((24, 48, 96), (16, 6, 2)), drawn_kappa=(0.25, 0.5, 1.0))
STUDY = Study(
    name="task-design", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=8, size=(11.0, 3.6)), "full": Preset(FULL, seeds=8, size=(11.0, 3.6))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        *(
            claim
            for kind in KINDS
            for claim in judged_errors(0.07, ["icl"], runs=kind, theory=f"{kind}_leverage", panel=f", {kind}")
        ),
        above("gain/icl", "Runs on the planned spectrum have the smaller errors.", 0.0),
        Tends("theory/far_gain/icl", "The gain of the pool prediction tends to that of the limit.", 0.05,
              along="dimension", theory="gain/icl"),
        Agrees("theory/crossing/kappa", "Flatter spectra become better at one task for each direction.", 0.15,
               "crossing/one", unit="one"),
    ),
    unjudged={
        "theory/limit/matched": "the limit to whose gain the pool prediction tends, at more κ",
        "theory/limit/planned": "the limit to whose gain the pool prediction tends, at more κ",
        "theory/limit/chosen": "chosen pools are judged by chosen-pool",
        "theory/spectrum/variance": "the spectra of the runs whose errors are judged",
        "theory/exponent/exponent": "its crossing is judged",
    },
    vocabulary=SIZES | vocabulary(
        matched=("e", "error after pretraining on the test's spectrum", "label²"),
        planned=("e", "error after pretraining on the planned spectrum", "label²"),
        chosen=("e", "error after pretraining on a chosen pool", "label²"),
        direction=("j", "direction of the common basis"),
        variance=("c", "variance of the tasks in a direction"),
        exponent=("p", "best exponent of a power law"),
        one=("1", "one task for each direction"),
    ),
)  # fmt: skip
