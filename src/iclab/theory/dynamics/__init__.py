"""Training dynamics of linear attention under gradient flow.

Fixed points and their stability, population flows, time courses in closed form and the times of the drops, for merged
and for separate key and query. Contexts enter every result through `population.Moments`; times are in units
of τ, of the flow of −½∇L.
"""

from iclab.theory.dynamics.aligned import aligned_loss, aligned_values, entered_values, half_drop_shift
from iclab.theory.dynamics.closed_forms import (
    growing_amplitude,
    reduced_merged_flow,
    white_drop_time,
    white_merged_loss,
)
from iclab.theory.dynamics.commuting import CommutingModes, commuting_modes
from iclab.theory.dynamics.conservation import conserved
from iclab.theory.dynamics.escape import blow_up_times, drop_times
from iclab.theory.dynamics.fixed_points import fixed_point, plateau_prediction, plateaus, reachable
from iclab.theory.dynamics.flows import merged_flow, separate_flow
from iclab.theory.dynamics.heads import balanced_weights, head_flow
from iclab.theory.dynamics.multi_output import multi_output_loss
from iclab.theory.dynamics.sampled import (
    Band,
    drop_band,
    level_band,
    measured_levels,
    merged_drop_time,
    spectral_levels,
)
from iclab.theory.dynamics.settling import settling_time
from iclab.theory.dynamics.stability import Stability, growth, merged_stability, rotations, stability
from iclab.theory.dynamics.stable_rate import (
    drawn_sharpness_factor,
    merged_sharpness,
    separate_sharpness,
    stable_rate,
)

__all__ = [
    "Band",
    "CommutingModes",
    "Stability",
    "aligned_loss",
    "aligned_values",
    "balanced_weights",
    "blow_up_times",
    "commuting_modes",
    "conserved",
    "drawn_sharpness_factor",
    "drop_band",
    "drop_times",
    "entered_values",
    "fixed_point",
    "growing_amplitude",
    "growth",
    "half_drop_shift",
    "head_flow",
    "level_band",
    "measured_levels",
    "merged_drop_time",
    "merged_flow",
    "merged_sharpness",
    "merged_stability",
    "multi_output_loss",
    "plateau_prediction",
    "plateaus",
    "reachable",
    "reduced_merged_flow",
    "rotations",
    "separate_flow",
    "separate_sharpness",
    "settling_time",
    "spectral_levels",
    "stability",
    "stable_rate",
    "white_drop_time",
    "white_merged_loss",
]
