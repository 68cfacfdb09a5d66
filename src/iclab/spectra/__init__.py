"""Spectra of weights, from checkpoints or from a model in training: readers, layouts, circuits, measures."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.spectra import checkpoints as checkpoints
    from iclab.spectra import circuits as circuits
    from iclab.spectra import layouts as layouts
    from iclab.spectra import measures as measures
    from iclab.spectra import observation as observation
    from iclab.spectra import scores as scores
    from iclab.spectra.checkpoints import read as read
    from iclab.spectra.observation import Selection as Selection
    from iclab.spectra.observation import observe as observe
    from iclab.spectra.observation import watch as watch

__all__ = [
    "Selection", "checkpoints", "circuits", "layouts", "measures", "observation", "observe", "read", "scores",
    "watch",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(
        __name__,
        __all__,
        {
            "Selection": "iclab.spectra.observation",
            "observe": "iclab.spectra.observation",
            "read": "iclab.spectra.checkpoints",
            "watch": "iclab.spectra.observation",
        },
    )
