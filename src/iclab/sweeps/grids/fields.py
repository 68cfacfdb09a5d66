"""Fields of a case by name: found, given values of their kind, and read back from JSON."""

import dataclasses
import difflib
import math
import types
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from iclab.numerics import require

__all__ = ["case_from", "changed", "fitted", "found", "value_at"]


def found(case: Any, name: str) -> str:
    """The whole name of a field: `ratios.tau`, `tau` where one field alone ends so, `-` for `_`.

    Raises ValueError, with the nearest names, where no field or several are meant.
    """
    names, asked = list(_names(case)), name.replace("-", "_")
    if asked in names:
        return asked
    ending = [one for one in names if one.endswith(f".{asked}")]
    require(
        len(ending) < 2,
        f"an axis must be one field of the case; {name!r} may be {' or '.join(ending)}. Name it whole.",
    )
    if ending:
        return ending[0]
    inner = [one for one in names if one.startswith(f"{asked}.")]
    require(not inner, f"an axis must be one field; {name!r} has several: {', '.join(inner)}.")
    last = {one: one.rpartition(".")[2] for one in names}
    near = difflib.get_close_matches(asked, names, 3, 0.5)
    near += [one for one, end in last.items() if one not in near and difflib.get_close_matches(asked, [end], 1, 0.6)]
    offered = f"Perhaps {' or '.join(near[:3])}." if near else f"The fields are {', '.join(names)}."
    raise ValueError(f"an axis must be a field of the case; got {name!r}. {offered}")


def changed(case: Any, values: Mapping[str, Any]) -> Any:
    """The case with other values of some fields, by their whole names.

    Raises ValueError for a value of another kind than the field, and as the case does for one outside its domain.
    """
    return _replaced(case, {name: fitted(case, name, value) for name, value in values.items()})


def fitted(case: Any, name: str, value: Any) -> Any:
    """The value in the type of a field, by its whole name. Raises ValueError for one of another kind."""
    outer, _, last = name.rpartition(".")
    owner = value_at(case, outer) if outer else case
    return _fitted(name, _hints(type(owner))[last], value)


def value_at(case: Any, name: str) -> Any:
    """The value of a field by its whole name."""
    for part in name.split("."):
        case = getattr(case, part)
    return case


def case_from(like: Any, plain: Mapping[str, Any]) -> Any:
    """The case of the class of another that its JSON describes. Raises ValueError where it has other fields."""
    names = [entry.name for entry in dataclasses.fields(like)]
    require(
        set(names) == set(plain),
        f"a stored case must have the fields {', '.join(names)}; got {', '.join(plain)}. Another iclab wrote it.",
    )
    values = {}
    for name in names:
        inner, value = getattr(like, name), plain[name]
        if dataclasses.is_dataclass(inner) and isinstance(value, Mapping):
            values[name] = case_from(inner, value)
        else:
            values[name] = _fitted(name, _hints(type(like))[name], value)
    return dataclasses.replace(like, **values)


def _replaced(case: Any, values: Mapping[str, Any]) -> Any:
    own: dict[str, Any] = {}
    within: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        first, _, rest = name.partition(".")
        if rest:
            within.setdefault(first, {})[rest] = value
        else:
            own[first] = value
    parts = {first: _replaced(getattr(case, first), inner) for first, inner in within.items()}
    return dataclasses.replace(case, **own, **parts)


def _names(case: Any, prefix: str = "") -> Any:
    for entry in dataclasses.fields(case):
        value = getattr(case, entry.name)
        if dataclasses.is_dataclass(value):
            yield from _names(value, f"{prefix}{entry.name}.")
        else:
            yield f"{prefix}{entry.name}"


@lru_cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _fitted(name: str, hint: Any, value: Any) -> Any:
    """The value in the type of its field. Raises ValueError, with the name, for one of another kind."""
    if get_origin(hint) is Annotated:
        return _fitted(name, get_args(hint)[0], value)
    if get_origin(hint) in (Union, types.UnionType):
        return _of_several(name, get_args(hint), value)
    if get_origin(hint) is Literal:
        require(
            value in get_args(hint), f"{name} must be one of {', '.join(map(str, get_args(hint)))}; got {value!r}."
        )
        return value
    if get_origin(hint) is tuple or hint is tuple:
        kinds = get_args(hint) or (Any, ...)
        several = value if isinstance(value, list | tuple) else (value,)
        of = [kinds[0]] * len(several) if kinds[-1] is ... else list(kinds)
        require(len(of) == len(several), f"{name} must hold {len(of)} values; got {value!r}.")
        return tuple(_fitted(name, kind, one) for kind, one in zip(of, several, strict=True))
    return _plain(name, hint, value)


def _plain(name: str, hint: Any, value: Any) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if hint is bool:
        require(isinstance(value, bool), f"{name} must be true or false; got {value!r}.")
    elif hint is int:
        require(number and math.isfinite(value) and value == int(value), f"{name} must be whole; got {value!r}.")
        return int(value)
    elif hint is float:
        known = {"inf": float("inf"), "-inf": float("-inf")}
        value = known.get(value, value) if isinstance(value, str) else value
        require(
            isinstance(value, int | float) and not isinstance(value, bool), f"{name} must be a number; got {value!r}."
        )
        return float(value)
    elif hint is str:
        require(isinstance(value, str), f"{name} must be a word; got {value!r}.")
    elif hint is type(None):
        require(value is None, f"{name} must be none; got {value!r}.")
    return value


def _of_several(name: str, kinds: tuple[Any, ...], value: Any) -> Any:
    complaint = ValueError(f"{name} cannot be {value!r}.")
    for kind in kinds:
        try:
            return _fitted(name, kind, value)
        except ValueError as error:
            complaint = error
    raise complaint
