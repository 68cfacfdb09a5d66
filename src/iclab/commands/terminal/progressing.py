"""Progress on stderr: one line that changes in a terminal, one line each ten seconds in a pipe."""

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

__all__ = ["Progress", "progress", "span"]

Item = TypeVar("Item")

TICK, LINE = 1.0, 10.0  # seconds between two states of the line that changes, and between two lines, unless
EVERY = "ICLAB_PROGRESS_SECONDS"  # of the environment says so
SILENT = 3.0  # seconds after which there is something to say


@dataclass
class _Task:
    """A row of work: so many of a whole, and how far the one under way is."""

    name: str
    total: int | None
    done: int = 0
    inside: tuple[str, int, int] | None = None  # what was counted last, how many, of how many
    began: float = 0.0
    parts: dict[str, tuple[float, int, int]] = field(default_factory=dict)  # when a count began, and where it is


class Progress:
    """A context in which tasks are shown while they last.

    A quiet one shows nothing.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._tty = sys.stderr is not None and sys.stderr.isatty()
        self._tasks: list[_Task] = []
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> "Progress":
        if not self._quiet:
            self._thread = threading.Thread(target=self._show, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def track(self, items: Iterable[Item], *, description: str) -> Iterator[Item]:
        """The items, each counted as done once the next one is asked for."""
        listed = list(items)
        task = self.add_task(description, total=len(listed))
        for item in listed:
            yield item
            self.advance(task)

    def add_task(self, name: str, *, total: int | None) -> int:
        """The number of a new task."""
        self._tasks.append(_Task(name, total, began=time.monotonic()))
        return len(self._tasks) - 1

    def advance(self, task: int) -> None:
        """One more is done."""
        self._tasks[task].done += 1
        self._tasks[task].inside = None

    @property
    def disable(self) -> bool:
        """True where no line changes: it is no terminal, or quiet is asked for."""
        return self._quiet or not self._tty

    def update(self, task: int, *, completed: int, total: int | None = None, description: str | None = None) -> None:
        """So many are done, of so many where that has changed; the name may change too."""
        shown = self._tasks[task]
        shown.done = completed
        shown.total = shown.total if total is None else total
        shown.name = description or shown.name

    def inside(self, what: str, done: int, total: int) -> None:
        """The part of the last task that is under way has come so far."""
        if self._tasks:
            task = self._tasks[-1]
            began, before, of = task.parts.get(what, (time.monotonic(), 0, total))
            again = of != total or done < before
            task.parts[what] = (time.monotonic() if again else began, done, total)
            task.inside = (what, done, total)

    def _show(self) -> None:
        begun = time.monotonic()
        shown = ""
        every = TICK if self._tty else float(os.environ.get(EVERY, LINE))
        while not self._over.wait(every):
            open_tasks = [task for task in self._tasks if task.total is None or task.done < task.total]
            if not open_tasks or time.monotonic() - begun < SILENT:
                continue
            text = _told(open_tasks[0])
            shown = text if self._tty else ""
            with suppress(OSError, ValueError):  # a stream that is closed
                print(f"\r\x1b[K{text}" if self._tty else f"iclab: {text}", end="" if self._tty else "\n",
                      file=sys.stderr, flush=True)  # fmt: skip
        if shown:
            with suppress(OSError, ValueError):
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def progress(*, quiet: bool = False) -> Progress:
    """Progress that is shown, unless it is quiet."""
    return Progress(quiet=quiet)


def _told(task: _Task) -> str:
    """The state of a task, in a line."""
    now = time.monotonic()
    parts = [task.name + (f" {task.done}/{task.total}" if task.total else "")]
    if task.inside is not None:
        what, done, total = task.inside
        parts.append(f"{what} {done:,} of {total:,}")
        if 0 < done < total:
            parts.append(f"{span((now - task.parts[what][0]) * (total - done) / done)} left of this part")
    if task.total and task.done:
        parts.append(f"about {span((now - task.began) * (task.total - task.done) / task.done)} left")
    else:
        parts.append(f"{span(now - task.began)} so far")
    return ", ".join(parts)


def span(seconds: float) -> str:
    """A time in words of a unit that suits it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:,.1f} hours" if seconds < 4 * 86400 else f"{seconds / 86400:,.0f} days"
