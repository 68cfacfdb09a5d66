"""Modules of the page with one term or factor of one formula changed by 2 %."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.explorer.theory_node import MODULES

__all__ = ["Mutant", "mutants"]

CHANGES = {" + ": " + 1.02 * ", " - ": " - 1.02 * ", " * ": " * 1.02 * ", " / ": " / 1.02 / ", " += ": " += 1.02 * "}
OPERATOR = re.compile("|".join(re.escape(operator) for operator in CHANGES))
SETTINGS = ("tableau.js",)  # a table that is compared number by number


class Mutant(NamedTuple):
    """A module, the line and the place where it is changed, and its text then."""

    module: str
    line: int
    change: str
    text: str


def mutants() -> Iterator[Mutant]:
    """Every module with each of its operators changed in turn."""
    for module in sorted(MODULES.glob("*.js")):
        if module.name in SETTINGS:
            continue
        lines = module.read_text().split("\n")
        for number, line in enumerate(lines):
            if line.lstrip().startswith(("*", "/*", "//", "import", "for (")):
                continue
            code = line.split(" // ")[0]
            for found in OPERATOR.finditer(code):
                changed = code[: found.start()] + CHANGES[found.group()] + code[found.end() :]
                text = "\n".join([*lines[:number], changed, *lines[number + 1 :]])
                yield Mutant(module.name, number + 1, changed.strip(), text)
