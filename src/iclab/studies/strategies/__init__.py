"""Studies of strategies: memory of the pretraining tasks, and inference from the context."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.studies.strategies import markov_stages, strategy_gap

__all__ = ["markov_stages", "strategy_gap"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
