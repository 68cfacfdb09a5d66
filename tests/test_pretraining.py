"""Fits of drawn pretraining runs: routes against each other, means against reference values, theory and limits."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclab import Pretraining, Ratios
from iclab.problem import ContextLaw, Pool, SphereTasks
from iclab.problem.readouts import exact_error, feature_moments
from iclab.simulation.keys import generators_of, key_of
from iclab.simulation.pretraining import RidgeSolver, chosen_route, fit, fit_each, sequences
from iclab.simulation.pretraining import costs as ridge_costs
from iclab.simulation.pretraining import routes as ridge_routes
from iclab.theory.finite_size import leverage_errors
from iclab.theory.generalization import errors

SMALL = Pretraining(dimension=6, context_length=12, sequences=60, tasks=4, noise=0.1)


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize(
    ("tau", "ridge", "routes"),
    [
        (0.5, 1e-5, ("kernel", "plain", "dual")),  # a preconditioned solution has the residual, not the digits
        (0.5, 0.1, ("kernel", "plain", "preconditioned", "dual")),
        (0.5, 0.0, ("kernel", "plain", "dual")),
        (2.0, 1e-5, ("kernel", "plain", "preconditioned")),
        (2.0, 0.1, ("kernel", "plain", "preconditioned", "dual")),
        (2.0, 0.0, ("plain", "preconditioned")),
    ],
)
def test_all_routes_find_the_readout_of_the_singular_values(tau: float, ridge: float, routes: tuple) -> None:
    run = Pretraining.of(Ratios(10, 0.5, tau, 0.01), 14)
    settings: dict[str, Any] = {"ridge": ridge, "key": key_of(1)}
    witness = fit(run, solver=RidgeSolver("direct", tolerance=1e-12), **settings)
    for route in routes:
        found = fit(run, solver=RidgeSolver(route, tolerance=1e-12), **settings)
        assert relative(found.readout, witness.readout) < 1e-10, route  # of a condition of 1e6 at ridge 1e-5
        assert_allclose(found.train, witness.train, rtol=1e-7, atol=1e-20)  # below interpolation it is tiny


@pytest.mark.parametrize(
    ("sequences", "route"),
    [(20, "kernel"), (20, "dual"), (38, "preconditioned"), (300, "preconditioned"), (300, "auto")],
)
def test_one_task_without_noise_is_fitted_by_the_solution_of_least_norm(sequences: int, route: str) -> None:
    run = Pretraining(6, 50, sequences, 1, 0.0)  # Σ y² = wᵀ Σ y x: 36 weights tell apart, not 42
    settings: dict[str, Any] = {"ridge": 0.0, "key": key_of(1)}
    witness, found = (fit(run, solver=RidgeSolver(one, tolerance=1e-12), **settings) for one in ("direct", route))
    assert relative(found.readout, witness.readout) < 1e-9
    assert_allclose(found.errors().icl, witness.errors().icl, rtol=1e-9)
    along = np.append(witness.tasks.vectors[0] / 6, -1.0)
    assert np.abs(found.readout @ along).max() < 1e-9 * np.abs(found.readout).max()  # no feature ever is along it


@pytest.mark.parametrize("route", ridge_costs.ROUTES)
@pytest.mark.parametrize("square", [2.0**-10, 2.0**10])
def test_inputs_in_other_units_lead_to_the_same_errors_in_other_units(route: str, square: float) -> None:
    # x -> a x makes y -> a y and g -> a² g: the readout falls by a², at a ridge a⁶ times as large
    changed = replace(SMALL, noise=SMALL.noise * square)
    scaled: dict[str, Any] = {"ridge": 1e-3 * square**3, "input_eigenvalues": np.full(6, square)}
    first = fit(SMALL, ridge=1e-3, solver=RidgeSolver(route, tolerance=1e-12), key=key_of(1))
    found = fit(changed, solver=RidgeSolver(route, tolerance=1e-12), key=key_of(1), **scaled)
    assert_allclose(found.readout * square, first.readout, rtol=1e-9, atol=1e-9)
    assert_allclose(found.errors().icl / square, first.errors().icl, rtol=1e-9)


def test_a_ridge_is_small_or_large_beside_the_curvature_of_the_data() -> None:
    loud = Pretraining(6, 12, 20, 4, noise=1e8)  # squares of labels of 1e8: a ridge of 1 is next to none
    settings: dict[str, Any] = {"ridge": 1.0, "key": key_of(3)}
    witness, found = (fit(loud, solver=RidgeSolver(route), **settings) for route in ("direct", "auto"))
    assert relative(found.readout, witness.readout) < 1e-6
    with pytest.raises(ValueError, match="at a ridge of 1, too small to lead it to the solution of least norm"):
        chosen_route(loud, ridge=1.0, solver=RidgeSolver("preconditioned"))
    assert chosen_route(loud, ridge=1e16, solver=RidgeSolver("preconditioned")).route == "preconditioned"


def test_a_small_residual_that_tells_too_little_is_refused() -> None:
    run = Pretraining(14, 14_000, 392, 1, 1e-6)  # the plain route stops at two thirds of the error on new tasks
    settings: dict[str, Any] = {"ridge": 0.0, "key": key_of(0)}
    with pytest.raises(ArithmeticError, match="route plain leaves the readout open at a tolerance of 1e-08"):
        fit(run, solver=RidgeSolver("plain"), **settings)
    witness, found = (fit(run, solver=RidgeSolver(route), **settings) for route in ("direct", "auto"))
    # a residual of 1e-8 where curvatures differ by 1e9: digits are left, the two thirds are not
    assert_allclose(found.errors().icl, witness.errors().icl, rtol=1e-4)


def test_features_that_rounding_alone_tells_apart_are_refused_by_the_kernel_route() -> None:
    with pytest.raises(ArithmeticError, match="route kernel found features that depend on each other to rounding"):
        fit(
            replace(SMALL, sequences=40, tasks=1, noise=1e-30), ridge=0.0, solver=RidgeSolver("kernel"), key=key_of(0)
        )


def mean_errors(run: Pretraining, ridge: float, draws: int, **settings) -> tuple[dict, dict]:
    """Means over draws and their standard errors."""
    fits = fit_each(run, ridge=ridge, keys=jax.random.split(key_of(7), draws), **settings)
    table = np.array([[e.icl, e.idg, e.train] for e in (found.errors() for found in fits)])
    names = ("icl", "idg", "train")
    error = table.std(axis=0, ddof=1) / np.sqrt(draws)
    return dict(zip(names, table.mean(axis=0), strict=True)), dict(zip(names, error, strict=True))


# D, N, n, K, noise, ridge: means over 80 to 200 draws of another sampler and solver, and their standard errors
KNOWN = [
    (
        Pretraining(24, 24, 288, 6, 0.5),
        0.3,
        {"icl": (2.131787, 0.005450), "idg": (1.485041, 0.005070), "train": (0.028106, 0.000328)},
    ),
    (
        Pretraining(24, 24000, 864, 24, 0.25),
        0.05,
        {"icl": (0.787539, 0.003109), "idg": (0.459267, 0.001667), "train": (0.114352, 0.000684)},
    ),
    (
        Pretraining(24, 48, 1152, None, 0.0),
        0.001,
        {"icl": (0.756734, 0.003824), "idg": (0.756734, 0.003824), "train": (0.159399, 0.001133)},
    ),
    (
        Pretraining(32, 320, 512, 16, 0.01),
        1e-5,
        {"icl": (0.836130, 0.002965), "idg": (0.255725, 0.001780)},
    ),
    (
        Pretraining(32, 320, 2048, 16, 0.01),
        1e-5,
        {"icl": (1.047077, 0.006837), "idg": (0.120512, 0.000464), "train": (0.026942, 0.000148)},
    ),
    (
        Pretraining(32, 320, 1024, 64, 0.01),
        0.1,
        {"icl": (0.429537, 0.001684), "idg": (0.299537, 0.001175), "train": (0.024567, 0.000148)},
    ),
]


SLOW = [pytest.param(*case, marks=pytest.mark.slow) for case in KNOWN[1:]]


@pytest.mark.parametrize(("run", "ridge", "known"), [KNOWN[0], *SLOW])
def test_means_over_draws_are_the_known_ones(run: Pretraining, ridge: float, known: dict) -> None:
    mean, error = mean_errors(run, ridge, 80)
    for name, (value, standard_error) in known.items():
        assert abs(mean[name] - value) < 4 * np.hypot(standard_error, error[name]), name


def test_a_key_draws_the_same_again_and_another_key_another_run() -> None:
    first, again, other = (fit(SMALL, ridge=0.1, key=key_of(seed)) for seed in (2, 2, 3))
    assert_array_equal(first.readout, again.readout)
    assert not np.any(first.readout == other.readout)
    apart, beside = fit_each(SMALL, ridge=0.1, keys=jax.random.split(key_of(4), 2))
    assert_array_equal(beside.readout, fit(SMALL, ridge=0.1, key=jax.random.split(key_of(4), 2)[1]).readout)
    assert not np.any(apart.tasks.vectors == beside.tasks.vectors)


def test_what_has_not_converged_is_refused() -> None:
    with pytest.raises(ArithmeticError, match="route plain ended after 3 of 3 iterations at a residual"):
        fit(SMALL, ridge=0.1, solver=RidgeSolver("plain", iterations=3), key=key_of(2))


@pytest.mark.parametrize(
    "route", [pytest.param("direct", marks=pytest.mark.slow), "kernel", "plain", "preconditioned", "dual"]
)
def test_arrays_of_jax_with_rows_of_zeros_lead_to_the_readout_of_numpy(route: str) -> None:
    law, (rng,) = sequences.sequence_law(SMALL, None, None), generators_of(key_of(2)[None])
    parts = sequences.empty_parts(SMALL, "float64")
    sequences.draw_parts(rng, sequences.drawn_pool(rng, law, SMALL), law, SMALL, out=parts)
    with jax.enable_x64(True):
        placed = sequences.on_device(parts, 100)
        assert [len(part.target) for part in placed] == [60, 40]
        assert all(isinstance(array, jax.Array) for part in placed for array in part)
        (expected, _), (found, _) = (
            ridge_routes.solve(route, data, 60, 0.1, tolerance=1e-13, most=1000) for data in (parts, placed)
        )
        assert_allclose(np.asarray(found), expected, rtol=1e-10, atol=1e-12)
        residual, train = ridge_routes.check(placed, 60, 0.1, found)
        assert residual < 1e-12
        assert_allclose(train, ridge_routes.check(parts, 60, 0.1, expected).train, rtol=1e-10)


def test_a_pool_is_normalized_and_errors_are_those_of_its_law() -> None:
    found = fit(SMALL, ridge=0.1, key=key_of(2))
    assert_allclose(np.linalg.norm(found.tasks.vectors, axis=1), np.sqrt(6), rtol=1e-14)
    known, new = (ContextLaw(tasks, 12, 0.1) for tasks in (Pool(found.tasks.vectors), SphereTasks(6)))
    own = found.errors()
    assert (own.icl, own.idg) == (exact_error(found.readout, new), exact_error(found.readout, known))
    shifted = ContextLaw(SphereTasks(6), 50, 0.1)
    assert found.errors(shifted).icl == exact_error(found.readout, shifted)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("normalized", "balanced", "tasks"), [(False, False, 30), (True, True, None), (False, True, None)]
)
def test_many_sequences_lead_to_the_best_readout_of_their_law(
    normalized: bool, balanced: bool, tasks: int | None
) -> None:
    inputs, spread = np.linspace(0.4, 1.6, 6), np.linspace(1.8, 0.2, 6)
    run = Pretraining(6, 12, 120_000, tasks, 0.1, normalized=normalized, balanced=balanced)
    found = fit(run, ridge=0.0, input_eigenvalues=inputs, task_eigenvalues=spread, key=key_of(3))
    moments = feature_moments(found.law)
    best = np.linalg.solve(moments.second, moments.cross).T
    least = exact_error(best, found.law)
    assert abs(found.train - least) < 5 * np.sqrt(2 / 120_000) * 2 * least  # squares of labels have heavy tails
    excess = exact_error(found.readout, found.law) - least
    assert 0 < excess < 3 * least * 42 / 120_000  # as many weights over as many sequences


@pytest.mark.parametrize("route", ridge_costs.ROUTES)
def test_single_precision_finds_the_readout_to_its_own_digits(route: str) -> None:
    settings: dict[str, Any] = {"ridge": 0.1, "key": key_of(1)}
    found = fit(SMALL, solver=RidgeSolver(route, precision="float32", tolerance=1e-5), **settings)
    witness = fit(SMALL, solver=RidgeSolver(route), **settings)
    assert 1e-9 < relative(found.readout, witness.readout) < 1e-3  # of the same draw
    assert found.residual < 1e-4


ROWS = [  # τ, α, κ, ρ, λ
    (Ratios(10, 0.5, 0.5, 0.01), 1e-5),
    (Ratios(10, 0.5, 2.0, 0.01), 1e-5),
    (Ratios(1, 2.0, 2.0, 0.1), 1e-3),
    (Ratios(1, 0.25, 0.5, 0.5), 0.3),
    (Ratios(20, 1.0, 1.5, 0.25), 0.05),
]


@pytest.mark.slow
@pytest.mark.parametrize(("ratios", "ridge"), ROWS)
def test_errors_extrapolated_in_one_over_the_dimension_are_those_of_the_limit(ratios: Ratios, ridge: float) -> None:
    limit, sizes = errors(ratios, ridge=ridge), np.array([32, 64, 128])
    table = [
        mean_errors(Pretraining.of(ratios, d), ridge, draws) for d, draws in zip(sizes, (120, 40, 12), strict=True)
    ]
    for name in ("icl", "idg"):
        mean, error = (np.array([part[side][name] for part in table]) for side in (0, 1))
        design = np.column_stack([np.ones(3), 1 / sizes]) / error[:, None]
        covariance = np.linalg.inv(design.T @ design)
        found = covariance @ design.T @ (mean / error)
        assert abs(found[0] - getattr(limit, name)) < 4 * np.sqrt(covariance[0, 0]), name


@pytest.mark.slow
@pytest.mark.parametrize(("ratios", "ridge"), [ROWS[1], ROWS[2], ROWS[4]])
def test_the_leverage_prediction_meets_fits_beyond_interpolation(ratios: Ratios, ridge: float) -> None:
    fits = fit_each(Pretraining.of(ratios, 32), ridge=ridge, keys=jax.random.split(key_of(11), 60))
    found = [one.errors() for one in fits]
    predicted = [leverage_errors(one.law, one.sequences, ridge=ridge) for one in fits[:15]]
    for name in ("icl", "idg"):
        drawn, told = (np.array([getattr(one, name) for one in part]) for part in (found, predicted))
        error = np.hypot(drawn.std(ddof=1) / np.sqrt(60), told.std(ddof=1) / np.sqrt(15))
        assert abs(told.mean() / drawn.mean() - 1) < 0.015 + 3 * error / drawn.mean(), name


def test_the_route_is_chosen_by_size_and_the_choice_is_explained() -> None:
    many, few = (Pretraining.of(Ratios(10, 0.5, tau, 0.01), 64) for tau in (2.0, 0.5))
    assert chosen_route(many, ridge=1e-5).route == "preconditioned"
    assert chosen_route(few, ridge=0.0, solver=RidgeSolver(memory=2e7)).route == "dual"
    assert chosen_route(few, ridge=1e-5, solver=RidgeSolver(memory=2e7)).route == "plain"
    near = chosen_route(Pretraining.of(Ratios(10, 0.5, 1.0, 0.01), 32), ridge=1e-9)
    assert near.route == "kernel"  # thousands of iterations otherwise
    assert "it takes the least time" in near.why
    large = chosen_route(Pretraining.of(Ratios(10, 0.5, 1.5, 0.01), 400), ridge=1e-5)
    assert 2.2e9 < large.bytes < 2.5e9  # two numbers of 8 + 4 bytes for each of 240000 · 401
    assert chosen_route(many, ridge=1e-5, solver=RidgeSolver("direct")).why == "it was asked for"


@pytest.mark.parametrize(("route", "largest"), [("preconditioned", 548), ("direct", 102)])
def test_eight_gigabytes_hold_what_the_page_on_one_laptop_says(route: str, largest: int) -> None:
    fits, beyond = (Pretraining(d, 10 * d, 2 * d * d, d // 2, 0.01, balanced=False) for d in (largest, largest + 1))
    assert chosen_route(fits, ridge=1e-5, solver=RidgeSolver(route, memory=8e9)).bytes <= 8e9
    with pytest.raises(ValueError, match=f"largest dimension that fits at these ratios is {largest}"):
        chosen_route(beyond, ridge=1e-5, solver=RidgeSolver(route, memory=8e9))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ridge": -1.0}, "ridge must be finite and >= 0; got -1"),
        ({"input_eigenvalues": (1.0, 2.0)}, "input_eigenvalues must be 6 numbers"),
        ({"task_eigenvalues": np.full(6, np.nan)}, "task_eigenvalues must be finite and >= 0"),
        (
            {"solver": RidgeSolver("kernel"), "ridge": 0.0},
            "route must not be kernel for more sequences, 60, than weights, 42, at a ridge of 0",
        ),
        ({"key": np.zeros(2)}, "key must be one key made by jax.random.key or simulation.keys.key_of; got ndarray"),
    ],
)
def test_impossible_fits_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(SMALL, **({"ridge": 0.1, "key": key_of(0)} | settings))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tolerance": 0.0}, "tolerance must be finite and > 0"),
        ({"tolerance": 1e-15}, "tolerance must be at least 1.1e-14, which float64 can reach"),
        ({"tolerance": 1e-8, "precision": "float32"}, "tolerance must be at least 6.0e-06, which float32 can reach"),
        ({"precision": "float16"}, "precision must be one of float64, float32"),
        ({"route": "fast"}, "route must be one of auto, direct, kernel, plain, preconditioned, dual; got 'fast'"),
        ({"memory": 1e3}, "The largest dimension that fits at these ratios is 0"),
        ({"pad_to": replace(SMALL, sequences=40)}, "pad_to must hold the sequences and tasks"),
        ({"iterations": 0}, "iterations must be a whole number >= 1"),
    ],
)
def test_impossible_solvers_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(SMALL, ridge=0.1, solver=RidgeSolver(**settings), key=key_of(0))


def test_a_preconditioned_fit_is_refused_where_it_would_find_another_solution() -> None:
    with pytest.raises(ValueError, match="too small to lead it to the solution of least norm"):
        fit(replace(SMALL, sequences=20), ridge=0.0, solver=RidgeSolver("preconditioned"), key=key_of(0))


def test_too_little_memory_is_refused_with_the_dimension_that_fits() -> None:
    run = Pretraining.of(Ratios(10, 0.5, 2.0, 0.01), 800)
    with pytest.raises(
        ValueError, match=r"memory must hold 24\.\d GB for route preconditioned at dimension 800; got 8 GB"
    ):
        chosen_route(run, ridge=1e-5, solver=RidgeSolver(memory=8e9))
