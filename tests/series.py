"""Sound series of checkpoints of eight kinds, drawn by seed, and their form on disk."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

__all__ = ["AT", "CONFIG", "INDEX", "KINDS", "SHARDS", "State", "States", "clean", "put", "written"]

CONFIG = {"model_type": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 16}
State = dict[str, np.ndarray]
States = dict[int, State]
AT = "transformer.h.0."
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
INDEX = "model.safetensors.index.json"


def start(rng: np.random.Generator, size: float = 0.1) -> State:
    """Weights of one layer at the start of training."""
    shapes = {
        "transformer.wte.weight": (40, 16), AT + "attn.c_attn.weight": (16, 48), AT + "attn.c_proj.weight": (16, 16),
        AT + "mlp.c_fc.weight": (16, 64), AT + "mlp.c_proj.weight": (64, 16),
    }  # fmt: skip
    state = {name: size * rng.standard_normal(shape) for name, shape in shapes.items()}
    return {**state, AT + "ln_1.weight": np.ones(16), AT + "ln_1.bias": np.zeros(16)}


def _path(state: State, rng: np.random.Generator, lengths: np.ndarray, *, gain: float = 0.002) -> list[State]:
    """States along a walk whose increments have these lengths."""
    found = [state]
    for length in lengths:
        moved = {}
        for name, array in found[-1].items():
            size = gain if array.ndim == 1 else length
            moved[name] = array + size * rng.standard_normal(array.shape)
        found.append(moved)
    return found


def steady(rng: np.random.Generator) -> States:
    """A walk at a constant rate, on equal steps."""
    return dict(zip(range(0, 900, 100), _path(start(rng), rng, np.full(8, 0.02)), strict=True))


def doubling(rng: np.random.Generator) -> States:
    """A walk at a constant rate, on steps that double."""
    steps = [0, *(2**power for power in range(9))]
    return dict(zip(steps, _path(start(rng), rng, 0.006 * np.sqrt(np.diff(steps))), strict=True))


def settling(rng: np.random.Generator) -> States:
    """A walk whose rate decays to zero."""
    return dict(zip(range(0, 900, 100), _path(start(rng), rng, 0.04 * 0.6 ** np.arange(8)), strict=True))


def growing(rng: np.random.Generator) -> States:
    """Modes that rise one after the other from a small start, with norms that grow by two orders."""
    steps, small, found = np.arange(0, 1000, 100), start(rng, 0.001), {}
    drawn = {name: rng.standard_normal(array.shape) for name, array in small.items() if array.ndim > 1}
    modes = {name: np.linalg.svd(array, full_matrices=False) for name, array in drawn.items()}
    for step in steps:
        state = dict(small)
        for name, (left, values, right) in modes.items():
            rise = 1 / (1 + np.exp(-(step - 80 * np.arange(1, len(values) + 1)) / 40))
            state[name] = small[name] + 0.1 * (left * (values * rise)) @ right
        found[int(step)] = state
    return found


def warming(rng: np.random.Generator) -> States:
    """A learning rate of zero at the first step, then a rise and a fall of the norm."""
    first = start(rng)
    steps, path = [0, 1, 100, 200, 300, 400, 500, 600, 700], _path(first, rng, np.full(8, 0.015))
    scale = [1, 1, 1.6, 2.1, 1.9, 1.7, 1.6, 1.55, 1.5]
    found = {
        step: {name: factor * array if array.ndim > 1 else array for name, array in state.items()}
        for step, factor, state in zip(steps, scale, path, strict=True)
    }
    return {**found, 1: dict(found[0])}


def coarse(rng: np.random.Generator) -> States:
    """bfloat16, with gains that flicker between two neighbors and a scalar that takes old values again."""
    path = _path(start(rng), rng, np.full(8, 0.02), gain=0.0)
    for state in path:
        state[AT + "ln_1.weight"] = 1 - 0.004 * (np.arange(16) == rng.integers(2))
        state["scale"] = np.array(1.0 + rng.integers(2))
    return {step: _as(ml_dtypes.bfloat16, state) for step, state in zip(range(0, 900, 100), path, strict=True)}


def descending(rng: np.random.Generator) -> States:
    """Gradient descent of the first of two factors, and of the second, on a matrix of low rank."""
    state, found = start(rng), {}
    matrices = [name for name, array in state.items() if array.ndim > 1]
    targets, inner = {}, {}
    for name in matrices:
        rows, columns = state[name].shape
        targets[name] = 0.4 * rng.standard_normal((rows, 3)) @ rng.standard_normal((3, columns))
        inner[name] = 0.3 * rng.standard_normal((columns, columns))
    for step in range(901):
        if step % 100 == 0:
            found[step] = dict(state)
        for name in matrices:
            error = state[name] @ inner[name] - targets[name]
            state[name], inner[name] = (
                state[name] - 0.01 * error @ inner[name].T,
                inner[name] - 0.01 * state[name].T @ error,
            )
    return found


def buffered(rng: np.random.Generator) -> States:
    """Weights beside what models register with them: masks, tables of rotary embeddings, counters."""
    found = steady(rng)
    for step, state in found.items():
        state[AT + "attn.bias"] = np.tril(np.ones((1, 1, 8, 8), bool))
        state[AT + "attn.masked_bias"] = np.array(-np.inf)
        state["window.mask"] = np.where(np.tril(np.ones((8, 8))) > 0, 0, -np.inf)
        state["rotary_emb.inv_freq"] = 10_000.0 ** -np.arange(0, 1, 0.25)
        state["norm.num_batches_tracked"] = np.array(step // 300)
    return found


KINDS: Mapping[str, Callable[[np.random.Generator], States]] = {
    one.__name__: one for one in (steady, doubling, settling, growing, warming, coarse, descending, buffered)
}


def clean(kind: str, seed: int) -> States:
    """A sound series, by step; in float32 where its kind says nothing else."""
    states = KINDS[kind](np.random.default_rng([seed, list(KINDS).index(kind)]))
    return {step: _as(np.float32, state) for step, state in states.items()}


def _as(dtype: type, state: State) -> State:
    """The state with its float64 numbers in another type."""
    return {name: array.astype(dtype) if array.dtype == np.float64 else array for name, array in state.items()}


def put(folder: Path, state: State, *, sharded: bool = False) -> Path:
    """One checkpoint, in one file or in two shards with their index."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = {name: np.ascontiguousarray(array) for name, array in state.items()}
    (folder / "config.json").write_text(json.dumps(CONFIG))
    if not sharded:
        save_file(kept, folder / "model.safetensors")
        return folder
    names = sorted(kept)
    placed = {name: SHARDS[index >= len(names) // 2] for index, name in enumerate(names)}
    for shard in SHARDS:
        save_file({name: kept[name] for name in names if placed[name] == shard}, folder / shard)
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": placed}))
    return folder


def written(root: Path, states: States, *, sharded: bool = False) -> Path:
    """A series on disk."""
    for step, state in states.items():
        put(root / f"step{step}", state, sharded=sharded)
    return root
