"""The battery: theory with one function changed, judged beside simulations that are drawn once a session.

A function is replaced under every name by which a module of the package has bound it.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from iclab.studies import STUDIES
from iclab.study import Result
from iclab.study import study as study_module

__all__ = ["Wrong", "judged_under", "scaled", "stored"]


@dataclass(frozen=True)
class Wrong:
    """One change of theory: the function, what it becomes, and the studies whose verdicts must notice."""

    name: str
    function: Callable[..., Any]
    change: Callable[[Callable[..., Any]], Callable[..., Any]]  # of the right function into a wrong one
    studies: tuple[str, ...]
    seeds: int | None = None  # where more are needed than a quick case has
    owner: type | None = None  # the class of a method


def scaled(factor: float) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The change of a function whose result is multiplied."""
    return lambda right: lambda *given, **named: factor * right(*given, **named)


@contextmanager
def replaced(wrong: Wrong) -> Iterator[int]:
    """A function replaced wherever it is bound; the number of its names is yielded."""
    right, other = wrong.function, wrong.change(wrong.function)
    bound = list(_bindings(right, wrong.owner))
    study_module._once.cache_clear()
    for place, name in bound:
        setattr(place, name, other)
    try:
        yield len(bound)
    finally:
        for place, name in bound:
            setattr(place, name, right)
        study_module._once.cache_clear()


def _bindings(right: Callable[..., Any], owner: type | None) -> Iterator[tuple[Any, str]]:
    """The class of a method, or each module of the package that binds a function, with the name of it there."""
    modules = [
        one for path, one in list(sys.modules.items()) if path.partition(".")[0] == "iclab" and one is not None
    ]
    for place in [owner] if owner else modules:
        yield from ((place, name) for name, value in list(vars(place).items()) if value is right)


@lru_cache(maxsize=8)
def stored(name: str, seeds: int | None = None) -> Result:
    """The result of the quick case of a study, simulated once."""
    return STUDIES[name].run(seeds=seeds)


def judged_under(wrong: Wrong, name: str) -> list[str]:
    """Outcomes of the claims of a study under a wrong theory, and of its own simulations.

    A theory that its own checks refuse, as a flow along which the loss rises, has the outcome "refused".
    """
    one, result = STUDIES[name], stored(name, wrong.seeds)
    with replaced(wrong) as names:
        assert names > 0, f"{wrong.name}: nothing binds {wrong.function.__qualname__}"
        try:
            changed = one.theorized(one.quick, result)
        except ArithmeticError:
            return ["refused"]
    return [verdict.outcome for verdict in one.verdicts(changed)]
