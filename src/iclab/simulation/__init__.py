"""Simulation: draws data and trains. Runs on JAX, on CPU or GPU, and returns NumPy arrays."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.simulation import keys as keys
    from iclab.simulation import linear as linear
    from iclab.simulation import memory as memory
    from iclab.simulation import networks as networks
    from iclab.simulation import pretraining as pretraining
    from iclab.simulation import programs as programs
    from iclab.simulation import related as related
    from iclab.simulation import sequences as sequences
    from iclab.simulation import waiting as waiting

__all__ = ["keys", "linear", "memory", "networks", "pretraining", "programs", "related", "sequences", "waiting"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
