"""Terminal input and output of the commands: flags, one-line errors, progress, tables."""

import contextlib
import io
import re
import sys
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import tyro

from iclab.claims import Verdict
from iclab.numerics import require

__all__ = ["fail", "note", "parsed", "print_table", "print_verdicts", "progress", "writable", "writable_pdf"]


def parsed(form: Any, words: Sequence[str], *, prog: str, description: str) -> Any:
    """The flags as an instance of `form`. Raises ValueError, in one line, for flags that do not fit it."""
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            chosen, unknown = tyro.cli(
                form, args=list(words), prog=prog, description=description, return_unknown_args=True
            )
    except SystemExit as stop:
        if not stop.code:
            raise
        raise ValueError(_in_one_line(complaint.getvalue(), prog)) from None
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        note(text)
    if unknown:
        raise ValueError(
            f"flags must be among {', '.join(_flags(form))}; got {' '.join(unknown)}. See `{prog} --help`."
        )
    given = {word.lstrip("-").partition("=")[0].replace("-", "_") for word in words if word.startswith("--")}
    for name in _empty(chosen):
        if given & {name, name.partition(".")[2]}:  # parts without a name of their own are not in the flag
            raise ValueError(f"{name.rpartition('.')[2]} must hold at least one value; got none.")
    return chosen


def _empty(chosen: Any) -> list[str]:
    """The names of flags for several values that have none, with the parts that they are of."""
    parts = [(field.name, getattr(chosen, field.name)) for field in fields(chosen)] if is_dataclass(chosen) else []
    within = [f"{part}.{name}" for part, value in parts for name in _empty(value)]
    return [name for name, value in parts if value == ()] + within


def writable_pdf(path: Path) -> None:
    """Raise ValueError unless a PDF can be written there."""
    require(path.suffix == ".pdf", f"--figure must be a file that ends in .pdf; got {path}.")
    try:
        require(not path.is_dir(), f"--figure must be a file; got the folder {path}.")
        with tempfile.TemporaryFile(dir=path.parent):
            pass
        if path.exists():
            path.open("ab").close()
    except OSError as error:
        raise ValueError(f"--figure must be a file that can be written; got {path} ({error.strerror}).") from None


def writable(folder: Path) -> Path:
    """The folder, made if need be. Raises ValueError where nothing can be written into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(
            f"--out must be a folder that can be written; got {folder} ({error.strerror}). Name another one."
        ) from None
    return folder


def fail(message: str, code: int = 2) -> int:
    """Say in one line on stderr what went wrong."""
    print(f"iclab: {' '.join(message.split())}", file=sys.stderr)
    return code


def note(message: object) -> None:
    """Say something by the way on stderr."""
    print(f"iclab: note: {message}", file=sys.stderr)


def progress() -> Any:
    """Progress bars on the terminal, quiet where there is none."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    shown = console.is_terminal and sys.stderr.isatty()  # FORCE_COLOR makes a terminal of a notebook's cell
    return Progress(*columns, console=console, transient=True, disable=not shown)


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A plain table, wrapped to the terminal, with no letter lost. Cells are shown as they are: no markup is read."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for title in header:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


def print_verdicts(study: str, verdicts: Sequence[Verdict]) -> None:
    """The name of a study and a table of its verdicts, each claim as a sentence; nothing where nothing is claimed."""
    if verdicts:
        print(study)
        print_table(
            ("claim", "what is measured", "95 %", "asked", "would notice", "verdict"),
            [(one.meaning, one.measure, one.number, one.bound, one.noticed, one.word) for one in verdicts],
        )


def _flags(form: Any) -> list[str]:
    """All flags of a form, as its help lists them."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        tyro.cli(form, args=["--help"], prog="iclab")
    flags = re.findall(r"(?<=[│ ])--?[a-z][\w.-]*", shown.getvalue())
    return [flag for flag in dict.fromkeys(flags) if not flag.startswith("--no-")]


def _in_one_line(box: str, prog: str) -> str:
    """The text of a boxed complaint, without its frame and its advice."""
    lines = [line.strip("│╭╮╰╯─ \t") for line in box.splitlines()]
    text = " ".join(line for line in lines if line)
    text = re.split(r"For full helptext|Argument helptext", text)[0].strip()
    text = re.sub(r"^(Value error|Parsing error|[A-Z][a-z ]+error)\s+", "", text)
    text = re.sub(r"^Error parsing (case|case\.\w+|options): ", "", text)
    require(bool(text), f"the flags do not fit; see `{prog} --help`")
    return f"{text.rstrip('.')}. See `{prog} --help`."
