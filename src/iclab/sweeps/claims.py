"""Claims on blocks: advisory files that save work. Nothing else rests on them.

    DIR/claims/ID/BLOCK     the cell under way, then host, process, job, attempt and deaths as JSON

A claim is taken by linking its file to its name, which fails where there is one, and kept alive by its time, which is
compared with that of a file just made beside it: no machine's clock enters. One that is older than the lease, or
whose process has ended on this host, is set aside by whoever renames it first.
"""

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from iclab.files import NO_LINKS, UNFINISHED, ended, own_name
from iclab.sweeps.grids.plan import SweepPlan

__all__ = ["LEASE", "Claim", "Claims", "Heartbeat", "Held"]

LEASE = 120.0  # seconds without a sign of life after which a claim is anybody's
_LOOK = 10.0  # seconds between two looks for a cancellation
_WIDTH = 20  # digits of the cell under way


@dataclass(frozen=True)
class Held:
    """A claim as others see it."""

    block: int
    host: str
    pid: int
    job: str
    attempt: int
    age: float
    """Seconds since its last sign of life."""
    cell: int | None
    """The cell under way."""
    deaths: Mapping[int, int]
    """Processes that died, by the cell that was under way."""
    alive: bool
    """False once it is anybody's: its lease is over, or its process has ended on this host."""


@dataclass
class Claim:
    """A claim that is held by this process."""

    path: Path
    block: int
    attempt: int = 1
    deaths: Mapping[int, int] = field(default_factory=dict)
    _handle: int = -1

    def under_way(self, cell: int) -> None:
        """Note the cell that is computed now, on the disk itself once a process has died on this block."""
        os.pwrite(self._handle, f"{cell:{_WIDTH}d}".encode(), 0)
        if self.attempt > 1:
            os.fsync(self._handle)

    def drop(self) -> None:
        """Give the block back."""
        os.close(self._handle)
        self.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Claims:
    """The claims on the blocks of a plan below a folder of results."""

    folder: Path
    plan: SweepPlan
    lease: float = LEASE

    @property
    def home(self) -> Path:
        """Folder of the claims, whether it is there or not."""
        return self.folder / "claims" / self.plan.id

    @property
    def cancelled(self) -> bool:
        """True once the sweep was cancelled, until it is begun again."""
        return self._mark.exists()

    def cancel(self) -> None:
        """Ask all who work on the sweep to stop after the cell under way."""
        self.home.mkdir(parents=True, exist_ok=True)
        self._mark.touch()

    def allow(self) -> None:
        """Take a cancellation back."""
        self._mark.unlink(missing_ok=True)

    def take(self, block: int) -> Claim | None:
        """The claim on a block; None where another holds it."""
        self.home.mkdir(parents=True, exist_ok=True)
        path = self.home / f"{block:06d}"
        try:
            return self._placed(path, block, 1, {})
        except FileExistsError:
            found = self._stale(path)
        if found is None:
            return None
        deaths = {**found.deaths}
        if found.cell is not None:
            deaths[found.cell] = deaths.get(found.cell, 0) + 1
        with contextlib.suppress(FileExistsError):
            return self._placed(path, block, found.attempt + 1, deaths)
        return None

    def held(self) -> list[Held]:
        """The claims there are, by block."""
        with contextlib.suppress(FileNotFoundError):
            paths = sorted(path for path in self.home.iterdir() if path.name.isdigit())
            now = self.now() if paths else 0.0
            return [one for path in paths if (one := self._read(path, now)) is not None]
        return []

    def _placed(self, path: Path, block: int, attempt: int, deaths: Mapping[int, int]) -> Claim:
        """A claim with all that it says, under its name at once. Raises FileExistsError where there is one."""
        noted = {"host": socket.gethostname(), "pid": os.getpid(), "owner": own_name(), "job": _job(),
                 "attempt": attempt, "deaths": deaths}  # fmt: skip
        content = f"{-1:{_WIDTH}d}\n{json.dumps(noted)}\n".encode()
        written = self.home / f"{UNFINISHED}{path.name}-{os.urandom(4).hex()}.{own_name()}"
        handle = _made(written)
        try:
            os.write(handle, content)
            os.link(written, path)
        except FileExistsError:
            os.close(handle)
            raise
        except OSError as error:
            os.close(handle)
            if error.errno not in NO_LINKS:
                raise
            handle = _made(path)
            os.write(handle, content)
        finally:
            written.unlink(missing_ok=True)
        return Claim(path, block, attempt, deaths, handle)

    def now(self) -> float:
        """The time of the disk: that of a file made now; of this machine where none can be made."""
        probe = self.home / f"{UNFINISHED}now-{os.urandom(4).hex()}.{own_name()}"
        try:
            self.home.mkdir(parents=True, exist_ok=True)
            os.close(_made(probe))
            return probe.stat().st_mtime
        except OSError:
            return time.time()
        finally:
            with contextlib.suppress(OSError):
                probe.unlink(missing_ok=True)

    @property
    def _mark(self) -> Path:
        return self.home / "cancelled"

    def _read(self, path: Path, now: float) -> Held | None:
        """A claim as it stands; None where it has vanished. One without content is alive until its lease ends."""
        try:
            text, age = path.read_text(), now - path.stat().st_mtime
        except FileNotFoundError:
            return None
        cell, _, noted = text.partition("\n")
        try:
            plain, under_way = json.loads(noted), int(cell)
        except ValueError:
            return Held(int(path.name), "unknown", 0, "", 1, age, None, {}, age <= self.lease)
        return Held(
            int(path.name), plain["host"], plain["pid"], plain["job"], plain["attempt"], age,
            None if under_way < 0 else under_way, {int(one): count for one, count in plain["deaths"].items()},
            age <= self.lease and not ended(plain["owner"]),
        )  # fmt: skip

    def _stale(self, path: Path) -> Held | None:
        """The claim that was there, once it is out of the way; None while it is alive, or another took it."""
        try:
            before = os.stat(path)
            found = self._read(path, self.now())
            if found is None or found.alive:
                return None
            aside = self.home / f"{UNFINISHED}{path.name}-{os.urandom(4).hex()}.{own_name()}"
            os.rename(path, aside)
        except FileNotFoundError:
            return None
        after = os.stat(aside)
        if (after.st_ino, after.st_mtime_ns) != (before.st_ino, before.st_mtime_ns):  # alive after all, or taken
            with contextlib.suppress(OSError):
                os.link(aside, path)
            aside.unlink(missing_ok=True)
            return None
        aside.unlink(missing_ok=True)
        return found


class Heartbeat:
    """Signs of life for the claim under way, from a thread; it sees a cancellation too."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self.claim: Claim | None = None
        self.cancelled = claims.cancelled
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        rest = self._claims.lease / 4
        last = time.monotonic()
        while not self._over.wait(min(rest, _LOOK)):
            with contextlib.suppress(OSError):
                self.cancelled = self._claims.cancelled
                if (claim := self.claim) is not None and time.monotonic() - last >= rest - _LOOK:
                    os.utime(claim.path)
                    last = time.monotonic()


def _made(path: Path) -> int:
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)


def _job() -> str:
    """The job of a cluster that this process is part of; empty without one."""
    names = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID")
    return next((os.environ[name] for name in names if os.environ.get(name)), "")
