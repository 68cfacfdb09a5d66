"""Addresses: the state of a view as text, `lambda=.4,.3&N=31`."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from iclab.explorer.views import VIEWS, controls_of, view_named
from iclab.numerics import did_you_mean, require

__all__ = ["address", "opened", "state_at"]

_LONGEST = 4000  # letters of an address


def opened(view: str | None, state: str | Mapping[str, Any] | None) -> tuple[str, dict[str, Any]]:
    """A view and its state; without a view that of the address, else the first one. Raises ValueError as state_at."""
    given = _read(state) if isinstance(state, str) else dict(state or {})
    shown = view or given.get("view") or next(iter(VIEWS))
    return shown, state_at(shown, given)


def state_at(view: str, state: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """The state of a view from an address, what follows its #, or values by key; what is not stated is usual.

    Raises ValueError for keys that the view has not, for the address of another view, and for values out of range.
    """
    shown = view_named(view)
    given = _read(state) if isinstance(state, str) else dict(state or {})
    named = given.pop("view", view)
    require(named == view, f"state must be one of the view {view!r}; got one of {named!r}. Name that view.")
    known = {control.key: control for control in shown.controls}
    found = {one["key"]: one["start"] for one in controls_of(view)}
    for key, value in given.items():
        if key in ("v", "embed"):  # of addresses alone
            continue
        near = did_you_mean(key, known)
        require(key in known, f"state must hold keys among {', '.join(known)}; got {key!r}.{near}")
        several = value.split(",") if isinstance(value, str) and known[key].spectrum else value
        found[key] = known[key].checked(several)
    return found


def address(view: str, state: Mapping[str, Any]) -> str:
    """The address of a state, without #."""
    keys = [control.key for control in VIEWS[view].controls]
    return "&".join([f"view={view}", *(f"{key}={_word(state[key])}" for key in keys if key in state)])


def _word(value: Any) -> str:
    return (
        ",".join(map(_word, value))
        if isinstance(value, list | tuple)
        else f"{value:.12g}"
        if isinstance(value, float)
        else str(value)
    )


def _read(text: str) -> dict[str, str]:
    require(len(text) <= _LONGEST, f"an address must have at most {_LONGEST} letters; got {len(text)}.")
    pairs = parse_qsl(text.split("#", 1)[-1], keep_blank_values=True)
    found = dict(pairs)
    twice = [key for key in found if [one for one, _ in pairs].count(key) > 1]
    require(not twice, f"state must hold each key once; got {', '.join(twice)} several times. Leave one.")
    return found
