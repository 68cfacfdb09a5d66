"""Tables in the terminal, wrapped to its width, with no letter lost."""

import shutil
import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from unicodedata import combining, east_asian_width

from iclab.claims import Verdict

__all__ = ["print_table", "print_verdicts"]

_GAP = 2  # columns between two cells


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A plain table, wrapped to the terminal. Cells are shown as they are."""
    lines = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = _widths(lines, shutil.get_terminal_size().columns)
    for line in lines:
        cells = [_folded(cell, width) for cell, width in zip(line, widths, strict=True)]
        for parts in zip_longest(*cells, fillvalue=""):
            padded = (part + " " * (width - _width(part)) for part, width in zip(parts, widths, strict=True))
            print((" " * _GAP).join(padded).rstrip())


def print_verdicts(study: str, verdicts: Sequence[Verdict]) -> None:
    """The name of a study and its verdicts: each claim as a sentence, with the answer below it."""
    if not verdicts:
        return
    print(study)
    width = shutil.get_terminal_size().columns
    for one in verdicts:
        for text, indent in ((one.meaning, _GAP), (one.answer, 2 * _GAP)):
            for line in textwrap.wrap(text, max(width - indent, 20), break_on_hyphens=False, break_long_words=False):
                print(" " * indent + line)


def _widths(lines: Sequence[Sequence[str]], space: int) -> list[int]:
    """Widths of the columns: as wide as they are, and where that is too much the widest of them narrower."""
    widths = [max(1, *map(_width, column)) for column in zip(*lines, strict=True)]
    least = [
        min(width, max(map(_longest, column))) for width, column in zip(widths, zip(*lines, strict=True), strict=True)
    ]
    for limits in (least, [1] * len(widths)):  # words are whole as long as that is possible
        while sum(widths) + _GAP * (len(widths) - 1) > space:
            spare = [width - limit for width, limit in zip(widths, limits, strict=True)]
            if max(spare) <= 0:
                break
            widths[max(range(len(widths)), key=lambda place: (spare[place] > 0, widths[place]))] -= 1
    return widths


def _folded(cell: str, width: int) -> list[str]:
    lines = [
        line
        for row in cell.splitlines() or [""]
        for line in textwrap.wrap(row, width, break_on_hyphens=False) or [""]
    ]
    return [part for line in lines for part in _cut(line, width)]


def _cut(line: str, width: int) -> list[str]:
    """A line of letters that are twice as wide in parts that fit."""
    parts, part = [], ""
    for letter in line:
        if part and _width(part + letter) > width:
            parts.append(part)
            part = ""
        part += letter
    return [*parts, part]


def _longest(cell: str) -> int:
    return max(map(_width, cell.split()), default=0)


def _width(text: str) -> int:
    """Columns that a text takes in a terminal."""
    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)
