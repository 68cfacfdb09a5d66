"""Engines: who runs the one body. Here the process itself; `cluster` has Dask and its job queues, `slurm` arrays."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from iclab.sweeps.body import Tally, Worker
from iclab.sweeps.limits import Stop
from iclab.sweeps.state import State

__all__ = ["Engine", "InProcess", "Job"]


@dataclass
class Job:
    """A sweep that is to be computed."""

    state: State
    timeout: float | None = None
    give_up: Callable[[], None] | None = None
    stop: Stop = field(default_factory=Stop)
    watch: Callable[[State, Tally], None] = lambda state, tally: None


class Engine(Protocol):
    """A way to compute the missing cells of a plan."""

    @property
    def processes(self) -> int:
        """The number of cells that are computed at once on this machine; 0 where it is elsewhere."""
        ...

    def check(self) -> None:
        """Raise ValueError or ImportError, before anything is written, where the engine cannot be had."""
        ...

    def compute(self, job: Job) -> str:
        """Compute, or hand over to those who will; a sentence about what was handed over, empty when it is done."""
        ...


@dataclass(frozen=True)
class InProcess:
    """The process itself, and as many beside it as `iclab sweep work DIR` starts."""

    place: tuple[int, int] = (0, 1)
    processes: int = 1

    def check(self) -> None:
        """Nothing is needed."""

    def compute(self, job: Job) -> str:
        """Compute the missing cells, one after another."""
        Worker(job.state, self.place, timeout=job.timeout, give_up=job.give_up, stop=job.stop, watch=job.watch).work()
        job.state.refresh()
        return ""
