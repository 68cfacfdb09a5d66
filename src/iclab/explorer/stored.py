"""Stored results as the page lays them over theory: of each view its cases, runs and verdicts, in few digits."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iclab.explorer.runs import RUNS, Laid
from iclab.explorer.views import VIEWS, ExplorerView, study_of
from iclab.numerics import require
from iclab.store.view import read

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Stored", "laid_over", "stored"]

Stored = dict[str, list[dict[str, Any]]]
"""Results of each view, as JSON takes them: verdicts, seeds, and the states that they show."""


def stored(folder: Path) -> tuple[Stored, list[str]]:
    """The results of a folder by view, and a sentence on each file that is left out.

    A file is left out where it is broken or foreign, of another version of its study, or holds a case that the
    controls of its view cannot show.
    """
    found: Stored = {}
    notes: list[str] = []
    for path in sorted(folder.glob("*-????????????????.nc")):
        try:
            for view, result in _results(read(path)):
                found.setdefault(view, []).append(result)
        except (ValueError, OSError, KeyError) as error:
            notes.append(f"{path.name} is left out: {error}.".replace("..", "."))
    return found, notes


def laid_over(tree: "xr.DataTree") -> Stored:
    """One result by view. Raises ValueError where no view can show it."""
    found: Stored = {}
    for view, result in _results(tree):
        found.setdefault(view, []).append(result)
    return found


def _results(tree: "xr.DataTree") -> Iterator[tuple[str, dict[str, Any]]]:
    name, version = str(tree.attrs["study"]), int(tree.attrs["study_version"])
    for view in VIEWS.values():
        if view.study == name and name in RUNS:
            study = study_of(view)
            require(
                version == study.version,
                f"it answers by version {version} of {name}, and version {study.version} answers otherwise",
            )
            yield view.name, _laid(view, tree)


def _laid(view: ExplorerView, tree: "xr.DataTree") -> dict[str, Any]:
    case = json.loads(str(tree.attrs["case"]))
    require("simulation" in tree.children, "it holds theory alone")
    usual = json.loads(_usual(view))
    odd = [path for path in view.same if _at(case, path) != _at(usual, path)]
    require(not odd, f"the page has no control for {' and '.join(odd)}")
    verdicts = [
        {"outcome": one.outcome, "word": one.word, "meaning": one.meaning, "measure": one.measure,
         "number": one.number, "bound": one.bound, "noticed": one.noticed}
        for one in study_of(view).verdicts(tree)
    ]  # fmt: skip
    base = {control.key: _at(case, control.field) for control in view.controls if control.field}
    states = [one for one in RUNS[view.study](base, case, tree) if _shown(view, one.state)]
    require(bool(states), "it lies beyond the range of the controls")
    seeds = [int(seed) for seed in tree.attrs["seeds"]]
    return {"verdicts": verdicts, "seeds": seeds, "cases": [_plain(one) for one in states]}


def _shown(view: ExplorerView, state: Mapping[str, Any]) -> bool:
    """True for a state that lies in the range of the controls."""
    known = {control.key: control for control in view.controls if not control.choices}
    try:
        for key, value in state.items():
            if key in known:
                known[key].checked(value)
    except ValueError:
        return False
    return True


def _usual(view: ExplorerView) -> str:
    from iclab.study import case_json

    return case_json(study_of(view).quick)


def _at(case: Any, path: str) -> Any:
    for name in path.split("."):
        case = case[name]
    return case


def _plain(one: Laid) -> dict[str, Any]:
    return {"state": one.state, "words": one.words, "lines": [_short(line) for line in one.lines],
            "dots": [_short(dots) for dots in one.dots]}  # fmt: skip


def _short(values: Any) -> Any:
    """Numbers in five digits; what is not finite as null."""
    if isinstance(values, dict):
        return {key: _short(value) for key, value in values.items()}
    if isinstance(values, str | int) or values is None:
        return values
    if isinstance(values, Iterable):
        return [_short(value) for value in values]
    number = float(values)
    return float(f"{number:.5g}") if number - number == 0 else None
