"""The name that was probably meant, as the end of an error message."""

from collections.abc import Iterable

__all__ = ["did_you_mean", "plain"]


def plain(name: str) -> str:
    """A name without case, `_` and `-`: names that differ in these alone are the same one."""
    return name.lower().replace("_", "").replace("-", "")


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """` Did you mean staircase?` with the nearest of the names; empty where none is near."""
    from difflib import get_close_matches

    known = {plain(one): one for one in reversed(list(names))}
    near = get_close_matches(plain(str(name)), known, n=1, cutoff=0.6) or [
        one for one in known if plain(str(name)) and (one.startswith(plain(str(name))))
    ]
    return f" Did you mean {known[near[0]]}?" if near else ""
