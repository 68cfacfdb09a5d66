"""Files and folders that somebody else made: read, or refused with the reason, and never run."""

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from iclab.spectra import checkpoints
from iclab.spectra.checkpoints import names, safetensors_file
from iclab.spectra.checkpoints.ledger import contents
from tests.test_checkpoints import WEIGHTS, raw, saved, sharded

NASTY = [
    "<img src=x onerror=alert(1)>.weight",
    "=cmd()",
    "a[/b]c",
    r"$\frac{1$",
    "\x1b]0;x\x07",
    "w\u202egnp.exe",
    "../../etc/passwd",
]


def opened(path: Path, **options: Any) -> checkpoints.Contents:
    return checkpoints.read(path, **options)[0].open()


@pytest.mark.parametrize("shard", ["../w.safetensors", "/etc/passwd", "a/b.safetensors", "", "..", "a\\b", 3])
def test_an_index_names_files_of_its_own_folder_alone(shard: Any, tmp_path: Path) -> None:
    saved(tmp_path / "w.safetensors")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": shard}}))
    with pytest.raises(ValueError, match="its own folder"):
        checkpoints.read(tmp_path / "run")


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"weight_map": {}}', '{"weight_map": 3}', "[" * 100_000])
def test_an_index_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(ValueError, match=r"JSON|weight_map"):
        checkpoints.read(tmp_path)


def test_shards_that_share_a_tensor_are_refused(tmp_path: Path) -> None:
    sharded(tmp_path, {"a.safetensors": WEIGHTS, "b.safetensors": {**WEIGHTS, "v": WEIGHTS["w"]}})
    index = {"weight_map": {"w": "a.safetensors", "v": "b.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match="share no tensor"):
        opened(tmp_path)


def test_a_link_out_of_the_folder_is_refused_and_one_inside_is_read(tmp_path: Path) -> None:
    outside = saved(tmp_path / "outside.safetensors")
    run = tmp_path / "run"
    run.mkdir()
    (run / "step1.safetensors").symlink_to(outside)
    with pytest.raises(ValueError, match="leads out"):
        checkpoints.read(run)
    (run / "step1.safetensors").unlink()
    saved(run / "blobs" / "data")
    (run / "step1.safetensors").symlink_to("blobs/data")
    assert set(opened(run).tensors) == {"w"}


def test_links_in_a_circle_and_to_nothing_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").symlink_to("model.safetensors")
    with pytest.raises(ValueError, match="leads nowhere"):
        checkpoints.read(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "model.safetensors").symlink_to("absent")
    with pytest.raises(ValueError, match="leads nowhere"):
        checkpoints.read(tmp_path)


def test_a_folder_that_links_to_itself_is_walked_once(tmp_path: Path) -> None:
    saved(tmp_path / "step1" / "model.safetensors")
    (tmp_path / "step1" / "again").symlink_to(tmp_path)
    assert checkpoints.read(tmp_path).steps == (1,)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="a pipe"):
        checkpoints.read(tmp_path)
    os.mkfifo(tmp_path / "step2.npz")
    with pytest.raises(ValueError, match="a pipe"):
        checkpoints.read(tmp_path / "step2.npz")


def test_a_config_that_is_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}")
    saved(tmp_path / "run" / "model.safetensors")
    (tmp_path / "run" / "config.json").symlink_to("../secret.json")
    with pytest.raises(ValueError, match="leads out"):
        opened(tmp_path / "run")


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "header"),
        (b"\x00" * 4, "header"),
        ((2**60).to_bytes(8, "little"), "header"),
        ((200).to_bytes(8, "little") + b"{}", "header"),
        ((2).to_bytes(8, "little") + b"{[", "JSON"),
        ((2).to_bytes(8, "little") + b"[]", "object"),
        ((2).to_bytes(8, "little") + b"\xff\xfe", "JSON"),
    ],
)
def test_a_broken_header_is_refused(content: bytes, word: str, tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=word):
        opened(path)


@pytest.mark.parametrize(
    "header",
    [
        {"w": {**ENTRY, "shape": [2**40, 2**40]}},
        {"w": {**ENTRY, "data_offsets": [0, 16]}},
        {"w": {**ENTRY, "data_offsets": [8, 0]}},
        {"w": {**ENTRY, "shape": [-1]}},
        {"w": ENTRY, "v": {**ENTRY, "data_offsets": [4, 12]}},
        {"w": {"dtype": "F32"}},
        {"w": 3},
        {"w": {**ENTRY, "dtype": "NO"}},
    ],
)
def test_offsets_and_shapes_that_do_not_fit_are_refused(header: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="whole safetensors"):
        opened(raw(tmp_path / "w.safetensors", header, bytes(8)))


def test_a_name_that_comes_twice_in_a_header_is_refused(tmp_path: Path) -> None:
    entry = json.dumps(ENTRY)
    with pytest.raises(ValueError, match="comes twice"):
        opened(raw(tmp_path / "w.safetensors", f'{{"w": {entry}, "w": {entry}}}'.encode(), bytes(8)))


def test_long_names_and_long_lists_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="512"):
        opened(raw(tmp_path / "w.safetensors", {"w" * 513: ENTRY}, bytes(8)))
    monkeypatch.setattr(safetensors_file, "TENSORS", 1)
    with pytest.raises(ValueError, match="at most 1 tensors"):
        opened(raw(tmp_path / "w.safetensors", {"w": ENTRY, "v": {**ENTRY, "data_offsets": [8, 16]}}, bytes(16)))
    monkeypatch.setattr(safetensors_file, "HEADER_BYTES", 10)
    with pytest.raises(ValueError, match="10 bytes"):
        opened(raw(tmp_path / "w.safetensors", {"w": ENTRY}, bytes(8)))


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "bomb.npz", w=np.zeros(10**6))
    with pytest.raises(ValueError, match="100 times"):
        opened(tmp_path / "bomb.npz")
    rng = np.random.default_rng(0)
    np.savez_compressed(tmp_path / "large.npz", w=rng.integers(0, 3, 1000).astype(float))
    with pytest.raises(ValueError, match="limit of 500"):
        opened(tmp_path / "large.npz", memory_limit=500)
    with zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(10**6))
    with pytest.raises(ValueError, match="100 times"):
        opened(tmp_path / "bomb.pt")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"not a zip"])
def test_a_broken_zip_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "w.npz").write_bytes(content)
    with pytest.raises(ValueError, match="zip"):
        opened(tmp_path / "w.npz")


def test_an_array_that_says_more_than_it_holds_is_refused(tmp_path: Path) -> None:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    for content, word in ((member, "says shape"), (b"\x93NUMPY\x07\x00", "NumPy array"), (b"junk", "NumPy array")):
        with zipfile.ZipFile(tmp_path / "w.npz", "w") as archive:
            archive.writestr("w.npy", content)
        with pytest.raises(ValueError, match=word):
            opened(tmp_path / "w.npz")


def test_objects_in_an_npz_are_skipped_and_never_run(tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", w=WEIGHTS["w"], bad=np.array([Marker()], dtype=object))
    Marker.ran = False
    contents = opened(tmp_path / "w.npz")
    assert set(contents.tensors) == {"w"}
    assert contents.skipped[0].name == "bad"
    assert not Marker.ran


class Marker:
    """A class whose pickle would run a function of ours."""

    ran = False

    def __reduce__(self) -> Any:
        return (run_it, ())


def run_it() -> int:
    Marker.ran = True
    return 0


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """The bytes with a few of them changed, taken out or put in."""
    found = bytearray(data)
    for _ in range(rng.integers(1, 9)):
        at, kind = int(rng.integers(len(found))), rng.integers(3)
        if kind == 0:
            found[at] = rng.integers(256)
        elif kind == 1:
            del found[at : at + int(rng.integers(1, 40))]
        else:
            found[at:at] = rng.bytes(5)
        found = found or bytearray(b"x")
    return bytes(found)


@pytest.mark.parametrize("name", ["w.safetensors", "w.npz", "packed.npz", "w.pt", "old.pt"])
def test_a_damaged_file_is_read_or_refused_and_nothing_else(name: str, tmp_path: Path) -> None:
    weights = {"a.weight": WEIGHTS["w"], "b": np.ones(4, np.float16)}
    if name.endswith("pt"):
        torch = pytest.importorskip("torch")
        state = {key: torch.tensor(array) for key, array in weights.items()}
        torch.save({"model": state, "epoch": 1}, tmp_path / name, _use_new_zipfile_serialization=name == "w.pt")
    elif name.endswith("npz"):
        (np.savez_compressed if name == "packed.npz" else np.savez)(tmp_path / name, **weights)
    else:
        save_file(weights, tmp_path / name)
    whole, rng = (tmp_path / name).read_bytes(), np.random.default_rng(0)
    refused = 0
    for _ in range(100):
        (tmp_path / name).write_bytes(damaged(whole, rng))
        try:
            contents(opened(tmp_path / name))
        except ValueError:
            refused += 1
    assert refused > 20


@pytest.mark.parametrize("name", NASTY)
def test_names_are_read_as_they_are_and_escaped_where_they_are_shown(name: str, tmp_path: Path) -> None:
    save_file({name: WEIGHTS["w"]}, tmp_path / "w.safetensors")
    assert list(opened(tmp_path / "w.safetensors").tensors) == [name]
    shown = names.terminal(name)
    assert shown.isprintable()
    assert names.csv_cell(name)[0] not in "=+-@"
    assert names.quoted(name).isprintable()


def test_escapes_are_those_of_the_place() -> None:
    assert names.terminal("\x1b]0;x\x07") == r"\x1b]0;x\x07"
    assert names.terminal("a\u202eb") == r"a\u202eb"
    assert names.csv_cell("=cmd()") == "'=cmd()"
    assert names.csv_cell(" @sum") == "' @sum"
    assert names.csv_cell("layer.0") == "layer.0"
    assert len(names.quoted("w" * 500)) < 130


def test_results_hold_paths_below_the_one_that_was_given(tmp_path: Path) -> None:
    saved(tmp_path / "run" / "step1" / "model.safetensors")
    (checkpoint,) = checkpoints.read(tmp_path / "run")
    assert checkpoint.label == "step1"
    assert names.path_below(Path("/elsewhere/x"), tmp_path) == "x"
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="must hold weights") as refused:
        checkpoints.read(tmp_path / "empty")
    assert str(tmp_path) not in str(refused.value)
