"""Studies of the training dynamics of linear attention under gradient flow."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.studies.dynamics import (  # fmt: skip
        abrupt_drop,
        context_lengths,
        drop_times,
        fixed_points,
        in_weight,
        initial_scale,
        principal_components,
        rank_staircase,
        softmax_dynamics,
        staircase,
        training,
        white_drop,
    )

__all__ = [
    "abrupt_drop", "context_lengths", "drop_times", "fixed_points", "in_weight", "initial_scale",
    "principal_components", "rank_staircase", "softmax_dynamics", "staircase", "training", "white_drop",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
