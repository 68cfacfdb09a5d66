"""Training dynamics of linear attention under gradient flow: one door to all of its theory.

Fixed points and their stability, population flows, time courses in closed form and the times of the drops, for merged
and for separate key and query. Every result reads the law of contexts from `population.Moments`; times are in units
of τ, of the flow of −½∇L.
"""

from iclab.theory.aligned import aligned_loss, aligned_values, half_drop_shift
from iclab.theory.closed_forms import growing_amplitude, reduced_merged_flow, white_drop_time, white_merged_loss
from iclab.theory.commuting import CommutingModes, commuting_modes
from iclab.theory.conservation import conserved
from iclab.theory.escape import blow_up_times, drop_times
from iclab.theory.fixed_points import fixed_point, plateau_prediction, plateaus, reachable
from iclab.theory.flows import merged_flow, separate_flow
from iclab.theory.heads import balanced_weights, head_flow
from iclab.theory.multi_output import multi_output_loss
from iclab.theory.stability import Stability, growth, merged_stability, rotations, stability

__all__ = [
    "CommutingModes",
    "Stability",
    "aligned_loss",
    "aligned_values",
    "balanced_weights",
    "blow_up_times",
    "commuting_modes",
    "conserved",
    "drop_times",
    "fixed_point",
    "growing_amplitude",
    "growth",
    "half_drop_shift",
    "head_flow",
    "merged_flow",
    "merged_stability",
    "multi_output_loss",
    "plateau_prediction",
    "plateaus",
    "reachable",
    "reduced_merged_flow",
    "rotations",
    "separate_flow",
    "stability",
    "white_drop_time",
    "white_merged_loss",
]
