"""Entries of a folder of checkpoints: the step and the files of each, and what becomes of those that are none."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iclab.spectra import checkpoints
from iclab.spectra.checkpoints.ledger import Ledger
from iclab.spectra.checkpoints.steps import step_of
from iclab.spectra.observation.integrity import Integrity, examine, record_of
from tests.test_checkpoints import WEIGHTS, raw, saved, sharded

SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def examined(series: checkpoints.Series) -> Integrity:
    opened = [(checkpoint, checkpoint.open()) for checkpoint in series]
    ledger = Ledger(Path("nowhere"))
    kept = [(one, contents, ledger.contents(_without_files(one), contents)) for one, contents in opened]
    return examine([record_of(one, hashed, absent=contents.absent) for one, contents, hashed in kept])


def _without_files(checkpoint: checkpoints.Checkpoint) -> checkpoints.Checkpoint:
    """The checkpoint without files, so that nothing of it is cached."""
    return checkpoints.Checkpoint(checkpoint.step, checkpoint.label, checkpoint.opened)


def run(root: Path, steps: tuple[int, ...] = (10, 20, 30)) -> Path:
    for step in steps:
        saved(root / f"step{step}" / "model.safetensors", {"w": WEIGHTS["w"] + step})
    return root


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("last-v1.ckpt", None), ("last-v12", None), ("best_v2.pt", None), ("v3", None), ("llama-7b", None),
        ("model-1.5b.safetensors", None), ("epoch=1-step=200-v1.ckpt", 200), ("step200-v2", 200), ("dev3.pt", 3),
    ],
)  # fmt: skip
def test_the_number_of_a_version_or_of_a_size_is_no_step(name: str, step: int | None) -> None:
    assert step_of(name) == step


class TestTheStepInsideAFile:
    """Torch files hold the step at which they were written."""

    def saved(self, path: Path, **entries: Any) -> None:
        torch = pytest.importorskip("torch")
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save({"state_dict": {"w": torch.tensor(WEIGHTS["w"])}, **entries}, path)

    def test_it_orders_files_whose_names_have_none(self, tmp_path: Path) -> None:
        names = {"epoch=0-step=100": 100, "epoch=2-step=300": 300, "last-v1": 400}
        for name, step in names.items():
            self.saved(tmp_path / f"{name}.ckpt", global_step=step, epoch=0)
        assert checkpoints.read(tmp_path).steps == (100, 300, 400)

    def test_it_orders_files_whose_names_have_several_numbers(self, tmp_path: Path) -> None:
        for epoch, loss in ((2, 1.75), (10, 1.25), (9, 1.5)):
            self.saved(tmp_path / f"epoch={epoch:02d}-val_loss={loss}.ckpt", global_step=100 * epoch)
        series = checkpoints.read(tmp_path)
        assert [(one.step, one.label[:8]) for one in series] == [
            (200, "epoch=02"),
            (900, "epoch=09"),
            (1000, "epoch=10"),
        ]

    def test_it_goes_before_the_name_and_the_difference_is_said(self, tmp_path: Path) -> None:
        for name, step in ((100, 100), (200, 50), (300, 301)):  # older versions name a file by the step before
            self.saved(tmp_path / f"step={name}.ckpt", global_step=step)
        series = checkpoints.read(tmp_path)
        assert series.steps == (50, 100, 301)
        said = [one for one in examined(series).findings if one.kind == "misnamed checkpoints"]
        assert [one.steps for one in said] == [(50,)]
        assert "named for step 200; it holds step 50" in said[0].message

    def test_a_second_file_of_a_step_without_one_in_its_name_is_left_out(self, tmp_path: Path) -> None:
        for name, step in (("epoch=0-step=100", 100), ("epoch=1-step=200", 200), ("last", 200), ("best", 100)):
            self.saved(tmp_path / f"{name}.ckpt", global_step=step)
        series = checkpoints.read(tmp_path)
        assert [one.label for one in series] == ["epoch=0-step=100.ckpt", "epoch=1-step=200.ckpt"]
        reasons = {one.name: one.reason for one in series.skipped}
        assert reasons["last.ckpt"] == "it holds step 200, as 'epoch=1-step=200.ckpt' does"
        self.saved(tmp_path / "epoch=1-step=200-v1.ckpt", global_step=200)  # a name with a step is no alias
        assert checkpoints.read(tmp_path).steps == (100, 200, 200)

    @pytest.mark.parametrize("value", [np.int64(7), "tensor", 7])
    def test_it_may_be_a_scalar_of_any_library(self, value: Any, tmp_path: Path) -> None:
        torch = pytest.importorskip("torch")
        self.saved(tmp_path / "last.ckpt", step=torch.tensor(7) if value == "tensor" else value)
        assert checkpoints.read(tmp_path / "last.ckpt").steps == (7,)

    @pytest.mark.parametrize("value", [True, -1, 1.5, "7", [7]])
    def test_what_is_no_count_is_no_step(self, value: Any, tmp_path: Path) -> None:
        self.saved(tmp_path / "step5.pt", step=value)
        self.saved(tmp_path / "step6.pt", step=value)
        assert checkpoints.read(tmp_path).steps == (5, 6)


def _half_json(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "gp')


def _half_note(folder: Path) -> None:
    (folder / "trainer_state.json").write_text('{"global_step": 2')


def _empty_index(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text("")


def _one_shard(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / SHARDS[0])


def _link_to_nothing(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to("absent")


def _link_out(folder: Path) -> None:
    outside = folder.parent.parent / "outside.safetensors"
    (folder / "model.safetensors").rename(outside)
    (folder / "model.safetensors").symlink_to(outside)


def _folder_that_leads_out(folder: Path) -> None:
    outside = folder.rename(folder.parent.parent / "outside")
    folder.symlink_to(outside)


def _folder_that_leads_nowhere(folder: Path) -> None:
    folder.rename(folder.parent.parent / "outside")
    folder.symlink_to("absent")


def _cut_short(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-3])


def _empty_weights(folder: Path) -> None:
    saved(folder / "model.safetensors", {"w": np.zeros(0, np.float32)})


@pytest.mark.parametrize(
    "spoil",
    [
        _half_json, _half_note, _empty_index, _one_shard, _link_to_nothing, _link_out, _folder_that_leads_out,
        _folder_that_leads_nowhere, _cut_short, _empty_weights,
    ],
)  # fmt: skip
def test_one_bad_entry_keeps_its_place_and_the_others_are_read(spoil: Any, tmp_path: Path) -> None:
    root = run(tmp_path / "run")
    spoil(root / "step20")
    series = checkpoints.read(root)
    assert series.steps == (10, 20, 30)
    assert [set(series[index].open().tensors) for index in (0, 2)] == [{"w"}] * 2
    with pytest.raises(ValueError, match="must"):
        series[1].open()


def test_where_every_entry_is_bad_the_reason_is_given(tmp_path: Path) -> None:
    root = run(tmp_path / "run")
    for step in (10, 20, 30):
        _one_shard(root / f"step{step}")
    with pytest.raises(ValueError, match=r"shards must come with their index.*written"):
        checkpoints.read(root)


def test_a_bad_entry_of_a_hub_cache_keeps_its_place(tmp_path: Path) -> None:
    cache = tmp_path / "models--owner--name"
    for step, commit in ((1000, "a" * 40), (20, "b" * 40)):
        saved(cache / "snapshots" / commit / "model.safetensors")
        (cache / "refs").mkdir(exist_ok=True)
        (cache / "refs" / f"step{step}").write_text(commit)
    (cache / "refs" / "step30").write_text("../../etc")
    series = checkpoints.read(cache)
    assert series.steps == (20, 30, 1000)
    with pytest.raises(ValueError, match="must name files"):
        series[1].open()


def test_parts_of_zero3_are_no_copies_of_one_another(tmp_path: Path) -> None:
    for step in (0, 100):
        saved(tmp_path / f"checkpoint-{step}" / "model.safetensors", {n: np.zeros(0, np.float32) for n in "abc"})
    for checkpoint in checkpoints.read(tmp_path):
        with pytest.raises(ValueError, match=r"3 of its 3 tensors are empty, .*ZeRO-3; zero_to_fp32\.py joins"):
            checkpoint.open()
    (tmp_path / "checkpoint-200" / "global_step200").mkdir(parents=True)
    (tmp_path / "checkpoint-200" / "global_step200" / "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt").touch()
    (skipped,) = checkpoints.read(tmp_path).skipped
    assert "zero_to_fp32.py" in skipped.reason


def test_a_promise_of_an_index_that_no_shard_holds_is_an_error(tmp_path: Path) -> None:
    for step in (0, 10):
        shards = {name: {f"w{i}": np.full((2, 2), 1 + step + i, np.float32)} for i, name in enumerate(SHARDS)}
        sharded(tmp_path / f"step{step}", shards)
    index = tmp_path / "step10" / "model.safetensors.index.json"
    page = json.loads(index.read_text())
    index.write_text(json.dumps({"weight_map": page["weight_map"] | {"w9": SHARDS[1]}}))
    (error,) = examined(checkpoints.read(tmp_path)).findings
    assert (error.kind, error.severity, error.steps, error.tensors) == ("missing tensors", "error", (10,), ("w9",))


@pytest.mark.parametrize("way", ["other shards", "other files", "whole file", "more tensors"])
def test_all_tensors_under_a_stale_index_are_read_with_a_note(way: str, tmp_path: Path) -> None:
    shards = {name: {f"w{i}": np.full((2, 2), i, np.float32)} for i, name in enumerate(SHARDS)}
    index = {f"w{i}": name for i, name in enumerate(SHARDS)}
    if way == "other shards":
        index = dict(zip(index, SHARDS[::-1], strict=True))
    elif way == "other files":
        index = {name: f"model-0000{i + 1}-of-00003.safetensors" for i, name in enumerate(index)}
    elif way == "more tensors":
        index.pop("w0")
        index["w1"], shards = SHARDS[0], {SHARDS[0]: shards[SHARDS[0]] | shards[SHARDS[1]]}
    sharded(tmp_path, shards)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    if way == "whole file":
        saved(tmp_path / "model.safetensors", {f"w{i}": np.full((2, 2), 5 + i, np.float32) for i in (0, 1)})
    opened = checkpoints.read(tmp_path)[0].open()
    assert set(opened.tensors) == {"w0", "w1"}
    assert opened.absent == ()
    assert "of another save" in opened.notes[0]
    assert opened.tensors["w0"].array()[0, 0] == (5 if way == "whole file" else 0)  # the file that others read


@pytest.mark.parametrize("depth", [0, 1])
def test_distributed_parts_name_their_folder_and_the_remedy(depth: int, tmp_path: Path) -> None:
    root = run(tmp_path / "run")
    place = root / "step40" / "pytorch_model_fsdp_0" if depth else root / "step40"
    place.mkdir(parents=True)
    (place / "__0_0.distcp").touch()
    (skipped,) = checkpoints.read(root).skipped
    assert (skipped.name, "dcp_to_torch_save" in skipped.reason) == ("step40", True)
    assert ("'step40/pytorch_model_fsdp_0'" in skipped.reason) == bool(depth)
    with pytest.raises(ValueError, match="dcp_to_torch_save"):
        checkpoints.read(root / "step40")


def test_a_folder_of_runs_names_them_and_the_way_to_read_one(tmp_path: Path) -> None:
    run(tmp_path / "a")
    run(tmp_path / "b")
    with pytest.raises(ValueError, match=r"a: a folder of 3 checkpoints itself, 'a/step10' the first: give the path"):
        checkpoints.read(tmp_path)


@pytest.mark.parametrize("lost", ["dtype", "shape", "data_offsets"])
def test_a_header_entry_that_lacks_a_part_names_its_tensor(lost: str, tmp_path: Path) -> None:
    entry = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    path = raw(tmp_path / "w.safetensors", {"h.0.w": {k: v for k, v in entry.items() if k != lost}}, bytes(8))
    with pytest.raises(ValueError, match=rf"gives 'h\.0\.w' no {lost}. Save it again"):
        checkpoints.read(path)[0].open()


def test_a_copy_that_keeps_size_and_time_is_read_again(tmp_path: Path) -> None:
    path, ledger = saved(tmp_path / "run" / "step1.safetensors"), Ledger(tmp_path / "out")
    first, stamp = ledger.contents(checkpoints.read(path)[0]), path.stat()
    other = saved(tmp_path / "other.safetensors", {"w": 2 * WEIGHTS["w"]})
    for replaced in (False, True):
        if replaced:
            os.replace(other, path)  # another file under the name
        else:
            path.write_bytes(other.read_bytes())  # the same file with other bytes
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        assert path.stat().st_size == stamp.st_size
        assert path.stat().st_mtime_ns == stamp.st_mtime_ns
        assert ledger.contents(checkpoints.read(path)[0])["w"].digest != first["w"].digest
