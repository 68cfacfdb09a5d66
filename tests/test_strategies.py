"""Where a model stands between strategies, the law of shares in training, and its fit."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from iclab.theory import estimators
from iclab.theory.estimators import Cells, StrategyLaw, fitted_law, mixture_shares, share

NETWORK = [0.19, -0.52, -0.41, -2.44, 1.8, 1.14, -0.33, 0.77]
MEMORY = [0.28, -0.55, 0.98, -0.31, -0.33, -0.79, 0.45, -0.1]
INFERENCE = [0.55, -0.61, 0.13, -0.89, 0.84, 0.19, 0.33, 0.41]
LAW = StrategyLaw(gain=0.8, decline=0.6, exponent=0.3)
URNS = {8: 0.1132, 16: 0.0827, 32: 0.0520, 64: 0.0311, 128: 0.0199, 256: 0.0108, 512: 0.0047}


def test_a_model_far_from_both_is_neither_and_its_numbers_are_the_known_ones() -> None:
    found = share(NETWORK, MEMORY, INFERENCE)
    assert found.share == 0.0
    assert_allclose([found.projection, found.off_line], [-0.9553915275994866, 0.22600741335044922], rtol=1e-12)
    assert found.neither
    assert str(found).startswith("neither, rest ")


def test_the_share_is_the_clipped_relative_distance() -> None:
    rng = np.random.default_rng(0)
    for scale in (0.3, 1.0, 3.0):
        n, m, g = scale * rng.standard_normal(50), rng.standard_normal(50), rng.standard_normal(50)
        to_m, to_g, apart = (np.mean((one - other) ** 2) for one, other in ((n, m), (n, g), (m, g)))
        relative = (np.clip((to_g - to_m) / apart, -1, 1) + 1) / 2
        found = share(n, m, g)
        assert_allclose(found.share, relative, atol=1e-14)
        assert found.rest >= found.off_line - 1e-14
        assert_allclose(found.off_line, to_g - found.projection**2 * apart, rtol=1e-10)


def test_a_mix_of_both_has_its_share_and_no_rest() -> None:
    m, g = np.random.default_rng(1).dirichlet(np.ones(4), (2, 6, 5))
    found = share(0.3 * m + 0.7 * g, m, g)
    assert_allclose([found.share, found.rest], [0.3, 0.0], atol=1e-14)
    assert not found.neither
    assert str(found).startswith("share 0.3 of the memorizing strategy, rest ")


def test_the_mixture_recovers_what_was_mixed() -> None:
    first, second = np.random.default_rng(4).dirichlet(np.ones(3), size=(2, 40))
    found = mixture_shares(0.7 * first + 0.3 * second, [first, second])
    assert_allclose(found.weights, [0.7, 0.3], atol=1e-5)
    assert abs(found.rest) < 1e-10
    assert found.largest == 0


def test_the_mixture_has_the_least_divergence() -> None:
    """A constrained minimizer on the same objective, for a model that is no mixture."""
    rng = np.random.default_rng(5)
    model, laws = rng.dirichlet(np.ones(3), 60), rng.dirichlet(np.ones(3), (3, 60))

    def divergence(weights: np.ndarray) -> float:
        return float(np.mean(np.sum(model * np.log(model / np.tensordot(weights, laws, 1)), axis=1)))

    simplex = {"type": "eq", "fun": lambda w: w.sum() - 1}
    best = minimize(divergence, np.ones(3) / 3, bounds=[(1e-6, 1)] * 3, constraints=simplex, options={"ftol": 1e-12})
    found = mixture_shares(model, list(laws))
    assert_allclose(found.weights, best.x, atol=1e-4)
    assert_allclose([found.weights.sum(), found.rest], [1, best.fun], rtol=1e-7)


def test_log_odds_share_and_crossing_of_the_law_are_the_known_ones() -> None:
    given = {"loss_gap": 0.05, "memorizing_bits": 2000}
    assert_allclose(estimators.strategy_log_odds(LAW, 4000, **given), -4.981582503198206, rtol=1e-12)
    assert_allclose(estimators.strategy_share(LAW, 4000, **given), 0.00681641059336713, rtol=1e-12)
    crossing = estimators.crossing_steps(LAW, **given)
    assert_allclose(crossing, 285474.172238038, rtol=1e-12)
    assert_allclose(estimators.strategy_share(LAW, crossing, **given), 0.5, rtol=1e-10)
    assert estimators.crossing_steps(LAW, 0.0, 2000) == np.inf
    assert_allclose(estimators.pool_bits([1, 64], 5), [160, 10240])


def cells(scatter: float, pools: tuple[int, ...] = tuple(URNS)) -> Cells:
    """Runs of the law with the numbers that urns had, each off by a level of its own."""
    rng, steps = np.random.default_rng(3), np.array([400.0, 800, 1600, 2800, 4000])
    law, rows = StrategyLaw(0.88, 0.55, 0.067), []
    for run, tasks in enumerate(pools):
        bits = float(estimators.pool_bits(tasks, 5))
        exact = estimators.strategy_share(law, steps, URNS[tasks], bits)
        level = np.clip(exact + scatter * rng.standard_normal(), 0, 1)
        rows.append(np.column_stack([steps, np.full_like(steps, URNS[tasks]), np.full_like(steps, bits), level,
                                     np.full_like(steps, run)]))  # fmt: skip
    return Cells(*np.concatenate(rows).T)


def test_the_fit_finds_the_law_that_made_the_shares_and_predicts_unseen_pools() -> None:
    found = fitted_law(cells(0.0, (8, 32, 128, 512)))
    assert_allclose([found.law.gain, found.law.decline, found.law.exponent], [0.88, 0.55, 0.067], rtol=1e-3)
    assert found.rmse < 1e-6
    unseen = cells(0.0, (16, 64, 256))
    assert_allclose(found.share(unseen), unseen.share, atol=1e-5)
    assert np.all(np.isnan(found.deviations))


def test_rivals_fit_the_shares_of_the_law_worse() -> None:
    made = cells(0.0)
    left = {family: fitted_law(made, family=family).rmse for family in estimators.FAMILIES}
    assert left["law"] < 1e-6
    assert min(left[family] for family in estimators.FAMILIES if family != "law") > 0.003
    with pytest.raises(ValueError, match="family must be 'law' to have its three parameters; got 'logistic'"):
        _ = fitted_law(made, family="logistic").law


def test_drawing_runs_again_tells_the_scatter_of_the_parameters() -> None:
    """Against fits to fresh runs, each of which is off by a level and a slope of its own."""
    rng, steps = np.random.default_rng(3), np.array([400.0, 1200, 4000])
    bits = np.repeat(estimators.pool_bits(2.0 ** (3 + np.arange(30) % 10), 5), 3)
    n, run = np.tile(steps, 30), np.repeat(np.arange(30), 3)

    def fresh() -> Cells:
        level, slope = rng.normal(0, 0.15, 30)[run], rng.normal(0, 0.05, 30)[run]
        odds = 3 + level + (0.2 + slope) * np.log(n / 1200) - 0.35 * np.log(bits)
        return Cells(n, np.zeros(90), bits, 1 / (1 + np.exp(-odds)), run)

    drawn = [fitted_law(fresh(), family="logistic", draws=150).deviations for _ in range(2)]
    again = np.std([fitted_law(fresh(), family="logistic").parameters for _ in range(60)], axis=0)
    assert_allclose(np.mean(drawn, axis=0) / again, 1, atol=0.35)  # 40 fits: a tenth


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: share([0.1], [0.2, 0.3], [0.4, 0.5]),
            "predictions, memorizing and generalizing must have one shape",
        ),
        (lambda: share([np.nan], [0.2], [0.4]), "predictions must be finite numbers"),
        (lambda: share([0.1], [0.2], [0.2]), "memorizing and generalizing must differ; got the same predictions"),
        (
            lambda: mixture_shares([[0.5, 0.6]], [[[0.5, 0.5]]]),
            "predictions must hold laws, probabilities that add up",
        ),
        (lambda: mixture_shares([[0.5, 0.5]], [[[0.5, 0.7]]]), "strategies[0] must hold laws"),
        (lambda: mixture_shares([[0.5, 0.5]], []), "strategies must be one or more; got none"),
        (lambda: StrategyLaw(0.0, 0.5, 0.1), "gain must be finite and > 0; got 0.0"),
        (lambda: StrategyLaw(1.0, 1.0, 0.1), "decline must be below 1; got 1"),
        (lambda: estimators.pool_bits(0, 5), "tasks must be >= 1; got 0.0"),
        (lambda: fitted_law(cells(0.0, (8, 512))), "runs must be at least 3, as the parameters; got 2. Train more"),
        (
            lambda: fitted_law(cells(0.0, (8, 16, 32))),
            "pools must be spread, the largest at least 8 times the smallest",
        ),
        (lambda: fitted_law(cells(0.0), family="spline"), "family must be"),
        (lambda: Cells([1.0], [0.1], [9.0], [1.2], [0]), "share must be within 0 and 1; got another"),
        (lambda: Cells([0.0], [0.1], [9.0], [0.2], [0]), "steps must be positive; got 0 or less"),
    ],
)
def test_impossible_questions_are_refused_by_name(call, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
