"""Spectra of checkpoints, against scipy's singular values of float64 copies of the same matrices.

150 checkpoints of 49 float32 matrices, 128 × 128, and a bfloat16 attention layer of the shape of Llama 70B: 64 query
and 8 key heads of 128, width 8192, with its query-key circuits at offset 0 and averaged. Promise: values at most 1.2
times and with overlaps at most 2 times scipy, 14 s and 20 s for the series, 1.5 s for the layer. The series is also
observed whole, from files: as 49 whole matrices, and as 12 attention layers of 4 heads with an embedding.
"""

import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import scipy.linalg
from measure import least_seconds, seconds
from safetensors.numpy import save_file

from iclab.spectra import checkpoints
from iclab.spectra.circuits import head_spectra
from iclab.spectra.circuits.weights import AttentionWeights, Rotary
from iclab.spectra.layouts import Layout, from_config, from_mapping
from iclab.spectra.measures import basis, null, overlap_of, rank_measures
from iclab.spectra.measures.spectrum import spectrum
from iclab.spectra.observation.observing import observe
from iclab.spectra.observation.selection import Selection

WIDTH, MATRICES, CHECKPOINTS, LEADING = 128, 49, 150, 4


def series(matrix: int) -> np.ndarray:
    """One matrix at every checkpoint: a random start that is left for a spiked end."""
    rng = np.random.default_rng(matrix)
    start, end = rng.standard_normal((2, WIDTH, WIDTH), dtype=np.float32)
    spikes = rng.standard_normal((WIDTH, 8), dtype=np.float32) @ rng.standard_normal((8, WIDTH), dtype=np.float32)
    along = np.linspace(0, 1, CHECKPOINTS, dtype=np.float32)[:, None, None]
    return start + along * (0.3 * end + spikes)


def reference(steps: np.ndarray) -> None:
    for array in steps:
        scipy.linalg.svdvals(array.astype(np.float64))


def values(steps: np.ndarray) -> None:
    """All ranks at every step, each beside its level on random numbers."""
    ranks = rank_measures(np.stack([spectrum(array).values for array in steps]))
    for name in ranks:
        null.level(steps.shape[1:], name)


def values_and_overlaps(steps: np.ndarray) -> None:
    """The same, with the overlap of the leading right directions with the final and with the previous step."""
    final, before, spectra = basis(steps[-1], k=LEADING), None, []
    for array in steps:
        now = basis(array, k=LEADING)
        overlap_of(now, final)
        if before is not None:
            overlap_of(now, before)
        before = now
        spectra.append(now.values)
    rank_measures(np.stack(spectra))


def layer() -> AttentionWeights:
    rng = np.random.default_rng(0)

    def stored(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32).astype(ml_dtypes.bfloat16)

    output = stored(8192, 8192).reshape(8192, 64, 128).transpose(1, 0, 2)
    key, value = stored(8, 128, 8192), stored(8, 128, 8192)
    return AttentionWeights(stored(64, 128, 8192), key, value, output, rotary=Rotary(128, "half"))


WHOLE = from_mapping({"heads": 1, "tensor": [{"match": r"(?P<layer>\d+)\.w", "role": "mlp_in"}]})
HEADS = from_config({"model_type": "llama", "num_attention_heads": 4, "hidden_size": WIDTH})
NAMES = {
    "whole matrices": [f"{matrix}.w" for matrix in range(MATRICES)],
    "heads": [f"layers.{layer}.self_attn.{part}_proj.weight" for layer in range(12) for part in "qkvo"]
    + ["embed_tokens.weight"],
}


def written(names: list[str], folder: Path) -> None:
    """The series as files, one for each checkpoint."""
    every = np.stack([series(matrix) for matrix in range(MATRICES)], axis=1)
    for step, arrays in enumerate(every):
        save_file(dict(zip(names, arrays, strict=True)), folder / f"step{step}.safetensors")


def observing(layout: Layout, kind: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        written(NAMES[kind], Path(folder))
        for measures in (("ranks",), ("ranks", "overlaps")):
            read = checkpoints.read(folder)
            chosen = Selection(measures=measures)
            spent = seconds(lambda read=read, chosen=chosen: observe(read, layout, selection=chosen)).cpu
            print(f"observed from files as {kind}, {' and '.join(measures)}: {spent:.1f} s CPU")


if __name__ == "__main__":
    one = series(0)
    null.level(one.shape[1:], "stable_rank")  # drawn once a process
    plain, alone, both = (least_seconds(lambda run=run: run(one)) for run in (reference, values, values_and_overlaps))
    print(
        f"{CHECKPOINTS} matrices: scipy {plain:.2f} s, values {alone / plain:.2f}x, with overlaps {both / plain:.2f}x"
    )
    for name, run in (("values", values), ("with overlaps", values_and_overlaps)):
        spent = sum(seconds(lambda run=run, m=m: run(series(m))).cpu for m in range(MATRICES))
        print(f"{CHECKPOINTS} checkpoints of {MATRICES} matrices, {name}: {spent:.1f} s CPU")
    weights = layer()
    print(f"one layer of 64 heads: {least_seconds(lambda: list(head_spectra([weights], 0)), repeats=3):.2f} s CPU")
    observing(WHOLE, "whole matrices")
    observing(HEADS, "heads")
