"""Studies of related systems: limited rank, softmax windows, separate tokens, patterns."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.studies.related import claims as claims
    from iclab.studies.related import low_rank_tasks as low_rank_tasks
    from iclab.studies.related import pattern_selection as pattern_selection
    from iclab.studies.related import rank_robustness as rank_robustness
    from iclab.studies.related import separate_tokens as separate_tokens
    from iclab.studies.related import softmax_window as softmax_window

__all__ = [
    "claims",
    "low_rank_tasks",
    "pattern_selection",
    "rank_robustness",
    "separate_tokens",
    "softmax_window",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
