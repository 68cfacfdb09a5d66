"""What the studies of training dynamics refuse, and the pieces that they share."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab import Regression
from iclab.attention import random_separate
from iclab.studies import STUDIES
from iclab.studies.dynamics.rank_staircase import with_idle_pairs


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (
            "white-drop",
            {"problem": Regression((0.3, 0.2))},
            r"problem.eigenvalues must all be equal; got \(0.3, 0.2\)",
        ),
        (
            "white-drop",
            {"problem": Regression((0.3, 0.3), task_eigenvalues=(1.0, 2.0))},
            "problem.task_eigenvalues must all be equal",
        ),
        ("initial-scale", {"factors": (1.0, 1.0)}, r"factors must increase from 1 or more; got \(1.0, 1.0\)"),
        ("initial-scale", {"factors": (0.5, 1.0)}, "factors must increase from 1 or more"),
        ("context-lengths", {"problem": Regression((0.5, 0.0))}, "problem.eigenvalues must be positive to be tilted"),
        ("in-weight", {"fractions": (1.5,)}, "in_context_fraction must be between 0 and 1; got 1.5"),
        ("in-weight", {"in_weight_task": (1.0,)}, "in_weight_task must be 4 finite numbers"),
        ("abrupt-drop", {"steps": 10**9}, "steps must be at most 100000000; got 1000000000"),
    ],
)
def test_impossible_cases_are_refused_by_the_name_of_the_field(name: str, changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(STUDIES[name].quick, **changes)


def test_lists_of_numbers_are_kept_as_floats() -> None:
    factors = replace(STUDIES["initial-scale"].quick, factors=(np.float64(1), 2.0)).factors
    assert factors == (1.0, 2.0)
    assert {type(factor) for factor in factors} == {float}


def test_idle_pairs_do_not_change_the_layer() -> None:
    layer = random_separate(3, 4, 2, scale=0.5, rng=np.random.default_rng(0))
    wider = with_idle_pairs(layer, 5)
    assert wider.rank == 5
    assert_allclose(wider.gamma(), layer.gamma(), rtol=1e-15)


def test_visible_plateaus_follow_after_each_multiple_of_the_rank() -> None:
    study = STUDIES["rank-staircase"]
    case = replace(study.full, ranks=(1, 3, 8))
    levels = study.theory(replace(case, steps=10), study.start(case, 0))["levels"].loss
    # eigenvalues 8/36 .. 1/36 and N = 31: null loss − Σ λ/a, a = 1 + (1 + 1/λ)/31
    all_levels = [1, 0.81126, 0.64898, 0.51301, 0.40318, 0.31917, 0.26045, 0.22601, 0.21335]
    assert_allclose(levels[0], all_levels, atol=5e-6)
    assert_allclose(np.unique(levels[1])[::-1], np.array(all_levels)[[0, 3, 6, 8]], atol=5e-6)
    assert_allclose(np.unique(levels[2])[::-1], np.array(all_levels)[[0, 8]], atol=5e-6)


def test_tilted_laws_keep_trace_and_order() -> None:
    case = STUDIES["context-lengths"].quick
    white, usual, steep = case.laws()["inputs"]
    assert_allclose(white.eigenvalues, [0.25] * 4, rtol=1e-15)
    assert_allclose(usual.eigenvalues, (0.4, 0.3, 0.2, 0.1), rtol=1e-15)
    assert_allclose(steep.eigenvalues, np.array([16, 9, 4, 1]) / 30, rtol=1e-15)
    assert_allclose(case.laws()["tasks"][0].task_eigenvalues, 4 * np.array([3, 4, 6, 12]) / 25, rtol=1e-15)


def test_few_heads_are_predicted_to_rest_at_small_sets_alone() -> None:
    study = STUDIES["fixed-points"]
    case = replace(study.quick, heads=1, searches=1)
    points = study.theory(case, study.start(case, 0))["points"].loss
    # null loss 1; λ/a with a = 1 + (1 + 1/λ)/31 for λ = .6, .28, .12
    contribution = np.array([0.6, 0.28, 0.12]) / (1 + (1 + 1 / np.array([0.6, 0.28, 0.12])) / 31)
    assert_allclose(points, np.sort([1, *(1 - contribution)]), rtol=1e-12)
