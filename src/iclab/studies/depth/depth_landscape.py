"""What does a stack of linear attention gain when its layers may differ?

L layers that write labels are L steps of preconditioned descent in the context. Tied layers (looped) lose a power of
what untied ones reach: in the limit of large inputs 1/(1 + α + … + α^L), α = N/D, by the minimum-residual polynomial
of the mean spectrum. Theory is exact at the dimension and context length of the case, and in closed form in the
limit. Simulation finds the best polynomial on drawn contexts by least squares, and sends drawn tokens through a stack
with stated layers, also in contexts of other lengths than it was made for. Looped layers are those of arXiv
2510.01098; minimum-residual polynomials on sample covariances are known in numerical analysis (arXiv 2007.00640).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.claims import Agrees
from iclab.numerics import Checked, Count, Floats, Positive, require
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.problem import Lengths
from iclab.studies.depth.samples import WORDS, white_problem
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case"]

DEEP = (1, 2, 3, 4, 6, 8, 16, 32, 64)  # of the closed forms
RATIOS = (0.5, 1.0, 2.0, 4.0)  # α of the panel in the limit
LENGTHS = np.unique(np.round(np.geomspace(3, 400, 40))).astype(int)  # N of the panel of other tests


@dataclass(frozen=True)
class Case(Checked):
    """White contexts of one size, stacks of several depths, and a stack with stated layers."""

    dimension: Count = 8  # D, entries of an input
    context_length: Count = 16  # N, labeled examples before the query
    depths: Lengths = (1, 2, 3)  # L, layers of the stacks
    layers: Annotated[tuple[float, ...], Floats()] = (0.35, 0.9)  # g, layers of the stated stack, in units of 1/λ
    lengths: Lengths = (8, 16, 48)  # N of the contexts that the stated stack is tried on
    noise: Positive = 0.2  # ρ, variance of the label noise of the stated stack, where labels have signal variance 1
    spectra: Count = 40_000  # drawn contexts on which polynomials are fitted
    contexts: Count = 40_000  # drawn contexts for each length of the stated stack

    def __post_init__(self) -> None:
        super().__post_init__()
        require(len(set(self.depths)) == len(self.depths), f"depths must differ; got {self.depths}.")
        require(len(set(self.lengths)) == len(self.lengths), f"lengths must differ; got {self.lengths}.")


def theory(case: Case) -> dict[str, Labeled]:
    """Exact best losses at this size; the limit in closed form and by its Gauss rule; stated layers at all N."""
    from iclab.theory import depth

    law = depth.wishart(case.dimension, case.context_length)
    both = {
        "untied": [depth.best_excess(law, one) for one in case.depths],
        "tied": [depth.tied_excess(law, one) for one in case.depths],
    }
    limits = [depth.white_limit(alpha) for alpha in RATIOS]
    deepest = max(case.depths)
    best, equal = depth.best_layers(law, deepest), np.full(deepest, depth.tied_layer(law, deepest))
    shifts = {"untied": best, "tied": equal}
    return {
        "best": labeled({"depth": case.depths}, **both),
        "limit": labeled(
            {"alpha": RATIOS, "depth": DEEP},
            untied=[[depth.white_untied_excess(alpha, one) for one in DEEP] for alpha in RATIOS],
            tied=[[depth.white_tied_excess(alpha, one) for one in DEEP] for alpha in RATIOS],
        ),
        "rule": labeled(
            {"alpha": RATIOS, "depth": DEEP},
            untied=[[depth.best_excess(one, count) for count in DEEP] for one in limits],
            tied=[[depth.tied_excess(one, count) for count in DEEP] for one in limits],
        ),
        "stated": labeled({"context_length": case.lengths}, loss=_stated(case, case.layers, case.lengths)),
        "shift": labeled(
            {"context_length": LENGTHS},
            **{name: _stated(case, layers, LENGTHS, noise=0.0) for name, layers in shifts.items()},
        ),
    }


def _stated(
    case: Case, layers: Sequence[float] | np.ndarray, lengths: Lengths | np.ndarray, noise: float | None = None
) -> list[float]:
    """Loss of layers in contexts of several lengths."""
    from iclab.theory import depth

    level = case.noise if noise is None else noise
    problems = [white_problem(case.dimension, int(length), level) for length in lengths]
    return [float(depth.stack_loss(problem, layers)) for problem in problems]


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Best polynomials on the spectra of drawn contexts, and the stated stack on drawn tokens."""
    import jax

    from iclab.attention import stack_of
    from iclab.simulation.linear import depth

    problem = white_problem(case.dimension, case.context_length)
    values = np.linalg.eigvalsh(depth.draw_covariances(problem, case.spectra, key=jax.random.fold_in(key, 0))).ravel()
    stack = stack_of(np.array(case.layers)[:, None, None] * np.eye(case.dimension))
    losses = [
        depth.fresh_loss(
            white_problem(case.dimension, length, case.noise),
            stack,
            case.contexts,
            key=jax.random.fold_in(key, length),
        ).loss
        for length in case.lengths
    ]
    return {
        "best": labeled(
            {"depth": case.depths},
            untied=[least_squares(values, count) for count in case.depths],
            tied=[least_power(values, count) for count in case.depths],
        ),
        "stated": labeled({"context_length": case.lengths}, loss=losses),
    }


def least_squares(values: Float[np.ndarray, "point"], degree: int) -> float:
    """The least mean square of a polynomial with p(0) = 1 over points, by least squares on its coefficients."""
    basis = np.polynomial.chebyshev.chebvander(2 * values / np.max(values) - 1, degree - 1) * values[:, None]
    gram, right = basis.T @ basis / len(values), basis.mean(axis=0)
    return float(1 - right @ np.linalg.solve(gram, right))


def least_power(values: Float[np.ndarray, "point"], degree: int) -> float:
    """The least mean of (1 − g x)^{2L} over points, from their moments."""
    from scipy.optimize import minimize_scalar
    from scipy.special import binom

    powers = np.arange(2 * degree + 1)
    moments = np.array([np.mean(values**power) for power in powers]) * binom(2 * degree, powers) * (-1.0) ** powers
    found = minimize_scalar(lambda g: float(moments @ g**powers), bounds=(0.05, 1.5), method="bounded")
    return float(found.fun)  # pyright: ignore[reportAttributeAccessIssue]


def figure(view: View, figure: Figure) -> None:
    """Excess against depth in the limit and at this size; stacks tested at other context lengths."""
    limit, size, tests = figure.subplots(1, 3)
    found, exact, shift = (view.theory[name] for name in ("limit", "best", "shift"))
    for place, (color, alpha) in enumerate(figures.colored(found.alpha.values)):
        here = found.isel(alpha=place)
        figures.theory_line(limit, here.depth, here.untied, color=color, label=f"α = {alpha:g}")
        figures.dashed_line(limit, here.depth, here.tied, color=color)
    for color, name in figures.colored(("untied", "tied")):
        figures.theory_line(size, exact.depth, exact[name], color=color, label=name)
        figures.theory_line(
            tests, shift.context_length, shift[name], color=color, label=f"{name}, best where trained"
        )
        if view.simulation:
            run = view.simulation.best
            figures.mean_points(size, run.depth, run[name], color=color)
    stated = view.theory.stated
    if view.simulation:
        run = view.simulation.stated
        figures.mean_points(tests, run.context_length, run.loss, color=figures.INK, label="stated layers, drawn")
    figures.theory_line(tests, stated.context_length, stated.loss, label="stated layers, noise")
    case = view.case
    limit.set(xscale="log", yscale="log", ylim=(1e-4, 1.1), xlabel="layers $L$", ylabel="excess over signal variance")
    limit.set_title("limit; dashed: tied")
    size.set(yscale="log", xlabel="layers $L$", title=f"D = {case.dimension}, N = {case.context_length}")
    tests.set(xscale="log", yscale="log", xlabel="context length of the test $N$", ylabel="mean squared error")
    tests.set_title(f"tested elsewhere, L = {max(case.depths)}")
    for axes in (limit, size, tests):
        axes.legend()


FULL = Case(depths=(1, 2, 3, 4), spectra=400_000, lengths=(4, 8, 16, 48, 192), contexts=200_000)

STUDY = Study(
    name="depth-landscape", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=4, size=(11.0, 3.6)), "full": Preset(FULL, seeds=6, size=(11.0, 3.6))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        Agrees("best/untied", "The best polynomial on drawn contexts has the exact excess of untied layers.", 0.02),
        Agrees("best/tied", "The best equal layers on drawn contexts have the exact excess.", 0.02),
        Agrees("stated/loss", "Tokens through a stack with stated layers lose what theory says, at all N.", 0.02),
        Agrees(
            "theory/rule/untied", "The closed form of untied layers is the Gauss rule of the limit.", 1e-9,
            theory="limit/untied",
        ),
        Agrees(
            "theory/rule/tied", "The closed form of tied layers is the Gauss rule of the limit.", 1e-9,
            theory="limit/tied",
        ),
    ),
    unjudged={
        "theory/shift/untied": "the formula of stated/loss, for other layers and without noise",
        "theory/shift/tied": "the formula of stated/loss, for other layers and without noise",
    },
    vocabulary=WORDS | vocabulary(alpha=("α", "examples of a context for each dimension, N/D")),
)  # fmt: skip
