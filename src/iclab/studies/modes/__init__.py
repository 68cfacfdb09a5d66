"""Studies of the two-factor linear transformer, mode by mode, and of one-pass SGD."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.studies.modes import (  # fmt: skip
        alignment,
        conservation,
        finite_context,
        mode_staging,
        phase_portrait,
        sgd_noise,
        training,
    )

__all__ = [
    "alignment", "conservation", "finite_context", "mode_staging", "phase_portrait", "sgd_noise", "training",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
