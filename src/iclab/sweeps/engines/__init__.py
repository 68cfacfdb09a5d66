"""Engines: who runs the one body of a sweep. None of them sees a result, and any may follow another."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.sweeps.engines import cluster, local, slurm

__all__ = ["cluster", "local", "slurm"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
