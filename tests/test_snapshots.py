"""Networks in training on disk: exact resumption, refusal of other runs, and what `iclab inspect` reads of them."""

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from safetensors import SafetensorError

from iclab.commands.main import main
from iclab.simulation import networks
from iclab.simulation.keys import key_of
from iclab.simulation.networks import Perceptron, State, Transformer, records, snapshots
from iclab.spectra import checkpoints, layouts
from tests.test_layout_families import normed, turned
from tests.test_networks import SMALL, Cycle, asked, drawn

KEY = key_of(4)
STEPS = snapshots.schedule(24, per_decade=3, dense=((11, 15, 2),))
OPTIMIZER = optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 1e-2, 4, 24), weight_decay=0.1)
NETWORKS: dict[str, Any] = {
    "shortformer": replace(SMALL, positions="shortformer"),
    "absolute": SMALL,
    "rotary": replace(SMALL, positions="rotary"),
    "tied": replace(SMALL, tied=True),
    "no gain, attention alone": replace(SMALL, gain=False, mlp=0, layers=3),
    "post": replace(SMALL, norm="post"),
    "real tokens": Transformer(length=6, outputs=1, features=3, width=8, heads=4, causal=False, gain=True),
    "perceptron": Perceptron(vocabulary=5, outputs=5, length=2, width=4, hidden=9),
}


def folder(path: Path, **change: Any) -> snapshots.Folder:
    known: dict[str, Any] = {"network": SMALL, "data": Cycle(), "optimizer": "adamw 1e-2", "key": KEY}
    return snapshots.Folder(path, **known | change)


def state_of(network: Any, seed: int = 0, step: int = 0) -> State:
    return State(step=step, parameters=drawn(network, seed), optimizer=(), loss=float("nan"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[snapshots.Folder, dict[int, State]]:
    """A run on disk, and its states as they were."""
    here, states = folder(tmp_path_factory.mktemp("run")), {}

    def keep(step: int, state: State) -> None:
        states[step] = state
        here.save(step, state)

    networks.train(SMALL, Cycle(), steps=STEPS, optimizer=OPTIMIZER, key=KEY, checkpoints=keep)
    return here, states


def test_a_schedule_is_spaced_by_logarithm_with_dense_windows() -> None:
    assert STEPS == (0, 1, 2, 5, 10, 11, 13, 15, 22, 24)
    assert snapshots.schedule(1000, per_decade=1) == (0, 1, 10, 100, 1000)
    assert snapshots.schedule(7, per_decade=0, dense=[(2, 6, 3), (5, 5, 1)]) == (0, 2, 5, 7)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"steps": 0}, "steps must be a whole number >= 1"),
        ({"per_decade": 1.5}, "per_decade must be a whole number >= 0"),
        ({"dense": [(5, 30, 1)]}, "a dense window must lie within 0 to 24; got 5 to 30"),
        ({"dense": [(5, 3, 1)]}, "a dense window must lie within 0 to 24; got 5 to 3"),
        ({"dense": [(5, 7, 0)]}, "dense must be a whole number >= 1"),
        ({"dense": [5]}, r"a dense window must be \(from, to, every\); got 5"),
    ],
)
def test_impossible_schedules_are_refused(words: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        snapshots.schedule(**{"steps": 24} | words)


def test_a_run_resumed_from_disk_is_bitwise_one_that_was_never_stopped(
    run: tuple[snapshots.Folder, dict[int, State]], tmp_path: Path
) -> None:
    _, known = run
    for stopped in (0, 13):
        here = folder(tmp_path / str(stopped))
        assert here.latest() is None
        networks.train(
            SMALL, Cycle(), steps=[step for step in STEPS if step <= stopped], optimizer=OPTIMIZER, key=KEY,
            checkpoints=here.save, resume=here.latest(),
        )  # fmt: skip
        again = folder(tmp_path / str(stopped))  # as another process finds it
        networks.train(
            SMALL, Cycle(), steps=STEPS, optimizer=OPTIMIZER, key=KEY, checkpoints=again.save, resume=again.latest()
        )
        assert again.steps() == STEPS
        for step in STEPS:
            found = again.load(step)
            assert found["step"] == step
            assert_array_equal(found["loss"], known[step]["loss"])
            for part in ("parameters", "optimizer"):
                pairs = zip(jax.tree.leaves(found[part]), jax.tree.leaves(known[step][part]), strict=True)
                for one, other in pairs:
                    assert_array_equal(one, other)
                    assert one.dtype == other.dtype


def test_a_folder_of_another_run_is_refused_with_the_difference(
    run: tuple[snapshots.Folder, dict[int, State]],
) -> None:
    path = run[0].path
    for change, message in [
        ({"network": replace(SMALL, heads=1)}, "network.heads is 2 there and 1 here"),
        ({"data": Cycle(length=5)}, "data.length is 6 there and 5 here"),
        ({"optimizer": "sgd"}, "optimizer is 'adamw 1e-2' there and 'sgd' here"),
        ({"key": key_of(5)}, r"key is \[0, 4\] there and \[0, 5\] here"),
        ({"network": Perceptron(5, 5)}, "network.kind is 'Transformer' there and 'Perceptron' here.*'nothing' here"),
    ]:
        with pytest.raises(ValueError, match=message):
            folder(path, **change)
    assert folder(path).steps() == STEPS


def test_a_folder_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "step-000001").mkdir()
    with pytest.raises(ValueError, match=r"must be a folder that is empty or has a run.json"):
        folder(tmp_path)
    (tmp_path / "run.json").write_text("[1]")
    with pytest.raises(ValueError, match="must hold a JSON object"):
        folder(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ValueError, match="must be a JSON file written here"):
        folder(tmp_path)


def test_a_step_is_written_once_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = folder(tmp_path)
    here.save(3, state_of(SMALL, step=3))
    with pytest.raises(ValueError, match="a step must be written once; step-000003 is in"):
        here.save(3, state_of(SMALL, step=3))

    def fails(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(snapshots, "_write_json", fails)
    with pytest.raises(OSError, match="the disk is full"):
        here.save(4, state_of(SMALL, step=4))
    assert here.steps() == (3,)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["run.json", "step-000003"]


def test_damaged_and_foreign_files_are_refused_by_name(tmp_path: Path) -> None:
    here = folder(tmp_path)
    here.save(3, state_of(SMALL, step=3))
    with pytest.raises(ValueError, match=r"step must be one of \[3\]; got 4"):
        here.load(4)
    with pytest.raises(ValueError, match=r"unembed.weight is missing"):
        here.save(5, state_of(replace(SMALL, tied=True), step=5))
    with pytest.raises(ValueError, match=r"state must be the State of step 5; got that of step 3"):
        here.save(5, state_of(SMALL, step=3))
    (tmp_path / "step-000009").write_text("no folder, so no checkpoint")
    assert here.steps() == (3,)
    trainer = tmp_path / "step-000003" / "trainer_state.json"
    written = json.loads(trainer.read_text())
    for change, message in [
        ({"global_step": 4}, "must hold step 3; its trainer_state.json says 4"),
        ({"loss": "low"}, "the loss in .* must be a number"),
        ({"sha256": None}, "must state the sha256 of files"),
    ]:
        trainer.write_text(json.dumps(written | change))
        with pytest.raises(ValueError, match=message):
            here.load(3)
    weights = tmp_path / "step-000003" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8])
    with pytest.raises(ValueError, match=r"model.safetensors must be a whole safetensors file"):
        snapshots.network_at(tmp_path / "step-000003")
    (tmp_path / "step-000003" / "config.json").write_text('{"network": {"kind": "Transformer", "depth": 3}}')
    with pytest.raises(ValueError, match="it does not have depth"):
        snapshots.network_at(tmp_path / "step-000003")
    (tmp_path / "step-000003" / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(ValueError, match=r'config.json must state its "network", a Transformer or a Perceptron'):
        snapshots.network_at(tmp_path / "step-000003")


@pytest.mark.parametrize("name", snapshots.FILES)
def test_a_run_goes_on_only_from_files_as_they_were_written(name: str, tmp_path: Path) -> None:
    here = folder(tmp_path)
    here.save(2, state_of(SMALL, step=2))
    here.save(3, state_of(SMALL, step=3))
    file = tmp_path / "step-000003" / name
    whole = file.read_bytes()
    assert here.load(3)["step"] == 3
    for content in (whole[:-1] + bytes([whole[-1] ^ 1]), whole[:-8], b""):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=f"{name} must be as it was written.* Remove step-000003 to go on"):
            here.latest()
    file.unlink()
    with pytest.raises(ValueError, match=f"{name} must be a file written here"):
        here.latest()
    shutil.rmtree(tmp_path / "step-000003")
    assert here.load(2)["step"] == 2


def test_a_place_that_cannot_be_written_to_is_refused_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for path in ("file", "file/below", "link", "a\0b", "n" * 400):
        with pytest.raises(ValueError, match="path must be that of a folder that can be written to"):
            folder(tmp_path / path)
    here = folder(tmp_path / "written")
    here.save(3, state_of(SMALL, step=3))
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(ValueError, match="path must be that of a folder that can be written to"):
        folder(tmp_path / "sealed")
    assert folder(tmp_path / "written").load(3)["step"] == 3  # what is there can still be read


def test_a_full_disk_is_an_error_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = folder(tmp_path)

    def full(*_: object) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(snapshots, "save_file", full)
    with pytest.raises(OSError, match=r"model.safetensors could not be written to .*No space left"):
        here.save(3, state_of(SMALL, step=3))
    assert here.steps() == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": None}, "the loss of state must be a number"),
        ({"loss": "low"}, "the loss of state must be a number"),
        ({"optimizer": object()}, "the state of an optimizer must be arrays of numbers; 000000 is object"),
        ({"optimizer": ("abc",)}, "the state of an optimizer must be arrays of numbers"),
    ],
)
def test_what_is_no_state_is_not_written(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    here = folder(tmp_path)
    with pytest.raises(ValueError, match=message):
        here.save(3, {**state_of(SMALL, step=3), **change})  # type: ignore[arg-type]
    assert here.steps() == ()


@pytest.mark.parametrize("network", ["a", {"kind": []}, {"kind": {}}, {"kind": None}])
def test_a_config_of_no_network_is_refused(network: Any, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"network": network}))
    with pytest.raises(ValueError, match=r'config.json must state its "network", a Transformer or a Perceptron'):
        snapshots.network_at(tmp_path)


def test_what_cannot_be_written_down_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="optimizer must say in words which one it is; got GradientTransformation"):
        folder(tmp_path, optimizer=OPTIMIZER)
    with pytest.raises(ValueError, match="key must be one key"):
        folder(tmp_path, key=4)
    with pytest.raises(ValueError, match=r"data.length must be made of numbers, words and dataclasses.*got object"):
        folder(tmp_path, data=replace(Cycle(), length=object()))
    for change, message in [
        ({"network": None}, "config must be a Transformer or a Perceptron; got NoneType"),
        ({"data": object()}, "data must be such as those of simulation.sequences; got object"),
        ({"path": None}, "path must be the path of a folder; got None"),
    ]:
        with pytest.raises(ValueError, match=message):
            folder(**{"path": tmp_path} | change)

    @dataclass(frozen=True)
    class Pool:
        tasks: Any = (np.int64(3), float("inf"), None)

    assert records.described("data", Pool()) == {"kind": "Pool", "tasks": [3, "inf", None]}


@pytest.mark.parametrize("kind", NETWORKS)
def test_every_tensor_of_a_checkpoint_is_analysed_or_skipped_with_its_reason(kind: str, tmp_path: Path) -> None:
    network = NETWORKS[kind]
    folder(tmp_path, network=network).save(0, state_of(network))
    series = checkpoints.read(tmp_path)
    assert series.steps == (0,)
    opened = series[0].open()
    assert opened.tensors.keys() == drawn(network).keys()  # what the optimizer remembers is no weight
    plan = layouts.planned(opened)
    depth = network.layers if isinstance(network, Transformer) else 0
    assert [layer for _, layer in plan.layers] == list(range(depth))
    named = {matrix.name for matrix in plan.matrices}
    named |= {match.tensor.name for matches in plan.layers.values() for match in matches}
    skipped = {entry.name: entry.reason for entry in plan.skipped}
    assert named | skipped.keys() == opened.tensors.keys()
    assert not named & skipped.keys()
    assert set(skipped.values()) <= {"a norm that does not feed attention"}
    assert bool(plan.aliases) == (kind == "tied")
    rebuilt, weights = snapshots.network_at(tmp_path / "step-000000")
    assert rebuilt == network
    for name, part in drawn(network).items():
        assert_array_equal(weights[name], part)


@pytest.mark.parametrize("kind", [kind for kind in NETWORKS if kind != "perceptron"])
def test_stored_circuits_are_those_of_the_forward_pass(kind: str, tmp_path: Path, monkeypatch: Any) -> None:
    network = NETWORKS[kind]
    folder(tmp_path, network=network).save(0, state_of(network))
    plan = layouts.planned(checkpoints.read(tmp_path)[0].open())
    seen: list[dict[str, np.ndarray]] = []
    module = networks.Transformer.__module__
    attended, shares = Transformer._attended, f"{module}.softmax_attention_weights"

    def watched(self: Transformer, parameters: Any, name: str, state: Any, *rest: Any) -> Any:
        seen.append({"input": np.asarray(state, float)})
        heard = attended(self, parameters, name, state, *rest)
        seen[-1]["heard"] = np.asarray(heard, float)
        return heard

    def scored(scores: Any, mask: Any) -> Any:
        seen[-1]["scores"] = np.asarray(scores, float)
        found = jax.nn.softmax(scores if mask is None else np.where(mask, scores, -np.inf))
        seen[-1]["shares"] = np.asarray(found, float)
        return found

    monkeypatch.setattr(Transformer, "_attended", watched)
    monkeypatch.setattr(shares, scored)
    with jax.disable_jit():
        network.forward(drawn(network), jax.numpy.asarray(asked(network, contexts=1)))
    assert len(seen) == len(plan.layers) == network.layers
    table = drawn(network).get("positions.weight", np.zeros(1)) * (kind == "shortformer")
    for place, layer in zip(plan.layers, seen, strict=True):
        weights = plan.attention(*place)
        x = layer["input"]
        query, key = (np.einsum("hed,id->hie", part, x + table) for part in (weights.query, weights.key))
        if weights.rotary:
            query, key = turned(query, weights.rotary), turned(key, weights.rotary)
        scores = query @ key.swapaxes(1, 2) / np.sqrt(network.head_dim)
        assert_allclose(layer["scores"][0], scores, atol=2e-5)  # float32 numbers of order one
        value = np.einsum("hij,hed,jd->hie", layer["shares"][0], weights.value, x)
        assert_allclose(layer["heard"], np.einsum("hie,hde->id", value, weights.output), atol=2e-5)
        assert (weights.input_norm is not None) == (network.gain and network.norm == "pre")
    if network.gain and network.norm == "pre" and network.vocabulary and kind == "absolute":
        part = drawn(network)
        stream = part["embed.weight"][asked(network, contexts=1)[0]] + part["positions.weight"]
        fed = normed(stream.astype(float), plan.attention("", 0).input_norm, 1e-5)
        assert_allclose(seen[0]["input"], fed, atol=2e-5)


@pytest.mark.parametrize("kind", ["rotary", "perceptron"])
def test_inspect_reads_a_run_as_it_is(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    network = NETWORKS[kind]
    here = folder(tmp_path / "run", network=network)
    for step in (0, 3, 10):
        here.save(step, state_of(network, seed=step, step=step))
    assert main(["inspect", str(here.path), "--out", str(tmp_path / "out"), "--no-page"]) == 0
    assert capsys.readouterr().out.startswith("integrity: nothing found")
    table = json.loads((tmp_path / "out" / "results.json").read_text())["table"]
    matrices = {row["matrix"] for row in table}
    assert {row["step"] for row in table} == {0, 3, 10}
    if kind == "rotary":
        assert {"QK", "QK averaged", "OV", "embed.weight", "unembed.weight", "layers.1.mlp_in.weight"} <= matrices
    else:
        assert matrices == {"embed.weight", "mlp_in.weight", "mlp_out.weight"}
