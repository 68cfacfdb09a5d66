"""The command line: one word for each command, and its exit code."""

import argparse
import contextlib
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Union

import tyro

from iclab.commands.compare import Compare, compare
from iclab.commands.plan import Plan, plan
from iclab.commands.report import Report, report
from iclab.commands.run import Run, run
from iclab.commands.studies import Studies, studies
from iclab.commands.sweeps.flags import Collect, Sweep
from iclab.commands.terminal import fail, note, parsed
from iclab.commands.verdicts import INTERRUPTED
from iclab.inspection.flags import Inspect

__all__ = ["main"]

# One thread for each process: seeds run in parallel, and small matrices gain nothing from more.
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code, of the table in docs/json.md.

    Ended by a signal (SIGTERM, SIGHUP) it keeps finished seeds too, and returns 128 + its number.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    for name, value in _ONE_THREAD.items():
        os.environ.setdefault(name, value)
    os.environ["MPLBACKEND"] = "agg"  # figures are files; that of a notebook's kernel is none of ours
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # what an encoding lacks is shown as a question mark
    with warnings.catch_warnings(), _ends_raised():
        warnings.simplefilter("ignore", RuntimeWarning)  # of arithmetic; what matters is raised
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: note(message)
        try:
            return _command(words)
        except KeyboardInterrupt:
            return fail("interrupted; finished seeds are kept, nothing half-written stays", INTERRUPTED)
        except _Ended as end:
            return fail(f"ended by {end.signal.name}; finished seeds are kept", 128 + end.signal)
        except BrokenPipeError:  # whoever read the output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except (ValueError, ArithmeticError, MemoryError, OSError, ImportError) as error:
            if _debugged(words):
                raise
            return fail(str(error) or type(error).__name__)


class _Ended(BaseException):
    """A signal that asks this process to end."""

    def __init__(self, number: int) -> None:
        self.signal = signal.Signals(number)


@contextlib.contextmanager
def _ends_raised() -> Iterator[None]:
    """Context in which signals that end a process at once raise _Ended, so that finished work is stored first."""

    def end(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)  # a second one ends at once
        raise _Ended(number)

    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [number for number in (getattr(signal, name) for name in names) if _ends_at_once(number)]
    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _ends_at_once(number: int) -> bool:
    """True for a signal that nobody handles or ignores, in the thread that may say so."""
    return threading.current_thread() is threading.main_thread() and signal.getsignal(number) is signal.SIG_DFL


def _debugged(words: Sequence[str]) -> bool:
    """True with the flag --debug, which holds for errors of parsing too."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--debug", action="store_true")
    return early.parse_known_args(words)[0].debug


def _command(words: Sequence[str]) -> int:
    command, rest = (words[0], words[1:]) if words else ("--help", [])
    if command in _COMMANDS:
        return _COMMANDS[command][1](rest)
    if command not in ("-h", "--help"):
        raise ValueError(f"command must be one of {', '.join(_COMMANDS)}; got {command!r}. See `iclab --help`.")
    every = Union[tuple(Annotated[form, tyro.conf.subcommand(name)] for name, (form, _) in _COMMANDS.items())]  # noqa: UP007
    parsed(every, ["--help"], prog="iclab", description=_ABOUT)
    return 0


def _inspect(words: Sequence[str]) -> int:
    asked = parsed(Inspect, words, prog="iclab inspect", description=Inspect.__doc__ or "")
    from iclab.commands.inspect import inspect

    return inspect(asked)


def _sweep(words: Sequence[str]) -> int:
    from iclab.commands.sweeps.sweep import sweep

    return sweep(words)


def _collect(words: Sequence[str]) -> int:
    from iclab.commands.sweeps.collect import collect

    return collect(words)


def _report(words: Sequence[str]) -> int:
    """The page of studies, or that of a sweep where the first word is its folder."""
    if words and not words[0].startswith("-"):
        from iclab.commands.sweeps.page import is_sweep, report_sweep

        if is_sweep(words):
            return report_sweep(words)
    return report(words)


_ABOUT = """In-context learning in linear attention: exact theory, simulation that confirms it, verdicts in numbers.

Start with `iclab studies`, then `iclab run abrupt-drop`, then `iclab report`. Before a run is made, ask
`iclab plan`; after one is trained, `iclab compare` and `iclab inspect`."""

_COMMANDS: dict[str, tuple[Any, Callable[[Sequence[str]], int]]] = {
    "run": (Run, run),
    "report": (Report, _report),
    "compare": (Compare, compare),
    "studies": (Studies, studies),
    "plan": (Plan, plan),
    "inspect": (Inspect, _inspect),
    "sweep": (Sweep, _sweep),
    "collect": (Collect, _collect),
}
