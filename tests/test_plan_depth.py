"""`iclab plan` about depth: least layers, their steps, tests on which they are better, their price in context."""

import json
from math import ceil, log

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.commands.main import main
from iclab.planning import depths
from iclab.theory import depth
from iclab.theory.estimators import one_context


def answer(capsys: pytest.CaptureFixture, words: str) -> dict:
    assert main(["plan", *words.split(), "--json"]) == 0
    return json.loads(capsys.readouterr().out)["answer"]


@pytest.mark.parametrize(("alpha", "excess"), [(2.0, 0.05), (4.0, 0.003), (0.5, 0.51), (1.0, 0.06)])
def test_the_least_depth_of_the_limit_is_the_closed_form(
    capsys: pytest.CaptureFixture, alpha: float, excess: float
) -> None:
    known = ceil(1 / excess) - 1 if alpha == 1 else ceil(log(1 + (alpha - 1) / excess) / log(alpha)) - 1
    found = answer(capsys, f"depth --excess {excess} --alpha {alpha}")
    assert found["depth"] == known
    assert found["excess"] <= excess < found["one_less"]
    assert_allclose(found["layers"], depth.white_untied_layers(alpha, known), rtol=1e-9)
    assert_allclose(found["tied"], depth.white_tied_excess(alpha, known), rtol=1e-9)


def test_the_range_of_tests_ends_where_one_layer_less_is_as_good(capsys: pytest.CaptureFixture) -> None:
    found = answer(capsys, "depth --excess 0.1 --alpha 2")
    layers, less = (depth.white_untied_layers(2, one) for one in (found["depth"], found["depth"] - 1))
    shortest, largest = found["lengths"][0], found["scales"][1]
    one, two = (depth.excess(depth.white_limit(2 * shortest), stack) for stack in (layers, less))
    assert_allclose(one, two, rtol=5e-3)  # of twelve halvings
    one, two = (depth.excess(depth.white_limit(2), largest * stack) for stack in (layers, less))
    assert_allclose(one, two, rtol=5e-3)
    assert found["lengths"][1] == "inf" or found["lengths"][1] > 2


def test_noise_asks_for_layers_that_a_search_finds(capsys: pytest.CaptureFixture) -> None:
    found = answer(capsys, "depth --excess 0.3 --alpha 2 --noise 0.5")
    assert found["depth"] == 3
    assert_allclose(found["layers"], [0.35009, 0.78564, 0.78564], atol=2e-3)  # known answer
    assert_allclose(found["ridge"], 0.280776406404, rtol=1e-8)


def test_a_budget_is_split_at_the_least_loss(capsys: pytest.CaptureFixture) -> None:
    found = answer(capsys, "depth-or-context --budget 64 --dimension 4")
    heights = {count: depth.best_excess(depth.wishart(4, 64 // count), count) for count in range(1, 20)}
    assert found["depth"] == min(heights, key=lambda one: heights[one])
    assert_allclose(found["excess"], min(heights.values()), rtol=1e-12)
    assert found["context_length"] == 64 // found["depth"]


def test_the_floor_of_ridge_is_the_bayes_error_by_the_density_of_eigenvalues() -> None:
    known = one_context.finite_ridge_error(4, 8, 0.4) - 0.4  # inputs of variance 1/D, tasks of variance 1: T = 1
    assert_allclose(depth.ridge_excess(depth.wishart(4, 8), noise_ratio=0.4), known, rtol=1e-7)
    assert depth.ridge_excess(depth.wishart(4, 3)) == 0.25


def test_figures_are_written(tmp_path) -> None:
    for words in (
        "depth --excess 0.2 --dimension 4 --context-length 8",
        "depth-or-context --budget 20 --dimension 3",
    ):
        assert main(["plan", *words.split(), "--figure", str(tmp_path / "plan.pdf")]) == 0
        assert (tmp_path / "plan.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "depth --excess 0.4 --alpha 0.5",
            "excess must be above 0.5, the share of directions without examples, 1 − N/D",
        ),
        ("depth --excess 0.28 --alpha 2 --noise 0.5", "excess must be above 0.2808, ridge, the floor of any stack"),
        ("depth --excess 0.2809 --alpha 2 --noise 0.5", "The only proved floor is ridge, 0.2808"),
        ("depth --excess 0 --alpha 2", "excess must be"),
        ("depth --excess 0.2", "dimension and context_length must be given, or alpha alone"),
        ("depth --excess 0.2 --alpha 2 --dimension 3", "dimension and context_length must be given, or alpha alone"),
        ("depth-or-context --budget 0 --dimension 3", "budget must be a whole number >= 1; got 0"),
        ("depth --excess 0.2 --alpha 2 --noise -1", "noise_ratio must be"),
    ],
)
def test_bad_input_is_refused_in_one_line(capsys: pytest.CaptureFixture, words: str, message: str) -> None:
    assert main(["plan", *words.split()]) != 0
    said = capsys.readouterr().err
    assert message in said
    assert len(said.strip().splitlines()) == 1


def test_depths_of_a_split_are_those_of_their_lengths() -> None:
    heights = depths.depth_split_excess(12, np.array([1, 3]), dimension=2)
    known = [depth.best_excess(depth.wishart(2, 12), 1), depth.best_excess(depth.wishart(2, 4), 3)]
    assert_allclose(heights, known, rtol=1e-14)
