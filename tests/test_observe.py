"""A series of checkpoints, observed: its circuits, their levels, what breaks and what changes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

from iclab.spectra import checkpoints
from iclab.spectra.layouts import from_config, from_mapping
from iclab.spectra.measures import null
from iclab.spectra.observation.dynamics import MatrixSeries, SpectralDynamics
from iclab.spectra.observation.observing import observe
from iclab.spectra.observation.selection import RANKS, Selection
from iclab.spectra.observation.surveying import survey
from tests.same_weights import HEADS, NAMES, SIZES, K, O, Q, V

WIDTH, DIM, COUNT = 12, 4, 10
CONFIG = {"model_type": "llama", "num_attention_heads": 3, "hidden_size": WIDTH}
MLP = from_mapping({"heads": 1, "tensor": [{"match": r"(?P<layer>\d+)\.w", "role": "mlp_in"}]})


def state(along: float = 0.0, layers: int = 2) -> dict[str, np.ndarray]:
    """A small model of the Llama family, on a straight line between two draws."""
    start, end = np.random.default_rng(0), np.random.default_rng(1)

    def weight(*shape: int) -> np.ndarray:
        return ((1 - along) * start.standard_normal(shape) + along * end.standard_normal(shape)).astype(np.float32)

    names = [f"model.layers.{layer}.self_attn.{part}_proj.weight" for layer in range(layers) for part in "qkvo"]
    found = {name: weight(WIDTH, WIDTH) for name in names}
    for layer in range(layers):
        found[f"model.layers.{layer}.mlp.up_proj.weight"] = weight(20, WIDTH)
        found[f"model.layers.{layer}.input_layernorm.weight"] = 1 + 0.1 * weight(WIDTH)
    return {**found, "model.embed_tokens.weight": weight(30, WIDTH)}


def states(count: int = COUNT) -> list[dict[str, np.ndarray]]:
    return [state(index / (count - 1)) for index in range(count)]


def seen(given: list[dict[str, np.ndarray]], **chosen: Any) -> SpectralDynamics:
    series = checkpoints.of_states(given, [10 * index for index in range(len(given))], config=CONFIG)
    return observe(series, selection=Selection(**chosen))


def track(dynamics: SpectralDynamics, role: str, *, layer: int | None = 0, head: int | None = 0) -> MatrixSeries:
    return next(t for t in dynamics.matrices if (t.role, t.layer, t.head) == (role, layer, head))


@pytest.mark.parametrize("family", ["gpt2", "nanogpt", "gpt_neox", "llama", "transformer_lens", "torch", "vit"])
def test_the_same_weights_under_other_names_have_the_same_spectra(family: str) -> None:
    config = {"model_type": family, "partial_rotary_factor": 1.0, **SIZES}
    dynamics = observe(checkpoints.of_states([NAMES[family]], config=config), selection=Selection(measures=RANKS))
    for head in range(HEADS):
        for role, product in (("QK", Q[head].T @ K[head]), ("OV", O[head] @ V[head])):
            known = scipy.linalg.svdvals(product)[:2]
            assert_allclose(track(dynamics, role, head=head).leading[0, :2], known, rtol=1e-12)


def test_values_stand_beside_the_level_of_random_numbers_of_their_shape() -> None:
    dynamics = seen(states())
    curve = track(dynamics, "QK").curves["stable_rank"]
    assert (curve.null, curve.spread) == null.level((WIDTH, DIM, WIDTH), "stable_rank")
    assert track(dynamics, "embed", layer=None, head=None).curves["overlap_with_final"].null == 4 / WIDTH
    assert track(dynamics, "mlp_in", head=None).shape == (20, WIDTH)


def test_the_level_of_the_averaged_circuit_is_that_of_drawn_weights() -> None:
    drawn = []
    for seed in range(300):
        query, key = np.random.default_rng(seed).standard_normal((2, DIM, WIDTH))
        pair = np.sqrt(0.5 * (np.sum(query[:2] ** 2, axis=1) + np.sum(query[2:] ** 2, axis=1)))  # half pairing
        values = scipy.linalg.svdvals(np.tile(pair, 2)[:, None] * key)
        drawn.append(np.sum(values**2) / values[0] ** 2)
    mean, spread = null.averaged_level((WIDTH, DIM, WIDTH), "stable_rank", rotated=DIM)
    assert abs(mean - np.mean(drawn)) < 4 * spread * np.sqrt(1 / 300 + 1 / 256)  # standard errors of both means
    assert_allclose(spread, np.std(drawn), rtol=0.25)  # of 300 and 256 draws


def test_without_rotation_the_averaged_level_is_that_of_the_product() -> None:
    mean, spread = null.averaged_level((40, 8, 30), "participation_ratio", rotated=0)
    assert abs(mean - null.level((40, 8, 30), "participation_ratio")[0]) < 4 * spread * np.sqrt(2 / 256)


def test_rows_have_one_line_for_each_step_and_measure_of_each_matrix() -> None:
    dynamics = seen(states(), measures=("stable_rank",), heads=(1,), layers=(1,))
    rows = list(dynamics.rows())
    assert {(row.layer, row.head) for row in rows} == {(1, 1), (1, None)}
    assert {row.matrix for row in rows} == {"QK", "QK averaged", "OV", "model.layers.1.mlp.up_proj.weight"}
    assert len(rows) == COUNT * 4
    assert {row.status for row in rows} == {"ok"}


def test_a_chosen_head_reads_what_it_reads_among_all() -> None:
    alone, among = seen(states(), heads=(2,)), seen(states())
    for role in ("QK", "QK averaged", "OV"):
        for measure, curve in track(alone, role, head=2).curves.items():
            assert_allclose(curve.values, track(among, role, head=2).curves[measure].values, rtol=1e-9)


def test_overlaps_end_at_one_and_the_first_has_no_checkpoint_before_it() -> None:
    dynamics = seen(states(), leading=2)
    one = track(dynamics, "OV")
    assert_allclose(one.curves["overlap_with_final"].values[-1], 1, rtol=1e-12)
    assert np.isnan(one.curves["overlap_with_previous"].values[0])
    assert np.all(one.curves["overlap_with_previous"].values[1:] > 0)
    row = next(row for row in dynamics.rows() if row.measure == "overlap_with_previous")
    assert (row.status, row.value != row.value) == ("degenerate", True)
    assert "no checkpoint before it" in row.reason


def test_overlap_with_the_final_checkpoint_is_that_of_the_dense_matrices() -> None:
    given = states()
    dense = [
        s["model.layers.0.self_attn.o_proj.weight"][:, :DIM].astype(float)
        @ s["model.layers.0.self_attn.v_proj.weight"][:DIM].astype(float)
        for s in (given[3], given[-1])
    ]
    first, last = (scipy.linalg.svd(matrix)[2][:2] for matrix in dense)
    found = track(seen(given, leading=2), "OV").curves["overlap_with_final"].values[3]
    assert_allclose(found, np.sum((first @ last.T) ** 2) / 2, rtol=1e-9)


def test_one_number_that_is_not_finite_stops_its_head_alone() -> None:
    given = states()
    given[4]["model.layers.0.self_attn.q_proj.weight"][DIM + 1, 2] = np.nan  # head 1
    dynamics = seen(given)
    assert track(dynamics, "QK", head=1).status[4] == "nonfinite"
    assert "first at (2, 1)" in track(dynamics, "QK", head=1).reason[4]
    assert set(track(dynamics, "QK", head=0).status) == {"ok"}
    assert set(track(dynamics, "OV", head=1).status) == {"ok"}
    assert dynamics.integrity.broken


def test_a_final_checkpoint_that_is_not_finite_is_compared_with_nothing() -> None:
    given = states()
    given[-1]["model.layers.0.self_attn.q_proj.weight"][0, 0] = np.inf
    curve = track(seen(given), "QK").curves["overlap_with_final"]
    assert np.all(np.isnan(curve.values))


def test_a_zero_matrix_has_no_rank_and_says_so() -> None:
    given = states()
    given[0]["model.layers.0.self_attn.o_proj.weight"][:] = 0
    dynamics = seen(given)
    row = next(row for row in dynamics.rows() if row.matrix == "OV" and row.measure == "stable_rank")
    assert np.isnan(row.value)
    assert (row.status, row.reason, row.norm) == ("degenerate", "zero matrix", 0.0)


def test_a_matrix_that_has_faded_is_flagged() -> None:
    given = states()
    given[-1]["model.layers.0.self_attn.v_proj.weight"] *= 1e-4
    found = track(seen(given), "OV")
    assert found.status[-1] == "degenerate"
    assert "norm below 0.001 of its largest" in found.reason[-1]


def test_a_large_whole_matrix_is_skipped_with_its_size() -> None:
    dynamics = seen(states(), max_elements=300)
    row = next(row for row in dynamics.rows() if "embed" in row.matrix)
    assert (row.status, row.reason) == ("skipped", "30 × 12 = 360 elements, more than max_elements 300")


def test_folding_changes_the_circuits_and_is_refused_without_a_norm() -> None:
    plain, folded = (track(seen(states(), fold=fold), "QK") for fold in (False, True))
    assert np.all(np.abs(folded.norm / plain.norm - 1) > 1e-4)
    assert "input norm folded in" in folded.notes
    bare = [{name: array for name, array in one.items() if "norm" not in name} for one in states()]
    with pytest.raises(ValueError, match="fold needs the norm in front of attention"):
        seen(bare, fold=True)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"layers": (7,)}, r"layers must be among 0, 1; got 7"),
        ({"heads": (3,)}, "heads must be from 0 to 2; got 3"),
        (
            {"measures": ("rank",)},
            "measures must be among ranks, .*balance, effective_rank.*got 'rank'",
        ),
        ({"measures": ()}, "measures must be among .*got none"),
        ({"leading": 0}, "leading must be a whole number >= 1; got 0"),
        ({"max_elements": -1}, "max_elements must be a whole number >= 1; got -1"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is_read(asked: Mapping, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        seen(states(), **asked)


@pytest.mark.parametrize(
    ("loose", "advice"),
    [
        (
            {"layers": (0,), "measures": ("ranks",)},
            r"Write observe\(series, selection=Selection\(layers=\(0,\), measures=\('ranks',\)\)\)",
        ),
        ({"every": 10}, r"write observe\(series.thinned\(10\)"),
        ({"rank": 3}, "observe.. takes no keyword rank. What to inspect is selection=.*layers, heads, measures"),
    ],
)
def test_loose_keywords_are_refused_with_what_to_write(loose: Mapping, advice: str) -> None:
    series = checkpoints.of_states(states(), config=CONFIG)
    with pytest.raises(TypeError, match=advice):
        observe(series, **loose)
    with pytest.raises(TypeError, match=advice.replace("observe", "survey")):
        survey(series, **loose)


def test_a_thinned_series_keeps_the_last_checkpoint() -> None:
    series = checkpoints.of_states(states(), config=CONFIG)
    assert series.thinned(4).steps == (0, 4, 8, 9)
    assert series.thinned(1) == series
    with pytest.raises(ValueError, match="every must be a whole number >= 1; got 0"):
        series.thinned(0)


def test_a_selection_is_its_measures_by_name_without_repeats() -> None:
    chosen = Selection(layers=[1, 0, 1], measures=["ranks", "stable_rank"])
    assert (chosen.layers, chosen.measures) == ((1, 0), RANKS)
    assert chosen == Selection(layers=(1, 0), measures=RANKS)


def test_sizes_that_do_not_fit_are_refused_before_any_loop() -> None:
    series = checkpoints.of_states([state()], config={**CONFIG, "num_attention_heads": 5, "hidden_size": 10})
    with pytest.raises(ValueError, match="q_proj"):
        survey(series)


def test_a_checkpoint_that_cannot_be_read_leaves_the_others(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    for index, one in enumerate(states()):
        save_file(one, tmp_path / f"step{index}.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "step4.safetensors").write_bytes((tmp_path / "step4.safetensors").read_bytes()[:900])
    dynamics = observe(checkpoints.read(tmp_path))
    assert dynamics.integrity.findings[0].kind == "unread checkpoints"
    found = track(dynamics, "QK")
    assert [status for status in found.status if status != "ok"] == ["skipped"]
    assert "cannot be read" in found.reason[4]


def test_a_layer_that_is_absent_from_one_checkpoint_is_skipped_there() -> None:
    given = states()
    given[2] = {name: array for name, array in given[2].items() if "layers.1" not in name}
    dynamics = seen(given)
    assert track(dynamics, "QK", layer=1).reason[2] == "not in this checkpoint"
    assert set(track(dynamics, "QK", layer=0).status) == {"ok"}


def test_a_shape_that_changes_is_flagged() -> None:
    given = [{"0.w": np.random.default_rng(step).standard_normal((8, 6 + (step > 3)))} for step in range(COUNT)]
    dynamics = observe(checkpoints.of_states(given), MLP, selection=Selection(leading=2))
    one = dynamics.matrices[0]
    assert one.status[:4] == ("degenerate",) * 4
    assert "shape (8, 6) here and (8, 7) later" in one.reason[0]
    assert np.isnan(one.curves["overlap_with_final"].values[0])


def test_a_jump_of_the_spectrum_is_called_a_change_where_it_is() -> None:
    rng, given = np.random.default_rng(0), []
    for step in range(24):
        spike = 12 * np.outer(np.ones(16), np.ones(16)) * (step >= 15)
        given.append({"0.w": rng.standard_normal((16, 16)) + spike})
    dynamics = observe(checkpoints.of_states(given), MLP, selection=Selection(measures=("stable_rank",)))
    assert [(one.measure, one.change.step) for one in dynamics.changes] == [("stable_rank", 15.0)]
    assert dynamics.tested == 1
    assert dynamics.uncertainty == "none from one run"


def test_steps_that_do_not_increase_have_no_change_points() -> None:
    series = checkpoints.of_states([{"0.w": np.eye(4) * k} for k in range(1, 10)], [0, 1, 2, 2, 3, 4, 5, 6, 7])
    assert (
        "no change points: steps do not increase"
        in observe(series, MLP, selection=Selection(measures=("ranks",))).notes
    )


def test_a_wide_embedding_has_its_leading_values_and_says_what_is_left_out() -> None:
    rng = np.random.default_rng(0)
    spiked = rng.standard_normal((1100, 1040)) + 10 * np.outer(rng.standard_normal(1100), rng.standard_normal(1040))
    mapping = from_mapping({"heads": 1, "tensor": [{"match": "e", "role": "embed"}]})
    dynamics = observe(
        checkpoints.of_states([{"e": spiked}]), mapping, selection=Selection(measures=("stable_rank", "nuclear_rank"))
    )
    (one,) = dynamics.matrices
    assert list(one.curves) == ["stable_rank"]
    values = scipy.linalg.svdvals(spiked)
    assert_allclose(one.curves["stable_rank"].values[0], np.sum(values**2) / values[0] ** 2, rtol=1e-6)
    assert "by randomized iteration" in one.notes[0]


def test_distances_end_at_zero_and_are_refused_where_the_row_space_is_all() -> None:
    dynamics = seen(states(), measures=("distances",))
    one = track(dynamics, "OV").curves["distance_to_final"]
    assert one.values[-1] < 1e-7
    assert_allclose(one.null, np.sqrt(1 - DIM / WIDTH), rtol=1e-12)
    whole = track(dynamics, "mlp_in", head=None).curves["distance_to_final"]
    assert np.all(np.isnan(whole.values))
    assert "full row rank" in whole.undefined


def test_the_same_series_is_observed_alike_twice() -> None:
    first, again = ([repr(row) for row in seen(states()).rows()] for _ in range(2))
    assert first == again


def test_values_alone_agree_with_those_found_beside_overlaps() -> None:
    alone, both = seen(states(), measures=("ranks",)), seen(states())
    for one, other in zip(alone.matrices, both.matrices, strict=True):
        for measure, curve in one.curves.items():
            assert_allclose(curve.values, other.curves[measure].values, rtol=1e-9)


def test_the_family_has_to_be_known() -> None:
    with pytest.raises(ValueError, match="the family of the model must be known"):
        observe(checkpoints.of_states([state()]))
    assert observe(checkpoints.of_states([state()]), from_config(CONFIG)).family == "llama"


def test_progress_reaches_its_end() -> None:
    told: list[tuple[int, int]] = []
    series = checkpoints.of_states(states(), config=CONFIG)
    observe(series, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (COUNT * 3, COUNT * 3)  # one pass over contents, one over each of two layers
