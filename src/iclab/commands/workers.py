"""Several seeds of several studies at once, in separate processes."""

import multiprocessing
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any

from iclab.store import Store
from iclab.studies import STUDIES

if TYPE_CHECKING:
    import xarray as xr
    from rich.progress import Progress

__all__ = ["Job", "answers", "fill"]

Job = tuple[str, Any, int]
"""Name of a study, case, seed."""


def fill(store: Store, missing: Mapping[str, tuple[Any, list[int]]], *, processes: int, bars: "Progress") -> None:
    """Ask the missing seeds of a case of each study, and store every answer as it comes."""
    jobs = [(name, case, seed) for name, (case, seeds) in missing.items() for seed in seeds]
    shown = {name: bars.add_task(name, total=len(seeds)) for name, (_, seeds) in missing.items() if seeds}
    for (name, case, _), answer in answers(jobs, processes=processes):
        store.add(STUDIES[name], case, answer)
        bars.advance(shown[name])


def answers(jobs: Sequence[Job], *, processes: int) -> "Iterator[tuple[Job, xr.DataTree]]":
    """The answer to each job, in the order in which they come.

    An interrupt ends the processes at once; an error in a job is raised here.
    """
    if not jobs:
        return
    context = multiprocessing.get_context("spawn")  # a forked JAX can hang
    with ProcessPoolExecutor(min(processes, len(jobs)), context, initializer=_leave_interrupts) as pool:
        try:
            waiting = {pool.submit(_answer, job): job for job in jobs}
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise


def _answer(job: Job) -> "xr.DataTree":
    name, case, seed = job
    return STUDIES[name].run(case, (seed,))


def _leave_interrupts() -> None:
    """The parent process alone answers Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
