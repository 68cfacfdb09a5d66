"""What do structured inputs and tasks change, and what do new tasks of another law cost?

Inputs and tasks have power-law spectra in one eigenbasis, strong inputs with weak tasks, scaled so that labels vary
as much as those of white data; new tasks are white, and their contexts may have another length than those of
pretraining. Theory is the proportional limit with the spectrum of each dimension, at the ratios of its whole sizes.
Simulation draws runs, fits their readouts and takes their errors under the test law; their means tend to the limit
like 1/D. Extends arXiv 2405.11751, whose data are white.
"""

from dataclasses import dataclass, replace

import numpy as np

from iclab import figures
from iclab.claims import LimitOfMeans
from iclab.numerics import Checked, Magnitude, Nonnegative, Positive, Positives
from iclab.outcomes import Errors, Labeled, labeled, parts
from iclab.problem import ContextLaw, Pretraining, Ratios, SphereTasks
from iclab.studies.pretraining.panels import SEQUENCES, error_axes, run_points
from iclab.studies.pretraining.runs import ERRORS, SIZES, Draws, Grid, Ridge, Run, simulated
from iclab.studies.pretraining.sizes import Span, bounds
from iclab.study import Figure, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "theory"]


@dataclass(frozen=True)
class Case(Checked):
    """Pretraining on structured data, tests on white tasks."""

    alpha: Magnitude = 4.0  # α = N/D, examples of a context
    test_alpha: Positive = 32.0  # α at test
    kappa: Magnitude = 0.6  # κ = K/D, tasks of the pool
    noise: Nonnegative = 0.1  # ρ, variance of the label noise
    ridge: Ridge = 1e-3  # λ, ridge of the readout
    input_power: Nonnegative = 0.7  # inputs have eigenvalues in proportion to j^-power
    task_power: Nonnegative = 0.4  # tasks have eigenvalues in proportion to (D + 1 − j)^-power
    tau: Span = Span(0.2, 10.0, 25)  # τ = n/D², pretraining sequences of the curves
    drawn_tau: Positives = (0.6, 2.0)  # τ of the drawn runs
    draws: Draws = Draws((12, 20, 36), (6, 3, 1), route="plain")  # runs

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
        """The runs that are drawn."""

        def run(dimension: int, tau: float) -> Run:
            size = Pretraining.of(Ratios(self.alpha, self.kappa, tau, self.noise), dimension)
            inputs, tasks = self.spectra(dimension)
            new = ContextLaw(SphereTasks(dimension), self.test_length(dimension), self.noise, np.diag(inputs))
            return Run(size, self.ridge, inputs, tasks, new)

        return Grid.of(run, dimension=self.draws.dimension, tau=self.drawn_tau)


def theory(case: Case) -> dict[str, Labeled]:
    """Curves with the spectrum of the highest dimension, and the limit for every drawn run."""
    from iclab.theory.generalization import errors

    tau = case.tau.grid()
    ratios = Ratios(case.alpha, case.kappa, tau, case.noise)
    curves = case.predicted(ratios, case.draws.dimension[-1])
    return {
        "curves": labeled({"tau": tau}, **parts(curves, *ERRORS)),
        "white": labeled({"tau": tau}, **parts(errors(ratios, ridge=case.ridge), *ERRORS)),
        "sizes": case.drawn.sizes(),
        "runs": case.drawn.predicted(lambda run: case.predicted(run.size.ratios, run.size.dimension)),
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
    name="structured", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=8, size=(8.0, 3.6)), "full": Preset(FULL, seeds=8, size=(8.0, 3.6))},
    theory=theory, simulation=simulated, figure=figure,
    claims=(LimitOfMeans("Means tend to the limit, on new tasks of another law and on the pool."),),
    vocabulary=SIZES,
)  # fmt: skip
