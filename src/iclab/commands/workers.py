"""Several seeds of several studies at once, or several figures, in processes that end when their parent does."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, suppress
from itertools import accumulate
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from iclab.commands.terminal import note, progress
from iclab.commands.terminal.progressing import span
from iclab.numerics import require
from iclab.provenance import cores, machine_memory
from iclab.simulation import programs
from iclab.simulation.waiting import keeping, listening
from iclab.store import Store
from iclab.store.cells import Cell
from iclab.store.fresh import fresh
from iclab.studies import STUDIES
from iclab.study import Cost, Study

if TYPE_CHECKING:
    import xarray as xr

    from iclab.commands.terminal import Progress

__all__ = ["Job", "answers", "begin", "fetched", "fill", "side_by_side"]

LONG = 15.0  # seconds of work, from which on several processes are quicker than one, each of which begins anew
UNKNOWN = 1.0  # seconds that a seed of a study without an estimate is taken to need
PROCESS = 4e8  # bytes of a process that has loaded JAX and drawn little

_LIFE = ExitStack()  # of a process: contexts that last as long

Job = tuple[str, Any, int]
"""Name of a study, case, seed."""

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")


def fetched(
    store: Store, cases: Sequence[tuple[Study, Any, int]], *, processes: int | None, quiet: bool, published: bool
) -> "list[xr.DataTree]":
    """The result of each case of a study for its number of seeds: what is stored, and what is missing computed.

    Says before how long that takes where it is over a minute, and of published cases always. Raises ValueError for
    a case that memory cannot hold. Without a number of processes there are as many as cores where that saves time;
    of more than there are cores, or than memory holds, it says so and takes fewer.
    """
    missing = {study.name: (case, store.missing(study, case, seeds)) for study, case, seeds in cases}
    processes = _at_once(
        processes, [study.estimate(case) for study, case, _ in cases for _ in missing[study.name][1]]
    )
    for study, case, _ in cases:
        _say_cost(study, case, len(missing[study.name][1]), processes, always=published)
    with progress(quiet=quiet) as bars, listening(bars.inside), keeping(store.folder / "tmp"):
        if processes > 1:
            fill(store, missing, processes=processes, bars=bars)
        return [
            store.fetch(study, case, seeds, track=lambda left, name=study.name: bars.track(left, description=name))
            for study, case, seeds in cases
        ]


def _at_once(asked: int | None, costs: Sequence[Cost | None]) -> int:
    """The number of seeds that are computed at once: those asked for, as far as cores and memory go."""
    if len(costs) < 2 or asked == 1:
        return 1
    seconds = sum(UNKNOWN if cost is None else cost.seconds for cost in costs)
    wanted = min(len(costs), asked if asked is not None else cores() if seconds > LONG else 1)
    largest = sorted((PROCESS + (0.0 if cost is None else cost.memory) for cost in costs), reverse=True)
    held = sum(1 for sizes in accumulate(largest) if sizes <= machine_memory())
    found = max(1, min(wanted, cores(), held))
    if asked is not None and found < wanted:
        note(f"{found} seeds at once, not {wanted}: this machine has {cores()} cores, and memory for {held}")
    return found


def _say_cost(study: Study, case: Any, seeds: int, processes: int, *, always: bool) -> None:
    cost = study.estimate(case) if seeds else None
    if cost is None:
        return
    at_once = min(processes, seeds)
    need, have = cost.memory * at_once, machine_memory()
    require(
        need <= have,
        f"memory must hold the training of {study.name}, about {need / 1e9:,.3g} GB; this machine has "
        f"{have / 1e9:.3g} GB. Lower the dimension or the sizes, or ask theory alone with --seeds 0.",
    )
    seconds = cost.seconds * seeds
    if always or seconds / at_once > 60:
        long = f"{seconds / 3600:,.1f} hours" if always else span(seconds)
        side_by_side = f", {at_once} seeds at once" if at_once > 1 else ""
        held = f", {need / 1e9:.2g} GB of memory" if need > 1e8 else ""
        note(f"{study.name}: about {long} on one core{side_by_side}{held}; Ctrl-C stops, and keeps finished seeds")


def fill(store: Store, missing: Mapping[str, tuple[Any, list[int]]], *, processes: int, bars: "Progress") -> None:
    """Ask the missing seeds of a case of each study, and store every answer soon after it comes."""
    jobs = [(name, case, seed) for name, (case, seeds) in missing.items() for seed in seeds]
    shown = {name: bars.add_task(name, total=len(seeds)) for name, (_, seeds) in missing.items() if seeds}
    with ExitStack() as all_stored:
        buffers = {name: all_stored.enter_context(store.buffer(STUDIES[name])) for name in shown}
        unfinished = store.folder / "tmp"
        for (name, _, _), answer in answers(jobs, processes=processes, unfinished=unfinished, told=bars.inside):
            buffers[name].keep([answer])
            bars.advance(shown[name])


def answers(
    jobs: Sequence[Job],
    *,
    processes: int,
    unfinished: Path | None = None,
    told: Callable[[str, int, int], None] = lambda *_: None,
) -> Iterator[tuple[Job, Cell]]:
    """The answer to each job, in the order in which they come; long ones keep their state, and tell of themselves."""
    return side_by_side(_answer, jobs, processes=processes, unfinished=unfinished, told=told)


def side_by_side(
    ask: Callable[[_Asked], _Answer],
    jobs: Sequence[_Asked],
    *,
    processes: int,
    unfinished: Path | None = None,
    told: Callable[[str, int, int], None] = lambda *_: None,
) -> Iterator[tuple[_Asked, _Answer]]:
    """Answers of a function to each job, in the order in which they come, out of several processes.

    An interrupt ends the processes at once, and so does the end of this one, however it comes. An error in a job is
    raised here; ChildProcessError where a process is ended from outside.
    """
    if not jobs:
        return
    context = multiprocessing.get_context("spawn")  # a forked JAX can hang
    watched, held = context.Pipe(duplex=False)  # whatever ends this process closes the end that it holds
    heard, tell = context.Pipe(duplex=False)
    threading.Thread(target=_hear, args=(heard, told), daemon=True).start()
    try:
        with ProcessPoolExecutor(
            min(processes, len(jobs)), context, initializer=begin, initargs=(watched, unfinished, tell)
        ) as pool:
            try:
                waiting = {pool.submit(ask, job): job for job in jobs}
                pool.submit(os.getpid)  # the pool looks for processes that have died when it is handed work
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
        for end in (held, watched, tell):
            end.close()


def begin(watched: Connection, unfinished: Path | None = None, tell: Connection | None = None) -> None:
    """Start a process: its parent alone answers Ctrl-C, and where the parent ends it ends as well."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _LIFE.enter_context(programs.hushed())
    if unfinished is not None:
        _LIFE.enter_context(keeping(unfinished))
    if tell is not None:
        _LIFE.enter_context(listening(_Teller(tell)))
    threading.Thread(target=_leave_with_parent, args=(watched,), daemon=True).start()


class _Teller:
    """A listener in a process, which tells the parent once a second; short messages of several do not mix."""

    def __init__(self, tell: Connection) -> None:
        self._tell = tell
        self._last = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        if time.monotonic() - self._last >= 1.0:
            self._last = time.monotonic()
            with suppress(OSError):
                self._tell.send((f"process {os.getpid()}: {what}", done, total))


def _hear(heard: Connection, told: Callable[[str, int, int], None]) -> None:
    with suppress(EOFError, OSError):
        while True:
            told(*heard.recv())


def _leave_with_parent(watched: Connection) -> None:
    with suppress(EOFError, OSError):
        watched.recv()
    os._exit(1)


def _answer(job: Job) -> Cell:
    name, case, seed = job
    return fresh(STUDIES[name], case, seed)
