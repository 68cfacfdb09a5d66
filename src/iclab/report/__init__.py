"""One page of studies: answers, figures inline, verdicts, numbers to take along; nothing from outside.

It is complete without a script; where one may run, figures open the explorer in their place.
"""

from iclab.report.document import MEDIA, Drawing, Entry, File, Moving, page, shown, verdict_table, write
from iclab.report.entries import drawing, entry
from iclab.report.mathml import mathml
from iclab.report.shell import command
from iclab.report.tables import csv, table

__all__ = [
    "MEDIA", "Drawing", "Entry", "File", "Moving", "command", "csv", "drawing", "entry", "mathml", "page", "shown",
    "table", "verdict_table", "write",
]  # fmt: skip
