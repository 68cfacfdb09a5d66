"""Forms of one model along a series: its geometry, its index and other files of the same weights."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from iclab.commands.main import main
from iclab.spectra import checkpoints, observe
from iclab.spectra.observation.integrity import Finding
from tests.series import AT, CONFIG, INDEX, SHARDS, State, clean, put, written

FUSED = AT + "attn.c_attn.weight"


def found(root: Path, *kinds: str) -> list[Finding]:
    return [one for one in observe(checkpoints.read(root)).integrity.findings if one.kind in kinds]


def as_bin(path: Path, state: State) -> None:
    torch = pytest.importorskip("torch", reason="the format is PyTorch's")
    torch.save({name: torch.from_numpy(array) for name, array in state.items()}, path)


@pytest.mark.parametrize("entry", [{"n_head": 4}, {"n_head": 1}])
@pytest.mark.parametrize("at", [0, 300, 800])
def test_heads_that_differ_at_one_step_are_named_with_it(entry: dict, at: int, tmp_path: Path) -> None:
    root = written(tmp_path / "run", clean("steady", 0))
    (root / f"step{at}" / "config.json").write_text(json.dumps(CONFIG | entry))
    errors = [one for one in found(root, "config changes") if one.message.startswith("heads ")]
    ((severity, steps, text),) = [(one.severity, one.steps, one.message) for one in errors]
    assert (severity, steps) == ("error", (at,))
    assert f"is {entry['n_head']} at steps {at} and 2 at the others" in text


def test_rotations_that_differ_are_told_and_entries_that_no_head_depends_on_are_not(tmp_path: Path) -> None:
    config = {"model_type": "llama", "num_attention_heads": 2, "hidden_size": 16, "num_hidden_layers": 1}
    rng = np.random.default_rng(0)
    names = [f"model.layers.0.self_attn.{part}_proj.weight" for part in "qkvo"]
    start = {name: rng.standard_normal((16, 16)).astype(np.float32) for name in names}
    for index, step in enumerate((0, 10, 20, 30)):
        folder = tmp_path / f"step{step}"
        folder.mkdir()
        noise = {n: a + 0.01 * index * np.roll(a, index) for n, a in start.items()}
        save_file({n: np.asarray(a, np.float32) for n, a in noise.items()}, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(config | {"transformers_version": f"4.{index}"}))
    assert found(tmp_path, "config changes") == []
    (tmp_path / "step20" / "config.json").write_text(json.dumps(config | {"rope_theta": 500_000.0}))
    (error,) = found(tmp_path, "config changes")
    assert (error.severity, error.steps) == ("error", (20,))
    assert error.message.startswith("rotaries ")


def test_a_stated_config_holds_for_all_steps(tmp_path: Path) -> None:
    root = written(tmp_path / "run", clean("steady", 0))
    (root / "step300" / "config.json").write_text(json.dumps(CONFIG | {"n_head": 4}))
    whole = tmp_path / "config.json"
    whole.write_text(json.dumps(CONFIG))
    words = ["inspect", str(root), "--out", str(tmp_path / "out"), "--strict", "--no-page"]
    assert main(words) == 1
    assert main([*words, "--config", str(whole)]) == 0


def test_an_index_that_points_at_the_wrong_shard_is_a_warning_with_the_tensor(tmp_path: Path) -> None:
    root = written(tmp_path / "run", clean("steady", 0), sharded=True)
    index = root / "step300" / INDEX
    page = json.loads(index.read_text())
    assert page["weight_map"][FUSED] == SHARDS[0]
    index.write_text(json.dumps({"weight_map": page["weight_map"] | {FUSED: SHARDS[1]}}))
    (warning,) = observe(checkpoints.read(root)).integrity.findings
    assert (warning.kind, warning.severity, warning.steps) == ("misplaced tensors", "warning", (300,))
    assert warning.tensors == (FUSED,)


def test_a_tensor_in_two_shards_makes_its_step_unreadable(tmp_path: Path) -> None:
    states = clean("steady", 0)
    root = written(tmp_path / "run", states, sharded=True)
    save_file({FUSED: states[0][FUSED]}, root / "step300" / SHARDS[1])
    (error,) = found(root, "unread checkpoints")
    assert error.steps == (300,)
    assert f"'{FUSED}' is in two" in error.message


def test_other_numbers_in_a_bin_beside_are_named_and_the_same_ones_are_a_note(tmp_path: Path) -> None:
    states = clean("steady", 0)
    root = written(tmp_path / "run", states)
    for step, state in states.items():
        as_bin(root / f"step{step}" / "pytorch_model.bin", states[800] if step == 300 else state)
    note, warning = sorted(found(root, "other weights"), key=lambda one: one.severity)
    assert (warning.severity, warning.steps) == ("warning", (300,))
    assert FUSED in warning.tensors
    for one in (note, warning):
        assert one.message.startswith("'model.safetensors' is read; 'pytorch_model.bin' beside it holds ")
    assert (note.severity, 300 in note.steps) == ("note", False)


def test_the_same_weights_in_fewer_bits_are_the_same(tmp_path: Path) -> None:
    states = clean("steady", 0)
    for step, state in states.items():
        coarse = {n: a.astype(ml_dtypes.bfloat16) for n, a in state.items()}
        save_file(coarse, put(tmp_path / f"step{step}", state, sharded=True) / "model.safetensors")
    (note,) = found(tmp_path, "other weights")
    assert (note.severity, note.steps) == ("note", tuple(states))
    assert "the same numbers" in note.message


def test_a_file_beside_that_cannot_be_read_is_said_and_stops_nothing(tmp_path: Path) -> None:
    root = written(tmp_path / "run", clean("steady", 0))
    (root / "step300" / "pytorch_model.bin").write_bytes(b"PK\x03\x04 no more")
    (note,) = found(root, "other weights")
    assert (note.severity, note.steps) == ("note", (300,))
    assert "is not compared" in note.message


def test_an_adapter_beside_a_model_is_no_other_form_of_it(tmp_path: Path) -> None:
    root = written(tmp_path / "run", clean("steady", 0))
    save_file({"lora": np.ones((4, 4), np.float32)}, root / "step300" / "adapter_model.safetensors")
    assert found(root, "other weights", "unread checkpoints") == []


@pytest.mark.parametrize(("at", "words"), [(300, "and not at 300 in between"), (800, "they are others at 800")])
def test_a_frozen_tensor_names_the_step_at_which_it_differs(at: int, words: str, tmp_path: Path) -> None:
    states = clean("steady", 0)
    for step, state in states.items():
        state["frozen.weight"] = np.asarray(np.arange(64).reshape(8, 8) + (step == at), np.float32)
    texts = [one.message for one in observe(checkpoints.read(written(tmp_path, states))).integrity.findings]
    assert [words in text for text in texts if "frozen.weight" in text] == [True]


def test_other_files_of_weights_in_the_folder_of_a_checkpoint_are_listed(tmp_path: Path) -> None:
    states = clean("steady", 0)
    for step, state in states.items():
        folder = put(tmp_path / f"step{step}", state, sharded=True)
        save_file(state, folder / "consolidated.safetensors")
        (folder / "optimizer.pt").write_bytes(b"no weights")
    series = checkpoints.read(tmp_path)
    assert {one.name for one in series.skipped} == {"consolidated.safetensors"}
    assert observe(series).integrity.findings == ()


@pytest.mark.parametrize("number", [str(2**53), "9" * 400])
def test_a_step_beyond_exact_numbers_is_left_out_and_said(number: str, tmp_path: Path) -> None:
    states = clean("steady", 0)
    root = written(tmp_path / "run", states)
    put(root / f"step{number}", states[800]) if len(number) < 100 else (root / f"step{number[:200]}").mkdir()
    series = checkpoints.read(root)
    assert series.steps == tuple(states)
    assert len(series.skipped) == 1


def test_an_inspection_of_large_steps_ends_with_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    for step, state in clean("steady", 0).items():
        put(tmp_path / "run" / f"step{step + 1}{'0' * 20}", state)
    assert main(["inspect", str(tmp_path / "run"), "--out", str(tmp_path / "out")]) == 2
    assert "must state a step below 2^53" in capsys.readouterr().err
