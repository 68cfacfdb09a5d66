"""Studies that train networks: what they measure, what they count, the cases they refuse, and what they find."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclab.figures import drawn
from iclab.simulation import networks
from iclab.simulation.keys import key_of
from iclab.simulation.networks import optimizers, runs
from iclab.simulation.sequences import PeriodicSequences
from iclab.simulation.sequences.batches import Batch
from iclab.spectra import checkpoints
from iclab.spectra.observation import row_spaces
from iclab.spectra.observation.observing import observe
from iclab.spectra.observation.selection import Selection
from iclab.studies import STUDIES
from iclab.studies.networks import grokking, icl_emergence
from iclab.testing import check_study

SMALL = networks.Transformer(length=8, outputs=6, vocabulary=6, layers=2, width=12, heads=2, positions="shortformer")
TINY = {
    "icl-emergence": {
        "vocabulary": 6, "length": 10, "shortest": 3, "longest": 4, "width": 12, "batch": 4, "steps": 8,
        "control_steps": 12, "every": 2, "tested": 8,
    },
    "grokking": {"modulus": 7, "width": 10, "hidden": 24, "steps": 301},
}  # fmt: skip


def states(count: int) -> list[networks.Parameters]:
    return [networks.initial(SMALL, key=key_of(seed)) for seed in range(count)]


def test_circuits_read_what_an_inspection_of_the_same_states_reads() -> None:
    kept = states(3)
    found = row_spaces.curves([0, 5, 9], row_spaces.head_circuits(kept, 1, heads=2))
    config = {"model_type": "iclab", "heads": 2}
    seen = observe(
        checkpoints.of_states(kept, [0, 5, 9], config=config),
        selection=Selection(layers=[1], measures=("ranks", "overlaps", "distances")),
    )
    for place, role in enumerate(("QK", "OV")):
        heads = [one for one in seen.matrices if one.role == role]
        assert len(heads) == 2

        def mean(measure: str, heads: list = heads) -> np.ndarray:
            return np.mean([head.curves[measure].values for head in heads], axis=0)

        assert_allclose(found.effective_rank[place], mean("effective_rank"))
        assert_allclose(found.marginal_rank[place], mean("marginal_effective_rank"))
        assert_allclose(found.distance[place], mean("distance_to_final"), atol=1e-12)  # zero at the last state
        assert_allclose(found.overlap[place], mean("overlap_with_previous")[1:])
    assert_array_equal(found.later, [5, 9])
    assert found.least_norm == found.norm.min() > 0.5


def test_levels_are_those_of_starts_of_the_network() -> None:
    case = replace(icl_emergence.Case(), width=12, heads=2)
    level = icl_emergence.theory(case)["levels"].effective_rank[0].mean()
    found = row_spaces.curves([*range(20)], row_spaces.head_circuits(states(20), 1, heads=2))
    spread = found.effective_rank[0].std(ddof=1)
    assert_allclose(found.effective_rank[0].mean(), level, atol=4 * spread / np.sqrt(20))  # standard errors


def test_levels_of_wide_matrices_are_known_by_hand() -> None:
    found = grokking.theory(grokking.Case())["levels"]
    assert_allclose(found.distance.mean(axis=1), np.sqrt([1 - 128 / 256, 1 - 53 / 64]))
    assert_allclose(found.overlap.mean(axis=1), [4 / 256, 4 / 64])


def test_norms_are_taken_over_their_own_largest() -> None:
    first, second = ([scale * np.eye(3) for scale in scales] for scales in ((1.0, 4.0, 2.0), (5.0, 1.0, 10.0)))
    assert_allclose(row_spaces.least_norms([first, second]), [0.25, 0.1, 0.5])


@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_figures_show_the_start_of_training_and_say_what_grey_is(name: str) -> None:
    study = STUDIES[name]
    case = replace(study.quick, **TINY[name])
    figure = drawn(study, case, study.run(case, seeds=1))
    figure.draw_without_rendering()
    for axes in figure.axes:
        assert axes.get_xlim()[0] < 0
    assert "random matrices" in figure.legends[0].get_texts()[0].get_text()
    labeled = any(one.get_visible() for one in figure.axes[0].get_xticklabels())
    assert labeled == (name == "icl-emergence")  # no axis is below it there


def test_accuracy_counts_positions_by_their_weight() -> None:
    tokens = np.array([[0, 1, 2], [3, 4, 5]], np.int32)
    best = networks.apply(SMALL, states(1)[0], tokens).argmax(axis=-1)
    target = best + np.array([[0, 1, 0], [1, 0, 1]])  # right at three of six
    weight = np.array([[1, 1, 0], [1, 1, 0]], np.float32)
    found = runs.accuracy(SMALL, states(1)[0], Batch(tokens, target, weight))
    assert_allclose(found, 0.5)  # right at two of the four that count


def test_weights_along_a_run_are_those_of_the_steps_that_are_named() -> None:
    data = PeriodicSequences(6, 8, 3, 4, 4)
    optimizer = optimizers.adamw(0.01, decay=0.1)
    assert optimizers.adamw(0.01, decay=0.1) is optimizer
    first, last = runs.weights_along(SMALL, data, steps=[0, 3], optimizer=optimizer, key=key_of(0))
    whole = networks.train(SMALL, data, steps=3, optimizer=optimizer, key=key_of(0))["parameters"]
    for name, part in whole.items():
        assert_array_equal(part, last[name])
        assert np.any(first[name] != part)


def test_a_perceptron_adds_what_its_embedded_tokens_give_side_by_side() -> None:
    network = networks.Perceptron(7, 5, length=3, width=6, hidden=11)
    weights = networks.initial(network, key=key_of(0))
    tokens = np.random.default_rng(0).integers(0, 7, (9, 3))
    side_by_side = weights["embed.weight"][tokens].reshape(9, -1)
    hidden = np.maximum(side_by_side @ weights["mlp_in.weight"].T, 0)
    answers = networks.apply(network, weights, tokens)
    assert_allclose(answers[:, 0], hidden @ weights["mlp_out.weight"].T, atol=1e-6)  # single precision


def test_a_rise_begins_where_one_layer_cannot_follow_and_ends_where_the_task_is_solved() -> None:
    assert icl_emergence.rise(np.array([0.1, 0.3, 0.41, 0.6, 0.8, 0.95, 0.85, 0.99])) == (2, 5)
    assert icl_emergence.rise(np.array([0.1, 0.3, 0.6])) == (1, 3)  # never solved: one past the end


def test_paces_are_mean_changes_within_the_rise_and_outside() -> None:
    inside, outside = icl_emergence.paces(np.array([[0.0, 1, 4, 3, 3]]), 1, 3)
    assert_array_equal((*inside, *outside), (2, 0.5))  # changes 3, 1 inside; 1, 0 outside
    inside, outside = icl_emergence.paces(np.array([[0.0, 1, 4]]), 0, 2)
    assert_array_equal((*inside, *outside), (2, 0))


def test_both_runs_of_grokking_share_start_and_pairs() -> None:
    case = replace(grokking.Case(), **TINY["grokking"])
    found = grokking.simulation(case, key=key_of(0))
    skill = found["skill"]
    assert (skill.train[0], skill.test[0]) == (skill.control_train[0], skill.control_test[0])
    assert_array_equal(found["network"].effective_rank[:, 0], found["control"].effective_rank[:, 0])
    assert np.any(found["network"].effective_rank[:, 1:] != found["control"].effective_rank[:, 1:])


@pytest.mark.slow
def test_a_transformer_also_says_how_far_its_queries_and_keys_have_faded() -> None:
    case = replace(grokking.Case(), network="transformer", **TINY["grokking"])
    gate = grokking.simulation(case, key=key_of(0))["gate"]
    for norm in (gate.norm, gate.control_norm):
        assert 0 < norm.min() < norm.max() <= 1
    assert gate.norm[-1] != gate.control_norm[-1]


@pytest.mark.parametrize("name", list(TINY))
def test_small_cases_keep_the_contract(name: str) -> None:
    check_study(STUDIES[name], replace(STUDIES[name].quick, **TINY[name]))


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("icl-emergence", {"width": 8}, "width must be above 4 for each head"),
        ("icl-emergence", {"steps": 1010}, "steps must be four or more times every = 50"),
        ("icl-emergence", {"control_steps": 1000}, "control_steps must be above steps = 1000; got 1000"),
        (
            "icl-emergence",
            {"longest": 31},
            "shortest and longest must be in order, from 1 to length - 2 = 30; got 12 and 31",
        ),
        ("icl-emergence", {"heads": 3}, "heads must divide the width"),
        ("grokking", {"network": "transformer", "heads": 1}, "heads must be a whole number >= 2; got 1"),
        ("grokking", {"fraction": 1.0}, r"fraction must be in \(0, 1\)"),
        ("grokking", {"fraction": 1e-9}, r"fraction must be in \(0, 1\), with pairs to train on"),
        ("grokking", {"steps": 200}, "steps must be above 300; got 200"),
        ("grokking", {"hidden": 128}, "hidden must be above the 128 inputs of a neuron"),
        ("grokking", {"width": 53}, "width must be above the modulus 53"),
        ("grokking", {"network": "transformer", "heads": 16}, "width must be above 4 for each head"),
    ],
)
def test_impossible_cases_are_refused_by_the_name_of_the_field(name: str, changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(STUDIES[name].quick, **changes)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(TINY))
def test_claims_hold_for_other_seeds_than_those_of_the_report(name: str) -> None:
    study = STUDIES[name]
    for verdict in study.verdicts(study.run(seeds=[3, 4])):
        assert verdict.holds, (verdict.meaning, verdict.value)
