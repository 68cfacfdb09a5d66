"""For which pools and noise does a best context length exist, beyond which longer contexts hurt?

The best length α* = N/D of a context is finite for small pools and infinite for large ones. Theory gives the border
between them twice: by a formula for the pool size κ_c at which the error turns from rising to falling at large α, and
by a search over all context lengths; a scan must find the same best lengths for some pools and noises. For few
sequences the border lies above κ = min(τ, 1), the line of the published figure, as soon as labels are noisy.
Published as figure 3 of arXiv 2405.11751; κ_c goes beyond it.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.claims import Agrees
from iclab.numerics import Checked
from iclab.numerics.minima import scanned
from iclab.numerics.roots import border
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.problem import Ratios
from iclab.studies.pretraining.panels import TASKS
from iclab.studies.pretraining.sizes import Span, column
from iclab.study import Figure, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "theory"]

TITLES = {
    "known_few": "tasks of the pool, few sequences",
    "few": "new tasks, few sequences",
    "many": "new tasks, many sequences",
}
SCAN = np.geomspace(1e-12, 1e18, 3001)  # context lengths α among which the least error is looked for
_THINNED = 6  # every so many pools and noises are scanned


@dataclass(frozen=True)
class Case(Checked):
    """Two numbers of pretraining sequences, without ridge."""

    few: float = 0.5  # τ = n/D² below interpolation; published
    many: float = 20.0  # τ = n/D² above interpolation; published
    kappa: Span = Span(0.1, 2.1, 61)  # κ = K/D, tasks of the pool
    noise: Span = Span(0.01, 1.0, 41)  # ρ, variance of the label noise

    def __post_init__(self) -> None:
        super().__post_init__()
        for tau in (self.few, self.many):
            Ratios(1.0, 1.0, tau, 0.0)


def theory(case: Case) -> dict[str, Labeled]:
    """The best context length over pool size and noise; its border by formula and by scan."""
    from iclab.theory.generalization import best_alpha, critical_kappa, errors

    kappa, noise = case.kappa.grid(), case.noise.grid()

    def best(tau: float, target: str) -> Labeled:
        return labeled({"noise": noise, "kappa": kappa}, alpha=best_alpha(kappa, tau, column(noise), target=target))

    def scan(tau: float, target: str) -> Labeled:
        pools, noises = kappa[::_THINNED], noise[::_THINNED]
        ks, rhos = (grid.ravel() for grid in np.meshgrid(pools, noises))
        lengths = scanned(lambda at: getattr(errors(Ratios(at, ks, tau, rhos)), target), SCAN, lowest=SCAN[0])
        return labeled({"noise": noises, "kappa": pools}, alpha=lengths.reshape(len(noises), len(pools)))

    panels = {"known_few": (case.few, "idg"), "few": (case.few, "icl"), "many": (case.many, "icl")}
    found = {name: best(*panel) for name, panel in panels.items()}
    found |= {f"lengths_{name}": scan(*panel) for name, panel in panels.items()}
    for kind, tau in (("few", case.few), ("many", case.many)):
        found[f"line_{kind}"] = labeled({"noise": noise}, kappa=np.full_like(noise, min(tau, 1.0)))
        found[f"critical_{kind}"] = labeled({"noise": noise}, kappa=critical_kappa(tau, noise))
        found[f"scanned_{kind}"] = labeled({"noise": noise}, kappa=scanned_border(tau, noise))
    return found


def scanned_border(tau: float, noise: Float[np.ndarray, "noise"]) -> Float[np.ndarray, "noise"]:
    """The pool size at which the best context length for new tasks becomes infinite, by bisection."""
    from iclab.theory.generalization import best_alpha

    low, high = np.full_like(noise, 0.5 * min(tau, 1.0)), np.full_like(noise, 10 * (1 + np.max(noise)))
    return border(lambda kappa: np.isfinite(best_alpha(kappa, tau, noise)), low, high, halvings=26)  # to 1e-6 of it


def figure(view: View, figure: Figure) -> None:
    """Heat maps of the best context length; the published line and the border."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    panels = figure.subplots(1, 3, sharey=True)
    norm = LogNorm(1, 1000)
    colors = ScalarMappable(norm, "viridis")
    for axes, (name, title) in zip(panels, TITLES.items(), strict=True):
        found = view.theory[name]
        finite = found.alpha.where(np.isfinite(found.alpha))
        image = axes.pcolormesh(found.kappa, found.noise, finite, norm=norm, cmap="viridis", shading="nearest")
        image.set_rasterized(True)
        axes.set(facecolor="#e8e8e8", yscale="log", xlabel=TASKS, title=title)
        kind = name.removeprefix("known_")
        line, border = (view.theory[f"{what}_{kind}"] for what in ("line", "critical"))
        figures.dashed_line(axes, line.kappa, line.noise, color="#ffffff", label="κ = min(τ, 1)")
        if name == kind:
            figures.theory_line(axes, border.kappa, border.noise, color=figures.COLORS[1], label="$\\kappa_c$")
            axes.legend(loc="lower right", facecolor="#bbbbbb")
        axes.text(0.97, 0.3, "longer is better", ha="right", fontsize=8, transform=axes.transAxes)
    panels[0].set_ylabel("label noise  ρ")
    figure.colorbar(colors, ax=panels, label="best context length  α*", extend="both")


FULL = Case(kappa=Span(0.1, 2.1, 401), noise=Span(0.01, 1.0, 300))
_SAME = "sequences the formula gives the border that a search over context lengths finds."
_CRITICAL = ("κ_c", "critical number of tasks for each dimension")
STUDY = Study(
    name="non-monotone-context", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), size=(11.0, 3.6)), "full": Preset(FULL, size=(11.0, 3.6))},
    theory=theory, simulation=None, figure=figure,
    claims=(
        *(Agrees(f"theory/scanned_{kind}/kappa", f"With {kind} {_SAME}", 1e-5, f"critical_{kind}/kappa")
          for kind in ("few", "many")),
        *(Agrees(f"theory/lengths_{name}/alpha", f"A scan finds the best lengths: {title}.", 0.01, f"{name}/alpha")
          for name, title in TITLES.items()),
    ),
    unjudged=dict.fromkeys(
        (f"theory/line_{kind}/kappa" for kind in ("few", "many")), "the line of the published figure, for comparison"
    ),
    vocabulary=vocabulary(
        {f"{name}_{kind}/kappa": _CRITICAL for name in ("line", "critical", "scanned") for kind in ("few", "many")},
        alpha=("α*", "best number of examples for each dimension"),
    ),
)  # fmt: skip
