"""Theory, simulation and diagnostics of in-context learning in linear attention.

Names load when they are first used, so that `import iclab` is quick.

    >>> import iclab
    >>> problem = iclab.Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31)
    >>> moments = iclab.theory.population.moments(problem)
    >>> iclab.theory.dynamics.plateaus(moments).round(4)  # losses at which training from a small start rests
    array([1.    , 0.6406, 0.3774, 0.2098, 0.136 ])
"""

from typing import TYPE_CHECKING

from iclab.lazy import door
from iclab.moved import install

if TYPE_CHECKING:
    from iclab import attention as attention
    from iclab import claims as claims
    from iclab import commands as commands
    from iclab import explorer as explorer
    from iclab import figures as figures
    from iclab import inspection as inspection
    from iclab import numerics as numerics
    from iclab import outcomes as outcomes
    from iclab import overlay as overlay
    from iclab import planning as planning
    from iclab import problem as problem
    from iclab import provenance as provenance
    from iclab import published as published
    from iclab import report as report
    from iclab import simulation as simulation
    from iclab import spectra as spectra
    from iclab import store as store
    from iclab import studies as studies
    from iclab import study as study
    from iclab import sweeps as sweeps
    from iclab import testing as testing
    from iclab import theory as theory
    from iclab.attention import MergedAttention as MergedAttention
    from iclab.attention import SeparateAttention as SeparateAttention
    from iclab.overlay import compare as compare
    from iclab.problem import Pretraining as Pretraining
    from iclab.problem import Ratios as Ratios
    from iclab.problem import Regression as Regression
    from iclab.spectra import observe as observe
    from iclab.spectra import watch as watch
    from iclab.store import Store as Store
    from iclab.study import Study as Study
    from iclab.sweeps import sweep as sweep

__version__ = "0.2.0"

__all__ = [
    "MergedAttention",
    "Pretraining",
    "Ratios",
    "Regression",
    "SeparateAttention",
    "Store",
    "Study",
    "__version__",
    "compare",
    "figures",
    "observe",
    "planning",
    "simulation",
    "spectra",
    "studies",
    "sweep",
    "theory",
    "watch",
]

install()

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(
        __name__,
        __all__,
        {
            "MergedAttention": "iclab.attention",
            "Pretraining": "iclab.problem",
            "Ratios": "iclab.problem",
            "Regression": "iclab.problem",
            "SeparateAttention": "iclab.attention",
            "Store": "iclab.store",
            "Study": "iclab.study",
            "compare": "iclab.overlay",
            "sweep": "iclab.sweeps",
            "observe": "iclab.spectra",
            "watch": "iclab.spectra",
        },
        unlisted=(
            "attention", "claims", "commands", "explorer", "inspection", "numerics", "outcomes", "overlay", "problem",
            "provenance", "published", "report", "store", "study", "sweeps", "testing",
        ),
    )  # fmt: skip
