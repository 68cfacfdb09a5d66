"""Modules of the page with one term or factor of one formula changed by 2 %."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.explorer.theory_node import MODULES

__all__ = ["Mutant", "mutants"]

CHANGES = {" + ": " + 1.02 * ", " - ": " - 1.02 * ", " * ": " * 1.02 * ", " / ": " / 1.02 / ", " += ": " += 1.02 * "}
OPERATOR = re.compile("|".join(re.escape(operator) for operator in CHANGES))
METHODS = ("integration.js", "searches.js", "tableau.js")  # answers hardly know the sizes of steps
SPARE = re.compile(
    r"^(\*|/\*|//|import|for \()"  # no formulas
    r"|increasingRoot\(|const (far|start|middle = mean)|LEAST\)\) <=|let point"  # where a search begins and ends
    r"|return \[(share|cubic|reach|unspent\(df)|const (late|falls|step|slope) =|bend"  # slopes: roots are the same
    r"|1e-\d+|const floor|rounding|sharp|idle|flat"  # rounding, tolerances, guards
    r"|\.sort\(|Float64Array\(|\[i - 1\]|count - 1"  # orders, lengths, places
    r"|const counts =|const rest = value|const \[low, high\]|length = whole"  # sizes that are tried
    r"|logOdds ="  # a factor that cancels in differences
)


class Mutant(NamedTuple):
    """A module, the line where it is changed, that line and the whole text then."""

    module: str
    line: int
    change: str
    text: str


def mutants() -> Iterator[Mutant]:
    """Every module of formulas with each of its operators changed in turn."""
    for module in sorted(MODULES.glob("*.js")):
        lines = [] if module.name in METHODS else module.read_text().split("\n")
        for number, line in enumerate(lines):
            code = line.split(" // ")[0]
            for found in () if SPARE.search(code.strip()) else OPERATOR.finditer(code):
                changed = code[: found.start()] + CHANGES[found.group()] + code[found.end() :]
                text = "\n".join([*lines[:number], changed, *lines[number + 1 :]])
                yield Mutant(module.name, number + 1, changed.strip(), text)
