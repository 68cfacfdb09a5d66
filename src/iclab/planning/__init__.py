"""Inverse questions about pretraining: sizes, best split, forecast of a run, the tasks to train on."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.planning.gaps import Diversity as Diversity
    from iclab.planning.gaps import TaskLaw as TaskLaw
    from iclab.planning.gaps import diversity as diversity
    from iclab.planning.gaps import task_law as task_law
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
    from iclab.planning.pools import DrawnForecast as DrawnForecast
    from iclab.planning.pools import chosen_pool as chosen_pool
    from iclab.planning.pools import spectrum_forecast as spectrum_forecast
    from iclab.planning.spectrum import PlannedSpectrum as PlannedSpectrum
    from iclab.planning.spectrum import planned_spectrum as planned_spectrum

_HOMES = {
    "iclab.planning.gaps": ("Diversity", "TaskLaw", "diversity", "task_law"),
    "iclab.planning.inverse": (
        "BEST", "Forecast", "Regime", "Required", "Split", "best_split", "error_of", "forecast", "regime", "required",
    ),
    "iclab.planning.pools": ("DrawnForecast", "chosen_pool", "spectrum_forecast"),
    "iclab.planning.spectrum": ("PlannedSpectrum", "planned_spectrum"),
}  # fmt: skip
__all__ = [
    "BEST", "Diversity", "DrawnForecast", "Forecast", "PlannedSpectrum", "Regime", "Required", "Split", "TaskLaw",
    "best_split", "chosen_pool", "diversity", "error_of", "forecast", "planned_spectrum", "regime", "required",
    "spectrum_forecast", "task_law",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__, {name: home for home, names in _HOMES.items() for name in names})
