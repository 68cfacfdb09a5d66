"""Dask distributed under the one body: processes of its own, a scheduler elsewhere, or jobs of a cluster.

A task computes one block and returns two numbers: no result passes through the scheduler. A worker that dies is
replaced, and its block is computed again.
"""

import contextlib
import logging
import os
import time
import urllib.parse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iclab.files import installing
from iclab.numerics import require
from iclab.simulation import programs
from iclab.sweeps.body import Worker
from iclab.sweeps.claims import Heartbeat
from iclab.sweeps.engines.local import Job
from iclab.sweeps.grids.plan import SweepPlan, read_plan
from iclab.sweeps.state import State

__all__ = ["Dask", "Jobqueue", "block", "jobqueue_of"]

_TRIES = 1000  # deaths of a worker that Dask bears with one block; the body counts them itself, by cells
_PAUSE = 0.5  # seconds between two looks at the state
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}  # fmt: skip
_LOGGERS = ("distributed", "distributed.client", "distributed.comm.tcp", "tornado.application", "asyncio")
_KINDS = {"pbs": "PBSCluster", "lsf": "LSFCluster", "sge": "SGECluster", "slurm": "SLURMCluster"}


@dataclass(frozen=True)
class Dask:
    """Processes under Dask: so many of its own, or those of a scheduler at an address."""

    workers: int = 2
    scheduler: str = ""

    @property
    def processes(self) -> int:
        """The number of cells that are computed at once on this machine."""
        return 0 if self.scheduler else self.workers

    def check(self) -> None:
        """Raise ImportError where Dask is not installed, ValueError for an address that is none."""
        _distributed(self.workers)
        if self.scheduler:
            _say_open(self.scheduler)
            parts = urllib.parse.urlsplit(self.scheduler if "//" in self.scheduler else f"tcp://{self.scheduler}")
            require(
                bool(parts.hostname and parts.port),
                f"scheduler must be an address as tcp://127.0.0.1:8786; got {self.scheduler!r}.",
            )

    def compute(self, job: Job) -> str:
        """Compute the missing cells. Raises ValueError where no scheduler answers at the address."""
        distributed = _distributed(self.workers)
        with _configured():
            if self.scheduler:
                try:
                    client = distributed.Client(self.scheduler, timeout=10)
                except (OSError, TimeoutError, ValueError) as error:
                    raise ValueError(
                        f"a Dask scheduler must answer at {self.scheduler}; none does ({error}). Start one with "
                        "`dask scheduler`, or leave --scheduler out."
                    ) from None
                with client:
                    _drive(client, job)
                return ""
            cluster = distributed.LocalCluster(
                n_workers=self.workers, threads_per_worker=1, processes=True, dashboard_address=None,
                host="127.0.0.1", silence_logs=50,
            )  # fmt: skip
            with cluster, distributed.Client(cluster) as client:
                _drive(client, job)
        return ""


@dataclass(frozen=True)
class Jobqueue:
    """Jobs of a cluster's own queue as workers of Dask; this process must live as long as they do."""

    kind: str
    jobs: int = 10
    options: dict[str, Any] = field(default_factory=dict)
    processes: int = 0

    def check(self) -> None:
        """Raise ImportError where dask-jobqueue is not installed."""
        _jobqueue()

    def compute(self, job: Job) -> str:
        """Compute the missing cells."""
        distributed = _distributed(self.jobs)
        with _configured(), self._cluster(job.state.folder) as cluster, distributed.Client(cluster) as client:
            cluster.scale(jobs=self.jobs)
            _drive(client, job)
        return ""

    def job_script(self, folder: Path, plan: SweepPlan, timeout: float | None = None) -> str:
        """The script of one job."""
        with self._cluster(folder) as cluster:
            return str(cluster.job_script())

    def _cluster(self, folder: Path) -> Any:
        """Jobs that end three minutes before their walltime, so that their last cells are stored."""
        given = {"cores": 1, "memory": "2GB", "processes": 1, "log_directory": str(folder / "tmp"), **self.options}
        if "walltime" in given:
            seconds = sum(int(part) * 60**place for place, part in enumerate(reversed(given["walltime"].split(":"))))
            given["worker_extra_args"] = ["--lifetime", f"{max(60, seconds - 180)}s", "--lifetime-stagger", "30s"]
        scheduler = {"dashboard_address": None, "host": given.pop("host", None)}
        given["scheduler_options"] = {name: value for name, value in scheduler.items() if name != "host" or value}
        return getattr(_jobqueue(), _KINDS[self.kind])(**given)


def jobqueue_of(text: str) -> Jobqueue:
    """The engine that `pbs,walltime=4:00:00,jobs=20` states. Raises ValueError for other words."""
    kind, *parts = text.split(",")
    require(kind in _KINDS, f"--jobqueue must begin with one of {', '.join(_KINDS)}; got {kind!r}.")
    require(
        all("=" in part for part in parts),
        f"--jobqueue must be a kind and options, as pbs,walltime=4:00:00,jobs=20; got {text!r}.",
    )
    options: dict[str, Any] = {name: value for name, _, value in (part.partition("=") for part in parts)}
    jobs = options.pop("jobs", "10")
    require(jobs.isdigit() and int(jobs) > 0, f"jobs must be a whole number >= 1; got {jobs!r}.")
    if "cores" in options:
        options["cores"] = int(options["cores"])
    return Jobqueue(kind, int(jobs), options)


def block(folder: str, plan: str, number: int, timeout: float | None) -> tuple[int, int]:
    """Compute the missing cells of a block, in a process of Dask; the numbers of cells done and failed."""
    programs.keep()  # where the scheduler is elsewhere its processes have not the settings of ours
    state = _state(folder, plan)
    worker = Worker(state, timeout=timeout, give_up=lambda: os._exit(1))  # another process is begun in its place
    with programs.hushed(), Heartbeat(worker.claims) as heart:
        if not heart.cancelled:
            worker.finish(number, heart)
    return worker.tally.done, worker.tally.failed


def _state(folder: str, plan: str) -> State:
    """The state of a sweep, kept in this process from one block to the next."""
    if (folder, plan) not in _STATES:
        _STATES[folder, plan] = State(Path(folder), read_plan(Path(folder), plan))
    state = _STATES[folder, plan]
    state.refresh()
    return state


_STATES: dict[tuple[str, str], State] = {}


def _drive(client: Any, job: Job) -> None:
    """Hand out blocks until none is left, or until it is asked to stop; what others hold is looked at again."""
    state, timeout = job.state, job.timeout
    folder, plan = str(state.folder.resolve()), state.plan.id
    waiting: dict[Any, int] = {}
    worker = Worker(state, stop=job.stop)
    ahead = [number for number in range(len(state.plan.blocks)) if state.missing(number)]
    while (ahead or waiting) and not job.stop and not worker.claims.cancelled:
        for number in ahead:
            waiting[client.submit(block, folder, plan, number, timeout, pure=False)] = number
        ahead = []
        _wait(list(waiting))
        for made in [one for one in waiting if one.done()]:
            del waiting[made]
            done, failed = _answered(made)
            worker.tally.done += done
            worker.tally.failed += failed
        state.refresh()
        job.watch(state, worker.tally)
        if not waiting:
            time.sleep(_PAUSE if state.left else 0.0)  # others hold what is left
            ahead = [number for number in range(len(state.plan.blocks)) if state.missing(number)]
    client.cancel(list(waiting))


def _wait(futures: list[Any]) -> None:
    from distributed import wait
    from distributed.client import FuturesCancelledError

    try:
        wait(futures, timeout=_PAUSE, return_when="FIRST_COMPLETED")
    except TimeoutError:
        return
    except FuturesCancelledError as error:
        raise ValueError(
            "the scheduler of Dask must live until the sweep is done; it has gone. What was finished is kept; the "
            "same command goes on."
        ) from error


def _answered(future: Any) -> tuple[int, int]:
    """The answer of a block; nothing where its worker has gone, so that it is handed out again."""
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    try:
        return future.result()
    except (KilledWorker, FutureCancelledError):
        return 0, 0


@contextlib.contextmanager
def _configured() -> Iterator[None]:
    """Settings of Dask for one thread in each process, and for workers that die now and then."""
    import dask.config

    settings = {
        "distributed.nanny.pre-spawn-environ": {**_ONE_THREAD, **_paths()},
        "distributed.scheduler.allowed-failures": _TRIES,
        "distributed.admin.system-monitor.gil.enabled": False,
    }
    for name in _LOGGERS:  # what matters is raised, in one sentence
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with dask.config.set(settings):
        yield


def _say_open(address: str) -> None:
    """Warn of a scheduler that others than this machine can reach."""
    if not any(own in address for own in ("127.0.0.1", "localhost", "[::1]")):
        warnings.warn(
            f"the scheduler at {address} takes pickled code from all who reach it; keep its network closed",
            stacklevel=3,
        )


def _paths() -> dict[str, str]:
    return {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}


def _distributed(workers: int) -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            f"{workers} workers need Dask; got {error}. Install it with {installing('cluster')}, or compute with one "
            "worker and begin `iclab sweep work DIR` in a second terminal, which needs nothing."
        ) from error
    return distributed


def _jobqueue() -> Any:
    try:
        import dask_jobqueue
    except ImportError as error:
        raise ImportError(
            f"--jobqueue needs dask-jobqueue; got {error}. Install it with {installing('cluster')}, or begin "
            "`iclab sweep work DIR` in jobs of your own, which need nothing."
        ) from error
    return dask_jobqueue
