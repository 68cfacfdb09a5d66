"""Inverse questions about pretraining: numbers of tasks, sequences and examples, best split, forecast of a run."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.planning.inverse import BEST as BEST
    from iclab.planning.inverse import Forecast as Forecast
    from iclab.planning.inverse import Regime as Regime
    from iclab.planning.inverse import Required as Required
    from iclab.planning.inverse import Split as Split
    from iclab.planning.inverse import best_split as best_split
    from iclab.planning.inverse import error_of as error_of
    from iclab.planning.inverse import forecast as forecast
    from iclab.planning.inverse import regime as regime
    from iclab.planning.inverse import required as required

__all__ = [
    "BEST", "Forecast", "Regime", "Required", "Split", "best_split", "error_of", "forecast", "regime", "required",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__, dict.fromkeys(__all__, "iclab.planning.inverse"))
