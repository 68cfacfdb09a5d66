"""Limits on a cell that is computed: its time, and the signals that ask this process to stop."""

import contextlib
import ctypes
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

__all__ = ["Stop", "Stopped", "within"]


class Stopped(BaseException):
    """This process was asked to stop; what is finished is to be stored."""


class Stop:
    """A request to stop, by a signal or by a cancellation: it ends the cell under way, and nothing else.

    Between cells it is only noted, so that a part or a claim is never left half done. A second signal ends at once.
    """

    def __init__(self) -> None:
        self.asked = 0  # number of the signal
        self._interrupting = False

    def __bool__(self) -> bool:
        return self.asked != 0

    @contextlib.contextmanager
    def handling(self) -> Iterator["Stop"]:
        """Context in which signals that end a process are noted here; in a thread that may not say so, nothing."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        names = [name for name in ("SIGINT", "SIGTERM", "SIGUSR1", "SIGHUP") if hasattr(signal, name)]
        before = {number: signal.getsignal(number) for number in (getattr(signal, name) for name in names)}
        for number in before:
            signal.signal(number, self._note)
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Context that a signal leaves at once, by Stopped."""
        self._interrupting = True
        try:
            if self:
                raise Stopped
            yield
        finally:
            self._interrupting = False

    def _note(self, number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        self.asked = number
        if self._interrupting:
            raise Stopped


@contextlib.contextmanager
def within(seconds: float | None, beyond: Callable[[TimeoutError], None] | None = None) -> Iterator[None]:
    """Context that raises TimeoutError after so many seconds, in any thread; None sets no limit.

    It cuts in between two steps of Python: one long call of a library ends first. Where such a call lasts as long
    again, and two seconds more, `beyond` is called with the error, from another thread.
    """
    if seconds is None:
        yield
        return
    error = TimeoutError(f"a cell must end within {seconds:g} s (--cell-timeout); this one did not")
    limit = _Limit(seconds, None if beyond is None else lambda: beyond(error))
    try:
        yield
        limit.end()
    except _OutOfTime:
        raise error from None
    finally:
        limit.over()


class _OutOfTime(BaseException):
    """Raised in the thread of a cell by the clock of its limit; no handler of ordinary errors takes it."""


class _Limit:
    def __init__(self, seconds: float, beyond: Callable[[], None] | None) -> None:
        self._thread = threading.get_ident()
        self._lock, self._done, self._fired = threading.Lock(), False, threading.Event()
        self._timers = [threading.Timer(seconds, self._fire)]
        if beyond is not None:
            self._timers.append(threading.Timer(2 * seconds + 2, lambda: self._done or beyond()))
        for timer in self._timers:
            timer.daemon = True
            timer.start()

    def end(self) -> None:
        """The cell is done: from here on the clock does nothing, and what it has raised is taken here."""
        with self._lock:
            self._done = True
        while self._fired.is_set():
            threading.Event().wait(0.01)  # _OutOfTime comes in the next steps

    def over(self) -> None:
        """Stop the clock."""
        self._done = True
        for timer in self._timers:
            timer.cancel()

    def _fire(self) -> None:
        with self._lock:
            if not self._done:
                self._fired.set()
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(_OutOfTime))
