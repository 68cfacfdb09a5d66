"""The views of the explorer: their questions, controls, formulas, and states that surprise."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from iclab.explorer.controls import Control, changed, described, fetched
from iclab.numerics import one_of
from iclab.study import Formula, Study

__all__ = ["VIEWS", "ExplorerView", "Fact", "case_at", "controls_of", "state_of", "study_of", "view_named"]


@dataclass(frozen=True)
class Fact:
    """A state that contradicts what one would expect, in a sentence."""

    words: str
    state: Mapping[str, Any]


@dataclass(frozen=True)
class ExplorerView:
    """One view: a picture of theory that controls move.

    `study` is the name of the study whose case the controls set, and whose stored runs are laid over theory. `also`
    are further fields of the case that must follow from the controls.
    """

    name: str
    title: str
    source: str
    controls: tuple[Control, ...]
    facts: tuple[Fact, ...] = ()
    study: str = ""
    question: str = ""  # that of the study, unless stated
    formulas: tuple[Formula, ...] = ()  # those of the study, unless stated
    also: Mapping[str, Any] = field(default_factory=dict)


SPECTRUM = Control("lambda", 0.02, 1.0, "problem.eigenvalues", log=True, spectrum=True, label="Input eigenvalues λ")
LENGTH = Control("N", 1, 500, "problem.context_length", log=True, whole=True, label="Context length N")
NOISE = Control("rho", 0.0, 1.0, "problem.noise", label="Label noise ρ")
HEADS = Control("H", 1, 8, "heads", whole=True, label="Heads H")
SEED = Control("seed", 0, 7, start=0, whole=True, label="Seed", help="of the random start, the same as in Python")

STAIRCASE = ExplorerView(
    "staircase", "Staircase", "arXiv 2501.16265, figure 3 and equations 18 and 19", study="staircase",
    controls=(
        SPECTRUM, LENGTH, NOISE, HEADS, Control("w", 0.005, 0.6, "initial", log=True, label="Initial size"), SEED,
        Control("T", 50, 20000, log=True, start=900.0, label="Training time shown", help="in units of τ"),
    ),
    facts=(
        Fact("Equal eigenvalues, and still one step after another",
             {"lambda": [0.25, 0.25, 0.25, 0.25], "H": 4, "w": 0.02, "T": 3000.0}),
        Fact("Too few heads: the last steps are never taken", {"H": 2, "T": 3000.0}),
    ),
)  # fmt: skip

VIEWS: Mapping[str, ExplorerView] = {view.name: view for view in (STAIRCASE,)}


def view_named(name: str) -> ExplorerView:
    """The view of a name. Raises ValueError for a name that no view has."""
    return VIEWS[one_of("view", name, VIEWS)]


def study_of(view: ExplorerView) -> Study:
    """The study whose case a view shows."""
    from iclab.studies import STUDIES

    return STUDIES[view.study]


@cache
def controls_of(name: str) -> tuple[dict[str, Any], ...]:
    """The controls of a view as the page reads them."""
    view = VIEWS[name]
    case = study_of(view).quick if view.study else None
    return tuple(described(control, case) for control in view.controls)


def case_at(view: ExplorerView, state: Mapping[str, Any]) -> Any:
    """The case of the study of a view at a state; what is not stated is that of the quick case."""
    fields = {control.field: control.key for control in view.controls if control.field}
    values = {path: state[key] for path, key in fields.items() if key in state}
    return changed(study_of(view).quick, {**view.also, **values})


def state_of(view: ExplorerView, case: Any) -> dict[str, Any]:
    """The state of a view that shows a case; of several numbers in a field the first one."""
    found = {}
    for control in view.controls:
        if control.field:
            value = fetched(case, control.field)
            several = isinstance(value, tuple)
            found[control.key] = (list(value) if control.spectrum else value[0]) if several else value
    return found
