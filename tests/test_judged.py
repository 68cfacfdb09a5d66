"""Nothing on a figure is unjudged: every drawn variable of theory has a claim, or a stated reason for none."""

import dataclasses
from typing import Any

import pytest
import xarray as xr

from iclab import figures
from iclab.claims.paths import whole
from iclab.outcomes import Groups, View
from iclab.studies import STUDIES
from iclab.study import Study


class Noted:
    """A dataset that notes which of its variables are used."""

    def __init__(self, data: xr.Dataset, path: str, seen: set[str]) -> None:
        self._parts = (data, path, seen)

    def _found(self, name: str, value: Any) -> Any:
        data, path, seen = self._parts
        if name in data.data_vars:
            seen.add(f"{path}/{name}")
        if callable(value):
            return lambda *given, **named: self._wrapped(value(*given, **named))
        return value

    def _wrapped(self, value: Any) -> Any:
        _, path, seen = self._parts
        return Noted(value, path, seen) if isinstance(value, xr.Dataset) else value

    def __getattr__(self, name: str) -> Any:
        return self._found(name, getattr(self._parts[0], name))

    def __getitem__(self, name: str) -> Any:
        return self._found(name, self._parts[0][name])

    def items(self) -> Any:
        """Variables by name, all of them used."""
        return [(name, self[str(name)]) for name in self._parts[0].data_vars]


class NotedGroups:
    """Groups of theory that note which variables are used."""

    def __init__(self, groups: Groups, seen: set[str]) -> None:
        self._groups, self._seen = groups, seen

    def __getattr__(self, name: str) -> Noted:
        return Noted(self._groups[name], f"theory/{name}", self._seen)

    def __getitem__(self, name: str) -> Noted:
        return getattr(self, name)

    def __contains__(self, name: str) -> bool:
        return name in self._groups

    def __iter__(self) -> Any:
        return iter(self._groups)


class NotedView(View):
    """A view whose figure shows what it uses."""

    seen: set[str]

    @property
    def theory(self) -> Any:
        return NotedGroups(super().theory, self.seen)


def drawn(study: Study) -> set[str]:
    """Variables of theory that the figure of a quick case uses."""
    from matplotlib.figure import Figure

    view = NotedView(study.quick, study.run(seeds=0))
    seen: set[str] = set()
    object.__setattr__(view, "seen", seen)
    study.figure(view, Figure(figsize=study.presets["quick"].size))
    return seen


def judged(study: Study) -> set[str]:
    """Variables of theory that claims compare."""
    found = set()
    for claim in study.claims:
        inner = getattr(claim, "claim", claim)
        for field in dataclasses.fields(inner):
            path = getattr(inner, field.name)
            if field.name in ("variable", "theory", "flow", "levels", "floor", "variables", "theories"):
                found |= {whole("theory", one) for one in ([path] if isinstance(path, str) else path or ())}
        found |= set(getattr(inner, "covered", ()))
    return found


@pytest.mark.parametrize("name", STUDIES)
def test_every_drawn_variable_of_theory_is_judged_or_says_why_not(name: str) -> None:
    study = STUDIES[name]
    missing = drawn(study) - judged(study) - set(study.unjudged)
    assert not missing, f"{name} draws and does not judge {sorted(missing)}"
    assert all(reason.strip() for reason in study.unjudged.values())


def test_a_variable_that_no_claim_has_is_found() -> None:
    study = dataclasses.replace(STUDIES["rank-robustness"], claims=(), unjudged={})
    assert {"theory/trained/loss", "theory/lines/loss"} <= drawn(study) - judged(study)
    assert figures.drawn(study, study.quick, study.run(seeds=0)) is not None
