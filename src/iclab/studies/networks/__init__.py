"""Studies that train networks and watch them: emergence, grokking, errors of trained attention."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.studies.networks import (  # fmt: skip
        grokking,
        icl_emergence,
        regression_training,
        spectra,
        transformer_double_descent,
        transformer_task_diversity,
    )

__all__ = [
    "grokking", "icl_emergence", "regression_training", "spectra", "transformer_double_descent",
    "transformer_task_diversity",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
