"""Several seeds of several studies at once, in separate processes that end when their parent does."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from iclab.store import Store
from iclab.studies import STUDIES

if TYPE_CHECKING:
    import xarray as xr
    from rich.progress import Progress

__all__ = ["Job", "answers", "begin", "fill"]

Job = tuple[str, Any, int]
"""Name of a study, case, seed."""


def fill(store: Store, missing: Mapping[str, tuple[Any, list[int]]], *, processes: int, bars: "Progress") -> None:
    """Ask the missing seeds of a case of each study, and store every answer soon after it comes."""
    jobs = [(name, case, seed) for name, (case, seeds) in missing.items() for seed in seeds]
    shown = {name: bars.add_task(name, total=len(seeds)) for name, (_, seeds) in missing.items() if seeds}
    with ExitStack() as all_stored:
        buffers = {name: all_stored.enter_context(store.buffer(STUDIES[name])) for name in shown}
        for (name, _, _), answer in answers(jobs, processes=processes):
            buffers[name].add(answer)
            bars.advance(shown[name])


def answers(jobs: Sequence[Job], *, processes: int) -> "Iterator[tuple[Job, xr.DataTree]]":
    """The answer to each job, in the order in which they come.

    An interrupt ends the processes at once, and so does the end of this one, however it comes. An error in a job is
    raised here; ChildProcessError where a process is ended from outside.
    """
    if not jobs:
        return
    context = multiprocessing.get_context("spawn")  # a forked JAX can hang
    watched, held = context.Pipe(duplex=False)  # whatever ends this process closes the end that it holds
    try:
        with ProcessPoolExecutor(min(processes, len(jobs)), context, initializer=begin, initargs=(watched,)) as pool:
            try:
                waiting = {pool.submit(_answer, job): job for job in jobs}
                for done in as_completed(waiting):
                    yield waiting[done], done.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in multiprocessing.active_children():
                    process.terminate()
                raise
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "each process must live until its seeds are done; one was ended from outside, perhaps for want of "
            "memory. Finished seeds are kept. Ask for fewer at once with --processes."
        ) from error
    finally:
        held.close()
        watched.close()


def begin(watched: Connection) -> None:
    """Start a process: its parent alone answers Ctrl-C, and where the parent ends it ends as well."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, args=(watched,), daemon=True).start()


def _leave_with_parent(watched: Connection) -> None:
    with suppress(EOFError, OSError):
        watched.recv()
    os._exit(1)


def _answer(job: Job) -> "xr.DataTree":
    name, case, seed = job
    return STUDIES[name].run(case, (seed,)).tree
