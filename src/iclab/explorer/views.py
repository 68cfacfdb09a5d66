"""The views of the explorer: their questions, controls, formulas, and states that surprise."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any

from iclab.explorer.controls import Control, changed, described, fetched
from iclab.numerics import one_of
from iclab.studies.pretraining.panels import FORMULAS as PRETRAINING
from iclab.study import Formula, Study

__all__ = [
    "VIEWS",
    "ExplorerView",
    "Fact",
    "case_at",
    "controls_of",
    "formulas_of",
    "state_of",
    "study_of",
    "view_named",
]


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
    same: tuple[str, ...] = ()  # fields of the case that theory knows and no control moves


SPECTRUM = Control("lambda", 0.02, 1.0, "problem.eigenvalues", log=True, spectrum=True, label="Input eigenvalues λ")
LENGTH = Control("N", 1, 500, "problem.context_length", log=True, whole=True, label="Context length N")
NOISE = Control("rho", 0.0, 1.0, "problem.noise", label="Label noise ρ")
HEADS = Control("H", 1, 8, "heads", whole=True, label="Heads H")
SEED = Control("seed", 0, 7, start=0, whole=True, label="Seed", help="of the random start, the same as in Python")
TIME = Control("T", 5, 20000, log=True, start=900.0, label="Training time shown", help="in units of τ")
MODES = Control("s", 0.1, 2.0, "eigenvalues", log=True, spectrum=True, label="Input eigenvalues s")
WHITE_TASKS = ("problem.task_eigenvalues",)

STAIRCASE = ExplorerView(
    "staircase", "Staircase", "arXiv 2501.16265, figure 3 and equations 18 and 19", study="staircase",
    same=WHITE_TASKS,
    controls=(
        SPECTRUM, LENGTH, NOISE, HEADS, Control("w", 0.005, 0.6, "initial", log=True, label="Initial size"), SEED,
        replace(TIME, start=8000.0),
    ),
    facts=(
        Fact("Equal eigenvalues, and the loss still falls in steps",
             {"lambda": [0.25, 0.25, 0.25, 0.25], "H": 4, "w": 0.01, "T": 12000.0}),
        Fact("Too few heads: the last steps are never taken", {"H": 2, "T": 3000.0}),
    ),
)  # fmt: skip
ABRUPT_DROP = ExplorerView(
    "abrupt-drop", "Abrupt drop", "arXiv 2501.16265, figure 1 and equation 10", study="abrupt-drop",
    same=WHITE_TASKS,
    controls=(
        SPECTRUM, LENGTH, NOISE, HEADS, Control("w", 1e-7, 0.1, "initial", log=True, label="Initial size"), SEED,
        replace(TIME, start=372.0, high=5000),
    ),
    facts=(
        Fact("Eigenvalues far apart, and still a single drop", {"lambda": [0.9, 0.09, 0.03], "T": 60.0}),
        Fact("A start ten times smaller: the same drop, only later", {"w": 5.6e-7, "T": 372.0}),
    ),
)  # fmt: skip
MODE_STAGING = ExplorerView(
    "mode-staging", "Modes", "arXiv 2504.12916, equations 9 to 13", study="mode-staging", also={"batches": 64},
    controls=(
        MODES, Control("N", 1, 500, "context_lengths", log=True, whole=True, label="Context length N",
                help="labeled examples before the query"),
        Control("w", 0.01, 1.0, "initial", log=True, label="Initial weight"), replace(TIME, start=30.0, high=1000),
    ),
    facts=(
        Fact("At N = 1 the leading order promises the last mode many times what it gets", {"N": 1, "T": 100.0}),
        Fact("Two hundred examples, and the slowest mode is still not what the leading order says", {"N": 200}),
    ),
)  # fmt: skip
DOUBLE_DESCENT = ExplorerView(
    "double-descent", "Double descent", "arXiv 2405.11751, figure 1", study="double-descent",
    controls=(
        Control("alpha", 0.1, 1000, "finite_alpha", log=True, label="Context length α = N/D",
                help="examples of a context, for each entry of an input"),
        Control("kappa", 0.05, 50, "kappa", log=True, label="Tasks κ = K/D"),
        Control("rho", 0.0, 1.0, "noise", label="Label noise ρ"),
        Control("ridge", 1e-6, 10, "ridge", log=True, label="Ridge λ"),
        Control("power", 0.0, 2.0, start=0.0, label="Task spectrum k⁻ᵖ, p",
                help="exponent; 0 for tasks alike in all directions, else 16 directions"),
    ),
    facts=(
        Fact("Five times the data, and a larger error: the peak at τ = 1", {"ridge": 1e-6, "kappa": 5.0}),
        Fact("A ridge of a tenth, and the peak is gone", {"ridge": 0.1, "kappa": 5.0}),
    ),
)  # fmt: skip
CONTEXT_LENGTH = ExplorerView(
    "context-length", "Best context length", "arXiv 2405.11751, figures 2 and 3", study="context-length",
    controls=(
        Control("kappa", 0.05, 50, "many.kappa", log=True, start=0.75, label="Tasks κ = K/D"),
        Control("tau", 0.05, 100, "many.tau", log=True, label="Sequences τ = n/D²"),
        Control("rho", 0.0, 1.0, "many.noise", label="Label noise ρ"),
        Control("target", 0, 0, start="icl", choices=("icl", "idg"), label="Tested on",
                help="new tasks (icl) or tasks of the pool (idg)"),
    ),
    facts=(
        Fact("Here a longer context hurts", {"kappa": 0.5, "tau": 20.0, "rho": 0.5}),
        Fact("More tasks than entries of an input, and longer contexts still hurt",
             {"kappa": 1.1, "tau": 20.0, "rho": 0.5}),
    ),
)  # fmt: skip
TASK_DIVERSITY = ExplorerView(
    "task-diversity", "Task diversity", "arXiv 2405.11751, figure 4; arXiv 2306.15063 for dMMSE",
    study="task-diversity",
    controls=(
        Control("alpha", 0.2, 100, "finite_alpha", log=True, label="Context length α = N/D"),
        Control("c", 0.05, 5, "tau_for_alpha", log=True, label="Sequences τ/α"),
        Control("rho", 0.0, 1.0, "noise", label="Label noise ρ"),
        Control("D", 5, 200, "bayes_dimension", log=True, whole=True, label="Dimension D of dMMSE"),
    ),
    facts=(
        Fact("Knowing the pool exactly makes new tasks harder: dMMSE above ridge regression",
             {"alpha": 1.0, "c": 5.0, "rho": 0.1, "D": 50}),
    ),
)  # fmt: skip
RIDGE = ExplorerView(
    "ridge", "Ridge", "arXiv 2405.11751, figure 1; best ridges derived in docs/derivations/proportional_limit",
    study="ridge",
    controls=(
        Control("alpha", 0.1, 1000, "alpha", log=True, label="Context length α = N/D"),
        Control("kappa", 0.05, 50, "kappa", log=True, label="Tasks κ = K/D"),
        Control("tau", 0.05, 20, "best_tau", log=True, start=1.0, label="Sequences τ = n/D²",
                help="pretraining sequences for each entry of the readout"),
        Control("rho", 0.0, 1.0, "noise", label="Label noise ρ"),
    ),
    facts=(
        Fact("The best ridge for new tasks is not the best for the pool", {"kappa": 0.5, "tau": 1.0, "rho": 0.1}),
        Fact("Without ridge the error is infinite, with the best one it is small", {"tau": 1.0}),
    ),
)  # fmt: skip
FIXED_POINTS = ExplorerView(
    "fixed-points", "Fixed points", "arXiv 2501.16265, equations 18 and 19", study="fixed-points",
    same=WHITE_TASKS,
    controls=(SPECTRUM, LENGTH, NOISE, HEADS),
    facts=(
        Fact("Eight modes have 256 places to rest, and a small start passes nine of them",
             {"lambda": [0.4, 0.34, 0.29, 0.24, 0.2, 0.16, 0.13, 0.1], "H": 8}),
        Fact("With one head nothing is left after the first mode", {"H": 1}),
    ),
)  # fmt: skip
FINITE_CONTEXT = ExplorerView(
    "finite-context", "Finite context", "arXiv 2504.12916; exact at any N in docs/derivations/modes",
    study="finite-context",
    controls=(MODES, Control("rho", 0.0, 4.0, "noises", start=1.0, label="Label noise ρ")),
    facts=(
        Fact("Noise switches modes off, which the leading order does not know", {"rho": 2.0}),
        Fact("Without noise every mode but those far below the others stays on", {"rho": 0.0}),
    ),
)  # fmt: skip
PHASE_PORTRAIT = ExplorerView(
    "phase-portrait", "Phase portrait", "arXiv 2504.12916, equations 12 and 13", study="phase-portrait",
    controls=(
        Control("s", 0.1, 4.0, "eigenvalue", log=True, label="Eigenvalue s"),
        Control("N", 1, 500, "context_length", log=True, whole=True, label="Context length N"),
        Control("p", -2.0, 2.0, start=0.2, label="Start p", help="value weight; or move the point"),
        Control("q", -2.0, 2.0, start=-0.1, label="Start q", help="key-query weight; or move the point"),
    ),
    facts=(
        Fact("A start that is exactly balanced and learns nothing", {"p": 1.0, "q": -1.0}),
        Fact("A hair beside it: all is learned, after a detour by the saddle", {"p": 1.0, "q": -0.98}),
    ),
)  # fmt: skip
PLAN = ExplorerView(
    "plan", "Plan", "derived in docs/derivations/proportional_limit",
    question="How many tasks, sequences or examples reach an error on new tasks?",
    controls=(
        Control("question", 0, 0, start="tasks", choices=("tasks", "sequences", "context"), label="How many",
                help="tasks of the pool, pretraining sequences, or examples of a context"),
        Control("error", 0.01, 2.0, start=0.25, log=True, label="Error to reach", help="label noise included"),
        Control("alpha", 0.1, 1000, start=20.0, log=True, label="Context length α = N/D", help="unless asked for"),
        Control("kappa", 0.05, 100, start=4.0, log=True, label="Tasks κ = K/D", help="unless asked for"),
        Control("tau", 0.05, 100, start=10.0, log=True, label="Sequences τ = n/D²", help="unless asked for"),
        Control("rho", 0.0, 1.0, start=0.1, label="Label noise ρ", help="its variance"),
        Control("ridge", 0, 0, start="best", choices=("best", "none"), label="Ridge λ",
                help="best: the optimal one at every size"),
    ),
    facts=(
        Fact("More data would be worse: without ridge two ranges of sequences reach the error",
             {"question": "sequences", "ridge": "none", "error": 0.9, "kappa": 4.0, "rho": 0.1}),
    ),
    formulas=PRETRAINING,
)  # fmt: skip
INSPECT = ExplorerView(
    "inspect", "Inspect", "iclab inspect; null levels in docs/derivations/spectra",
    question="What do the spectra of a model's checkpoints say, and when do they leave the null level?",
    controls=(
        Control("matrix", 0, 0, start="", open=True, label="Matrix", help="of the document that is open"),
        Control("measure", 0, 0, start="", open=True, label="Measure", help="with its level on random matrices"),
    ),
)  # fmt: skip

ALL = (
    STAIRCASE, ABRUPT_DROP, MODE_STAGING, DOUBLE_DESCENT, CONTEXT_LENGTH, TASK_DIVERSITY, RIDGE, FIXED_POINTS,
    FINITE_CONTEXT, PHASE_PORTRAIT, PLAN, INSPECT,
)  # fmt: skip

VIEWS: Mapping[str, ExplorerView] = {view.name: view for view in ALL}


def view_named(name: str) -> ExplorerView:
    """The view of a name. Raises ValueError for a name that no view has."""
    return VIEWS[one_of("view", name, VIEWS)]


def study_of(view: ExplorerView) -> Study:
    """The study whose case a view shows."""
    from iclab.studies import STUDIES

    return STUDIES[view.study]


def formulas_of(view: ExplorerView) -> tuple[Formula, ...]:
    """The formulas of a view: its own, else those of its study."""
    return view.formulas or (study_of(view).formulas if view.study else ())


@cache
def controls_of(name: str) -> tuple[dict[str, Any], ...]:
    """The controls of a view as the page reads them."""
    view = VIEWS[name]
    case = study_of(view).quick if view.study else None
    return tuple(described(control, case) for control in view.controls)


def case_at(view: ExplorerView, state: Mapping[str, Any]) -> Any:
    """The case of the study of a view at a state; controls that are not stated are where they begin."""
    study, begun = study_of(view), {one["key"]: one["start"] for one in controls_of(view.name)}
    whole = begun | dict(state)
    values = {control.field: whole[control.key] for control in view.controls if control.field}
    case = changed(study.quick, {**view.also, **values})
    stated = [entry.name for entry in fields(case) if getattr(case, entry.name) != getattr(study.quick, entry.name)]
    return study.settled(case, stated, like=study.quick)


def state_of(view: ExplorerView, case: Any) -> dict[str, Any]:
    """The state of a view that shows a case; of several numbers in a field the first one."""
    found = {}
    for control in view.controls:
        if control.field:
            value = fetched(case, control.field)
            several = isinstance(value, tuple)
            found[control.key] = (list(value) if control.spectrum else value[0]) if several else value
    return found
