"""Exact errors of readouts against drawn tokens; predictions for a pool against reference values and drawn fits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab import Ratios
from iclab.problem.readouts import feature_moments
from iclab.theory import population
from iclab.theory.finite_size import (
    ContextLaw,
    NormalTasks,
    Pool,
    SphereTasks,
    exact_error,
    leverage_errors,
    pool_errors,
    readout_of,
)
from iclab.theory.generalization import errors
from iclab.theory.pretraining.leverage import drawn_sequences

KNOWN_READOUT = np.column_stack([0.5 * np.eye(4) + 0.1, [0.02, 0.04, 0.06, 0.08]])
KNOWN_POOL = Pool(np.array([[1.0, 2, 0, -1], [-1, -1, 1, 2], [2, 5, 1, -1]]))


@pytest.mark.parametrize(
    ("tasks", "value"),
    [(KNOWN_POOL, 2.489048888888888), (NormalTasks(np.eye(4)), 0.90176), (SphereTasks(4), 0.89976)],
)
def test_known_exact_errors(tasks, value: float) -> None:
    assert_allclose(exact_error(KNOWN_READOUT, ContextLaw(tasks, 6, 0.3)), value, rtol=1e-12)


def random_covariance(seed: int, size: int) -> np.ndarray:
    factor = np.random.default_rng(seed).standard_normal((size, size))
    return factor @ factor.T / size


def drawn_tokens(law: ContextLaw, count: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Query, features and label of the query, token by token."""
    d, n = law.dimension, law.context_length
    w = law.tasks.draw(count, rng)
    root = np.linalg.cholesky(np.asarray(law.input_covariance)).T / np.sqrt(d)
    x = rng.standard_normal((count, n + 1, d)) @ root
    y = np.einsum("pnd,pd->pn", x, w) + np.sqrt(law.noise) * rng.standard_normal((count, n + 1))
    summary = d / n * np.einsum("pn,pnd->pd", y[:, :-1], x[:, :-1])
    return x[:, -1], np.column_stack([summary, np.mean(y[:, :-1] ** 2, axis=1)]), y[:, -1]


@pytest.mark.parametrize(
    "tasks",
    [Pool(np.random.default_rng(5).standard_normal((2, 3))), SphereTasks(3), NormalTasks(random_covariance(6, 3))],
)
def test_the_exact_error_is_that_of_drawn_contexts(tasks) -> None:
    law = ContextLaw(tasks, 4, 0.3, random_covariance(7, 3))  # tasks and inputs do not commute
    rng = np.random.default_rng(8)
    readout = rng.standard_normal((3, 4))
    query, features, label = drawn_tokens(law, 400_000, rng)
    squares = (label - np.einsum("pi,ij,pj->p", query, readout, features)) ** 2
    standard_error = squares.std() / np.sqrt(len(squares))
    assert abs(squares.mean() - exact_error(readout, law)) < 4 * standard_error


@pytest.mark.parametrize("seed", range(3))
def test_a_readout_of_gamma_errs_as_gamma_does(seed: int) -> None:
    inputs, tasks = random_covariance(seed, 4), random_covariance(seed + 10, 4)
    gamma = np.random.default_rng(seed).standard_normal((2, 4, 4))
    law = ContextLaw(NormalTasks(tasks), 7, 0.2, inputs)
    expected = population.loss(population.moments_from(inputs / 4, 7, task_covariance=tasks, noise=0.2), gamma)
    assert_allclose(exact_error(readout_of(gamma), law), expected, rtol=1e-12)


@pytest.mark.parametrize("tasks", [KNOWN_POOL, SphereTasks(4)])
def test_drawn_sequences_have_the_moments_of_tokens(tasks) -> None:
    law = ContextLaw(tasks, 5, 0.2, random_covariance(2, 4))
    drawn, exact, count = drawn_sequences(law, 200_000), feature_moments(law), 200_000
    _, tokens, _ = drawn_tokens(law, count, np.random.default_rng(1))
    for left, right, known in (
        (drawn.features, drawn.features, exact.second),
        (drawn.features, drawn.task, exact.cross),
        (drawn.query, drawn.query, exact.inputs),
    ):
        products = np.einsum("pi,pj->pij", left, right)
        assert np.max(np.abs(products.mean(0) - known) / products.std(0)) < 4.5 / np.sqrt(count)
    third = [np.einsum("pi,pj,p->pij", g[:, :4], g[:, :4], g[:, 4]) for g in (drawn.features, tokens)]
    spread = np.sqrt(third[0].var(0) + third[1].var(0))
    assert np.max(np.abs(third[0].mean(0) - third[1].mean(0)) / spread) < 4.5 / np.sqrt(count)


@pytest.mark.parametrize(
    ("sequences", "ridge", "icl", "idg"),
    [(40, 0.05, 1.1417599561225704, 0.59201222221506), (150, 0.0, 1.2764284898797205, 0.41153909569748975)],
)
def test_known_pool_predictions(sequences: int, ridge: float, icl: float, idg: float) -> None:
    i, j = np.mgrid[:6, :8]
    pool = Pool(np.sqrt(2) * np.cos(1 + 1.7 * i + 0.9 * j + 0.3 * i * j))
    found = pool_errors(ContextLaw(pool, 40, 0.1), sequences, ridge=ridge)
    assert_allclose([found.icl, found.idg], [icl, idg], rtol=1e-12)


@pytest.mark.parametrize(("tau", "ridge"), [(2.0, 0.0), (0.5, 0.1)])
def test_predictions_tend_to_the_proportional_limit_like_one_over_the_dimension(tau: float, ridge: float) -> None:
    limit = errors(Ratios(3, np.inf, tau, 0.2), ridge=ridge)
    for predict in (pool_errors, leverage_errors):
        gaps = []
        for d in (16, 32, 64):
            found = predict(ContextLaw(SphereTasks(d), 3 * d, 0.2), round(tau * d * d), ridge=ridge)
            gaps.append([found.icl / limit.icl - 1, found.idg / limit.idg - 1, found.train - limit.train])
        order = -np.polyfit(np.log([16, 32, 64]), np.log(np.abs(gaps)), 1)[0]
        assert np.all(order[:2] > 0.75), (predict.__name__, order)


# D, sequences, N, K, noise, ridge: means over 80 to 200 drawn fits with K | n tasks of length √D, and standard errors
DRAWN = [
    ((32, 512, 320, 16, 0.01, 1e-5), {"icl": (0.83613, 0.00297), "idg": (0.25572, 0.00178)}),
    (
        (32, 2048, 320, 16, 0.01, 1e-5),
        {"icl": (1.04708, 0.00684), "idg": (0.120512, 0.000464), "train": (0.026942, 0.000148)},
    ),
    (
        (32, 1024, 320, 64, 0.01, 0.1),
        {"icl": (0.429537, 0.001684), "idg": (0.299537, 0.001175), "train": (0.024567, 0.000148)},
    ),
    (
        (24, 288, 24, 6, 0.5, 0.3),
        {"icl": (2.131787, 0.00545), "idg": (1.485041, 0.005070), "train": (0.028106, 0.000328)},
    ),
    (
        (24, 864, 24000, 24, 0.25, 0.05),
        {"icl": (0.787539, 0.003109), "idg": (0.459267, 0.001667), "train": (0.114352, 0.000684)},
    ),
    ((24, 1152, 48, None, 0.0, 0.001), {"icl": (0.756734, 0.003824), "train": (0.159399, 0.001133)}),
]


@pytest.mark.parametrize(("run", "means"), DRAWN)
def test_the_leverage_prediction_meets_means_over_drawn_fits(run: tuple, means: dict) -> None:
    d, sequences, length, tasks, noise, ridge = run
    sphere = SphereTasks(d)
    pools = [Pool(sphere.draw(tasks, np.random.default_rng(seed))) for seed in range(5)] if tasks else [sphere]
    found = [leverage_errors(ContextLaw(pool, length, noise), sequences, ridge=ridge) for pool in pools]
    for name, (mean, standard_error) in means.items():
        predicted = np.array([getattr(one, name) for one in found])
        own = max(predicted.std(ddof=1) / np.sqrt(len(pools)) if tasks else 0.0, 0.004 * mean)  # pools, quadrature
        assert abs(predicted.mean() - mean) < 4 * np.hypot(standard_error, own), name


def drawn_fit(law: ContextLaw, sequences: int, ridge: float, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """The readout that ridge regression finds on drawn tokens, and its training error."""
    d = law.dimension
    query, features, label = drawn_tokens(law, sequences, rng)
    design = np.einsum("pi,pj->pij", query, features).reshape(sequences, -1)
    penalty = sequences / d * ridge
    if sequences < design.shape[1]:
        weights = design.T @ np.linalg.solve(design @ design.T + penalty * np.eye(sequences), label)
    else:
        weights = np.linalg.solve(design.T @ design + penalty * np.eye(design.shape[1]), design.T @ label)
    return weights.reshape(d, d + 1), np.mean((label - design @ weights) ** 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sequences", "ridge", "length", "noise", "structured"),
    [(128, 0.1, 32, 0.3, False), (512, 1e-3, 48, 0.1, False), (128, 0.05, 32, 0.3, True), (600, 0.0, 48, 0.1, True)],
)
def test_the_leverage_prediction_meets_fits_on_the_same_pool(
    sequences: int, ridge: float, length: int, noise: float, structured: bool
) -> None:
    d, rng = 16, np.random.default_rng(4)
    spectrum = np.arange(1, d + 1) ** -0.7
    inputs = np.diag(spectrum / spectrum.mean()) if structured else None
    law = ContextLaw(Pool(SphereTasks(d).draw(8, rng)), length, noise, inputs)
    new = ContextLaw(SphereTasks(d), 2 * length, noise, inputs)
    runs = []
    for _ in range(300):
        readout, train = drawn_fit(law, sequences, ridge, rng)
        runs.append([exact_error(readout, new), exact_error(readout, law), train])
    mean, standard_error = np.mean(runs, axis=0), np.std(runs, axis=0) / np.sqrt(len(runs))
    found = leverage_errors(law, sequences, ridge=ridge, new=new, draws=20_000)
    predicted = np.array([found.icl, found.idg, found.train])
    slack = 0.015 * mean  # what unequal leverage leaves unexplained at D = 16, and the quadrature
    assert np.all(np.abs(predicted - mean) < 4 * standard_error + slack), (
        predicted / mean - 1,
        standard_error / mean,
    )
    plain = pool_errors(law, sequences, ridge=ridge, new=new)
    assert abs(plain.idg / mean[1] - 1) > abs(found.idg / mean[1] - 1)


def test_the_same_question_has_the_same_answer() -> None:
    law = ContextLaw(SphereTasks(6), 12, 0.1)
    assert leverage_errors(law, 50, ridge=0.1, draws=1000) == leverage_errors(law, 50, ridge=0.1, draws=1000)


@pytest.mark.parametrize("predict", [pool_errors, leverage_errors])
def test_turning_inputs_and_pool_together_changes_nothing(predict) -> None:
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((5, 5)))[0]
    vectors, inputs = np.random.default_rng(2).standard_normal((3, 5)), random_covariance(3, 5)
    law = ContextLaw(Pool(vectors), 9, 0.1, inputs)
    turned = ContextLaw(Pool(vectors @ turn.T), 9, 0.1, turn @ inputs @ turn.T)
    here, there = predict(law, 60, ridge=0.02), predict(turned, 60, ridge=0.02)
    rtol = 1e-10 if predict is pool_errors else 0.05  # the quadrature does not turn with them
    assert_allclose([there.icl, there.idg, there.train], [here.icl, here.idg, here.train], rtol=rtol)


@pytest.mark.parametrize("predict", [pool_errors, leverage_errors])
def test_as_many_sequences_as_weights_interpolate_without_bound(predict) -> None:
    law = ContextLaw(Pool(np.random.default_rng(0).standard_normal((3, 5))), 9, 0.1)
    at_peak, below = predict(law, 30), predict(law, 20)
    assert (at_peak.icl, at_peak.idg, at_peak.train) == (np.inf, np.inf, 0)
    assert np.isfinite(below.idg)
    assert below.train == 0


@pytest.mark.parametrize("predict", [pool_errors, leverage_errors])
def test_a_ridge_without_end_answers_nothing(predict) -> None:
    law = ContextLaw(Pool(np.random.default_rng(0).standard_normal((3, 5))), 9, 0.1)
    found, null = predict(law, 30, ridge=np.inf), exact_error(np.zeros((5, 6)), law)
    assert_allclose([found.icl, found.idg], [1.1, null], rtol=1e-12)
    assert_allclose(found.train, null, rtol=1e-12)
    assert found.effective_ridge == np.inf


def test_directions_without_inputs_do_not_matter() -> None:
    vectors = np.random.default_rng(0).standard_normal((3, 5))
    blind = ContextLaw(Pool(vectors), 9, 0.1, np.diag([1.0, 1, 1, 1, 0]))
    for predict in (pool_errors, leverage_errors):
        found = predict(blind, 18)  # fewer than the 4 · 5 weights that data reach
        assert np.isfinite(found.idg)
        assert found.train == 0
        assert predict(blind, 20).idg == np.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda law: Pool(np.zeros((0, 3))), r"vectors must have the shape \(K, D\) with at least one task"),
        (lambda law: Pool(np.array([[np.nan, 1.0]])), "vectors must be finite"),
        (lambda law: SphereTasks(0), "dimension must be a whole number >= 1; got 0"),
        (lambda law: NormalTasks(-np.eye(2)), "covariance must be positive semidefinite; got the eigenvalue -1"),
        (lambda law: ContextLaw(law.tasks, 0, 0.1), "context_length must be a whole number >= 1; got 0"),
        (lambda law: ContextLaw(law.tasks, 4, -0.1), "noise must be finite and >= 0; got -0.1"),
        (lambda law: ContextLaw(law.tasks, 4, 0.1, np.eye(2)), "input_covariance must have the shape"),
        (lambda law: ContextLaw(law.tasks, 4, 0.1, np.diag([1, 1, -1])), "input_covariance must be positive semi"),
        (lambda law: ContextLaw(Pool(np.zeros((2, 3))), 4), "labels must vary"),
        (lambda law: exact_error(np.eye(3), law), r"readout must end in shape \(3, 4\), as the law; got \(3, 3\)"),
        (lambda law: pool_errors(law, 0), "sequences must be a whole number >= 1; got 0"),
        (lambda law: pool_errors(law, 5, ridge=-1), "ridge must be >= 0; got -1.0"),
        (lambda law: leverage_errors(law, 5, ridge=np.nan), "ridge must be >= 0; got nan"),
        (lambda law: leverage_errors(law, 5), "law must have at least 5 dimensions; got 3"),
        (
            lambda law: leverage_errors(ContextLaw(SphereTasks(5), 4, 0.1), 5, draws=10),
            "draws must be a whole number >= 1000; got 10",
        ),
        (
            lambda law: pool_errors(law, 5, new=ContextLaw(SphereTasks(2), 4)),
            "new must have the dimension of law, 3; got 2",
        ),
    ],
)
def test_impossible_runs_are_refused_by_name(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(ContextLaw(SphereTasks(3), 4, 0.1))


@pytest.mark.parametrize(("size", "length", "sequences"), [(32, 64, 633), (16, 32, 81), (16, 32, 271), (12, 5, 400)])
def test_a_ridge_that_vanishes_meets_no_ridge_training_errors_included(
    size: int, length: int, sequences: int
) -> None:
    law = ContextLaw(Pool(np.random.default_rng(0).standard_normal((4, size))), length, 0.1)
    for predict in (pool_errors, leverage_errors):
        end, near = predict(law, sequences), predict(law, sequences, ridge=1e-11)
        for ridge in (1e-14, 1e-15, 1e-16, 1e-20, 1e-39):
            found = predict(law, sequences, ridge=ridge)
            first_order = 1e6 * ridge + 1e-13  # steepest next to interpolation, at 271 of 272 sequences
            assert_allclose([found.icl, found.idg], [end.icl, end.idg], rtol=first_order)
            # what is interpolated at λ = 0 has an error of second order in λ
            unit = (ridge / 1e-11) ** 2 if sequences < size * (size + 1) else 1.0
            assert_allclose(found.train / unit, near.train, rtol=1e-5)


@pytest.mark.parametrize(
    ("length", "share", "pool", "training"),
    [(1, 0.5, -79, -100), (8, 0.5, -20, -76), (32, 0.5, -5, -44), (8, 2, -9, 0)],
)
def test_predictions_in_short_contexts_are_off_by_what_their_texts_say(
    length: int, share: float, pool: float, training: float
) -> None:
    size, ridge, runs = 16, 0.1, 40
    law, sequences = ContextLaw(SphereTasks(size), length, 0.1), int(share * size * (size + 1))
    rng, found = np.random.default_rng(11), []
    for _ in range(runs):
        query, features, label = drawn_tokens(law, sequences, rng)
        products = (query[:, :, None] * features[:, None]).reshape(sequences, -1)
        penalty = sequences / size * ridge * np.eye(products.shape[1])
        weights = np.linalg.solve(products.T @ products + penalty, products.T @ label)
        residual = products @ weights - label
        found.append([exact_error(weights.reshape(size, size + 1), law), np.mean(residual**2)])
    mean, spread = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(runs) / np.mean(found, axis=0)
    low, close = pool_errors(law, sequences, ridge=ridge), leverage_errors(law, sequences, ridge=ridge)
    gaps = np.array([[float(one.icl), float(one.train)] for one in (low, close)]) / mean - 1
    assert_allclose(100 * gaps[0], [pool, training], atol=100 * 4 * np.max(spread))
    assert abs(gaps[1, 0]) < (0.06 if length == 1 else 0.03) + 4 * spread[0]
    assert abs(gaps[1, 1]) < 0.1 + 4 * spread[1]
