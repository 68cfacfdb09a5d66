"""The command line: a word for each command, which loads no other."""

import contextlib
import importlib
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence

from iclab.commands.terminal import fail, note
from iclab.commands.verdicts import INTERRUPTED
from iclab.numerics import did_you_mean, plain
from iclab.simulation import programs

__all__ = ["COMMANDS", "main"]

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
    switches = {word.lower().replace("_", "-") for word in words}  # that hold for errors of parsing too
    said = note if "--verbose" in switches else lambda _: None
    with warnings.catch_warnings(), _ends_raised():
        warnings.simplefilter("ignore", RuntimeWarning)  # of arithmetic; what matters is raised
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: note(message)
        try:
            with programs.kept(off="--no-cache" in switches, say=said):
                return _command(words)
        except KeyboardInterrupt:
            return fail("interrupted; finished seeds are kept, nothing half-written stays", INTERRUPTED)
        except _Ended as end:
            return fail(f"ended by {end.signal.name}; finished seeds are kept", 128 + end.signal)
        except BrokenPipeError:  # whoever read the output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except (ValueError, ArithmeticError, MemoryError, OSError, ImportError) as error:
            if "--debug" in switches:
                raise
            if isinstance(error, OverflowError):
                return fail(
                    f"numbers must stay within double precision; one did not ({error.args[-1]}). Change units."
                )
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


def _command(words: Sequence[str]) -> int:
    command, rest = (words[0], words[1:]) if words else ("--help", [])
    name = {plain(one): one for one in COMMANDS}.get(plain(command), command)
    if name in COMMANDS:
        return COMMANDS[name][1](rest)
    if plain(command) in ("version", "v"):
        from iclab.provenance import computing

        print(computing())
        return 0
    if command not in ("-h", "--help", "help"):
        near = did_you_mean(command, COMMANDS)
        raise ValueError(f"command must be one of {', '.join(COMMANDS)}; got {command!r}.{near} See `iclab --help`.")
    from iclab.commands.flags.helptext import listed, wrapped

    rows = [(one, about) for one, (about, _) in COMMANDS.items()]
    lines = ["usage: iclab COMMAND [FLAGS]", "", *wrapped(_ABOUT, 78), "", "commands:", *listed(rows), "", *_EXAMPLES]
    print("\n".join(lines))
    raise SystemExit(0)


def _later(module: str) -> Callable[[Sequence[str]], int]:
    """A command that is loaded when it is asked for: the function of the name of its module."""

    def command(words: Sequence[str]) -> int:
        return getattr(importlib.import_module(f"iclab.commands.{module}"), module)(words)

    return command


def _inspect(words: Sequence[str]) -> int:
    from iclab.commands.flags.parsing import parsed
    from iclab.inspection.flags import Inspect

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
    from iclab.commands.report import report

    return report(words)


_ABOUT = "In-context learning in linear attention: exact theory, simulation that confirms it, verdicts in numbers."

_EXAMPLES = (
    "examples:", "  iclab studies", "  iclab run abrupt-drop", "  iclab run staircase --eigenvalues .5 .3 .2 --page",
    "  iclab report", "  iclab COMMAND --help",
)  # fmt: skip

COMMANDS: dict[str, tuple[str, Callable[[Sequence[str]], int]]] = {
    "run": ("put the question of one study: theory, simulation, verdict and figure", _later("run")),
    "report": ("studies, or one case of your own, on one page", _report),
    "compare": ("lay theory under the log of a training run of your own", _later("compare")),
    "explore": ("move the theory by sliders, on one page that opens from disk", _later("explore")),
    "studies": ("list the studies and the questions they put", _later("studies")),
    "plan": ("before a pretraining run is made: how many tasks, sequences, examples?", _later("plan")),
    "inspect": ("after a model is trained: spectra of a folder of its checkpoints", _inspect),
    "sweep": ("put a study to every point of a grid, on many machines", _sweep),
    "collect": ("make one dataset of a sweep", _collect),
    "results": ("list what is stored, or remove it", _later("results")),
    "completion": ("the completion of words, for bash, zsh or fish", _later("completion")),
}
