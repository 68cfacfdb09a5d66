"""How much memory an observation takes beside the libraries, in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

LARGEST = 128 * 2**20  # bytes
PROGRAM = """
import sys
import numpy as np, scipy.linalg
from iclab.spectra import checkpoints
from iclab.spectra.observation import Selection, observe
def now(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))
np.linalg.eigvalsh(np.eye(8))
before = now("VmRSS")
dynamics = observe(checkpoints.read(sys.argv[1]), selection=Selection(measures=tuple(sys.argv[2].split())))
print(now("VmHWM") - before, dynamics.measured)
"""
pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak as Linux notes it")


def peak(folder: Path, measures: str = "ranks") -> float:
    """Bytes above the state after imports."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(folder), measures], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    more, measured = map(int, done.stdout.split())
    assert measured > 0
    return 1024.0 * more


def stored(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32).astype(ml_dtypes.bfloat16)


def small(width: int) -> dict[str, np.ndarray]:
    return {f"model.layers.{layer}.mlp.up_proj.weight": stored(64, width) for layer in range(64)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("heads", "tensors"),
    [
        (1, {"model.embed_tokens.weight": (65536, 1024)}),  # by its Gram
        (1, {"model.embed_tokens.weight": (16384, 4096)}),  # leading values alone
        (1, {"model.layers.0.mlp.down_proj.weight": (8190, 8192)}),  # the largest whole matrix that is measured
        (
            64,
            {
                "model.layers.0.self_attn.q_proj.weight": (8192, 8192),
                "model.layers.0.self_attn.k_proj.weight": (128, 8192),
                "model.layers.0.self_attn.v_proj.weight": (128, 8192),
                "model.layers.0.self_attn.o_proj.weight": (16, 8192),
            },
        ),
    ],
)
def test_values_take_at_most_four_times_the_largest_tensor(
    heads: int, tensors: dict[str, tuple[int, ...]], tmp_path: Path
) -> None:
    save_file(
        {**small(256), **{name: stored(*shape) for name, shape in tensors.items()}}, tmp_path / "step1.safetensors"
    )
    config = {"model_type": "llama", "num_attention_heads": heads, "num_key_value_heads": 1, "head_dim": 128}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert peak(tmp_path) <= 4 * LARGEST + 64 * 2**20


@pytest.mark.slow
@pytest.mark.parametrize("measures", ["ranks", "ranks overlaps"])
def test_a_long_series_takes_no_more_memory_than_a_short_one(measures: str, tmp_path: Path) -> None:
    config = {"model_type": "llama", "num_attention_heads": 1, "head_dim": 128}
    peaks = []
    for count in (8, 48):
        folder = tmp_path / str(count)
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config))
        for step in range(count):
            save_file(small(2048), folder / f"step{step}.safetensors")  # 16 MiB
        peaks.append(peak(folder, measures))
    assert peaks[1] - peaks[0] < 2 * 16 * 2**20  # a checkpoint or two, not forty
