"""Faults of series of checkpoints, planted by seed: copies, mix-ups, foreign states, broken numbers and files."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np

from tests.series import AT, CONFIG, INDEX, KINDS, SHARDS, State, States, clean, put, written

__all__ = ["FAULTS", "Planted", "planted"]

FUSED = AT + "attn.c_attn.weight"
_WALKS = ("steady", "buffered")  # in float32, with near neighbors and ends that are not
_MOVING = ("steady", "doubling", "coarse", "buffered", "descending")


@dataclass(frozen=True)
class Planted:
    """A fault: the kind of finding, or words of a reason, that name it, and the steps whose numbers it may touch."""

    names: str
    steps: tuple[int, ...]
    broken: bool = True  # True where the series is not sound


Fault = Callable[[Path, States, np.random.Generator], Planted]
FAULTS: dict[str, tuple[Fault, tuple[str, ...]]] = {}


def planted(root: Path, kind: str, seed: int, fault: str, *, draw: int = 0) -> Planted:
    """A series of this kind on disk, with one draw of this fault."""
    return FAULTS[fault][0](root, clean(kind, seed), np.random.default_rng([draw, seed]))


def _on(*kinds: str) -> Callable[[Fault], Fault]:
    """A fault of series of these kinds; of all without any."""

    def register(fault: Fault) -> Fault:
        FAULTS[fault.__name__.strip("_")] = fault, kinds or tuple(KINDS)
        return fault

    return register


def _inner(states: States, rng: np.random.Generator) -> int:
    """A step with at least three before it and two after it."""
    return sorted(states)[int(rng.integers(3, len(states) - 2))]


def _next(states: States, step: int, by: int = 1) -> int:
    steps = sorted(states)
    return steps[steps.index(step) + by]


def _other(states: States, rng: np.random.Generator) -> State:
    """A state of another run: of the same sizes and norms, from another seed."""
    return {
        name: rng.permutation(array.reshape(-1)).reshape(array.shape) if array.ndim == 2 else array
        for name, array in states[max(states)].items()
    }


@_on()
def copy_of_last(root: Path, states: States, rng: np.random.Generator) -> Planted:
    at = _inner(states, rng)
    written(root, states | {at: states[max(states)]})
    return Planted("identical checkpoints", (at, max(states)))


@_on()
def copy_after_compiling(root: Path, states: States, rng: np.random.Generator) -> Planted:
    """Names gain a wrapper at a resume, behind which a checkpoint is a copy of an earlier one."""
    at = _inner(states, rng)
    wrapped = {step: {f"_orig_mod.{name}": a for name, a in state.items()} for step, state in states.items()}
    copied = {f"_orig_mod.{name}": a for name, a in states[_next(states, at, -2)].items()}
    written(root, {step: state if step < at else wrapped[step] for step, state in states.items()} | {at: copied})
    return Planted("identical checkpoints", (_next(states, at, -2), at))


@_on()
def copy_after_wrapping(root: Path, states: States, rng: np.random.Generator) -> Planted:
    """A trainer's prefix instead of none."""
    at = _inner(states, rng)
    prefix = str(rng.choice(["model.", "module.", "net.model.", "module.module."]))
    mixed = states | {at: states[_next(states, at, -2)]}
    written(root, {s: state if s < at else {prefix + n: a for n, a in state.items()} for s, state in mixed.items()})
    return Planted("identical checkpoints", (_next(states, at, -2), at))


@_on()
def shard_of_last(root: Path, states: States, rng: np.random.Generator) -> Planted:
    at = _inner(states, rng)
    written(root, states, sharded=True)
    shutil.copy(root / f"step{max(states)}" / SHARDS[0], root / f"step{at}" / SHARDS[0])
    return Planted("identical tensors", (at, max(states)))


@_on()
def swap(root: Path, states: States, rng: np.random.Generator) -> Planted:
    at, one, two = _inner(states, rng), AT + "attn.c_proj.weight", "extra.weight"
    both = {step: {**state, two: 2 * state[one][::-1]} for step, state in states.items()}
    before = both[_next(states, at, -1)]
    written(root, both | {at: {**both[at], one: before[two], two: before[one]}})
    return Planted("swapped tensors", (_next(states, at, -1), at))


@_on()
def not_finite(root: Path, states: States, rng: np.random.Generator) -> Planted:
    at, broken = _inner(states, rng), rng.choice([np.nan, np.inf, -np.inf])
    array = states[at][FUSED].copy()
    array[int(rng.integers(16)), int(rng.integers(48))] = broken
    written(root, states | {at: {**states[at], FUSED: array}})
    return Planted("nonfinite", (at,))


@_on()
def zeros(root: Path, states: States, rng: np.random.Generator) -> Planted:
    at = _inner(states, rng)
    written(root, states | {at: {**states[at], FUSED: np.zeros_like(states[at][FUSED])}})
    return Planted("zero tensors", (at,), broken=False)


@_on()
def other_shape(root: Path, states: States, rng: np.random.Generator) -> Planted:
    at, name = _inner(states, rng), AT + "mlp.c_fc.weight"
    written(root, states | {at: {**states[at], name: states[at][name][:, :48]}})
    return Planted("shape changes", (at,))


@_on(*(kind for kind in KINDS if kind != "coarse"))
def other_type(root: Path, states: States, rng: np.random.Generator) -> Planted:
    at = _inner(states, rng)
    written(root, states | {at: {name: a.astype(np.float16) for name, a in states[at].items()}})
    return Planted("type changes", (at,), broken=False)


@_on(*_MOVING)
def rescaled(root: Path, states: States, rng: np.random.Generator) -> Planted:
    at = _inner(states, rng)
    factor = np.float32(rng.choice([0.1, 3.0, 10.0]))
    grown = {n: (factor * a.astype(np.float32)).astype(a.dtype) if a.ndim == 2 else a for n, a in states[at].items()}
    written(root, states | {at: grown})
    return Planted("outliers", (at,), broken=False)


@_on(*_WALKS)
def rounded_copy(root: Path, states: States, rng: np.random.Generator) -> Planted:
    """The final state in the middle, after a conversion to fewer bits and back."""
    at, coarse = _inner(states, rng), ml_dtypes.bfloat16 if rng.integers(2) else np.float16
    last = {n: a.astype(coarse).astype(np.float32) if a.ndim == 2 else a for n, a in states[max(states)].items()}
    written(root, states | {at: last})
    return Planted("rounded copies", (at, max(states)))


@_on("steady", "buffered", "coarse", "doubling")
def start_of_another_run(root: Path, states: States, rng: np.random.Generator) -> Planted:
    written(root, states | {min(states): _other(states, rng)})
    return Planted("foreign start", (min(states), _next(states, min(states))))


def _shifted(state: State, at: State, other: State) -> State:
    """The state on a path of the same form from another place."""
    moved = {}
    for name in (name for name, array in state.items() if array.ndim == 2 and name.startswith("transformer")):
        step = state[name].astype(np.float32) - at[name].astype(np.float32)
        moved[name] = (other[name].astype(np.float32) + step).astype(state[name].dtype)
    return state | moved


@_on("steady", "buffered", "coarse")
def end_of_another_run(root: Path, states: States, rng: np.random.Generator) -> Planted:
    """From one step on the checkpoints are those of another run."""
    at, other = _inner(states, rng), _other(states, rng)
    moved = {step: _shifted(state, states[at], other) for step, state in states.items() if step >= at}
    written(root, states | moved)
    return Planted("broken continuity", (_next(states, at, -1), *moved))


@_on("steady", "buffered", "coarse")
def one_of_another_run(root: Path, states: States, rng: np.random.Generator) -> Planted:
    at = _inner(states, rng)
    written(root, states | {at: _other(states, rng)})
    return Planted("broken continuity", (_next(states, at, -1), at))


@_on(*(kind for kind in KINDS if kind != "warming"))  # whose norm turns back: there it cannot be seen
def exchanged(root: Path, states: States, rng: np.random.Generator) -> Planted:
    """Two checkpoints beside each other in each other's place."""
    at = _inner(states, rng)
    other = _next(states, at)
    if other == max(states):
        at, other = _next(states, at, -1), at
    written(root, states | {at: states[other], other: states[at]})
    return Planted("exchanged checkpoints", (at, other))


@_on("steady", "growing", "coarse", "buffered")
def exchanged_far_apart(root: Path, states: States, rng: np.random.Generator) -> Planted:
    steps = sorted(states)
    at, other = steps[int(rng.integers(1, 3))], steps[int(rng.integers(5, 7))]
    written(root, states | {at: states[other], other: states[at]})
    return Planted("exchanged checkpoints", (at, other))


@_on("steady", "growing", "coarse", "buffered", "settling")
def exchanged_at_an_end(root: Path, states: States, rng: np.random.Generator) -> Planted:
    """The first two checkpoints in each other's place, which noise that died down can look like."""
    at, other = sorted(states)[:2]
    written(root, states | {at: states[other], other: states[at]})
    return Planted("exchanged checkpoints", (at, other), broken=False)


def _anew(state: State, rng: np.random.Generator, names: tuple[str, ...]) -> State:
    """The state with these matrices as at another start."""
    drawn = {name: (0.1 * rng.standard_normal(state[name].shape)).astype(state[name].dtype) for name in names}
    return state | drawn


@_on()
def layer_reset_once(root: Path, states: States, rng: np.random.Generator) -> Planted:
    at = _inner(states, rng)
    names = (AT + "mlp.c_fc.weight", AT + "mlp.c_proj.weight") if rng.integers(2) else (FUSED,)
    written(root, states | {at: _anew(states[at], rng, names)})
    return Planted("reset tensors", (at,))


@_on("steady", "doubling", "coarse", "buffered", "settling")
def layer_reset_for_good(root: Path, states: States, rng: np.random.Generator) -> Planted:
    """A matrix that is drawn anew at one step, from which its path goes on."""
    at, name = _inner(states, rng), AT + "mlp.c_fc.weight"
    fresh = _anew(states[at], rng, (name,))[name].astype(np.float32) - states[at][name].astype(np.float32)
    moved = {
        step: state | {name: (state[name].astype(np.float32) + fresh).astype(state[name].dtype)}
        for step, state in states.items()
        if step >= at
    }
    written(root, states | moved)
    return Planted("reset tensors", tuple(moved), broken=False)


@_on()
def transposed(root: Path, states: States, rng: np.random.Generator) -> Planted:
    at, name = _inner(states, rng), AT + "attn.c_proj.weight"
    written(root, states | {at: states[at] | {name: np.ascontiguousarray(states[at][name].T)}})
    return Planted("transposed tensors", (at,))


@_on("steady", "doubling", "coarse", "buffered", "settling")
def two_layers_exchanged(root: Path, states: States, rng: np.random.Generator) -> Planted:
    """Two matrices of one shape under each other's name at one step, with numbers of that step."""
    at, one, two = _inner(states, rng), AT + "attn.c_proj.weight", "extra.weight"
    both = {step: {**state, two: np.ascontiguousarray(state[one][::-1])} for step, state in states.items()}
    written(root, both | {at: {**both[at], one: both[at][two], two: both[at][one]}})
    return Planted("swapped tensors", (_next(states, at, -1), at))


@_on()
def promised_and_absent(root: Path, states: States, rng: np.random.Generator) -> Planted:
    at = _inner(states, rng)
    index = written(root, states, sharded=True) / f"step{at}" / INDEX
    page = json.loads(index.read_text())
    page["weight_map"]["transformer.h.7.mlp.c_fc.weight"] = SHARDS[1]
    index.write_text(json.dumps(page))
    return Planted("missing tensors", (at,))


@_on()
def shard_that_holds_it_not(root: Path, states: States, rng: np.random.Generator) -> Planted:
    """An index that places a tensor in the other shard."""
    at = _inner(states, rng)
    index = written(root, states, sharded=True) / f"step{at}" / INDEX
    page = json.loads(index.read_text())
    name = sorted(page["weight_map"])[int(rng.integers(len(page["weight_map"])))]
    page["weight_map"][name] = SHARDS[page["weight_map"][name] == SHARDS[0]]
    index.write_text(json.dumps(page))
    return Planted("misplaced tensors", (at,), broken=False)


@_on()
def heads_of_another_config(root: Path, states: States, rng: np.random.Generator) -> Planted:
    at = _inner(states, rng)
    written(root, states)
    (root / f"step{at}" / "config.json").write_text(json.dumps(CONFIG | {"n_head": int(rng.choice([1, 4, 8]))}))
    return Planted("config changes", (at,))


@_on()
def other_weights_beside(root: Path, states: States, rng: np.random.Generator) -> Planted:
    """Shards of another step beside the file that is read, or the same weights in another format."""
    at = _inner(states, rng)
    written(root, states)
    if rng.integers(2):
        put(root / f"step{at}", states[_next(states, at)], sharded=True)
    else:
        named = {step: (root / f"step{step}" / "model.safetensors") for step in states}
        for step, file in named.items():
            file.rename(file.with_name("weights.safetensors"))
            np.savez(file.with_name("weights.npz"), **_plain(states[step if step != at else _next(states, at)]))
    return Planted("other weights", (at,), broken=False)


def _plain(state: State) -> State:
    """The state in types that NumPy writes."""
    return {name: a.astype(np.float32) if a.dtype == ml_dtypes.bfloat16 else a for name, a in state.items()}


@_on()
def tensor_left_out(root: Path, states: States, rng: np.random.Generator) -> Planted:
    at, name = _inner(states, rng), AT + "mlp.c_proj.weight"
    written(root, states | {at: {key: a for key, a in states[at].items() if key != name}})
    return Planted("absent tensors", (at,), broken=False)


@_on()
def broken_file(root: Path, states: States, rng: np.random.Generator) -> Planted:
    """A file that is cut short, half a JSON, an empty index, a link to nowhere or outside, a header without type."""
    at, way = _inner(states, rng), int(rng.integers(8))
    folder = written(root, states, sharded=way in (2, 3, 4)) / f"step{at}"
    file = folder / "model.safetensors"
    if way == 0:
        file.write_bytes(file.read_bytes()[: int(rng.integers(9, 2000))])
    elif way == 1:
        (folder / "config.json").write_text('{"model_type": "gp')
    elif way == 2:
        (folder / INDEX).write_text("" if rng.integers(2) else "{}")
    elif way == 3:
        (folder / SHARDS[0]).unlink()
    elif way == 4:
        (folder / INDEX).unlink()
    elif way == 5:
        (folder / "trainer_state.json").write_text('{"global_step": 1')
    elif way == 6:
        outside = file.rename(root.parent / f"{root.name}-outside.safetensors")
        file.symlink_to(outside if rng.integers(2) else "nowhere")
    else:
        text = json.dumps({FUSED: {"shape": [16, 48], "data_offsets": [0, 3072]}}).encode()
        file.write_bytes(len(text).to_bytes(8, "little") + text + bytes(3072))
    return Planted("unread checkpoints", (at,))


@_on()
def parts_of_zero3(root: Path, states: States, rng: np.random.Generator) -> Planted:
    at = _inner(states, rng)
    empty = {step: {n: np.zeros(0, np.float32) for n in states[step]} for step in (at, _next(states, at))}
    written(root, states | empty)
    return Planted("zero_to_fp32.py", tuple(empty))


@_on()
def step_beside(root: Path, states: States, rng: np.random.Generator) -> Planted:
    """The trainer's note is of another step, or two folders are of one step."""
    at = _inner(states, rng)
    written(root, states)
    if rng.integers(2):
        (root / f"step{at}" / "trainer_state.json").write_text(json.dumps({"global_step": at + 50}))
        return Planted("rewound steps", (at,))
    put(root / f"checkpoint-{at}", _other(states, rng))
    return Planted("overlapping steps", (at,))


@_on(*(kind for kind in KINDS if kind != "warming"))
def step_left_out(root: Path, states: States, rng: np.random.Generator) -> Planted:
    at = _inner(states, rng)
    shutil.rmtree(written(root, states) / f"step{at}")
    return Planted("missing steps", (at,), broken=False)


@_on()
def codes_of_8_bits(root: Path, states: States, rng: np.random.Generator) -> Planted:
    """One checkpoint in 8-bit codes with their scales beside them."""
    at, name = _inner(states, rng), AT + "mlp.c_fc.weight"
    array = states[at][name].astype(np.float32)
    scale = np.abs(array).max() / 448
    beside = str(rng.choice([".scale", ".scales", ".weight_scale", ".weight_scale_inv", ".weight.scale"]))
    codes = {name: (array / scale).astype(ml_dtypes.float8_e4m3fn), AT + "mlp.c_fc" + beside: scale[None]}
    written(root, states | {at: {**states[at], **codes}})
    return Planted("multiply the scales in", (at,), broken=False)
