"""What simulation of finite pretraining cannot use is refused by name, whatever its kind, before it draws."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from iclab import Pretraining, Ratios
from iclab.simulation import memory, pretraining
from iclab.simulation.keys import key_of
from iclab.simulation.linear.contexts import draw_summaries, draw_tokens
from iclab.simulation.pretraining import bands, estimators
from tests import refusals
from tests.refusals import Row, check_refusals

RUN = Pretraining(dimension=4, context_length=5, sequences=12, tasks=3, noise=0.1)
TASKS, KEY = np.ones((3, 4)), key_of(0)
NO_NUMBERS = [*refusals.NO_NUMBERS, np.inf]
NOT_ONE = [*refusals.NOT_ONE, np.inf, np.ones(1), -1.0, 1e300, 1e-300]
NOT_WHOLE = [*NOT_ONE, 0, 2.5]
NOT_BYTES = [*refusals.NO_NUMBERS, (1.0, 2.0), np.ones(1), -1.0, 1e-300]
NOT_COUNT = [*NO_NUMBERS, (1.0, 2.0), np.ones(1), -1.0, 1e300, 1e-300, 0, 2.5]
fit, chosen_route, Solver = pretraining.fit, pretraining.chosen_route, pretraining.RidgeSolver
NO_KEY = [*NO_NUMBERS, None, 0, np.zeros(2, np.uint32), jax.random.split(KEY, 2)]
NO_FLAG = ["no", 1, None, np.nan]
NO_RUN = [None, 1.0, Ratios(1, 1, 1, 0), {}]
ARE: dict[str, Any] = {"ridge": 0.1, "key": KEY}
FROM: dict[str, Any] = {"noise": 0.1, "contexts": 2, "key": KEY}
CALLS: list[Row] = [  # a call that answers, one of its arguments, what it must not be
    (lambda dimension: Pretraining(dimension, 5, 12), 4, NOT_WHOLE),
    (lambda noise: Pretraining(4, 5, 12, None, noise), 0.1, NOT_ONE),
    (lambda normalized: Pretraining(4, 5, 12, normalized=normalized), np.True_, NO_FLAG),
    (lambda balanced: Pretraining(4, 5, 12, balanced=balanced), False, NO_FLAG),
    (lambda ratios: Pretraining.of(ratios, 4), Ratios(1, 1, 2, 0), [None, 1.0, RUN]),
    (lambda noise: Pretraining.of(Ratios(1, 1, 2, noise), 4), 0.1, [(0.1, 0.2)]),
    (lambda pretraining: fit(pretraining, **ARE), RUN, NO_RUN),
    (lambda pad_to: fit(RUN, solver=Solver(pad_to=pad_to), **ARE), RUN, NO_RUN[1:]),
    (lambda solver: fit(RUN, solver=solver, **ARE), Solver("plain"), [None, "plain", {}, Solver]),
    (lambda ridge: fit(RUN, ridge=ridge, key=KEY), 0.0, NOT_ONE),
    (lambda tolerance: fit(RUN, solver=Solver(tolerance=tolerance), **ARE), 1e-3, [*NOT_ONE, 0.5]),
    (lambda memory: fit(RUN, solver=Solver(memory=memory), **ARE), 1e9, NOT_BYTES),
    (lambda precision: fit(RUN, solver=Solver(precision=precision), **ARE), "float64", ["float16", None, TASKS]),
    (lambda route: fit(RUN, solver=Solver(route=route), **ARE), "direct", ["fast", None, np.ones(2), []]),
    (lambda iterations: fit(RUN, solver=Solver(iterations=iterations), **ARE), 9, NOT_COUNT),
    (lambda key: fit(RUN, ridge=0.1, key=key), KEY, NO_KEY),
    (lambda keys: pretraining.fit_each(RUN, ridge=0.1, keys=keys), KEY[None], [*NO_KEY[:-1], KEY]),
    (lambda pretraining: chosen_route(pretraining, ridge=0.1), RUN, NO_RUN),
    (lambda ridge: chosen_route(RUN, ridge=ridge), 0.1, NOT_ONE),
    (lambda runs: bands.band(RUN, runs=runs, **ARE), 32, [*NOT_WHOLE, 31, 10**12]),
    (lambda key: bands.band(RUN, ridge=0.1, runs=32, key=key), KEY, NO_KEY),
    (lambda tasks: draw_summaries(tasks, 5, key=KEY), np.ones(4), [*NO_NUMBERS, 2.0, [1e30]]),
    (lambda noise: draw_summaries(TASKS, 5, noise=noise, key=KEY), 0.1, NOT_ONE),
    (lambda context_length: draw_summaries(TASKS, context_length, key=KEY), 10**12, NOT_WHOLE),
    (lambda key: draw_summaries(TASKS, 5, key=key), KEY, NO_KEY),
    (lambda key: draw_tokens(TASKS, 5, key=key), KEY, NO_KEY),
    (lambda tasks: estimators.drawn_dmmse_errors(tasks, 5, **FROM), TASKS, [*NO_NUMBERS, np.ones(4)]),
    (lambda noise: estimators.drawn_dmmse_errors(TASKS, 5, **FROM | {"noise": noise}), 0.1, NOT_ONE),
    (lambda normalized: estimators.drawn_dmmse_errors(TASKS, 5, normalized=normalized, **FROM), False, NO_FLAG),
    (lambda key: estimators.drawn_dmmse_errors(TASKS, 5, noise=0.1, contexts=2, key=key), KEY, NO_KEY),
    (lambda dimension: estimators.drawn_ridge_errors(dimension, 5, **FROM), 4, NOT_WHOLE),
    (lambda key: estimators.drawn_ridge_errors(4, 5, noise=0.1, contexts=2, key=key), KEY, NO_KEY),
]


@pytest.mark.parametrize(("call", "good", "wrong"), CALLS)
def test_what_is_of_a_wrong_kind_is_refused_by_name(call: Callable, good: object, wrong: list) -> None:
    check_refusals(call, good, wrong)


@pytest.mark.parametrize("name", ["input_eigenvalues", "task_eigenvalues"])
@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf, 1e300, 1e-300, "x", (1.0,), np.ones((4, 4))])
def test_spectra_are_refused_by_name(name: str, wrong: Any) -> None:
    values: Any = np.full(4, wrong) if np.ndim(wrong) == 0 and not isinstance(wrong, str) else wrong
    with pytest.raises(ValueError, match=f"^{name} must"):
        chosen_route(RUN, ridge=0.1, **{name: values})


@pytest.mark.parametrize("units", [1e-15, 1e15])
def test_labels_whose_squares_hide_them_are_refused(units: float) -> None:
    with pytest.raises(ValueError, match=r"^labels must have a variance between 1e-10 and 1e\+10"):
        chosen_route(Pretraining(4, 5, 12), ridge=0.1, task_eigenvalues=np.full(4, units))


@pytest.mark.parametrize(
    "call",
    [
        lambda: draw_tokens(TASKS, 10**15, key=KEY),
        lambda: estimators.drawn_dmmse_errors(TASKS, 10**15, noise=0.1, key=KEY),
        lambda: estimators.drawn_dmmse_errors(TASKS, 5, noise=0.1, contexts=10**15, key=KEY),
        lambda: estimators.drawn_ridge_errors(10**9, 10**9, noise=0.1, key=KEY),
        lambda: chosen_route(Pretraining(10**30, 5, 12), ridge=0.1),
        lambda: chosen_route(Pretraining(10**6, 5, 10**30), ridge=0.1, solver=Solver(memory=1e10)),
    ],
)
def test_sizes_beyond_any_memory_are_refused_at_once(call: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "machine_memory", lambda: 1e10)
    with pytest.raises(ValueError, match=r"must (fit into|hold|be at most)"):
        call()


def test_one_task_alone_has_one_sequence() -> None:
    drawn = draw_summaries(np.ones(4), 5, key=KEY)
    assert [np.shape(part) for part in drawn] == [(4,), (5,), ()]
