"""Depth: a stack of linear attention as descent in context, its layers tied or not.

Everything runs on the law of the spectrum of S/λ: exact mean moments at any N and D, the white limit, given spectra,
power laws. Layers are in units of 1/λ, the excess over the noise of the query's label in units of T = tr ΩΛ, noise
ratios are ρ/T.
"""

from iclab.theory.depth.contours import FiniteContexts, finite_contexts
from iclab.theory.depth.exact_moments import wishart_moments
from iclab.theory.depth.flows import Flow, flow, half_way_time, largest_stable_rate, split_rate
from iclab.theory.depth.laws import Discrete, SpectralLaw, WhiteLimit, Wishart, spectrum, white_limit, wishart
from iclab.theory.depth.losses import excess
from iclab.theory.depth.noise import (
    NoisePhases,
    critical_noise_ratio,
    noise_minima,
    noise_phases,
    spinodal_noise_ratio,
)
from iclab.theory.depth.optima import (
    best_excess,
    best_layers,
    free_excess,
    free_roots,
    levels,
    ridge_excess,
    tied_excess,
    tied_layer,
)
from iclab.theory.depth.other_models import (
    matrix_curvature,
    rewriting_excess,
    rewriting_optimum,
    two_matrices_bound,
)
from iclab.theory.depth.power_laws import power_law, untied_bessel_excess
from iclab.theory.depth.problems import (
    StackProblem,
    flow_clock,
    infinite_context_loss,
    infinite_context_shift,
    scalar_gammas,
    stack_loss,
    stack_problem,
)
from iclab.theory.depth.white import (
    white_critical_noise_ratio,
    white_free_excess,
    white_ridge_excess,
    white_split_rate,
    white_tied_excess,
    white_tied_layer,
    white_untied_excess,
    white_untied_layers,
)

__all__ = [
    "Discrete", "FiniteContexts", "Flow", "NoisePhases", "SpectralLaw", "StackProblem", "WhiteLimit", "Wishart",
    "best_excess", "best_layers", "critical_noise_ratio", "excess", "finite_contexts", "flow", "flow_clock",
    "free_excess", "free_roots", "half_way_time", "infinite_context_loss", "infinite_context_shift",
    "largest_stable_rate", "levels", "matrix_curvature", "noise_minima", "noise_phases", "power_law",
    "rewriting_excess", "rewriting_optimum", "ridge_excess", "scalar_gammas", "spectrum", "spinodal_noise_ratio",
    "split_rate", "stack_loss", "stack_problem", "tied_excess", "tied_layer", "two_matrices_bound",
    "untied_bessel_excess", "white_critical_noise_ratio", "white_free_excess", "white_limit", "white_ridge_excess",
    "white_split_rate", "white_tied_excess", "white_tied_layer", "white_untied_excess", "white_untied_layers",
    "wishart", "wishart_moments",
]  # fmt: skip
