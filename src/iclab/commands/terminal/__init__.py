"""The terminal: messages in one line, tables, progress."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.commands.terminal import messages, progressing, tables
    from iclab.commands.terminal.messages import fail, note, writable, writable_pdf
    from iclab.commands.terminal.progressing import Progress, progress
    from iclab.commands.terminal.tables import print_table, print_verdicts

__all__ = [
    "Progress", "fail", "messages", "note", "print_table", "print_verdicts", "progress", "progressing",
    "tables", "writable", "writable_pdf",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(
        __name__,
        __all__,
        {
            **dict.fromkeys(("fail", "note", "writable", "writable_pdf"), "iclab.commands.terminal.messages"),
            **dict.fromkeys(("Progress", "progress"), "iclab.commands.terminal.progressing"),
            **dict.fromkeys(("print_table", "print_verdicts"), "iclab.commands.terminal.tables"),
        },
    )
