"""Long simulations: how far they are, and their state at the last whole block, from which they go on later.

with listening(lambda what, done, total: ...), keeping(folder):
    study.run(case)
"""

import hashlib
import io
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

import numpy as np

from iclab import __version__
from iclab.files import written_whole

__all__ = ["EVERY", "Kept", "keeping", "kept", "listening", "report"]

EVERY = 10.0  # seconds between two states that are kept

Listener = Callable[[str, int, int], None]

_listener: ContextVar[Listener | None] = ContextVar("_listener", default=None)
_folder: ContextVar[Path | None] = ContextVar("_folder", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Context in which a function is told what is counted, how many are done, and of how many."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report(what: str, done: int, total: int) -> None:
    """Tell whoever listens."""
    listener = _listener.get()
    if listener is not None:
        listener(what, done, total)


@contextmanager
def keeping(folder: Path) -> Iterator[None]:
    """Context in which long runs keep their state in a folder, every ten seconds, until they are done."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


class Kept:
    """The state of one run: arrays, in a file that is named by all that the run follows from."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._last = time.monotonic()

    def load(self) -> list[np.ndarray] | None:
        """The arrays that were kept last; None where there are none, or where they are damaged."""
        if self._path is None:
            return None
        try:
            with np.load(io.BytesIO(self._path.read_bytes()), allow_pickle=False) as file:
                return [file[f"arr_{place}"] for place in range(len(file.files))]
        except Exception:  # zip and npy raise errors of many kinds; the run then begins anew
            return None

    def save(self, arrays: Callable[[], Sequence[np.ndarray]], *, now: bool = False) -> None:
        """Keep the state, where ten seconds have gone since the last time, or now; a full disk is no error."""
        if self._path is None or not (now or time.monotonic() - self._last >= EVERY):
            return
        self._last = time.monotonic()
        with suppress(OSError), written_whole(self._path) as file, open(file, "wb") as stream:
            np.savez(stream, *arrays())

    def done(self) -> None:
        """Remove the state of a run that is done."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)


def kept(name: str, arrays: Callable[[], Sequence[np.ndarray]]) -> Kept:
    """The state of the run of this name that follows from these arrays, in this version of iclab."""
    folder = _folder.get()
    if folder is None:
        return Kept(None)
    total = hashlib.sha256(f"{__version__} {name}".encode())
    for array in arrays():
        total.update(f"{array.dtype.str} {array.shape} ".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return Kept(folder / f"unfinished-{total.hexdigest()[:32]}.npz")
