"""Panels of studies of finite pretraining: errors against sizes, curves of theory, drawn runs."""

from typing import TYPE_CHECKING, Any

import numpy as np

from iclab import figures
from iclab.outcomes import VOCABULARY
from iclab.study import Axes, Formula, View

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "FORMULAS", "LENGTH", "SEQUENCES", "TASKS", "TITLES", "drawn_runs", "error_axes", "run_points", "theory_curves",
]  # fmt: skip

FORMULAS = (
    Formula(
        r"1 - \frac{\phi M + x M}{\tau} = \frac{\lambda}{\xi}, "
        r"\quad x = \frac{1 + \rho}{\alpha}, \quad \nu = x + \xi",
        "The effective ridge, in the limit of large D.",
        {r"\xi": "effective ridge", r"\lambda": "ridge", r"\rho": "variance of the label noise",
         r"\alpha": "examples of a context, N/D", r"\tau": "pretraining sequences, n/D²"},
    ),
    Formula(
        r"M = \frac{2}{a + \sqrt{a^2 + 4 \nu / \kappa}}, \quad a = \nu + \frac{\kappa - 1}{\kappa}, \quad "
        r"\phi = \frac{1}{1 + M / \kappa}, \quad "
        r"M_2 = \frac{M^2}{2} (1 + \frac{\nu + 1 + 1 / \kappa}{\sqrt{a^2 + 4 \nu / \kappa}})",
        "Averages over the tasks of the pool.",
        {r"M": "mean of 1/(r + ν) over the eigenvalues r of the pool's second moment", "M_2": "that of its square",
         r"\kappa": "tasks of the pool, K/D"},
    ),
    Formula(
        r"e_{\mathrm{IDG}} = \frac{\rho + \nu^2 \phi^2 M_2 + x \phi^2 M_2 (\phi + \nu M / \kappa)}"
        r"{\lambda / \xi + \xi g / \tau}, \quad g = \phi^2 M_2 + x M_2",
        "The error on tasks of the pool.", {r"e_{\mathrm{IDG}}": "mean squared error, noise of the label included"},
    ),
    Formula(
        r"e_{\mathrm{ICL}} = \rho + x \phi^2 M_2 (\phi + \nu M / \kappa) + \nu^2 M_2 "
        r"\quad + \frac{e_{\mathrm{IDG}}}{\tau} (1 + x) g",
        "The error on new tasks.", {r"e_{\mathrm{ICL}}": "mean squared error, noise of the label included"},
    ),
)  # fmt: skip
TITLES = {"icl": "on new tasks (ICL)", "idg": "on tasks of the pool (IDG)"}
LENGTH = "examples of a context  $\\alpha = N/D$"
TASKS = "tasks of the pool  $\\kappa = K/D$"
SEQUENCES = "pretraining sequences  $\\tau = n/D^2$"


def error_axes(axes: Axes, view: View, sizes: str, *, title: str) -> None:
    """Logarithmic axes of sizes and errors, with the bounds of the study as dotted lines where they are in view."""
    axes.set(xscale="log", yscale="log", title=title, xlabel=sizes, ylabel="mean squared error")
    seen = axes.get_ylim()
    levels = view.theory.bounds.loss.values
    for level, name, side in zip(levels, ("1 + ρ", "ρ"), ("bottom", "top"), strict=True):
        if seen[0] < level < seen[1]:
            figures.level_lines(axes, [level])
            axes.annotate(name, (1.01, level), xycoords=("axes fraction", "data"), va=side, size=7, color="#777777")
    axes.set_ylim(seen)


def theory_curves(
    axes: Axes, values: "xr.DataArray", along: str, *, by: str, label: str = "", line: Any = figures.theory_line,
    first: int = 0,
) -> None:  # fmt: skip
    """Theory along one axis, a color from the first on for each point of another, labeled with its symbol."""
    for color, point in figures.colored(values[by].values, first=first):
        words = f"{label or VOCABULARY[by].symbol} = {point:g}"
        line(axes, values[along], values.sel({by: point}), color=color, label=words)


def run_points(
    axes: Axes, view: View, target: str, along: str, *, by: str | None = None, curves: Any = (), suffix: str = ""
) -> None:
    """Drawn runs at their whole sizes; for each point `by` in the color of the curve with it, in ink without one."""
    if view.simulation:
        runs, label = drawn_runs(view, suffix)
        if by is None:
            figures.mean_points(axes, runs[f"whole_{along}"], runs[target], color=figures.COLORS[1], label=label)
            return
        colors = {point: color for color, point in figures.colored(np.asarray(curves).tolist())}
        for i, point in enumerate(runs[by].values.tolist()):
            one, color = runs.sel({by: point}), colors.get(point, figures.INK)
            figures.mean_points(axes, one[f"whole_{along}"], one[target], color=color, label=None if i else label)


def drawn_runs(view: View, suffix: str = "") -> tuple["xr.Dataset", str]:
    """Errors of drawn runs in the highest dimension, with `whole_alpha`, `whole_kappa` and `whole_tau`; a label."""
    runs, sizes = view.simulation[f"runs{suffix}"], view.theory[f"sizes{suffix}"]
    d = runs.dimension.values[-1]
    runs, sizes = runs.sel(dimension=d), sizes.sel(dimension=d)
    whole = {"alpha": sizes.context_length / d, "kappa": sizes.tasks / d, "tau": sizes.sequences / d**2}
    return runs.assign({f"whole_{name}": ratio for name, ratio in whole.items()}), f"drawn runs, D = {d}"
