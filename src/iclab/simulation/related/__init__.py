"""Related systems, trained: factors of limited rank, patterns, softmax windows, separate tokens."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.simulation.related import loop as loop
    from iclab.simulation.related import low_rank as low_rank
    from iclab.simulation.related import patterns as patterns
    from iclab.simulation.related import softmax_windows as softmax_windows
    from iclab.simulation.related import token_networks as token_networks

__all__ = ["loop", "low_rank", "patterns", "softmax_windows", "token_networks"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
