"""Forms of cases: help that states the constraint on each field beside its default."""

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import tyro

from iclab.numerics import Checked, constraints

__all__ = ["as_stated", "stated", "stating_constraints"]


def stating_constraints(case: Any) -> Any:
    """The same case as an instance of a form whose help states constraints; so are the parts that it has."""
    kind = type(case)
    hints, marks = get_type_hints(kind, include_extras=True), constraints(kind)
    annotations, values = {}, {}
    for entry in fields(case):
        value = getattr(case, entry.name)
        if isinstance(value, Checked):
            values[entry.name] = stating_constraints(value)
            annotations[entry.name] = type(values[entry.name])
        elif entry.name in marks:
            hint = tyro.conf.arg(help_behavior_hint=_hint(" and ".join(map(str, marks[entry.name]))))
            values[entry.name], annotations[entry.name] = value, Annotated[hints[entry.name], hint]
        elif entry.default is MISSING:  # no field without a default may follow those with one
            values[entry.name], annotations[entry.name] = value, hints[entry.name]
    if not (marks or any(isinstance(value, Checked) for value in values.values())):
        return case
    names = {"__annotations__": annotations, "__module__": kind.__module__, "__doc__": kind.__doc__, "_of": kind}
    form = dataclass(frozen=True)(type(kind.__name__, (kind,), names | values))
    return form(**{entry.name: values.get(entry.name, getattr(case, entry.name)) for entry in fields(case)})


def _hint(limits: str) -> Any:
    return lambda default: f"({limits}; default: {default})"


def as_stated(form: Any) -> Any:
    """The case that a filled form states, in the class of its study."""
    if not (is_dataclass(form) and isinstance(form, Checked)):
        return form
    own = getattr(type(form), "_of", type(form))
    return own(**{entry.name: as_stated(getattr(form, entry.name)) for entry in fields(form)})


def stated(flags: Sequence[str]) -> frozenset[str]:
    """The fields of a case that flags state, whole or in a part."""
    words = (flag[2:].partition("=")[0] for flag in flags if flag.startswith("--"))
    return frozenset(word.partition(".")[0].replace("-", "_") for word in words)
