"""Runs that the page asks for: one at a time, in a process of its own, whose answer goes into the store."""

import asyncio
import contextlib
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iclab.explorer.addresses import state_at
from iclab.explorer.stored import laid_over
from iclab.explorer.views import case_at, study_of, view_named
from iclab.numerics import require, whole_number
from iclab.report.shell import command
from iclab.store import Store
from iclab.store.view import read

__all__ = ["Busy", "Run", "Runs"]

LIMIT = 300.0  # seconds that a run may take
GRACE = 10.0  # seconds in which one that is asked to end stores its finished seeds
MOST_SEEDS = 32
KEPT = 50  # runs that are remembered


class Busy(Exception):
    """One run is under way, and another was asked for."""


@dataclass
class Run:
    """A run that was asked for, and how far it is: running, done, cancelled or failed."""

    id: str
    words: list[str]
    path: Path  # of the stored result
    state: str = "running"
    told: str = "it starts"  # progress, or the reason of a failure
    stopping: bool = False
    process: asyncio.subprocess.Process | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def shown(self) -> dict[str, Any]:
        """The run as the page is told of it, with the result once there is one."""
        found = {"id": self.id, "state": self.state, "told": self.told, "command": " ".join(self.words)}
        return found | ({"stored": laid_over(read(self.path))} if self.state == "done" else {})


class Runs:
    """The runs of a server, which store into one folder."""

    def __init__(self, folder: Path, *, limit: float = LIMIT) -> None:
        self.store = Store(folder)
        self.limit = limit
        self.known: dict[str, Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, given: Mapping[str, Any]) -> Run:
        """A new run of `view`, `state` and `seeds`, the only keys that count.

        Raises Busy while another one is under way, and ValueError for what is no run.
        """
        odd = sorted(set(given) - {"view", "state", "seeds"})
        require(not odd, f"a run must have the keys view, state and seeds; got {', '.join(odd)[:80]}.")
        require(isinstance(given.get("view"), str), "view must be the name of a view; got none.")
        view = view_named(given["view"])
        simulates = bool(view.study) and study_of(view).simulation is not None
        require(simulates, f"view must be one that simulates; got {view.name}.")
        state = given.get("state", {})
        require(isinstance(state, Mapping), f"state must hold values by key; got {str(state)[:40]!r}.")
        seeds = whole_number("seeds", given.get("seeds", study_of(view).presets["quick"].seeds))
        require(1 <= seeds <= MOST_SEEDS, f"seeds must be from 1 to {MOST_SEEDS}; got {seeds}. Use the command.")
        if any(run.state == "running" for run in self.known.values()):
            raise Busy
        study, case = study_of(view), case_at(view, state_at(view.name, state))
        words = command(study, case, range(seeds)).split()[1:]
        run = Run(secrets.token_urlsafe(12), words, self.store.path(study, case))
        self.known[run.id] = run
        for old in list(self.known)[:-KEPT]:
            del self.known[old]
        task = asyncio.get_running_loop().create_task(self._worked(run))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return run

    async def cancel(self, run: Run) -> None:
        """End a run; finished seeds are kept, and no process is left."""
        if run.state == "running":
            run.stopping = True
            await _ended(run)
            await run.over.wait()

    async def close(self) -> None:
        """End what is under way."""
        for run in list(self.known.values()):
            await self.cancel(run)

    async def _worked(self, run: Run) -> None:
        try:
            with tempfile.TemporaryDirectory() as drawn:
                run.state, run.told = await self._outcome(run, drawn)
        except OSError as error:
            run.state, run.told = "failed", str(error)
        finally:
            run.over.set()

    async def _outcome(self, run: Run, drawn: str) -> tuple[str, str]:
        line = [sys.executable, "-m", "iclab.commands.serving.child", *run.words, "--json",
                "--results", str(self.store.folder), "--out", drawn]  # fmt: skip
        run.process = await asyncio.create_subprocess_exec(
            *line, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
            start_new_session=True, env={**os.environ, "ICLAB_PROGRESS_SECONDS": "1"},
        )  # fmt: skip
        if run.stopping:
            await _ended(run)
        try:
            async with asyncio.timeout(self.limit):
                await _told(run)
                code = await run.process.wait()
        except TimeoutError:
            await _ended(run)
            return "failed", f"it was ended after {self.limit:g} s; finished seeds are kept. Use the command."
        if run.stopping:
            return "cancelled", "it was cancelled; finished seeds are kept"
        return ("done", "done") if code == 0 else ("failed", run.told)


async def _told(run: Run) -> None:
    """Follow what a process says, until it says no more."""
    assert run.process is not None
    assert run.process.stderr is not None
    async for line in run.process.stderr:
        text = line.decode(errors="replace").strip().removeprefix("iclab: ")
        run.told = text or run.told


async def _ended(run: Run) -> None:
    """Ask the processes of a run to end, and end them where they do not."""
    if run.process is None:
        return
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.process.pid, sign)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(run.process.wait(), GRACE)
            break
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(run.process.pid, signal.SIGKILL)  # whatever is left of its group
