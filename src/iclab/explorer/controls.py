"""Controls of a view: what can be moved, with help and conditions from the fields of the case that they set."""

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iclab.numerics import require
from iclab.numerics.comments import comment_on

__all__ = ["MOST", "Control", "changed", "described", "fetched", "owner_of"]

MOST = 8  # eigenvalues of a spectrum
_WORD = 200  # letters
_SYMBOL = re.compile(r"^(\S{1,3}|s_\S+)(?: = [^,]+)?, ")


@dataclass(frozen=True)
class Control:
    """One thing that can be moved: a field of the case, or what is shown of it.

    `field` is the path of the field, empty for a control that the case does not know. A spectrum holds one to eight
    numbers, each in the range.
    """

    key: str  # in addresses
    low: float
    high: float
    field: str = ""
    log: bool = False
    start: Any = None  # that of the quick case, unless stated
    label: str = ""
    help: str = ""
    whole: bool = False
    spectrum: bool = False
    choices: tuple[str, ...] = ()  # words, in place of numbers
    open: bool = False  # words that come with a document
    hidden: bool = False  # set by another part of the page, such as a point that is dragged

    def checked(self, value: Any) -> Any:
        """The value as the page takes it. Raises ValueError for one out of range."""
        if self.open:
            return str(value)[:_WORD]
        if self.choices:
            require(value in self.choices, f"{self.key} must be one of {', '.join(self.choices)}; got {value!r}.")
            return value
        several = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        require(
            1 <= len(several) <= (MOST if self.spectrum else 1),
            f"{self.key} must hold {f'1 to {MOST} numbers' if self.spectrum else 'one number'}; got {len(several)}.",
        )
        found = sorted((self._number(one) for one in several), reverse=True)
        return found if self.spectrum else found[0]

    def _number(self, value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        require(
            self.low <= number <= self.high and (not self.whole or number == round(number)),
            f"{self.key} must be a {'whole ' if self.whole else ''}number from {self.low:g} to {self.high:g}; "
            f"got {value!r}.",
        )
        return int(number) if self.whole else number


def described(control: Control, case: Any) -> dict[str, Any]:
    """The control as the page reads it, with words and start from the case."""
    given = {name: value for name, value in vars(control).items() if name != "field"}
    if not control.field:
        return given | {"flag": ""}
    comment = comment_on(*owner_of(case, control.field))
    value = fetched(case, control.field)
    if isinstance(value, tuple) and not control.spectrum:
        value = value[0]
    one = value[0] if isinstance(value, tuple) else value
    require(
        control.whole == isinstance(one, int),
        f"{control.key} must be {'whole' if isinstance(one, int) else 'any number'}, as {control.field} is. Say so.",
    )
    symbol = _SYMBOL.match(comment)
    words = control.field.split(".")[-1].replace("_", " ")
    help_text = (comment[symbol.end() :] if symbol else comment).split(";")[0]
    return given | {
        "label": control.label or f"{words[0].upper()}{words[1:]}{f' {symbol[1]}' if symbol else ''}",
        "help": control.help or help_text,
        "start": _listed(value if control.start is None else control.start),
        "usual": _listed(value),
        "flag": f"--{control.field.replace('_', '-')}",
    }


def owner_of(case: Any, path: str) -> tuple[type, str]:
    """The class that a field belongs to, and its name. Raises ValueError where there is none."""
    *above, name = path.split(".")
    holder = fetched(case, ".".join(above)) if above else case
    known = [entry.name for entry in dataclasses.fields(holder)]
    require(name in known, f"{path} must be a field of the case; {type(holder).__name__} has {', '.join(known)}.")
    return type(holder), name


def fetched(case: Any, path: str) -> Any:
    """The value of a field of the case, or of a part of it."""
    for name in path.split("."):
        case = getattr(case, name)
    return case


def changed(case: Any, values: Mapping[str, Any]) -> Any:
    """The case with other values at the paths of some fields; a number where several may stand stands alone."""
    own: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        name, _, rest = path.partition(".")
        if rest:
            parts.setdefault(name, {})[rest] = value
        elif isinstance(getattr(case, name), tuple):
            own[name] = tuple(value) if isinstance(value, list) else (value,)
        else:
            own[name] = value
    within = {name: changed(getattr(case, name), inner) for name, inner in parts.items()}
    return dataclasses.replace(case, **own, **within)


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
