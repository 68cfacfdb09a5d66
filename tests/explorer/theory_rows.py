"""Every export of the theory of the page: its calls, and the answers of the library."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.integrate import DOP853

from iclab.explorer.mirrors import Mirror
from iclab.explorer.reference import MIRRORS, plain
from iclab.numerics import LEAST, MOST
from iclab.outcomes import EstimatorErrors
from iclab.problem import Ratios
from iclab.theory.estimators import dmmse_errors, nearest_task_errors
from iclab.theory.generalization import best_alpha, best_ridge, errors
from iclab.theory.pretraining.resolvent import LONG, MANY, STRONG, VANISHED
from tests.explorer.theory_functionals import FUNCTIONALS
from tests.explorer.theory_node import gap

__all__ = ["AT_ONCE", "CONSTANTS", "ROWS", "calls", "drawn", "library", "stacked", "wrong"]

PLACES = ("bestAlpha", "bestRidge")  # of minima: where one is flat to rounding its place is not known, but its height
SHALLOW = 0.02  # share of such minima

ROWS: dict[str, Mirror] = {**MIRRORS, **FUNCTIONALS}


def stacked(given: list[Any]) -> Ratios:
    """Ratios of many calls."""
    return Ratios(*(np.array([row[0][name] for row in given]) for name in ("alpha", "kappa", "tau", "noise")))


def by_target(given: list[Any], answer: Callable[[list[Any], str], np.ndarray]) -> list[float]:
    """Answers of the library to many calls at once, whose last argument is the target."""
    found = np.empty(len(given))
    for target in ("icl", "idg"):
        mine = [i for i, row in enumerate(given) if row[-1] == target]
        found[mine] = answer([given[i] for i in mine], target)
    return found.tolist()


def best_alphas(given: list[Any], target: str) -> np.ndarray:
    kappa, tau, noise, ridge = np.array([row[:4] for row in given]).reshape(-1, 4).T
    return np.asarray(best_alpha(kappa, tau, noise, ridge=ridge, target=target))


def best_ridges(given: list[Any], target: str) -> np.ndarray:
    return np.asarray(best_ridge(stacked(given), target=target))


def errors_of(given: list[Any], target: str) -> np.ndarray:
    ridge = np.array([0.0 if row[1] == "best" else row[1] for row in given])
    best = [i for i, row in enumerate(given) if row[1] == "best"]
    ridge[best] = best_ridges([given[i] for i in best], target)
    return getattr(errors(stacked(given), ridge=ridge), target)


def estimated(given: list[Any], estimate: Callable[..., EstimatorErrors]) -> list[dict[str, float]]:
    found = estimate(*np.array(given).T)
    return [{"icl": float(icl), "idg": float(idg)} for icl, idg in zip(found.icl, found.idg, strict=True)]


AT_ONCE: dict[str, Callable[[list[Any]], list[Any]]] = {
    "bestAlpha": partial(by_target, answer=best_alphas),
    "bestRidge": partial(by_target, answer=best_ridges),
    "errorOf": partial(by_target, answer=errors_of),
    "dmmseErrors": partial(estimated, estimate=dmmse_errors),
    "nearestTaskErrors": partial(estimated, estimate=nearest_task_errors),
}


@cache
def drawn(name: str, count: int, seed: int) -> list[tuple[Any, ...]]:
    """Arguments of calls of a function."""
    rng = np.random.default_rng((seed, list(ROWS).index(name)))
    return [ROWS[name].draw(rng) for _ in range(count)]


def calls(counts: dict[str, int], seed: int) -> dict[str, list[Any]]:
    """Calls of functions, as the driver under Node reads them."""
    return {name: [plain(given) for given in drawn(name, count, seed)] for name, count in counts.items()}


@cache
def library(name: str, count: int, seed: int) -> list[Any]:
    """Answers of the library to the calls of a function."""
    given = drawn(name, count, seed)
    found = AT_ONCE[name](given) if name in AT_ONCE else [ROWS[name].answer(*each) for each in given]
    return [plain(each) for each in found]


def wrong(name: str, ours: list[Any], count: int, seed: int) -> str | None:
    """The worst answer of a function in words, unless all are within its tolerance."""
    row, theirs = ROWS[name], library(name, count, seed)
    gaps = [gap(one, other, curve=row.curve) for one, other in zip(ours, theirs, strict=True)]
    worst = int(np.argsort(gaps)[-1 - int(SHALLOW * count if name in PLACES else 0)])
    if gaps[worst] <= row.tolerance:
        return None
    asked = plain(drawn(name, count, seed)[worst])
    return f"{name}{asked} is {theirs[worst]}; the page says {ours[worst]}, off by {gaps[worst]:.1e}"


def _row(values: Any, *, whole: bool = False) -> list[float]:
    row = np.asarray(values).tolist()
    while row and row[-1] == 0 and not whole:
        row.pop()
    return row


CONSTANTS: dict[str, Any] = {
    "LEAST": LEAST,
    "MOST": MOST,
    "LONG": LONG,
    "MANY": MANY,
    "STRONG": STRONG,
    "VANISHED": VANISHED,
    "TABLEAU": {
        "stages": [_row(row) for row in DOP853.A],
        "weights": _row(DOP853.B),
        "fifth": _row(DOP853.E5, whole=True),
        "third": _row(DOP853.E3, whole=True),
        "extra": [_row(row) for row in DOP853.A_EXTRA],
        "dense": [_row(row) for row in DOP853.D],
    },
}
