"""Studies of related systems: limited rank, softmax windows, separate tokens, patterns."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.studies.related import (  # fmt: skip
        low_rank_tasks,
        pattern_selection,
        rank_robustness,
        separate_tokens,
        softmax_window,
    )

__all__ = [
    "low_rank_tasks", "pattern_selection", "rank_robustness", "separate_tokens", "softmax_window",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
