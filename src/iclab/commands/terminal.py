"""Terminal input and output of the commands: flags, one-line errors, progress, tables."""

import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from iclab.claims import Verdict
from iclab.numerics import require

__all__ = ["fail", "note", "print_table", "print_verdicts", "progress", "writable", "writable_pdf"]


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


def progress(*, quiet: bool = False) -> Any:
    """Progress bars on the terminal, quiet where there is none."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    shown = console.is_terminal and sys.stderr.isatty()  # FORCE_COLOR makes a terminal of a notebook's cell
    return Progress(*columns, console=console, transient=True, disable=quiet or not shown)


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
