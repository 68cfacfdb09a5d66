"""A model of one's own: roles of its tensors written down in a TOML file."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from iclab.numerics import require
from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.layouts.families import Layout
from iclab.spectra.layouts.forms import mapped_geometry
from iclab.spectra.layouts.rules import PARTS, Rule

_SIZES = ("heads", "kv_heads", "head_dim", "rotary", "norm_gain", "tensor")
_ENTRIES = ("match", "role", "order", "output_axis", "shards")


def from_mapping(mapping: Mapping[str, Any] | str | Path) -> Layout:
    """The layout that a mapping describes: a table, or the path of a TOML file with one.

    Raises ValueError naming the entry that is missing, unknown or out of range.
    """
    table = mapping if isinstance(mapping, Mapping) else _toml(Path(mapping))
    unknown = sorted(set(table) - set(_SIZES))
    require(not unknown, f"a mapping has the entries {', '.join(_SIZES)}; got {', '.join(unknown)}.")
    require("heads" in table, "a mapping must give heads, the number of heads; it does not.")
    tensors = table.get("tensor")
    require(
        isinstance(tensors, list) and len(tensors) > 0 and all(isinstance(entry, Mapping) for entry in tensors),
        "a mapping must have at least one [[tensor]] with match and role; it has none.",
    )
    rules = tuple(_rule(entry) for entry in tensors or [])
    gain = {"norm_gain": table["norm_gain"]} if "norm_gain" in table else {}
    rotated = bool(table.get("rotary"))
    require(
        not rotated or "head_dim" in table,
        "a mapping with rotary must give head_dim, to know which dimensions are rotated; it does not.",
    )
    return Layout("mapped", rules, mapped_geometry(table, **gain))


def _rule(entry: Mapping[str, Any]) -> Rule:
    unknown = sorted(set(entry) - set(_ENTRIES))
    require(not unknown, f"a [[tensor]] has the entries {', '.join(_ENTRIES)}; got {', '.join(unknown)}.")
    for name in ("match", "role"):
        require(isinstance(entry.get(name), str), f"a [[tensor]] must give {name}; got {entry.get(name)!r}.")
    for name in ("output_axis", "shards"):
        value = entry.get(name, 0)
        require(type(value) is int, f"{name} must be a whole number; got {value!r}.")
    role = entry["role"]
    require(
        role not in PARTS or "order" in entry,
        f'a [[tensor]] of role {role} must give its order, such as "head,part,dim"; {entry["match"]!r} does not.',
    )
    return Rule(**entry)


def _toml(path: Path) -> dict[str, Any]:
    require(path.is_file(), f"a mapping must be a table or a TOML file; got {quoted(str(path))}.")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name!r} must be a TOML file; it is not: {error}.") from None
