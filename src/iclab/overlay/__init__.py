"""A training run of one's own beside theory: its log, its conventions, its start; verdicts and hints."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.overlay.comparing import Comparison as Comparison
    from iclab.overlay.comparing import compare as compare
    from iclab.overlay.comparing import compared as compared
    from iclab.overlay.conventions import PUBLISHED as PUBLISHED
    from iclab.overlay.conventions import Conventions as Conventions
    from iclab.overlay.logs import LossLog as LossLog
    from iclab.overlay.logs import log_of as log_of
    from iclab.overlay.logs import read_log as read_log
    from iclab.overlay.starts import read_start as read_start
    from iclab.overlay.starts import start_of as start_of
    from iclab.overlay.starts import turned as turned

__all__ = [
    "PUBLISHED", "Comparison", "Conventions", "LossLog", "compare", "compared", "log_of", "read_log", "read_start",
    "start_of", "turned",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(
        __name__,
        __all__,
        {
            "Comparison": "iclab.overlay.comparing",
            "compare": "iclab.overlay.comparing",
            "compared": "iclab.overlay.comparing",
            "PUBLISHED": "iclab.overlay.conventions",
            "Conventions": "iclab.overlay.conventions",
            "LossLog": "iclab.overlay.logs",
            "log_of": "iclab.overlay.logs",
            "read_log": "iclab.overlay.logs",
            "read_start": "iclab.overlay.starts",
            "start_of": "iclab.overlay.starts",
            "turned": "iclab.overlay.starts",
        },
    )
