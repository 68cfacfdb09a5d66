"""Bayes estimators on drawn contexts against theory, limits and each other."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, roots_genlaguerre, roots_hermitenorm

from iclab.problem import ContextLaw, Pool, SphereTasks
from iclab.simulation.keys import key_of
from iclab.simulation.pretraining.estimators import (
    drawn_dmmse_errors,
    drawn_ridge_errors,
    fittest_dmmse_errors,
    log_tasks_at,
    mean_dmmse_errors,
    mean_fittest_errors,
)
from iclab.theory import estimators as theory


@pytest.mark.parametrize(("alpha", "noise"), [(0.5, 0.2), (3.0, 0.05)])
def test_ridge_errors_are_those_of_the_limit(alpha: float, noise: float) -> None:
    found = drawn_ridge_errors(120, round(120 * alpha), noise=noise, contexts=20, key=key_of(1))
    assert_allclose(found.mean(), theory.ridge_error(alpha, noise), rtol=5e-3)  # D = 120; contexts differ by 1 %
    assert found.std() < 0.02 * found.mean()


def test_without_noise_ridge_regression_misses_what_inputs_do_not_reach() -> None:
    assert_allclose(drawn_ridge_errors(8, 5, noise=0.0, contexts=3, key=key_of(0)), 3 / 8, rtol=1e-15)
    assert not drawn_ridge_errors(8, 9, noise=0.0, contexts=3, key=key_of(0)).any()


@pytest.mark.parametrize("noise", [0.2, 0.0])
def test_dmmse_errors_are_those_of_a_quadrature_over_contexts(noise: float) -> None:
    rng = np.random.default_rng(3)
    pool, contexts = rng.standard_normal((12, 6)), 6000
    found = drawn_dmmse_errors(pool, 5, noise=noise, contexts=contexts, normalized=True, key=key_of(2))
    expected = theory.pool_dmmse_errors(ContextLaw(Pool(pool), 5, noise), new=SphereTasks(6), contexts=contexts)
    for name in ("icl", "idg"):
        drawn = getattr(found, name)
        error = np.sqrt(2 / contexts) * drawn.std()  # of two such means
        assert abs(drawn.mean() - getattr(expected, name)) <= 4 * error, name


def test_a_pool_of_one_task_is_always_answered() -> None:
    task = np.array([[1.5, -0.5, 1.0, 0.3]])
    found = drawn_dmmse_errors(task, 3, noise=0.2, contexts=4000, normalized=True, key=key_of(5))
    assert_array_equal(found.idg, 0.2)
    error = found.icl.std() / np.sqrt(4000)
    assert abs(found.icl.mean() - (0.2 + 1 + task[0] @ task[0] / 4)) < 4 * error  # E |w' − w|²/D, w' on the sphere


@pytest.mark.parametrize("noise", [0.5, 0.05])
def test_two_tasks_in_one_dimension_are_told_apart_as_well_as_a_quadrature_says(noise: float) -> None:
    # s = Σ x² is chi-square and t = Σ x y given s and the task w normal, of mean w s and variance ρ s; that of the
    # pool of a and b with the posterior a + (b − a) σ(L) has L = (b − a) (t − (a + b) s/2)/ρ
    length, contexts, (a, b) = 3, 20_000, (-0.4, 1.1)
    (s, s_weight), (z, z_weight) = roots_genlaguerre(80, length / 2 - 1), roots_hermitenorm(120)
    s, s_weight, z_weight = 2 * s[:, None, None], s_weight[:, None, None] / s_weight.sum(), z_weight / z_weight.sum()

    def excess(task: np.ndarray | float) -> np.ndarray:
        t = task * s + np.sqrt(noise * s) * z
        return s_weight * z_weight * (task - a - (b - a) * expit((b - a) * (t - (a + b) * s / 2) / noise)) ** 2

    idg = noise + (excess(a).sum() + excess(b).sum()) / 2
    icl = noise + (z_weight[:, None] * excess(z[:, None])).sum()  # a new task is normal
    found = drawn_dmmse_errors(np.array([[a], [b]]), length, noise=noise, contexts=contexts, key=key_of(6))
    for drawn, expected in ((found.icl, icl), (found.idg, idg)):
        assert abs(drawn.mean() - expected) < 4 * drawn.std() / np.sqrt(contexts)


def test_a_large_pool_is_the_law_of_its_tasks() -> None:
    pool = np.random.default_rng(7).standard_normal((4000, 2))
    found = drawn_dmmse_errors(pool, 4, noise=0.3, contexts=800, key=key_of(8))
    whole = drawn_ridge_errors(2, 4, noise=0.3, contexts=4000, key=key_of(9))
    for drawn in (found.icl, found.idg):
        error = np.hypot(drawn.std() / np.sqrt(800), whole.std() / np.sqrt(4000))
        assert abs(drawn.mean() - whole.mean()) < 4 * error + 0.01 * whole.mean()  # 4000 tasks are a sample too


@pytest.mark.parametrize("length", [6, 15])
def test_the_fittest_tasks_of_a_pool_are_all_that_its_posterior_mean_depends_on(length: int) -> None:
    pools = np.random.default_rng(11).standard_normal(
        (30, 1500, 10)
    )  # of a Poisson number of tasks on the other side
    whole = np.concatenate(
        [drawn_dmmse_errors(pool, length, noise=0.1, contexts=40, key=key_of(i)).icl for i, pool in enumerate(pools)]
    )
    found = fittest_dmmse_errors(10, length, noise=0.1, log_tasks=np.log(1500), contexts=1200, key=key_of(3))
    assert abs(found.mean() - whole.mean()) < 4 * np.hypot(found.std(), whole.std()) / np.sqrt(1200)


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"noise": 0.0}, "noise must be"), ({"log_tasks": 2.0}, "log_tasks must be .* Draw smaller")],
)
def test_a_huge_pool_needs_noise_and_many_tasks(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fittest_dmmse_errors(4, 4, **({"noise": 0.1, "log_tasks": 8.0, "key": key_of(0)} | changes))


def test_a_context_that_identifies_its_task_leaves_the_noise() -> None:
    pool = 500 * np.random.default_rng(4).standard_normal((12, 6))
    found = drawn_dmmse_errors(pool, 5, noise=0.1, contexts=6000, normalized=True, key=key_of(1))
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
        drawn_dmmse_errors(
            **({"tasks": np.ones((4, 3)), "context_length": 5, "noise": 0.1, "key": key_of(0)} | arguments)
        )
    if "tasks" not in arguments:
        with pytest.raises(ValueError, match=message):
            drawn_ridge_errors(**({"dimension": 3, "context_length": 5, "noise": 0.1, "key": key_of(0)} | arguments))


def test_a_pool_at_finite_dimension_is_the_one_that_the_limit_calls_so() -> None:
    for share, dimension in ((0.4, 96), (1.0, 20)):
        tasks = np.exp(log_tasks_at(share, dimension))
        assert_allclose(theory.effective_log_tasks(tasks, dimension), share, rtol=1e-12)


def test_means_over_laws_are_those_of_each_with_a_key_of_its_own() -> None:
    pools = [Pool(np.random.default_rng(seed).standard_normal((3, 4))) for seed in range(2)]
    icl, idg = mean_dmmse_errors([ContextLaw(pool, 5, 0.2) for pool in pools], contexts=20, key=key_of(0))
    alone = drawn_dmmse_errors(pools[1].vectors, 5, noise=0.2, contexts=20, key=jax.random.fold_in(key_of(0), 1))
    assert (icl[1], idg[1]) == (alone.icl.mean(), alone.idg.mean())
    huge = mean_fittest_errors(20, np.array([0.5]), alpha=1.0, noise=0.1, contexts=3, key=key_of(1))
    sample = {"noise": 0.1, "contexts": 3, "key": jax.random.fold_in(key_of(1), 0)}
    assert huge[0] == fittest_dmmse_errors(20, 20, log_tasks=log_tasks_at(0.5, 20), **sample).mean()
