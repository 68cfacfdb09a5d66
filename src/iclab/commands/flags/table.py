"""The flags of a form: a dataclass, and those that its fields hold, as they are typed in a terminal."""

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from iclab.numerics import OneOf, constraints
from iclab.numerics.comments import comment_on

__all__ = ["Flag", "flags_of"]

_KINDS = {int: "INT", float: "NUMBER", str: "TEXT", bool: "", NoneType: ""}


@dataclass(frozen=True)
class Flag:
    """One flag, or one positional argument."""

    path: tuple[str, ...]  # names of fields, from the form inwards
    owner: type  # dataclass that has the field
    hint: Any  # type of the field
    default: Any  # MISSING where a value must be given
    positional: bool = False

    @property
    def name(self) -> str:
        """The flag as tyro names it, `--problem.context-length`."""
        return "--" + ".".join(self.path).replace("_", "-")

    @property
    def short(self) -> str:
        """The last name alone, `--context-length`."""
        return "--" + self.path[-1].replace("_", "-")

    @property
    def several(self) -> bool:
        """True where a list of values may stand."""
        return any(get_origin(part) is tuple for part in _parts(self.hint))

    @property
    def switch(self) -> bool:
        """True for a flag without a value."""
        return self.hint is bool

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that may stand, where they are known and numbers may not."""
        listed = [mark.choices for mark in self.limits if isinstance(mark, OneOf)]
        if listed:
            return tuple(listed[0])
        kinds = [entry for part in _parts(self.hint) for entry in (get_args(part)[:1] if self.several else (part,))]
        if any(get_origin(kind) is not Literal and kind is not NoneType for kind in kinds):
            return ()
        return tuple(str(word) for kind in kinds for word in get_args(kind))

    @property
    def limits(self) -> tuple[Any, ...]:
        """The constraints on the field."""
        return constraints(self.owner).get(self.path[-1], ())

    @property
    def value(self) -> str:
        """The kind of value that stands behind the flag, in words: `NUMBER ...`."""
        if self.switch:
            return ""
        kinds = [entry for part in _parts(self.hint) for entry in (get_args(part) if _listed(part) else (part,))]
        words = [_word(kind) for kind in kinds if kind not in (NoneType, Ellipsis)]
        return "|".join(self.choices or dict.fromkeys(words)) + (" ..." if self.several else "")

    @property
    def help(self) -> str:
        """The comment on the field."""
        return comment_on(self.owner, self.path[-1])

    @property
    def typed(self) -> str:
        """The default as it would be typed; empty where there is none."""
        return "" if self.default is MISSING or self.default is None else _typed(self.default)


def flags_of(form: Any, default: Any = None) -> list[Flag]:
    """The flags of a dataclass, with the values of an instance as defaults; those of unnamed parts are among them."""
    return list(_flags(form, default, ()))


def _flags(form: Any, default: Any, path: tuple[str, ...]) -> Iterator[Flag]:
    hints = get_type_hints(form, include_extras=True)
    for entry in fields(form):
        made = entry.default if entry.default_factory is MISSING else entry.default_factory()
        value = made if default is None else getattr(default, entry.name)
        kind, marks = _stripped(hints[entry.name])
        if is_dataclass(value):
            unnamed = any(getattr(mark, "name", None) == "" for mark in marks)
            yield from _flags(type(value), value, path if unnamed else (*path, entry.name))
        else:
            positional = any("Positional" in repr(mark) for mark in marks)
            yield Flag((*path, entry.name), form, kind, value, positional)


def _stripped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    marks = getattr(hint, "__metadata__", ())
    return (get_args(hint)[0] if marks else hint), marks


def _parts(hint: Any) -> tuple[Any, ...]:
    """The types that a value may have."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _listed(kind: Any) -> bool:
    return get_origin(kind) is tuple


def _word(kind: Any) -> str:
    return "|".join(map(str, get_args(kind))) if get_origin(kind) is Literal else _KINDS.get(kind, "PATH")


def _typed(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_typed, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.12g}" if isinstance(value, float) else str(value)
