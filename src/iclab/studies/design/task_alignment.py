"""What does a test cost after pretraining on other tasks?

Pretraining is on tasks of a power-law spectrum, tests on many others: steeper and flatter ones, reversed and
shuffled, on few directions and on those that pretraining never shows, in the basis of pretraining and in rotated
ones. The error is linear in the covariance of the test, so that a cost for each direction says what every test
costs, and only the diagonal of its covariance counts. Theory is the limit, beside the formula of two spectra, and
the leverage prediction of drawn runs. After arXiv 2509.26551.
"""

from dataclasses import dataclass

import numpy as np

from iclab import figures
from iclab.claims import Agrees, above
from iclab.numerics import Checked, Count, Magnitude, Magnitudes, Nonnegative, Positive
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.problem import ContextLaw, NormalTasks, Pool, Pretraining, Ratios, SphereTasks
from iclab.problem.readouts import exact_error
from iclab.studies.pretraining.runs import SIZES, Ridge
from iclab.studies.pretraining.sizes import STREAM
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]


@dataclass(frozen=True)
class Case(Checked):
    """Pretraining on one spectrum, tests on many."""

    power: Positive = 1.0  # pretraining has variances in proportion to j^-power
    alpha: Magnitude = 2.0  # α = N/D, examples of a context
    tau: Magnitude = 3.0  # τ = n/D², pretraining sequences
    noise: Nonnegative = 0.1  # ρ, variance of the label noise
    ridge: Ridge = 0.1  # λ, ridge of the readout
    kappa: Magnitudes = (0.5, 2.0)  # κ = K/D, tasks of the pool
    dimension: Count = 20  # D of the drawn runs
    runs: Count = 40  # runs drawn for each seed and κ
    pools: Count = 128  # pools whose mean prediction is taken

    def __post_init__(self) -> None:
        super().__post_init__()
        for kappa in self.kappa:
            _ = self.size(kappa)

    def size(self, kappa: float) -> Pretraining:
        """The whole sizes of the runs."""
        return Pretraining.of(Ratios(self.alpha, kappa, self.tau, self.noise), self.dimension, balanced=False)

    @property
    def spectrum(self) -> np.ndarray:
        """Variances of the tasks of pretraining."""
        return _power_law(self.dimension, self.power)

    def covariances(self) -> list[np.ndarray]:
        """Covariances of the tests' tasks, each of mean variance 1."""
        d, stream = self.dimension, np.random.default_rng(STREAM)
        one = np.eye(d)
        tops = [_level(d, range(count)) for count in (1, 2, d // 4, d // 2)]
        last = _level(d, range(d // 2, d))
        laws = [_power_law(d, power) for power in (0.0, 0.5, 1.0, 2.0)]
        diagonal = [*tops, *laws, laws[2][::-1], last, stream.permutation(laws[2])]
        turned = np.linalg.qr(stream.standard_normal((d, d)))[0]
        half = np.linalg.qr(one + 0.2 * stream.standard_normal((d, d)))[0]
        rotated = [
            turned @ np.diag(laws[2]) @ turned.T,
            half @ np.diag(laws[2]) @ half.T,
            half @ np.diag(tops[1]) @ half.T,
        ]
        return [*map(np.diag, diagonal), *rotated]

    def laws(self, kappa: float) -> list[ContextLaw]:
        """The contexts of the tests."""
        length = self.size(kappa).context_length
        return [ContextLaw(NormalTasks(covariance), length, self.noise) for covariance in self.covariances()]


def _power_law(count: int, power: float) -> np.ndarray:
    c = np.arange(1, count + 1.0) ** -power
    return c / np.mean(c)


def _level(count: int, held: range) -> np.ndarray:
    c = np.zeros(count)
    c[list(held)] = count / len(held)
    return c


def theory(case: Case) -> dict[str, Labeled]:
    """Errors of all tests by costs and by the formula of two spectra; predictions of drawn runs; costs."""
    from iclab.theory.generalization import structured_errors, test_costs

    tests = case.covariances()
    spectra = [np.diag(test) for test in tests]
    axes = {"kappa": case.kappa, "test": np.arange(1, len(tests) + 1)}
    costs, by_cost, by_two = [], [], []
    for kappa in case.kappa:
        given = {"task_eigenvalues": case.spectrum, "ridge": case.ridge}
        ratios = case.size(kappa).ratios
        constant, cost = test_costs(ratios, **given)
        costs.append(cost)
        by_cost.append([constant + np.mean(cost * new) for new in spectra])
        by_two.append([structured_errors(ratios, **given, test_task_eigenvalues=new).icl for new in spectra])
    return {
        "costs": labeled({"kappa": case.kappa, "direction": np.arange(1, case.dimension + 1)}, cost=np.array(costs)),
        "limit": labeled(axes, icl=np.array(by_cost)),
        "two_spectra": labeled(axes, icl=np.array(by_two)),
        "cheapest": labeled(
            {"kappa": case.kappa}, test=1 + np.argmin(by_cost, axis=1), one=np.ones(len(case.kappa))
        ),
        "predicted": labeled(axes, icl=np.array([_predicted(case, kappa) for kappa in case.kappa])),
    }  # fmt: skip


def _predicted(case: Case, kappa: float) -> np.ndarray:
    """The pool prediction of every test, a mean over pools, times what leverage adds for one of them."""
    from iclab.theory.finite_size import leverage_errors, pool_errors

    size, sphere = case.size(kappa), SphereTasks(case.dimension, np.diag(case.spectrum))
    assert size.tasks is not None
    pools = [Pool(sphere.draw(size.tasks, np.random.default_rng((STREAM, i)))) for i in range(case.pools)]
    laws = [ContextLaw(pool, size.context_length, case.noise) for pool in pools]

    def mean(new: ContextLaw) -> float:
        given = {"ridge": case.ridge, "new": new}
        each = [float(pool_errors(law, size.sequences, **given).icl) for law in laws]
        return float(np.mean(each) + leverage_errors(laws[0], size.sequences, **given).icl - each[0])

    return np.array([mean(new) for new in case.laws(kappa)])


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Errors of drawn runs on all tests, exact for the readout of each, and their rank correlation with alignment."""
    import jax
    from scipy import stats

    from iclab.simulation.pretraining import fit_each

    found = []
    for i, kappa in enumerate(case.kappa):
        keys = jax.random.split(jax.random.fold_in(key, i), case.runs)
        fits = fit_each(case.size(kappa), ridge=case.ridge, task_eigenvalues=tuple(case.spectrum.tolist()), keys=keys)
        found.append([np.mean([float(exact_error(fit.readout, new)) for fit in fits]) for new in case.laws(kappa)])
    tests = np.arange(1, len(found[0]) + 1)
    steep = [np.mean(np.diag(test) / np.arange(1, case.dimension + 1) ** 0.5) for test in case.covariances()]
    order = [-float(np.corrcoef(stats.rankdata(one), stats.rankdata(steep))[0, 1]) for one in found]
    return {
        "tests": labeled({"kappa": case.kappa, "test": tests}, icl=np.array(found)),
        "order": labeled({"kappa": case.kappa}, spearman=np.array(order)),
    }


def figure(view: View, figure: Figure) -> None:
    """Costs of a test in each direction, and errors of runs against predicted ones."""
    costs, errors = figure.subplots(1, 2)
    theory = view.theory
    for color, kappa in figures.colored(theory.costs.kappa.values):
        each = theory.costs.cost.sel(kappa=kappa)
        figures.theory_line(costs, each.direction, each, color=color, label=f"κ = {kappa:g}")
        limit = theory.limit.icl.sel(kappa=kappa)
        figures.theory_line(errors, np.sort(limit), np.sort(limit), color=color, label=f"κ = {kappa:g}, D → ∞")
        predicted = theory.predicted.icl.sel(kappa=kappa)
        errors.plot(limit, predicted, "x", color=color, ms=4)
        if view.simulation:
            found = view.simulation.tests.icl.sel(kappa=kappa)
            figures.mean_points(errors, limit, found, color=color, label=f"κ = {kappa:g}, runs")
    costs.set(xlabel="direction  $j$", ylabel="cost of a test", title="costs of tests")
    errors.set(xlabel="error in the limit", ylabel="mean squared error", title="spectra and rotations of tests")
    for axes in (costs, errors):
        axes.legend(fontsize=7)


FULL = Case(kappa=(0.25, 0.5, 1.0, 2.0, 8.0), dimension=40)
STUDY = Study(
    name="task-alignment", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=8, size=(8.0, 3.6)), "full": Preset(FULL, seeds=8, size=(8.0, 3.6))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        Agrees("theory/limit/icl", "One cost for each direction gives the error of every test.", 1e-9,
               "two_spectra/icl"),
        Agrees("theory/cheapest/test", "The best trained direction alone is the cheapest test.", 1e-9, "cheapest/one",
               unit="one"),
        Agrees("tests/icl", "Means of drawn runs are as predicted for their sizes, on every test.", 0.06,
               "predicted/icl"),
        above("order/spearman", "Errors of runs fall as tests lie along well trained directions.", 0.9),
    ),
    unjudged={"theory/costs/cost": "the errors that they give are judged"},
    vocabulary=SIZES | vocabulary(
        cost=("K + B/α_t", "cost of a test in a direction", "label²"),
        test=("", "number of the test"),
        direction=("j", "direction of the basis of pretraining"),
        spearman=("r_s", "rank correlation of errors with alignment"),
        one=("1", "number of the test on the first direction alone"),
    ),
)  # fmt: skip
