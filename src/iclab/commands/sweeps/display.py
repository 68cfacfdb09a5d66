"""Progress of the running command: a bar on a terminal, a line every ten seconds in a pipe."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from iclab.commands.terminal import progress
from iclab.sweeps.body import Tally
from iclab.sweeps.progress import span
from iclab.sweeps.state import State

__all__ = ["displayed"]

_BAR, _LINE = 0.5, 10.0  # seconds between two looks


@contextmanager
def displayed(name: str, cells: int) -> Iterator[Callable[[State, Tally], None]]:
    """A function that is called after each cell, and shows cells, rate, time left and failures."""
    with progress(quiet=not sys.stderr.isatty()) as bars:
        task = bars.add_task(name, total=cells)
        pause = _LINE if bars.disable else _BAR
        begun = last = time.monotonic()
        before: int | None = None

        def watch(state: State, tally: Tally) -> None:
            nonlocal last, before
            now = time.monotonic()
            if before is None:
                before = int(state.done.sum())
            if now - last < pause:
                return
            last = now
            done = max(int(state.done.sum()), before + tally.done)
            failed = max(int(state.failed.sum()), tally.failed)
            rate = (done - before) / (now - begun)
            words = [f"{failed:,} failed"] * (failed > 0)
            if rate > 0:
                words += [f"{rate:.3g} cells/s", f"{span((cells - done - failed) / rate)} left"]
            if bars.disable:
                print(f"iclab: {name}: {done:,} of {cells:,} cells; {', '.join(words)}", file=sys.stderr, flush=True)
            else:
                bars.update(task, completed=done + failed, description=" · ".join([name, *words]))

        yield watch
