"""What do structured inputs and tasks change, and what do new tasks of another law cost?

Inputs and tasks have power-law spectra in one eigenbasis, strong inputs with weak tasks, scaled so that labels vary
as much as those of white data; new tasks are white, and their contexts may have another length than those of
pretraining. Theory is the proportional limit with the spectrum of the lowest drawn dimension, to which the pool
prediction tends where every eigenvalue comes more and more times, and the leverage prediction of drawn runs.
Simulation draws runs, fits their readouts and takes their errors under the test law. Extends arXiv 2405.11751, whose
data are white.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from iclab import figures
from iclab.claims import Agrees
from iclab.numerics import Checked, Magnitude, Nonnegative, Positive, Positives
from iclab.outcomes import Errors, Labeled, labeled, parts
from iclab.problem import ContextLaw, Pretraining, Ratios, SphereTasks
from iclab.studies.pretraining import links
from iclab.studies.pretraining.panels import SEQUENCES, error_axes, run_points
from iclab.studies.pretraining.runs import ERRORS, Draws, Grid, Ridge, Run
from iclab.studies.pretraining.sizes import Span, bounds
from iclab.study import Figure, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "theory"]

MULTIPLES = (2, 4, 8)  # of the lowest drawn dimension, from which the pool prediction is extrapolated


@dataclass(frozen=True)
class Case(Checked):
    """Pretraining on structured data, tests on white tasks."""

    alpha: Magnitude = 4.0  # α = N/D, examples of a context
    test_alpha: Positive = 32.0  # α at test
    kappa: Magnitude = 0.625  # κ = K/D, tasks of the pool
    noise: Nonnegative = 0.1  # ρ, variance of the label noise
    ridge: Ridge = 1e-3  # λ, ridge of the readout
    input_power: Nonnegative = 0.7  # inputs have eigenvalues in proportion to j^-power
    task_power: Nonnegative = 0.4  # tasks have eigenvalues in proportion to (D + 1 − j)^-power
    tau: Span = Span(0.2, 10.0, 25)  # τ = n/D², pretraining sequences of the curves
    drawn_tau: Positives = (0.6, 2.0)  # τ of the drawn runs
    draws: Draws = Draws((24,), (12,), below=2)  # runs

    def __post_init__(self) -> None:
        super().__post_init__()
        Ratios(self.alpha, self.kappa, np.array(self.drawn_tau), self.noise)

    def spectra(self, dimension: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Relative eigenvalues of inputs and of tasks, with which labels have variance 1 before noise."""
        j = np.arange(1, dimension + 1.0)
        inputs, tasks = j**-self.input_power, j[::-1] ** -self.task_power
        inputs = inputs / np.mean(inputs)
        return tuple(inputs.tolist()), tuple((tasks / np.mean(inputs * tasks)).tolist())

    def test_length(self, dimension: int) -> int:
        """N at test."""
        return max(1, round(self.test_alpha * dimension))

    def predicted(self, ratios: Ratios, dimension: int) -> Errors:
        """The limit: ICL on white tasks at the test length, IDG and training error as in pretraining."""
        from iclab.theory.generalization import Shift, structured_errors

        inputs, tasks = (np.array(part) for part in self.spectra(dimension))
        given = {"task_eigenvalues": tasks, "input_eigenvalues": inputs, "test_task_eigenvalues": np.ones(dimension)}
        shifts = (Shift(alpha=self.test_length(dimension) / dimension), None)
        new, known = (structured_errors(ratios, **given, ridge=self.ridge, shift=shift) for shift in shifts)
        return replace(known, icl=new.icl)

    @property
    def drawn(self) -> Grid:
        """The runs that are drawn, the spectrum of each dimension its own."""
        return self._runs(self.draws.dimension, balanced=True)

    @property
    def far(self) -> Grid:
        """Runs in multiples of the lowest drawn dimension, with every eigenvalue of its spectrum as many times."""
        return self._runs([times * self.draws.dimension[0] for times in MULTIPLES], balanced=False)

    def _runs(self, dimensions: Iterable[int], *, balanced: bool) -> Grid:
        def run(dimension: int, tau: float) -> Run:
            size = Pretraining.of(Ratios(self.alpha, self.kappa, tau, self.noise), dimension, balanced=balanced)
            own = dimension if balanced else self.draws.dimension[0]
            inputs, tasks = (dimension // own * part for part in self.spectra(own))
            new = ContextLaw(SphereTasks(dimension), self.test_length(dimension), self.noise, np.diag(inputs))
            return Run(size, self.ridge, inputs, tasks, new)

        return Grid.of(run, dimension=dimensions, tau=self.drawn_tau)


def theory(case: Case) -> dict[str, Labeled]:
    """Curves with the spectrum of the lowest drawn dimension; pool and leverage predictions."""
    from iclab.theory.generalization import errors, structured_errors

    tau, least = np.union1d(case.tau.grid(), case.drawn_tau), case.draws.dimension[0]
    ratios = Ratios(case.alpha, case.kappa, tau, case.noise)
    level = structured_errors(ratios, task_eigenvalues=[1.0], input_eigenvalues=[1.0], ridge=case.ridge)
    return {
        "curves": labeled({"tau": tau}, **parts(case.predicted(ratios, least), *ERRORS)),
        "white": labeled({"tau": tau}, **parts(errors(ratios, ridge=case.ridge), *ERRORS)),
        "level": labeled({"tau": tau}, **parts(level, *ERRORS)),
        "sizes": case.drawn.sizes(),
        "leverage": case.drawn.predicted(links.leverage_mean),
        "far": case.far.predicted(partial(links.pool_mean, more=4)),
        "bounds": bounds(case.noise),
    }


def figure(view: View, figure: Figure) -> None:
    """Errors on new tasks and on the pool against τ, with those of white data."""
    curves, white, ink = view.theory.curves, view.theory.white, figures.INK
    titles = {"icl": "on white new tasks, at the test length", "idg": "on tasks of the pool"}
    for axes, (target, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        figures.theory_line(axes, curves.tau, curves[target], color=figures.COLORS[0], label="structured data")
        figures.dashed_line(axes, white.tau, white[target], color=ink, label="white data, same ratios, no shift")
        run_points(axes, view, target, "tau")
        error_axes(axes, view, SEQUENCES, title=title)
        axes.legend(fontsize=7)


FULL = Case(drawn_tau=(0.3, 0.6, 2.0, 4.0), draws=Draws((25, 50, 100), (8, 2, 1)))
STUDY = Study(
    name="structured", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), seeds=8, size=(8.0, 3.6)), "full": Preset(FULL, seeds=8, size=(8.0, 3.6))},
    theory=theory, simulation=links.simulated, figure=figure,
    claims=(
        *links.linked(),
        *(Agrees(f"theory/level/{name}", f"Level spectra are white data, {words}.", 1e-6, f"white/{name}")
          for name, words in links.WORDS.items()),
        *links.SCORED,
    ),
    vocabulary=links.VOCABULARY, unjudged=links.BOUNDS,
)  # fmt: skip
