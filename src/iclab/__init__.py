"""Theory, simulation and diagnostics of in-context learning in linear attention.

Names load when they are first used, so that `import iclab` is quick.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iclab.attention import MergedAttention, SeparateAttention
    from iclab.problem import Pretraining, Ratios, Regression
    from iclab.spectra.observation import watch

__version__ = "0.1.0"

_HOME = {
    "Pretraining": "iclab.problem",
    "Ratios": "iclab.problem",
    "Regression": "iclab.problem",
    "MergedAttention": "iclab.attention",
    "SeparateAttention": "iclab.attention",
    "watch": "iclab.spectra.observation.watching",
}
_ROOMS = (
    "agreement", "attention", "claims", "contract", "conventions", "figures", "inspection", "network_claims",
    "outcomes", "planning",
    "pretraining_claims",
    "problem", "readouts", "report", "simulation", "spectra", "stages", "store", "studies", "study", "theory",
    "training_claims",
)  # fmt: skip

__all__ = ["MergedAttention", "Pretraining", "Ratios", "Regression", "SeparateAttention", "__version__", "watch"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _ROOMS:
        return importlib.import_module(f"iclab.{name}")
    raise AttributeError(f"module 'iclab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
