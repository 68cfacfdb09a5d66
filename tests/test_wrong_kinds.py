"""What is no number at all is refused by name too: text, None, ragged lists, complex numbers, lists for numbers."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable

import numpy as np
import pytest

from iclab import Ratios, Regression, theory
from iclab.planning import best_split, forecast, regime, required
from iclab.theory import estimators, finite_size, generalization, modes, population, sgd
from iclab.theory.finite_size import ContextLaw, SphereTasks
from tests import refusals
from tests.refusals import Row, check_refusals

POOL = ContextLaw(finite_size.Pool(np.ones((2, 2))), 3, 0.1)
LAW = ContextLaw(SphereTasks(6), 8, 0.1)
FOUR, RATIOS, PROBLEM = (2.0, 1.0, 0.5, 0.25), Ratios(1.0, 0.5, 2.0, 0.1), Regression((0.6, 0.4), 8, 0.1)
TASKS = modes.DiagonalTasks(FOUR, 8)
NO_NUMBERS = [*refusals.NO_NUMBERS, None, np.datetime64(3, "s")]
NO_RATIOS = [(1, 2, 3, 4), None, 1.0, PROBLEM]
NOT_ONE = [*NO_NUMBERS, (1.0, 2.0), np.ones((2, 2))]
CALLS: list[Row] = [  # a call that answers, one of its arguments, what it must not be
    (lambda ridge: generalization.errors(RATIOS, ridge=ridge), 0.1, NO_NUMBERS),
    (lambda tau: generalization.critical_kappa(tau, 0.1), 2.0, NO_NUMBERS),
    (lambda kappa: generalization.best_alpha(kappa, 2.0, 0.1), 0.5, NO_NUMBERS),
    (lambda target: generalization.best_ridge(RATIOS, target=target), "icl", [*NO_NUMBERS, 1]),
    (lambda noise: estimators.task_threshold(1.0, noise), 0.1, NO_NUMBERS),
    (lambda alpha: estimators.dmmse_errors(alpha, 0.1, 0.5), 1.0, NO_NUMBERS),
    (lambda error: required("tau", error=error, alpha=2.0, kappa=2.0, noise=0.1), 0.9, NOT_ONE),
    (lambda ridge: required("tau", error=0.9, alpha=2.0, kappa=2.0, noise=0.1, ridge=ridge), 0.1, NOT_ONE),
    (lambda eigenvalues: modes.DiagonalTasks(eigenvalues, 8), FOUR, NO_NUMBERS),
    (lambda context_length: modes.DiagonalTasks(FOUR, context_length), 8, [*NOT_ONE, 1.5, True]),
    (lambda start: modes.exact_flow(TASKS, start=start, time=[1.0]), (0.1, 0.1), [*NO_NUMBERS, (1, 2, 3), 1.0]),
    (lambda start: modes.single_head_flow(PROBLEM, start=start, time=[1.0]), (0.1, 0.1), [*NO_NUMBERS, ([1.0], 1.0)]),
    (lambda noise: modes.DiagonalTasks(FOUR, 8, noise=noise), 0.1, NOT_ONE),
    (lambda strength: modes.exact_product_loss(TASKS, strength), [0.1] * 4, [*NO_NUMBERS, [1.0], 1.0]),
    (lambda decay: modes.decayed_limits(TASKS, decay=decay), 0.1, NOT_ONE),
    (lambda steps: modes.exact_descent(TASKS, start=(1, 1), rate=0.1, steps=steps), 3, [*NOT_ONE, 2.5, True]),
    (lambda rate: sgd.expected_loss(PROBLEM, rate=rate, batch=4, steps=2), 0.1, NOT_ONE),
    (lambda batch: sgd.critical_rate(PROBLEM, batch=batch), 4, [*NOT_ONE, 1.5]),
    (lambda steps: sgd.small_noise_loss(PROBLEM, rate=0.1, batch=4, steps=steps, start=(1, 1)), 2, [*NOT_ONE, 2.5]),
    (lambda gamma: population.loss(population.moments(PROBLEM), gamma), np.eye(2), [*NO_NUMBERS, np.eye(3)]),
    (lambda noise: Regression((1.0,), 3, noise), 0.1, NOT_ONE),
    (lambda kappa: Ratios(1.0, kappa, 1.0, 0.0), 0.1, NO_NUMBERS),
    (lambda noise: Ratios(1.0, 1.0, 1.0, noise), 0.1, [*NO_NUMBERS, "inf", np.inf]),
    (lambda ratios: generalization.errors(ratios), RATIOS, NO_RATIOS),
    (lambda ratios: generalization.diversity_gap(ratios), RATIOS, NO_RATIOS),
    (lambda ratios: generalization.best_ridge(ratios), RATIOS, NO_RATIOS),
    (lambda ratios: generalization.structured_errors(ratios, task_eigenvalues=[1.0]), RATIOS, NO_RATIOS),
    (lambda ratios: regime(ratios), RATIOS, NO_RATIOS),
    (lambda shift: generalization.errors(RATIOS, shift=shift), generalization.Shift(2.0), [1, 2.0, RATIOS]),
    (lambda ridge: regime(RATIOS, ridge=ridge), 0.1, NOT_ONE),
    (lambda kappa: regime(Ratios(1.0, kappa, 2.0, 0.1)), 0.5, [np.ones(2)]),
    (lambda noise: required("tau", error=0.9, alpha=2.0, kappa=2.0, noise=noise), 0.1, NOT_ONE),
    (lambda noise: best_split(100, dimension=2, kappa=2.0, noise=noise), 0.1, NOT_ONE),
    (lambda kappa: best_split(100, dimension=2, kappa=kappa, noise=0.1), 2.0, NOT_ONE),
    (lambda noise: forecast(5, context_length=8, sequences=60, noise=noise), 0.1, NOT_ONE),
    (lambda ridge: forecast(5, context_length=8, sequences=60, noise=0.1, ridge=ridge), 0.1, NOT_ONE),
    (lambda ridge: finite_size.pool_errors(LAW, 60, ridge=ridge), 0.1, NOT_ONE),
    (lambda ridge: finite_size.leverage_errors(LAW, 60, ridge=ridge), 0.1, NOT_ONE),
    (lambda new: finite_size.pool_errors(LAW, 60, new=new), LAW, [1, RATIOS]),
    (lambda tasks: ContextLaw(tasks, 8, 0.1), SphereTasks(6), NO_NUMBERS),
    (lambda new: estimators.pool_dmmse_errors(POOL, new=new, contexts=1), SphereTasks(2), [1, SphereTasks(3)]),
    (lambda noise: finite_size.ContextLaw(SphereTasks(6), 8, noise), 0.1, NOT_ONE),
    (lambda readout: finite_size.exact_error(readout, LAW), np.ones((6, 7)), [*NO_NUMBERS, np.full((6, 7), np.nan)]),
    (lambda gamma: finite_size.readout_of(gamma), np.eye(3), [*NO_NUMBERS, 1.0, np.ones(3), np.ones((3, 2))]),
]


@pytest.mark.parametrize(("call", "good", "wrong"), CALLS)
def test_what_is_no_number_is_refused_by_name(call: Callable, good: object, wrong: list) -> None:
    check_refusals(call, good, wrong)


KINDS = ("Regression", "DiagonalTasks", "Moments", "MixtureMoments", "ContextLaw", "Ratios")


def kind_of(annotation: object) -> str | None:
    """The name of the class that an argument must have, also where the function itself checks it (`Validated`)."""
    return getattr(getattr(annotation, "__metadata__", (annotation,))[0], "__name__", None)


def doors() -> list[tuple[Callable, str, str]]:
    """Public functions of theory that begin with a description, with the name and the class of it."""
    found = []
    for module in pkgutil.walk_packages(theory.__path__, "iclab.theory."):
        for name, function in vars(importlib.import_module(module.name)).items():
            if inspect.isfunction(function) and function.__module__ == module.name and name[0] != "_":
                first = next(iter(inspect.signature(function).parameters.values()), None)
                kind = first and kind_of(first.annotation)
                if first is not None and kind in KINDS and not module.name.endswith(".response"):  # behind the doors
                    found.append((function, first.name, kind))
    return found


@pytest.mark.parametrize(("function", "name", "kind"), doors())
def test_a_description_of_another_class_is_refused_by_name(function: Callable, name: str, kind: str) -> None:
    needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty][1:]
    others = {p.name: None for p in needed}
    for wrong in ((1, 2, 3, 4), 1.0, None, object()):
        with pytest.raises(ValueError, match=f"^{name} must be a {kind}; got {type(wrong).__name__}"):
            function(wrong, **others)
