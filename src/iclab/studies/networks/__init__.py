"""Studies that train networks and watch them: emergence, grokking, errors of trained attention."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.studies.networks import grokking as grokking
    from iclab.studies.networks import icl_emergence as icl_emergence
    from iclab.studies.networks import regression_training as regression_training
    from iclab.studies.networks import spectra as spectra
    from iclab.studies.networks import transformer_double_descent as transformer_double_descent
    from iclab.studies.networks import transformer_task_diversity as transformer_task_diversity

__all__ = [
    "grokking",
    "icl_emergence",
    "regression_training",
    "spectra",
    "transformer_double_descent",
    "transformer_task_diversity",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
