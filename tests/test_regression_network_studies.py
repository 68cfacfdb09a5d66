"""Studies of networks that regress in context: their networks and sets, their claims, the cases they refuse."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

from iclab.claims import Bounded, CrossesBetween, PeaksWhereFitEnds, RisesAndFalls, Verdict, WhereKnown
from iclab.commands.main import main
from iclab.simulation.keys import key_of
from iclab.simulation.networks import apply, initial
from iclab.simulation.networks.linear import LinearAttention
from iclab.simulation.networks.regression_runs import FirstSequences
from iclab.simulation.sequences import RegressionContexts
from iclab.studies import STUDIES
from iclab.studies.networks import transformer_double_descent
from iclab.studies.networks.transformer_double_descent import Pretrained
from iclab.testing import check_study

NAMES = ("transformer-double-descent", "transformer-task-diversity", "regression-training")
TINY = {
    "transformer-double-descent": {"linear": Pretrained((2,), (1.0, 2.0), 0.01, 3), "tested": 20},
    "transformer-task-diversity": {
        "tasks": (2, 3), "context_length": 2, "width": 4, "heads": 1, "layers": 1, "batch": 2, "steps": 101,
        "tested": 10, "pools": 2, "contexts": 2,
    },
    "regression-training": {
        "dimension": 2, "context_length": 2, "width": 4, "heads": 1, "layers": 1, "batch": 2, "steps": (50, 101),
        "tested": 100,
    },
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_studies_of_networks_keep_the_contract_in_tiny_cases(name: str) -> None:
    check_study(STUDIES[name], replace(STUDIES[name].quick, **TINY[name]))


def test_linear_attention_adds_up_what_each_token_says() -> None:
    network = LinearAttention(length=3, features=2, width=2)
    weights = {
        "layers.0.attention.query.weight": np.array([[1.0, 0], [0, 2]]),
        "layers.0.attention.query.bias": np.array([0.0, 1]),
        "layers.0.attention.key.weight": np.array([[1.0, 1], [0, 1]]),
        "layers.0.attention.key.bias": np.array([1.0, 0]),
        "layers.0.attention.value.weight": np.array([[0.0, 1]]),
        "layers.0.attention.value.bias": np.array([0.5]),
    }
    tokens = np.array([[[1.0, 2], [3, -1], [2, 0]]])
    # q = (2, 1); keys (4, 2), (3, −1), (3, 0); values 2.5, −.5, .5: (10·2.5 − 5·.5 + 6·.5)/√2
    assert_allclose(apply(network, weights, tokens), [[[25.5 / np.sqrt(2)]]], rtol=1e-6)
    assert {name: part.shape for name, part in initial(network, key=key_of(0)).items()} == {
        name: part.shape for name, part in weights.items()
    }


def test_small_sets_are_the_beginnings_of_large_ones() -> None:
    law = RegressionContexts(2, 3, 0.1, batch_size=4, form="paper")
    few = FirstSequences(law, 4, 9)
    many = FirstSequences(replace(law, batch_size=9), 9, 9)
    first, every = few.fixed(key_of(2))[1], many.fixed(key_of(2))[1]
    assert_array_equal(first.tokens, every.tokens[:4])
    assert_array_equal(few.batch(few.fixed(key_of(2)), key_of(0)).target, every.target[:4])
    with pytest.raises(ValueError, match="sequences must be at most those drawn, 9; got 10"):
        FirstSequences(law, 10, 9)


def runs(icl: list[float], train: list[float]) -> xr.DataTree:
    """Errors of three seeds that differ by rounding."""
    group = {
        name: (("seed", "dimension", "tau"), np.array([[values]] * 3) * (1 + 1e-9 * np.arange(3)[:, None, None]))
        for name, values in (("icl", icl), ("train", train))
    }
    coordinates = {"seed": [0, 1, 2], "dimension": [8], "tau": [0.5, 1.0, 2.0]}
    return xr.DataTree.from_dict({"/simulation/linear": xr.Dataset(group, coordinates)})


def test_a_peak_is_judged_by_its_distance_from_the_end_of_fitting() -> None:
    claim = PeaksWhereFitEnds("linear", "It peaks.", factor=1.5)
    symmetric = claim.verdict(runs([1, 3, 1], [1e-6, 1e-3, 0.2]))
    assert_allclose(symmetric.value, 1.0, atol=1e-6)  # both at τ = 1
    assert symmetric.outcome == "holds"
    assert_allclose(claim.verdict(runs([3, 1, 2], [1e-6, 1e-3, 0.2])).value, 2.0, rtol=1e-6)
    assert claim.verdict(runs([3, 1, 2], [1e-6, 1e-3, 0.2])).outcome == "does not hold"
    assert claim.verdict(runs([3, 1, 2], [1e-9, 1e-9, 1e-9])).outcome == "open"


@pytest.mark.parametrize(("icl", "value"), [([1, 3, 2], 1.5), ([2, 2.2, 1], 1.1), ([1, 2, 3], 1.0), ([3, 2, 1], 1.0)])
def test_a_rise_and_fall_is_judged_by_its_height_over_both_ends(icl: list[float], value: float) -> None:
    verdict = RisesAndFalls("linear", "It rises and falls.", 1.2).verdict(runs(icl, [0, 0, 0]))
    assert_allclose(verdict.value, value, rtol=1e-6)
    assert verdict.holds == (value >= 1.2)


def test_curves_that_do_not_cross_in_every_seed_are_found() -> None:
    def share(dmmse: list[list[float]]) -> Verdict:
        values = {"dmmse": (("seed", "tasks"), np.array(dmmse)), "ridge": (("seed", "tasks"), np.ones((3, 2)))}
        tree = xr.DataTree.from_dict({"/simulation/far": xr.Dataset(values, {"tasks": [4, 16], "seed": [0, 1, 2]})})
        assert crosses.asked(tree)
        assert not replace(crosses, upper=64).asked(tree)
        return crosses.verdict(tree)

    crosses = CrossesBetween("far/ridge", "far/dmmse", "They cross.", along="tasks", lower=4, upper=16)
    assert share([[0.2, 2], [0.1, 3], [0.3, 2]]).outcome == "holds"
    assert share([[0.2, 2], [1.1, 3], [0.3, 2]]).outcome == "open"


def test_claims_of_groups_that_a_case_has_not_are_not_asked() -> None:
    tree = xr.DataTree.from_dict({"/simulation/there": xr.Dataset({"x": ("seed", [1.0, 1.0])})})
    inner = Bounded("there/x", "It is small.", 2.0)
    assert WhereKnown(inner, "there").asked(tree)
    assert WhereKnown(inner, "there").verdict(tree).outcome == "holds"
    assert not WhereKnown(inner, "bayes").asked(tree)


def test_published_sizes_are_said_to_take_months() -> None:
    study = STUDIES["transformer-double-descent"]
    assert transformer_double_descent.seconds(study.quick) < 60
    assert study.presets["published"].case.linear.dimension == (20, 40, 80)
    assert transformer_double_descent.seconds(study.presets["published"].case) > 30 * 86400


@pytest.mark.slow
def test_published_cases_are_started_by_their_own_flag(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    tiny = ["--linear.dimension", "2", "--linear.tau", "1", "--linear.steps", "2", "--softmax.steps", "1"]
    tiny += ["--softmax.dimension", "2", "--softmax.tau", "1", "--share", "1", "--tested", "5", "--seeds", "1"]
    words = ["run", "transformer-double-descent", "--published", *tiny, "--out", str(tmp_path)]
    assert main(words) == 0
    assert "transformer-double-descent: about 0.0 hours on one core" in capsys.readouterr().err
    assert main(words) == 0
    assert "hours" not in capsys.readouterr().err, "nothing is left to do"
    assert main(["run", "ridge", "--published"]) == 2
    assert "'ridge' has none. Use --full." in capsys.readouterr().err


def test_kinds_of_networks_are_left_out_by_name_alone(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    words = ["run", "transformer-double-descent", "--seeds", "0", "--out", str(tmp_path)]
    assert main([*words, "--linear.dimension", "2"]) == 0  # though there are no dimensions of the other kind
    assert main([*words, "--linear.dimension"]) == 2
    assert "dimension must hold at least one value; got none" in capsys.readouterr().err


@pytest.mark.parametrize("dimension", [None, 1.5, (0,), "a"])
def test_dimensions_that_are_no_whole_numbers_are_refused(dimension: Any) -> None:
    with pytest.raises(ValueError, match="dimension must be whole numbers >= 1"):
        Pretrained(dimension, (1.0, 2.0), 0.01, 3)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("transformer-task-diversity", {"tasks": (16,)}, "tasks must increase and be of two pools or more"),
        ("transformer-task-diversity", {"heads": 3}, "heads must divide the width; got 3 heads and width 64"),
        ("regression-training", {"heads": 3}, "heads must divide the width; got 3 heads and width 32"),
        ("regression-training", {"functions": "sparse", "nonzero": 4}, "nonzero must be at most the dimension, 3"),
        ("regression-training", {"context_length": 10**8}, "context_length must be at most 128"),
        ("transformer-task-diversity", {"tasks": (16, 4)}, "tasks must increase"),
        ("regression-training", {"steps": (50, 90)}, "steps must outlast the 100 of the warming up"),
        ("regression-training", {"functions": "two-layer", "tasks": 4}, "tasks must be None for two-layer functions"),
    ],
)
def test_impossible_cases_are_refused_by_the_name_of_the_field(name: str, changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(STUDIES[name].quick, **changes)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [(0, 1, 2), (3, 4, 5)])
def test_errors_of_linear_attention_peak_where_fitting_ends(seeds: tuple[int, ...]) -> None:
    study = STUDIES["transformer-double-descent"]
    result = study.run(seeds=seeds)
    assert study.verdicts(result)[0].holds
    train = result["simulation/linear"].to_dataset().train.median("seed").values[0]
    assert np.all(train[:3] < 1e-3)  # fitted up to τ = 0.9
    assert np.all(train[5:] > 0.05)  # not any more at τ = 2.5


@pytest.mark.slow
def test_few_tasks_make_a_network_answer_like_dmmse() -> None:
    study = STUDIES["transformer-task-diversity"]
    assert all(verdict.holds for verdict in study.verdicts(study.run(seeds=(0, 3))))


@pytest.mark.slow
def test_claims_of_regression_in_training_hold_on_a_fresh_seed() -> None:
    study = STUDIES["regression-training"]
    assert all(verdict.holds for verdict in study.verdicts(study.run(seeds=(3,))))


@pytest.mark.slow
@pytest.mark.parametrize("functions", ["sparse", "two-layer"])
def test_ridge_has_its_exact_error_on_other_functions(functions: str) -> None:
    study = STUDIES["regression-training"]
    case = replace(study.quick, **TINY["regression-training"] | {"functions": functions, "tested": 4000})
    assert study.verdicts(study.run(case, seeds=2))[0].holds
