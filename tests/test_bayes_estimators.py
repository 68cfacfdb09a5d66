"""Bayes estimators on drawn contexts against theory, limits and each other."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.readouts import ContextLaw, Pool, SphereTasks
from iclab.simulation.estimators import dmmse_errors, ridge_errors
from iclab.simulation.keys import key_of
from iclab.theory import estimators as theory


@pytest.mark.parametrize(("alpha", "noise"), [(0.5, 0.2), (3.0, 0.05)])
def test_ridge_errors_are_those_of_the_limit(alpha: float, noise: float) -> None:
    found = ridge_errors(120, round(120 * alpha), noise=noise, contexts=20, key=key_of(1))
    assert_allclose(found.mean(), theory.ridge_error(alpha, noise), rtol=5e-3)  # D = 120; contexts differ by 1 %
    assert found.std() < 0.02 * found.mean()


def test_without_noise_ridge_regression_misses_what_inputs_do_not_reach() -> None:
    assert_allclose(ridge_errors(8, 5, noise=0.0, contexts=3, key=key_of(0)), 3 / 8, rtol=1e-15)
    assert not ridge_errors(8, 9, noise=0.0, contexts=3, key=key_of(0)).any()


@pytest.mark.parametrize("noise", [0.2, 0.0])
def test_dmmse_errors_are_those_of_a_quadrature_over_contexts(noise: float) -> None:
    rng = np.random.default_rng(3)
    pool, contexts = rng.standard_normal((12, 6)), 6000
    found = dmmse_errors(pool, 5, noise=noise, contexts=contexts, normalized=True, key=key_of(2))
    expected = theory.pool_dmmse_errors(ContextLaw(Pool(pool), 5, noise), new=SphereTasks(6), contexts=contexts)
    for name in ("icl", "idg"):
        drawn = getattr(found, name)
        error = np.sqrt(2 / contexts) * drawn.std()  # of two such means
        assert abs(drawn.mean() - getattr(expected, name)) <= 4 * error, name


def test_a_context_that_identifies_its_task_leaves_the_noise() -> None:
    pool = 500 * np.random.default_rng(4).standard_normal((12, 6))
    found = dmmse_errors(pool, 5, noise=0.1, contexts=6000, normalized=True, key=key_of(1))
    assert_allclose(found.idg, 0.1, rtol=1e-12)
    assert found.icl.min() > 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tasks": np.ones(3)}, r"tasks must have the shape \(K, D\)"),
        ({"tasks": np.array([[np.inf]])}, "tasks must be finite"),
        ({"context_length": 0}, "context_length must be a whole number >= 1"),
        ({"contexts": 0}, "contexts must be a whole number >= 1"),
        ({"noise": -1.0}, "noise must be finite and >= 0"),
    ],
)
def test_impossible_contexts_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dmmse_errors(**({"tasks": np.ones((4, 3)), "context_length": 5, "noise": 0.1, "key": key_of(0)} | arguments))
    if "tasks" not in arguments:
        with pytest.raises(ValueError, match=message):
            ridge_errors(**({"dimension": 3, "context_length": 5, "noise": 0.1, "key": key_of(0)} | arguments))
