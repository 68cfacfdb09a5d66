"""Studies of the two-factor linear transformer, mode by mode, and of one-pass SGD."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.studies.modes import alignment as alignment
    from iclab.studies.modes import conservation as conservation
    from iclab.studies.modes import finite_context as finite_context
    from iclab.studies.modes import mode_staging as mode_staging
    from iclab.studies.modes import phase_portrait as phase_portrait
    from iclab.studies.modes import sgd_noise as sgd_noise
    from iclab.studies.modes import training as training

__all__ = [
    "alignment",
    "conservation",
    "finite_context",
    "mode_staging",
    "phase_portrait",
    "sgd_noise",
    "training",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
