"""Which exponent does depth buy on spectra that fall as a power?

In infinite contexts whose spectrum is fixed and whose directions turn, tied layers lose the power L^−β of the depth
and untied ones L^−(2 + ν)β: they can take modes one by one. In finite contexts eigenvalues fluctuate, modes cannot be
taken, and what is left is near 2β: found here, not proved. Theory: best layers by Lanczos, and a closed form at ν =
2, β = ½; finite contexts by two contour integrals over resolvents, which leave out the 1/N of single modes.
Simulation fits the best polynomial to drawn covariances by least squares. The setting is that of arXiv 2510.01098.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.claims import Agrees, below
from iclab.numerics import Checked, Count, Positive, require
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.problem import Lengths
from iclab.studies.depth.samples import WORDS
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case"]

LAWS = ((1.5, 1.0), (1.2, 1.5), (2.0, 0.5))  # ν, β
DEEP = (1, 2, 4, 8, 16, 32, 64, 128)

Array = np.ndarray


@dataclass(frozen=True)
class Case(Checked):
    """Spectra that fall as powers, in infinite contexts and in finite ones."""

    exponent: Positive = 1.5  # ν, of the input eigenvalues k^−ν, in finite contexts
    source: Positive = 1.0  # β, of the signal k^−(νβ + 1) of the modes
    dimension: Count = 120  # D, entries of an input
    context_length: Count = 480  # N, labeled examples before the query
    depths: Lengths = (1, 2, 4, 8)  # L, layers of the stacks in finite contexts
    contexts: Count = 500  # drawn contexts

    def __post_init__(self) -> None:
        super().__post_init__()
        require(len(set(self.depths)) >= 2, f"depths must be two or more different ones; got {self.depths}.")


def theory(case: Case) -> dict[str, Labeled]:
    """Best excess against depth, local exponents and what they tend to; finite contexts by contour integrals."""
    from iclab.theory import depth

    laws = [depth.power_law(*one) for one in LAWS]
    untied = np.array([[depth.best_excess(law, count) for count in DEEP] for law in laws])
    tied = np.array([[depth.tied_excess(law, count) for count in DEEP] for law in laws])
    finite = depth.finite_contexts(*_spectrum(case), case.context_length)
    own = depth.power_law(case.exponent, case.source, case.dimension)
    bessel = [depth.untied_bessel_excess(count) for count in DEEP]
    return {
        "infinite": labeled({"case": None, "depth": DEEP}, untied=untied, tied=tied),
        "exponents": labeled({"case": None}, untied=_last_exponent(untied), tied=_last_exponent(tied)),
        "powers": labeled(
            {"case": None}, untied=[(2 + nu) * beta for nu, beta in LAWS], tied=[beta for _, beta in LAWS]
        ),
        "bessel": labeled({"depth": DEEP}, untied=bessel),
        "lanczos": labeled({"depth": DEEP}, untied=untied[LAWS.index((2.0, 0.5))]),
        "finite": labeled(
            {"depth": case.depths},
            untied=[finite.best_excess(one) for one in case.depths],
            tied=[finite.tied_excess(one) for one in case.depths],
        ),
        "fixed": labeled({"depth": case.depths}, untied=[depth.best_excess(own, one) for one in case.depths]),
    }


def _spectrum(case: Case) -> tuple[Float[Array, "D"], Float[Array, "D"]]:
    """Eigenvalues of inputs and of tasks."""
    k = np.arange(1.0, case.dimension + 1)
    return k**-case.exponent, k ** (case.exponent - case.exponent * case.source - 1)


def _last_exponent(excess: Float[Array, "case depth"]) -> Float[Array, "case"]:
    return np.log2(excess[:, -2] / excess[:, -1])


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """The best polynomials and the best equal layers on drawn covariances, and the exponent of the former."""
    from iclab.problem import Regression
    from iclab.simulation.linear import depth

    inputs, tasks = _spectrum(case)
    problem = Regression(tuple(inputs), case.context_length, task_eigenvalues=tuple(tasks))
    drawn = depth.draw_covariances(problem, case.contexts, key=key)
    values, vectors = np.linalg.eigh(drawn)
    most, deepest = float(np.max(values)), max(case.depths)
    square = np.zeros((2 * deepest + 1, 2 * deepest + 1))
    signal = float(np.dot(inputs, tasks))
    for points, axes in zip(values, vectors, strict=True):
        seen, asked = axes.T @ (inputs[:, None] * axes), axes.T @ (tasks[:, None] * axes)
        basis = np.polynomial.chebyshev.chebvander(2 * points / most - 1, 2 * deepest)
        square += basis.T @ (seen * asked) @ basis / (signal * len(drawn))
    untied = np.array([least(square, count) for count in case.depths])
    return {
        "finite": labeled(
            {"depth": case.depths}, untied=untied, tied=[least_equal(square, count) for count in case.depths]
        ),
        "slope": labeled(
            {}, share=np.log2(untied[-2] / untied[-1]) / np.log2(case.depths[-1] / case.depths[-2])
            / ((2 + case.exponent) * case.source),
        ),
    }  # fmt: skip


def least(square: Float[Array, "n n"], degree: int) -> float:
    """The least mean square of a polynomial of that degree with p(0) = 1, from that of Chebyshev polynomials."""
    at_zero = (-1.0) ** np.arange(degree + 1)
    return float(1 / (at_zero @ np.linalg.solve(square[: degree + 1, : degree + 1], at_zero)))


def least_equal(square: Float[Array, "n n"], degree: int) -> float:
    """The least mean square of (1 − g x)^L, from that of Chebyshev polynomials of x over its largest value."""
    from scipy.optimize import minimize_scalar

    def height(step: float) -> float:
        line = np.polynomial.Chebyshev([1 - step / 2, -step / 2])
        kept = (line**degree).coef
        return float(kept @ square[: degree + 1, : degree + 1] @ kept)

    found = minimize_scalar(height, bounds=(0.2, 2.5), method="bounded")
    return float(found.fun)  # pyright: ignore[reportAttributeAccessIssue]


def figure(view: View, figure: Figure) -> None:
    """Excess against depth: infinite contexts of three laws; finite contexts beside the fixed spectrum."""
    infinite, finite = figure.subplots(1, 2)
    known, here, fixed = (view.theory[name] for name in ("infinite", "finite", "fixed"))
    for color, (place, (nu, beta)) in figures.colored(enumerate(LAWS)):
        label = f"ν = {nu:g}, β = {beta:g}"
        figures.theory_line(infinite, known.depth, known.untied.isel(case=place), color=color, label=label)
        figures.dashed_line(infinite, known.depth, known.tied.isel(case=place), color=color)
    figures.dashed_line(finite, fixed.depth, fixed.untied, color=figures.INK, label="untied, infinite context")
    for color, name in figures.colored(("untied", "tied")):
        figures.theory_line(finite, here.depth, here[name], color=color, label=f"{name}, contours")
        if view.simulation:
            run = view.simulation.finite
            figures.mean_points(finite, run.depth, run[name], color=color, label=f"{name}, drawn")
    case = view.case
    infinite.set(title="infinite contexts; dashed: tied", ylabel="excess over signal variance")
    finite.set(title=f"ν = {case.exponent:g}, β = {case.source:g}, D = {case.dimension}, N = {case.context_length}")
    for axes in (infinite, finite):
        axes.set(xscale="log", yscale="log", xlabel="layers $L$")
        axes.legend()


FULL = Case(dimension=240, context_length=960, depths=(1, 2, 4, 8, 16), contexts=300)

STUDY = Study(
    name="depth-spectrum", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=4, size=(9.0, 3.6)), "full": Preset(FULL, seeds=4, size=(9.0, 3.6))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        Agrees(
            "theory/exponents/untied", "From 64 to 128 layers untied ones lose nearly the power (2 + ν)β.", 0.03,
            theory="powers/untied",
        ),
        Agrees(
            "theory/exponents/tied", "From 64 to 128 layers tied ones lose nearly the power β.", 0.03,
            theory="powers/tied",
        ),
        Agrees("theory/lanczos/untied", "At ν = 2, β = ½ Lanczos has the closed form.", 1e-8, theory="bessel/untied"),
        Agrees("finite/tied", "In finite contexts equal layers have the loss of the contour integrals.", 0.05),
        Agrees("finite/untied", "The contours miss up to a quarter of the best polynomial on drawn contexts.", 0.25),
        below("slope/share", "In finite contexts the exponent is far below (2 + ν)β.", bound=0.75),
    ),
    unjudged={
        "theory/infinite/untied": "its exponents are judged",
        "theory/infinite/tied": "its exponents are judged",
        "theory/fixed/untied": "the formula of infinite contexts, with as many modes as the drawn ones",
    },
    vocabulary=WORDS | vocabulary(
        case=("i", "pair of exponents ν, β"),
        share=("b/((2+ν)β)", "exponent of the deepest pair of untied stacks, over that of infinite contexts"),
    ),
)  # fmt: skip
