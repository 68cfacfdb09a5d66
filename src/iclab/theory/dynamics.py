"""Training dynamics of linear attention under gradient flow: one door to all of its theory.

Fixed points and plateaus, population flows, and time courses in closed form, for merged and for separate key and
query. Every result reads the law of contexts from `population.Moments`; times are in units of τ, of the flow of
−½∇L.
"""

from iclab.theory.aligned import aligned_loss, aligned_values, half_drop_shift
from iclab.theory.closed_forms import (
    growing_amplitude,
    reduced_merged_flow,
    white_drop_time,
    white_merged_loss,
)
from iclab.theory.commuting import CommutingModes, commuting_modes
from iclab.theory.fixed_points import fixed_point, plateaus
from iclab.theory.flows import merged_flow, separate_flow

__all__ = [
    "CommutingModes",
    "aligned_loss",
    "aligned_values",
    "commuting_modes",
    "fixed_point",
    "growing_amplitude",
    "half_drop_shift",
    "merged_flow",
    "plateaus",
    "reduced_merged_flow",
    "separate_flow",
    "white_drop_time",
    "white_merged_loss",
]
