"""Studies of the training dynamics of linear attention under gradient flow."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.studies.dynamics import abrupt_drop as abrupt_drop
    from iclab.studies.dynamics import context_lengths as context_lengths
    from iclab.studies.dynamics import drop_times as drop_times
    from iclab.studies.dynamics import fixed_points as fixed_points
    from iclab.studies.dynamics import in_weight as in_weight
    from iclab.studies.dynamics import initial_scale as initial_scale
    from iclab.studies.dynamics import principal_components as principal_components
    from iclab.studies.dynamics import published as published
    from iclab.studies.dynamics import rank_staircase as rank_staircase
    from iclab.studies.dynamics import softmax_dynamics as softmax_dynamics
    from iclab.studies.dynamics import staircase as staircase
    from iclab.studies.dynamics import training as training
    from iclab.studies.dynamics import white_drop as white_drop

__all__ = [
    "abrupt_drop",
    "context_lengths",
    "drop_times",
    "fixed_points",
    "in_weight",
    "initial_scale",
    "principal_components",
    "published",
    "rank_staircase",
    "softmax_dynamics",
    "staircase",
    "training",
    "white_drop",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
