"""Series of checkpoints as other people's trainers write them."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from safetensors.numpy import save_file

from iclab.spectra import checkpoints
from iclab.spectra.checkpoints.ledger import Ledger, contents
from iclab.spectra.checkpoints.steps import step_of
from iclab.spectra.observation.integrity import examine, record_of

WEIGHTS = {"w": np.arange(6, dtype=np.float32).reshape(2, 3)}


def saved(path: Path, weights: dict[str, np.ndarray] | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(weights or WEIGHTS, path)
    return path


def sharded(folder: Path, shards: dict[str, dict[str, np.ndarray]], *, absent: str = "") -> None:
    """A folder with an index and its shards, one of them left out."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, weights in shards.items():
        if name != absent:
            save_file(weights, folder / name)
    index = {"weight_map": {key: name for name, weights in shards.items() for key in weights}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def raw(path: Path, header: Any, data: bytes = b"") -> Path:
    """A safetensors file with any header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("step9", 9),
        ("step10", 10),
        ("epoch=3-step=400", 400),
        ("epoch=3-step=400.ckpt", 400),
        ("checkpoint-1000", 1000),
        ("global_step500", 500),
        ("iter_0000100", 100),
        ("ckpt_7.pt", 7),
        ("model-300.safetensors", 300),
        ("checkpoint-2-step-30", 30),
        ("Step=12", 12),
        ("final", None),
    ],
)
def test_the_step_is_the_number_after_the_last_word_for_it(name: str, step: int | None) -> None:
    assert step_of(name) == step


@pytest.mark.parametrize("name", ["ckpt_2_5000", "run3-seed4", "step-1-2-3"])
def test_several_numbers_are_refused_with_the_candidates(name: str) -> None:
    with pytest.raises(ValueError, match="could be") as refused:
        step_of(name)
    assert all(number in str(refused.value) for number in name.replace("-", "_").split("_") if number.isdigit())


@pytest.mark.parametrize("name", ["step1.5k", "step10k", "step1e3", "step0.5"])
def test_a_step_with_a_unit_or_a_fraction_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="whole number"):
        step_of(name)


def test_steps_are_ordered_as_numbers_and_unfinished_ones_are_skipped(tmp_path: Path) -> None:
    for name in ("checkpoint-1000", "checkpoint-200", "tmp-checkpoint-300"):
        saved(tmp_path / name / "model.safetensors")
    series = checkpoints.read(tmp_path)
    assert series.steps == (200, 1000)
    (skipped,) = series.skipped
    assert (skipped.name, skipped.reason.split(":")[0]) == ("tmp-checkpoint-300", "unfinished")


def test_every_k_keeps_the_last(tmp_path: Path) -> None:
    for step in range(6):
        saved(tmp_path / f"step{step}.safetensors")
    assert checkpoints.read(tmp_path, every=2).steps == (0, 2, 4, 5)
    assert [checkpoint.label for checkpoint in checkpoints.read(tmp_path)][:2] == [
        "step0.safetensors",
        "step1.safetensors",
    ]
    assert checkpoints.read(tmp_path).nbytes == 6 * (tmp_path / "step0.safetensors").stat().st_size


def test_a_folder_in_two_formats_is_one_checkpoint(tmp_path: Path) -> None:
    saved(tmp_path / "model.safetensors")
    (tmp_path / "pytorch_model.bin").write_bytes(b"never opened")
    (tmp_path / "training_args.bin").write_bytes(b"never opened")
    (tmp_path / "optimizer.pt").write_bytes(b"never opened")
    (checkpoint,) = checkpoints.read(tmp_path)
    assert [file.name for file in checkpoint.files] == ["model.safetensors"]
    assert_array_equal(checkpoint.open().tensors["w"].array(), WEIGHTS["w"])


def test_twin_files_of_one_step_are_read_once(tmp_path: Path) -> None:
    for step in (1, 2):
        saved(tmp_path / f"step{step}.safetensors")
        (tmp_path / f"step{step}.pt").write_bytes(b"never opened")
    series = checkpoints.read(tmp_path)
    assert [file.suffix for checkpoint in series for file in checkpoint.files] == [".safetensors"] * 2


def test_final_weights_beside_a_series_are_listed_as_skipped(tmp_path: Path) -> None:
    saved(tmp_path / "model.safetensors")
    saved(tmp_path / "checkpoint-5" / "model.safetensors")
    saved(tmp_path / "logs" / "notes.safetensors")
    series = checkpoints.read(tmp_path)
    assert series.steps == (5,)
    assert {entry.name for entry in series.skipped} >= {"model.safetensors"}


def test_the_trainers_own_note_gives_a_step_and_is_kept_beside_the_name(tmp_path: Path) -> None:
    saved(tmp_path / "model.safetensors")
    (tmp_path / "trainer_state.json").write_text('{"global_step": 77}')
    assert checkpoints.read(tmp_path).steps == (77,)
    saved(tmp_path / "run" / "checkpoint-5" / "model.safetensors")
    (tmp_path / "run" / "checkpoint-5" / "trainer_state.json").write_text('{"global_step": 3}')
    (checkpoint,) = checkpoints.read(tmp_path / "run")
    assert (checkpoint.step, checkpoint.noted) == (5, 3)


def test_shards_are_one_checkpoint_and_a_missing_one_is_named(tmp_path: Path) -> None:
    shards = {f"model-0000{i}-of-00003.safetensors": {f"w{i}": np.full((2, 2), i, np.float32)} for i in (1, 2, 3)}
    sharded(tmp_path / "whole", shards)
    assert set(checkpoints.read(tmp_path / "whole")[0].open().tensors) == {"w1", "w2", "w3"}
    sharded(tmp_path / "partial", shards, absent="model-00002-of-00003.safetensors")
    with pytest.raises(ValueError, match=r"00002-of-00003.*download"):
        checkpoints.read(tmp_path / "partial")
    (checkpoint,) = checkpoints.read(tmp_path / "partial", allow_partial=True)
    assert checkpoint.missing == ("model-00002-of-00003.safetensors",)
    opened = checkpoint.open()
    assert set(opened.tensors) == {"w1", "w3"}
    assert "00002" in opened.notes[0]
    (tmp_path / "whole" / "model.safetensors.index.json").unlink()
    with pytest.raises(ValueError, match="index"):
        checkpoints.read(tmp_path / "whole")


def test_a_series_read_from_disk_is_judged_by_its_contents(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for step in (100, 200, 300):
        weights = {"a": rng.standard_normal((2, 3)), "b": rng.standard_normal((2, 3))}
        shards = {f"model-0000{i}-of-00002.safetensors": {name: weights[name]} for i, name in ((1, "a"), (2, "b"))}
        sharded(tmp_path / f"checkpoint-{step}", shards)
    first = "model-00001-of-00002.safetensors"
    (tmp_path / "checkpoint-100" / first).write_bytes((tmp_path / "checkpoint-300" / first).read_bytes())
    (tmp_path / "checkpoint-200" / "trainer_state.json").write_text('{"global_step": 150}')
    series = checkpoints.read(tmp_path)
    found = examine([record_of(checkpoint, contents(checkpoint.open())) for checkpoint in series])
    assert found.broken
    assert {(finding.kind, finding.steps) for finding in found.findings} == {
        ("identical tensors", (100, 300)),
        ("rewound steps", (200,)),
    }


def test_a_hub_cache_is_read_by_its_branches(tmp_path: Path) -> None:
    cache = tmp_path / "models--owner--name"
    for step, commit in ((1000, "a" * 40), (20, "b" * 40)):
        blob = saved(cache / "blobs" / commit[:8])
        (cache / "snapshots" / commit).mkdir(parents=True)
        (cache / "snapshots" / commit / "model.safetensors").symlink_to(f"../../blobs/{blob.name}")
        (cache / "refs").mkdir(exist_ok=True)
        (cache / "refs" / f"step{step}").write_text(commit)
    (cache / "refs" / "pr").mkdir()
    for name in ("main", "pr/1"):  # a number, and no step
        (cache / "refs" / name).write_text("a" * 40)
    series = checkpoints.read(cache)
    assert series.steps == (20, 1000)
    assert_array_equal(series[0].open().tensors["w"].array(), WEIGHTS["w"])
    single = checkpoints.read(cache / "snapshots" / ("a" * 40))
    assert_array_equal(single[0].open().tensors["w"].array(), WEIGHTS["w"])


def test_states_in_memory_are_a_series() -> None:
    series = checkpoints.of_states([WEIGHTS, {**WEIGHTS, "count": 3}], steps=[10, 20])
    assert series.steps == (10, 20)
    opened = series[1].open()
    assert_array_equal(opened.tensors["w"].array(), WEIGHTS["w"])
    assert opened.skipped[0].name == "count"
    with pytest.raises(ValueError, match="one entry for each"):
        checkpoints.of_states([WEIGHTS], steps=[1, 2])
    with pytest.raises(ValueError, match="empty"):
        checkpoints.of_states([])
    with pytest.raises(ValueError, match="steps"):
        checkpoints.of_states([WEIGHTS], steps=[-1])


def test_contents_are_remembered_until_a_file_changes(tmp_path: Path) -> None:
    path = saved(tmp_path / "run" / "step1.safetensors")
    ledger = Ledger(tmp_path / "out")
    first = ledger.contents(checkpoints.read(path)[0])
    stamp = path.stat().st_mtime_ns
    saved(path, {"w": 2 * WEIGHTS["w"]})
    os.utime(path, ns=(stamp, stamp))
    changed = ledger.contents(checkpoints.read(path)[0])  # of the same path, size and time
    assert changed["w"].digest != first["w"].digest
    copy = saved(tmp_path / "copy.safetensors")
    os.utime(copy, ns=(stamp, stamp))
    os.replace(copy, path)
    assert ledger.contents(checkpoints.read(path)[0]) == first
    saved(path, {"w": 2 * WEIGHTS["w"]})
    assert ledger.contents(checkpoints.read(path)[0]) == changed
    (page,) = ledger.folder.iterdir()
    for damaged in ("", "[]", "{}", page.read_text().replace('"norm"', '"form"'), page.read_text()[:-5]):
        page.write_text(damaged)
        assert ledger.contents(checkpoints.read(path)[0]) == changed


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda p: p / "absent", "must exist"),
        (lambda p: (p / "model.onnx").write_bytes(b"x") and p / "model.onnx", "Files that are read"),
        (lambda p: p, "there are none"),
        (lambda p: (p / "training_args.bin").write_bytes(b"x") and p / "training_args.bin", "no file of weights"),
    ],
)
def test_what_is_not_read_is_told_what_is(make: Callable[[Path], Path], word: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=word) as refused:
        checkpoints.read(make(tmp_path))
    assert ".safetensors" in str(refused.value)


def test_files_without_steps_are_refused_together_and_skipped_beside_others(tmp_path: Path) -> None:
    saved(tmp_path / "best.safetensors")
    saved(tmp_path / "last.safetensors")
    with pytest.raises(ValueError, match="must state"):
        checkpoints.read(tmp_path)
    saved(tmp_path / "step3.safetensors")
    series = checkpoints.read(tmp_path)
    assert series.steps == (3,)
    assert {entry.name for entry in series.skipped} == {"best.safetensors", "last.safetensors"}


def test_a_config_is_found_beside_the_weights_or_in_the_folder_of_the_series(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    for step in (1, 2):
        saved(tmp_path / f"step{step}" / "model.safetensors")
    (tmp_path / "step2" / "config.json").write_text('{"model_type": "llama"}')
    configs = [checkpoint.open().config["model_type"] for checkpoint in checkpoints.read(tmp_path)]
    assert configs == ["gpt2", "llama"]
    assert checkpoints.of_states([WEIGHTS], config={"model_type": "opt"})[0].open().config["model_type"] == "opt"


def test_distributed_parts_are_skipped_with_the_way_out(tmp_path: Path) -> None:
    saved(tmp_path / "step1" / "model.safetensors")
    (tmp_path / "step2").mkdir()
    (tmp_path / "step2" / "__0_0.distcp").write_bytes(b"x")
    (skipped,) = checkpoints.read(tmp_path).skipped
    assert "torch.distributed.checkpoint" in skipped.reason


def test_several_files_of_weights_in_one_checkpoint_are_not_guessed_between(tmp_path: Path) -> None:
    saved(tmp_path / "step1" / "a.safetensors")
    saved(tmp_path / "step1" / "b.safetensors")
    saved(tmp_path / "step2" / "only.safetensors")
    series = checkpoints.read(tmp_path)
    assert series.steps == (2,)
    assert "several files of weights" in series.skipped[0].reason


def test_other_files_beside_the_weights_of_a_folder_do_not_make_it_a_series(tmp_path: Path) -> None:
    saved(tmp_path / "model.safetensors")
    for name in ("consolidated.00.pth", "export_1_2.bin", "2_Dense/model.safetensors", "vae_1_2/model.safetensors"):
        saved(tmp_path / name)
    series = checkpoints.read(tmp_path)
    assert [file.name for file in series[0].files] == ["model.safetensors"]
    assert len(series.skipped) == 4


def test_a_state_with_names_that_are_no_text_is_skipped_there() -> None:
    opened = checkpoints.of_states([{0: WEIGHTS["w"], "w": WEIGHTS["w"], "fc._packed_params": (1, 2)}])[0].open()
    assert list(opened.tensors) == ["w"]
    assert [entry.reason.split(":")[0] for entry in opened.skipped] == [
        "its name is no text",
        "packed codes of 8 or fewer bits",
    ]
