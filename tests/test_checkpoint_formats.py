"""Formats of files and of numbers, as they are stored, a tensor at a time."""

import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from iclab.spectra import checkpoints
from iclab.spectra.checkpoints.ledger import contents
from tests.test_checkpoints import WEIGHTS, raw, saved

FORMATS = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


@pytest.mark.parametrize("dtype", FORMATS)
def test_every_float_format_is_read_as_it_is_stored(dtype: Any, tmp_path: Path) -> None:
    array = np.array([[0.5, -1.5, 3.0], [0.0, 2.0, -0.25]], dtype)
    short = {8: "F64", 4: "F32"}.get(array.itemsize) or {
        "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
    }[array.dtype.name]  # fmt: skip
    header = {"w": {"dtype": short, "shape": [2, 3], "data_offsets": [0, array.nbytes]}}
    tensor = checkpoints.read(raw(tmp_path / "w.safetensors", header, array.tobytes()))[0].open().tensors["w"]
    assert (tensor.stored, tensor.dtype, tensor.nbytes) == (short, array.dtype, array.nbytes)
    assert_array_equal(tensor.array().astype(float), array.astype(float))


def test_a_format_that_is_not_read_is_skipped_with_its_name(tmp_path: Path) -> None:
    header = {"w": {"dtype": "F8_E8M0", "shape": [4], "data_offsets": [0, 4]}}
    opened = checkpoints.read(raw(tmp_path / "w.safetensors", header, bytes(4)))[0].open()
    assert "F8_E8M0" in opened.skipped[0].reason


def test_bfloat16_is_read_with_torch_and_jax_blocked_and_their_files_say_what_they_need(tmp_path: Path) -> None:
    path = raw(
        tmp_path / "w.safetensors",
        {"w": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}},
        np.array([1.5, -2], ml_dtypes.bfloat16).tobytes(),
    )
    (tmp_path / "w.pt").write_bytes(b"PK")
    program = (
        "import sys; sys.modules['torch'] = sys.modules['jax'] = None\n"
        "from iclab.spectra import checkpoints\n"
        f"print(checkpoints.read({str(path)!r})[0].open().tensors['w'].array().astype(float).tolist())\n"
        f"try: checkpoints.read({str(path.with_suffix('.pt'))!r})\n"
        "except ImportError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    values, refusal = run.stdout.strip().split("\n")
    assert values == "[1.5, -2.0]", run.stderr
    assert "pip install -e '.[torch]'" in refusal


def test_arrays_are_mapped_and_not_held(tmp_path: Path) -> None:
    weights = {f"w{index}": np.ones((256, 1024), np.float32) for index in range(16)}  # 16 MiB
    path = saved(tmp_path / "w.safetensors", weights)
    tracemalloc.start()
    opened = checkpoints.read(path)[0].open()
    total = sum(float(tensor.array()[:2].sum()) for tensor in opened.tensors.values())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == 16 * 2048
    assert peak < 2**20
    assert opened.nbytes == 2**24


def test_an_npz_file_is_read_array_by_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "step5.npz", w=WEIGHTS["w"], objects=np.array([{}, None], dtype=object))
    (checkpoint,) = checkpoints.read(tmp_path / "step5.npz")
    opened = checkpoint.open()
    assert checkpoint.step == 5
    assert_array_equal(opened.tensors["w"].array(), WEIGHTS["w"])
    assert [(entry.name, "pickle" in entry.reason) for entry in opened.skipped] == [("objects", True)]


def test_a_long_series_takes_no_more_memory_than_one_checkpoint(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for step in range(50):
        saved(tmp_path / f"step{step}.safetensors", {"w": rng.standard_normal((256, 256)).astype(np.float32)})
    series = checkpoints.read(tmp_path)
    tracemalloc.start()
    digests = {contents(checkpoint.open())["w"].digest for checkpoint in series}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(digests) == 50
    assert peak < 2 * 2**20  # one tensor of 256 KiB in float64, and its bits


def test_arrays_of_jax_are_read_as_those_of_numpy() -> None:
    jax = pytest.importorskip("jax")
    opened = checkpoints.of_states([{"w": jax.numpy.asarray(WEIGHTS["w"]), "objects": np.array([{}])}])[0].open()
    assert_array_equal(opened.tensors["w"].array(), WEIGHTS["w"])
    assert [entry.name for entry in opened.skipped] == ["objects"]


@pytest.mark.parametrize("order", ["<", ">"])
def test_arrays_of_either_order_of_bytes_are_the_same_numbers(order: str, tmp_path: Path) -> None:
    array = np.random.default_rng(0).standard_normal((8, 8)).astype(f"{order}f4")
    np.savez(tmp_path / "step1.npz", w=array)
    in_memory = checkpoints.of_states([{"w": array}])[0].open()
    for opened in (checkpoints.read(tmp_path / "step1.npz")[0].open(), in_memory):
        tensor = opened.tensors["w"]
        assert (tensor.stored, tensor.array().dtype.isnative) == ("F32", True)
        np.testing.assert_array_equal(tensor.array(), array)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (np.ones((4, 4), complex), "complex numbers"), (np.array("2020-01-01", "M8[D]"), "text or dates, no numbers"),
        (np.array(["a", "b"]), "text or dates, no numbers"), (np.array([b"a"]), "text or dates, no numbers"),
    ],
)  # fmt: skip
def test_arrays_that_hold_no_real_numbers_are_left_out_with_the_reason(value, reason: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "step1.npz", w=np.ones((4, 4)), odd=value)
    in_memory = checkpoints.of_states([{"w": np.ones((4, 4)), "odd": value}])[0].open()
    for opened in (checkpoints.read(tmp_path / "step1.npz")[0].open(), in_memory):
        assert set(opened.tensors) == {"w"}
        assert [(one.name, one.reason) for one in opened.skipped] == [("odd", reason)]
