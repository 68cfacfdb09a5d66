"""Structured inputs and tasks: known values, the white case, exact symmetries, pools that were drawn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from iclab import Ratios
from iclab.theory.finite_size import ContextLaw, NormalTasks, Pool, pool_errors
from iclab.theory.generalization import Shift, errors, structured_errors

INF = np.inf
NAMES = ("icl", "idg", "train", "effective_ridge")


def power_law(size: int, exponent: float) -> np.ndarray:
    spectrum = np.arange(1, size + 1.0) ** -exponent
    return spectrum / spectrum.mean()


@pytest.mark.parametrize(("tau", "value"), [(4, 1.083531364772733), (0.5, 1.5497482114165493)])
def test_known_values_for_structured_tasks(tau: float, value: float) -> None:
    tasks = power_law(40, 0.8)
    found = structured_errors(
        Ratios(3, 0.5, tau, 0.2), task_eigenvalues=tasks, test_task_eigenvalues=np.roll(tasks, 7)
    )
    assert_allclose(found.icl, value, rtol=1e-12)


def test_known_values_for_structured_inputs() -> None:
    found = structured_errors(
        Ratios(4, 1.5, 0.6, 0.1),
        task_eigenvalues=power_law(32, 0.4)[::-1],
        input_eigenvalues=power_law(32, 0.7),
        test_task_eigenvalues=np.ones(32),
        ridge=0.02,
    )
    assert_allclose([found.icl, found.idg], [1.23792272115758, 0.861681852833949], rtol=1e-12)


positive = st.floats(-4, 4).map(lambda power: 10.0**power)


@given(positive, positive | st.just(INF), positive | st.just(INF), positive, st.just(0.0) | positive | st.just(INF))
def test_white_spectra_give_the_white_errors(
    alpha: float, kappa: float, tau: float, noise: float, ridge: float
) -> None:
    shift = Shift(alpha=3.0, noise=0.5, task_scale=1.7)
    white = errors(Ratios(alpha, kappa, tau, noise), ridge=ridge, shift=shift)
    found = structured_errors(
        Ratios(alpha, kappa, tau, noise),
        task_eigenvalues=np.ones(3),
        input_eigenvalues=np.ones(3),
        ridge=ridge,
        shift=shift,
    )
    for name in NAMES:
        assert_allclose(getattr(found, name), getattr(white, name), rtol=1e-11, err_msg=name)


@pytest.mark.parametrize("kappa", [0.5, 1.0, 2.0, INF])
@pytest.mark.parametrize("tau", [0.5, 1.0, 2.0, INF])
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("shift", [None, Shift(alpha=5.0)])
def test_endless_contexts_have_the_limits_of_white_data(
    kappa: float, tau: float, noise: float, shift: Shift | None
) -> None:
    for ridge in (0.0, 1e-3):
        white = errors(Ratios(INF, kappa, tau, noise), ridge=ridge, shift=shift)
        found = structured_errors(Ratios(INF, kappa, tau, noise), task_eigenvalues=[1, 1], ridge=ridge, shift=shift)
        for name in NAMES:
            assert_allclose(getattr(found, name), getattr(white, name), rtol=1e-11, err_msg=name)


@given(st.integers(0, 2**32 - 1), positive)
def test_units_order_and_repetition_of_the_spectra_do_not_matter(seed: int, unit: float) -> None:
    rng = np.random.default_rng(seed)
    inputs, tasks, new = rng.uniform(0.2, 3, (3, 4))
    ratios, ridge = Ratios(*rng.uniform(0.3, 4, 3), 0.2), rng.choice([0.0, 0.1])

    def found(s: np.ndarray, c: np.ndarray, t: np.ndarray, penalty: float) -> np.ndarray:
        answer = structured_errors(
            ratios, task_eigenvalues=c, input_eigenvalues=s, test_task_eigenvalues=t, ridge=penalty
        )
        return np.array([answer.icl, answer.idg, answer.train, answer.effective_ridge])

    here, order = found(inputs, tasks, new, ridge), rng.permutation(4)
    assert_allclose(found(inputs[order], tasks[order], new[order], ridge), here, rtol=1e-11)
    assert_allclose(found(*(np.repeat(part, 2) for part in (inputs, tasks, new)), ridge), here, rtol=1e-11)
    # inputs in other units: the features scale with u, so the ridge does with u²
    scaled = found(unit * inputs, tasks / unit, new / unit, ridge * unit**2)
    assert_allclose(scaled, here * [1, 1, 1, unit**2], rtol=1e-10)


@pytest.mark.parametrize(("tau", "kappa", "ridge"), [(0.6, 1.5, 0.02), (2.0, 0.6, 1e-3)])
def test_drawn_pools_approach_it_like_one_over_the_dimension(tau: float, kappa: float, ridge: float) -> None:
    # the pool prediction has the eigenvalues of a drawn pool where this theory has a fixed point
    sizes, gaps, doubts = (32, 64, 128), [], []
    for d in sizes:
        inputs, tasks = power_law(d, 0.7), power_law(d, 0.4)[::-1]
        theory = structured_errors(
            Ratios(4, kappa, tau, 0.1),
            task_eigenvalues=tasks,
            input_eigenvalues=inputs,
            test_task_eigenvalues=np.ones(d),
            ridge=ridge,
            shift=Shift(alpha=8),
        )
        runs = []
        for seed in range(6):
            pool = Pool(NormalTasks(np.diag(tasks)).draw(round(kappa * d), np.random.default_rng(seed)))
            law = ContextLaw(pool, 4 * d, 0.1, np.diag(inputs))
            new = ContextLaw(NormalTasks(np.eye(d)), 8 * d, 0.1, np.diag(inputs))
            run = pool_errors(law, round(tau * d * d), ridge=ridge, new=new)
            runs.append([run.icl, run.idg])  # IDG at the context of pretraining
        plain = structured_errors(
            Ratios(4, kappa, tau, 0.1), task_eigenvalues=tasks, input_eigenvalues=inputs, ridge=ridge
        )
        ratios = np.array(runs) / [theory.icl, plain.idg]
        gaps.append(np.abs(np.mean(ratios, axis=0) - 1))
        doubts.append(np.std(ratios, axis=0, ddof=1) / np.sqrt(len(runs)))
    for size, gap, doubt in zip(sizes, gaps, doubts, strict=True):
        assert np.all(gap < 6 / size + 4 * doubt), (size, gap, doubt)
    assert gaps[-1][0] < 0.5 * gaps[0][0]  # a quarter, up to the spread of six pools


def test_a_pool_task_at_another_context_is_that_of_drawn_pools() -> None:
    d, seeds = 128, 6
    inputs, tasks = power_law(d, 0.7), power_law(d, 0.4)[::-1]
    theory = structured_errors(
        Ratios(4, 1.5, 0.6, 0.1),
        task_eigenvalues=tasks,
        input_eigenvalues=inputs,
        ridge=0.02,
        shift=Shift(alpha=16, noise=0.3),
    )
    runs = []
    for seed in range(seeds):
        pool = Pool(NormalTasks(np.diag(tasks)).draw(192, np.random.default_rng(seed)))
        law = ContextLaw(pool, 4 * d, 0.1, np.diag(inputs))
        new = ContextLaw(pool, 16 * d, 0.3, np.diag(inputs))
        runs.append(pool_errors(law, round(0.6 * d * d), ridge=0.02, new=new).icl)
    assert_allclose(np.mean(runs), theory.idg, rtol=0.02)  # of order 1/D


def test_directions_without_tasks_are_allowed() -> None:
    found = structured_errors(Ratios(4, 0.5, 2, 0.1), task_eigenvalues=[2.0, 1.0, 0.0])
    assert np.isfinite(found.icl)
    # endless contexts: noise is fitted in the blind direction only where new tasks look there
    for new, finite in (([2.0, 1.0, 0.0], True), ([1.0, 1.0, 1.0], False)):
        endless = structured_errors(
            Ratios(INF, 0.9, 2, 0.1), task_eigenvalues=[2.0, 1.0, 0.0], test_task_eigenvalues=new
        )
        assert np.isfinite(endless.icl) == finite
        near = structured_errors(
            Ratios(1e9, 0.9, 2, 0.1), task_eigenvalues=[2.0, 1.0, 0.0], test_task_eigenvalues=new
        )
        assert (near.icl < 10) == finite


def test_limits_of_the_ridge_and_of_interpolation() -> None:
    tasks, inputs = np.array([2.0, 0.5]), np.array([0.4, 1.6])
    ask = {"task_eigenvalues": tasks, "input_eigenvalues": inputs}
    null = structured_errors(Ratios(4, 0.5, 2, 0.1), ridge=INF, **ask)
    assert_allclose([null.icl, null.idg, null.train], np.mean(tasks * inputs) + 0.1, rtol=1e-14)
    assert null.effective_ridge == INF
    peak = structured_errors(Ratios(4, 0.5, 1, 0.1), **ask)
    assert (peak.icl, peak.idg, peak.train) == (INF, INF, 0)
    for tau in (0.5, 2.0):
        none, little = (structured_errors(Ratios(4, 0.5, tau, 0.1), ridge=ridge, **ask) for ridge in (0, 1e-9))
        assert_allclose([little.icl, little.idg], [none.icl, none.idg], rtol=1e-7)  # first order
        assert_allclose(little.train, none.train, atol=1e-8)


def test_one_call_answers_a_grid() -> None:
    taus = np.array([0.5, 2.0])
    grid = structured_errors(Ratios(3, np.array([[0.5], [2.0]]), taus, 0.1), task_eigenvalues=[1.5, 0.5], ridge=0.1)
    assert np.shape(grid.icl) == np.shape(grid.train) == (2, 2)
    one = structured_errors(Ratios(3, 2.0, 0.5, 0.1), task_eigenvalues=[1.5, 0.5], ridge=0.1)
    assert_allclose(grid.icl[1, 0], one.icl, rtol=1e-14)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input_eigenvalues": [1.0]}, "input_eigenvalues must be as many as task_eigenvalues; got 1 and 2"),
        ({"test_task_eigenvalues": np.ones(3)}, "test_task_eigenvalues must be as many as task_eigenvalues; got 3"),
        ({"task_eigenvalues": [1.0, -0.1]}, "task_eigenvalues must be finite and >= 0; got -0.1"),
        ({"task_eigenvalues": [0.0, 0.0]}, "task_eigenvalues must hold a positive one"),
        ({"task_eigenvalues": np.eye(2)}, r"task_eigenvalues must be a list of numbers; got shape \(2, 2\)"),
        ({"task_eigenvalues": []}, "task_eigenvalues must be a list of numbers"),
        ({"input_eigenvalues": [1.0, 0.0]}, "input_eigenvalues must be positive; got 0. Drop directions"),
        ({"input_eigenvalues": [1.0, np.nan]}, "input_eigenvalues must be finite and >= 0; got nan"),
        ({"ridge": -1.0}, "ridge must be >= 0"),
    ],
)
def test_impossible_spectra_are_refused_by_name(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        structured_errors(Ratios(1, 1, 2, 0.1), **({"task_eigenvalues": [1.0, 1.0]} | arguments))
