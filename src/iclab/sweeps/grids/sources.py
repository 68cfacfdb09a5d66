"""Studies that are swept: by name, as an object of a module, or made of a named function of a case."""

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

import numpy as np

from iclab.numerics import require, whole_number
from iclab.outcomes import Labeled, labeled
from iclab.studies import STUDIES
from iclab.study import Outcomes, Preset, Study

__all__ = ["of_function", "place_of", "reference", "source"]


def source(asked: Any, *, version: int | None = None, case: Any = None) -> Study:
    """The study of a name, of `module:NAME`, the study itself, or one made of a named function of a case.

    A function needs a version, raised by hand whenever its answer to the same case changes, and a case to start
    from or the text `module:NAME` of its class, by default that of its first annotation. Raises ValueError for a
    lambda or an inner function, which has no name to be found again by, and for a name that no study has.
    """
    if isinstance(asked, Study):
        return asked
    if callable(asked):
        return of_function(asked, version=version, case=case)
    require(isinstance(asked, str), f"a study must be named, or be a Study or a function; got {asked!r}.")
    if ":" in asked:
        held = _loaded(asked)
        return held if isinstance(held, Study) else of_function(held, version=version, case=case)
    if asked in set(STUDIES):
        return STUDIES[asked]
    raise ValueError(f"study must be one of {', '.join(STUDIES)}; got {asked!r}.")


def of_function(function: Callable[..., Any], *, version: int | None, case: Any = None) -> Study:
    """The study that a named function of a case makes: theory alone, or a simulation where it takes `key` or `seed`.

    It returns one number or array, a mapping of names to them, or outcomes by name as a study does.
    """
    name = getattr(function, "__qualname__", "")
    require(
        bool(name) and "<" not in name,
        f"a function that is swept must have a name of its own in a module; got {name or function!r}, which leaves "
        "no key to find its answers by. Write it with def at the top of a module.",
    )
    if version is None:
        raise ValueError(
            f"a function must state a version; got none for {name}. Add version=1, and raise it whenever the answer "
            "to the same case changes."
        )
    drawing = [one for one in ("key", "seed") if one in inspect.signature(function).parameters]
    start = _start(function) if case is None else _loaded(case)() if isinstance(case, str) else case
    require(
        dataclasses.is_dataclass(start) and vars(type(start))["__dataclass_params__"].frozen,
        f"the case of {name} must be a frozen dataclass; got {type(start).__name__}. Write case=Case(...).",
    )
    place = f"{function.__module__}:{name}"
    asked = _Asked(function, drawing[0] if drawing else "", place)
    return _Swept(
        name=place.replace(":", "."), question=inspect.getdoc(function) or f"{name}?",
        version=whole_number("version", version), presets={"quick": Preset(start)},
        theory=_nothing if drawing else asked, simulation=asked if drawing else None, figure=_undrawn, claims=(),
    )  # fmt: skip


def place_of(kind: type) -> str:
    """The text `module:NAME` of a class."""
    return f"{kind.__module__}:{kind.__qualname__}"


def reference(study: Study) -> str:
    """The text by which another process finds a study: its name, or `module:NAME`; empty where there is none."""
    if study.name in set(STUDIES) and STUDIES[study.name] is study:
        return study.name
    if isinstance(study, _Swept):
        asked: Any = study.simulation or study.theory
        return asked.place if _is_found(asked.place, asked.function) else ""
    for module in {getattr(witness, "__module__", "") for witness in (study.theory, study.simulation)}:
        for name, held in vars(sys.modules.get(module, object)).items():
            if held is study and module != "__main__":
                return f"{module}:{name}"
    return ""


@dataclasses.dataclass(frozen=True)
class _Asked:
    """A function of a case as a witness: the name of the argument that it draws by, and where it is found."""

    function: Callable[..., Any]
    draws: str
    place: str

    def __call__(self, case: Any, **drawn: Any) -> Mapping[str, Any]:
        return _outcomes(self.function(case, **drawn))


class _Swept(Study):
    """A study made of a function, which may draw by a seed and so without JAX."""

    def _simulated(self, simulation: Callable[..., Outcomes], case: Any, seed: int) -> Outcomes:
        if isinstance(simulation, _Asked) and simulation.draws == "seed":
            return simulation(case, seed=seed)
        return super()._simulated(simulation, case, seed)


def _nothing(*_: Any) -> dict[str, Any]:
    """The theory of a function that draws."""
    return {}


def _undrawn(*_: Any) -> None:
    """A function has no figure of its own."""


def _outcomes(answer: Any) -> Mapping[str, Any]:
    if isinstance(answer, Mapping) and answer and all(map(dataclasses.is_dataclass, answer.values())):
        return answer
    if isinstance(answer, Labeled) or dataclasses.is_dataclass(answer):
        return {"answer": answer}
    values = {
        name: np.asarray(one) for name, one in (answer if isinstance(answer, Mapping) else {"value": answer}).items()
    }
    axes = {f"{name}_{place}": None for name, array in values.items() for place in range(array.ndim)}
    named = {name: (tuple(f"{name}_{place}" for place in range(array.ndim)), array) for name, array in values.items()}
    return {"answer": labeled(axes, **named)}


def _start(function: Callable[..., Any]) -> Any:
    hints = get_type_hints(function)
    first = next(iter(inspect.signature(function).parameters), "")
    kind = hints.get(first)
    require(
        isinstance(kind, type),
        f"{function.__qualname__} must be given a case to start from; its first argument has no class. Write "
        "case=Case(...).",
    )
    assert isinstance(kind, type)
    return kind()


def _loaded(place: str) -> Any:
    module, _, name = place.partition(":")
    try:
        held = importlib.import_module(module)
        for part in name.split("."):
            held = getattr(held, part)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"{place} must be a study or a function that can be imported here; got {error}. Install its package, or "
            "set PYTHONPATH."
        ) from None
    return held


def _is_found(place: str, function: Any) -> bool:
    if place.startswith("__main__:"):
        return False
    try:
        return _loaded(place) is function
    except ValueError:
        return False
