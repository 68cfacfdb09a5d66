"""Studies of depth: a stack of linear attention, its layers tied or not, with noise, and at finite sizes."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.studies.depth import (  # fmt: skip
        depth_free,
        depth_landscape,
        depth_noise,
        depth_plateau,
        depth_softmax,
        depth_spectrum,
        depth_staircase,
        samples,
    )

__all__ = [
    "depth_free", "depth_landscape", "depth_noise", "depth_plateau", "depth_softmax", "depth_spectrum",
    "depth_staircase", "samples",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
