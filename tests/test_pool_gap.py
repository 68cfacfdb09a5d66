"""A pool of regression tasks: errors of both strategies at one input, information, chi-square and the gap."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from iclab.numerics import FIXED_STREAM
from iclab.problem import ContextLaw, NormalTasks, Pool, SphereTasks
from iclab.theory.estimators import discrete_weights, gap_bounds, pool_dmmse_errors, pool_information, sampled_gap
from iclab.theory.estimators.one_context import finite_ridge_error

LINE = np.array([-1.5, -0.2, 0.4, 1.1])[:, None]
SIX = np.array([[-0.8, -1.32], [-0.25, 0.42], [1.14, 0.11], [-0.55, -0.78], [0.75, 1.63], [0.27, -1.23]])


@pytest.mark.parametrize(
    ("examples", "noise", "known", "tolerance"),
    [
        (1, 0.25, [0.6420393066167294, 0.735015317278878, 0.6635901599788192, 0.688182186191609], 2e-6),
        (2, 0.25, [0.44440943250331966, 0.55227003660861, 0.4717659699201034, 0.47994775644038995], 2e-6),
        (4, 0.25, [0.31813203392805517, 0.4440459146690957, 0.3448360564995616, 0.34625652385267924], 2e-6),
        (8, 0.25, [0.2682768638757468, 0.408073417658562, 0.28913072829023156, 0.28931316801873985], 2e-6),
        (4, 0.05, [0.0586918801, 0.2041381766, 0.0728680652, 0.0729900566], 2e-8),
    ],
)
def test_errors_of_a_pool_on_a_line_are_the_known_ones(
    examples: int, noise: float, known: list[float], tolerance: float
) -> None:
    found = pool_dmmse_errors(ContextLaw(Pool(LINE), examples, noise))
    ridge = [finite_ridge_error(1, examples, noise, task_variance=v) for v in (float(np.mean(LINE**2)), 1.0)]
    assert_allclose([found.idg, found.icl, *ridge], known, atol=tolerance)


def test_errors_on_a_line_are_those_of_drawn_contexts_under_any_law_of_new_tasks() -> None:
    """Plain squared errors of drawn contexts, with inputs that are not white."""
    examples, noise, count, rng = 3, 0.2, 60_000, np.random.default_rng(2)
    law = ContextLaw(Pool(LINE), examples, noise, np.array([[1.7]]))
    for new in (NormalTasks(np.array([[0.5]])), SphereTasks(1), Pool(np.array([[0.9], [-0.3]]))):
        found = pool_dmmse_errors(law, new=new)
        drawn = {"icl": new.draw(count, rng), "idg": LINE[rng.integers(4, size=count)]}
        for name, tasks in drawn.items():
            inputs = np.sqrt(1.7) * rng.standard_normal((count, examples, 1))
            labels = inputs[..., 0] * tasks + np.sqrt(noise) * rng.standard_normal((count, examples))
            estimate = discrete_weights(inputs, labels, LINE, noise) @ LINE
            squares = noise + 1.7 * (tasks - estimate)[:, 0] ** 2
            error = squares.std() / np.sqrt(count)
            assert error < 0.005 * squares.mean() + 0.002
            assert abs(squares.mean() - getattr(found, name)) < 4 * error


def test_one_input_with_little_noise_errs_on_new_tasks_by_the_distance_to_the_nearest() -> None:
    w = np.linspace(-8, 8, 160_001)
    distance = np.min((w[:, None] - LINE[:, 0]) ** 2, axis=1)
    nearest = np.sum(distance * np.exp(-(w**2) / 2)) * (w[1] - w[0]) / np.sqrt(2 * np.pi)
    assert_allclose(pool_dmmse_errors(ContextLaw(Pool(LINE), 6, 1e-4)).icl, nearest, rtol=2e-3)  # √ρ moves a border
    assert_allclose(pool_dmmse_errors(ContextLaw(Pool(LINE), 6, 1e-4)).idg, 1e-4, rtol=0.01)  # six tiny inputs


@pytest.mark.parametrize(
    ("dimension", "examples", "noise", "bias", "variance"),
    [
        (1, 4, 0.25, 0.016711380624914132, 0.07954514322776515),
        (2, 2, 0.1, 0.19820145619101798, 0.11599427832512377),
        (2, 6, 0.1, 0.0066272889919263625, 0.05091184501108582),
    ],
)
def test_ridge_on_a_pool_has_the_known_parts(
    dimension: int, examples: int, noise: float, bias: float, variance: float
) -> None:
    none, twice = (finite_ridge_error(dimension, examples, noise, task_variance=v) for v in (0.0, 2.0))
    assert_allclose([none - noise, (twice - none) / 2], [variance, bias], atol=1e-7)


def test_errors_of_six_tasks_in_a_plane_are_the_known_ones() -> None:
    found = pool_dmmse_errors(ContextLaw(Pool(SIX), 3, 0.1), contexts=4000)
    ridge = [finite_ridge_error(2, 3, 0.1, task_variance=v) for v in (float(np.mean(SIX**2)), 1.0)]
    assert_allclose(ridge, [0.2625897190481593, 0.27735260182763993], atol=0.0033)  # five standard errors
    assert_allclose(found.idg, 0.17928605907096093, rtol=0.06)  # 4000 contexts against 2e5: 1.5 %
    assert_allclose(found.icl, 0.5842802722391096, rtol=0.08)


@pytest.mark.parametrize(
    ("dimension", "examples", "noise", "chi_square"),
    [(3, 5, 0.3, 173.045267489712), (4, 8, 0.25, 3392.0), (8, 16, 0.05, 1115741185444.9995)],
)
def test_chi_square_of_a_context_is_the_known_one(
    dimension: int, examples: int, noise: float, chi_square: float
) -> None:
    assert_allclose(pool_information(dimension, examples, noise).chi_square, chi_square, rtol=1e-9)


def test_information_and_chi_square_are_those_of_drawn_inputs() -> None:
    inputs = np.random.default_rng(0).standard_normal((20_000, 8, 4)) / 2
    log_det = np.linalg.slogdet(np.eye(4) + np.einsum("pni,pnj->pij", inputs, inputs) / 0.25)[1]
    found = pool_information(4, 8, 0.25)
    assert_allclose(found.information, 3.863554270403027, atol=0.0036)  # five standard errors of the known number
    error = log_det.std() / 2 / np.sqrt(len(log_det))
    assert abs(found.information - log_det.mean() / 2) < 4 * error < 0.02
    squares = np.exp(log_det)
    assert abs(1 + found.chi_square - squares.mean()) < 4 * squares.std() / np.sqrt(len(squares))


def test_the_gap_of_pools_lies_within_its_bounds() -> None:
    rng, found = np.random.default_rng(1), pool_information(4, 8, 0.25)
    for tasks in (1, 4, 16, 64):
        pools = [ContextLaw(Pool(rng.standard_normal((tasks, 4))), 8, 0.25) for _ in range(20 if tasks == 1 else 5)]
        gaps = [sampled_gap(law, contexts=300) for law in pools]
        mean = np.mean([one.mean for one in gaps])
        scatter = np.std([one.mean for one in gaps], ddof=1) / np.sqrt(len(gaps))
        error = np.hypot(scatter, np.mean([one.error for one in gaps]))  # contexts are the same for every pool
        least, most = gap_bounds(found.information, found.chi_square, tasks)
        assert least - 3 * error <= mean <= most + 3 * error
        assert error < 0.7


def test_a_sampled_gap_is_a_mean_of_log_ratios_of_both_densities_of_labels() -> None:
    """The same contexts, with the densities of whole label vectors from SciPy."""
    contexts, examples, noise, root = 60, 3, 0.4, np.sqrt([1.5, 0.5])
    law = ContextLaw(Pool(SIX), examples, noise, np.diag(root**2))
    found, stream, logs = sampled_gap(law, contexts=contexts), np.random.default_rng(FIXED_STREAM), []
    for task in law.tasks.draw(contexts, stream):
        inputs = stream.standard_normal((examples, 2)) * root / np.sqrt(2)
        labels = inputs @ task + np.sqrt(noise) * stream.standard_normal(examples)
        spread = noise * np.eye(examples)
        known = np.mean([multivariate_normal.pdf(labels, inputs @ one, spread) for one in SIX])
        logs.append(np.log(known / multivariate_normal.pdf(labels, cov=inputs @ inputs.T + spread)))
    assert_allclose([found.mean, found.error], [np.mean(logs), np.std(logs, ddof=1) / np.sqrt(contexts)], rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pool_information(4, 8, 0.0), "noise must be finite and > 0; got 0.0. Without noise"),
        (lambda: sampled_gap(ContextLaw(SphereTasks(3), 4, 0.1)), "law.tasks must be a Pool; got SphereTasks"),
        (lambda: sampled_gap(ContextLaw(Pool(LINE), 4)), "law.noise must be positive; got 0"),
        (lambda: sampled_gap(ContextLaw(Pool(LINE), 4, 0.1), contexts=1), "contexts must be a whole number >= 2"),
        (
            lambda: finite_ridge_error(2, 3, 0.1, task_variance=-1.0),
            "task_variance must be finite and >= 0; got -1.0",
        ),
    ],
)
def test_impossible_pools_are_refused_by_name(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_chi_square_beyond_all_numbers_is_said() -> None:
    with pytest.raises(ArithmeticError, match="chi_square must be a number of double precision"):
        pool_information(200, 400, 1e-3)
