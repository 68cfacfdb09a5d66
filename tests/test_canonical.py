"""One name for each tensor of a series, in whatever wrapper, prefix or stack a checkpoint has it."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclab.commands.main import main
from iclab.spectra import checkpoints, observe
from iclab.spectra.layouts.canonical import aligned, canonical
from tests.series import CONFIG, States, clean, written

NAMES = ["transformer.wte.weight", *(f"transformer.h.{i}.attn.{part}.weight" for i in (0, 1) for part in ("q", "o"))]
BARE = [name.removeprefix("transformer.") for name in NAMES]


@pytest.mark.parametrize("prefix", ["model.", "net.", "a.b.", "a.b.c.", "_forward."])
def test_a_prefix_is_taken_off_or_put_on(prefix: str) -> None:
    longer = [prefix + name for name in NAMES]
    assert aligned(longer, NAMES) == dict(zip(longer, NAMES, strict=True))
    assert aligned(NAMES, longer) == dict(zip(NAMES, longer, strict=True))


def test_one_prefix_is_exchanged_for_another_and_other_names_stay() -> None:
    one, two = ["model." + name for name in NAMES], ["net." + name for name in NAMES]
    assert aligned(one, two) == dict(zip(one, two, strict=True))
    with_head = [*BARE, "lm_head.weight"]  # a model without its head, and with it
    assert list(aligned(with_head, [*NAMES, "lm_head.weight"]).values()) == [*NAMES, "lm_head.weight"]
    assert list(aligned([*NAMES, "lm_head.weight"], BARE).values()) == [*BARE, "lm_head.weight"]


@pytest.mark.parametrize(
    ("names", "reference"),
    [
        (NAMES, []),
        (NAMES, NAMES),
        (NAMES, ["encoder.first.weight", "encoder.second.weight"]),
        (["h.0.q.weight", "h.1.q.weight"], ["h.0.q.weight"]),  # no layer takes the name of another
        ([*NAMES, *("ema." + name for name in NAMES)], NAMES),  # two would become one
    ],
)
def test_names_stay_where_no_exchange_makes_them_those_of_the_reference(names: list, reference: list) -> None:
    assert aligned(names, reference) == {name: name for name in names}


def renamed(states: States, start: int, prefix: str) -> States:
    return {s: {(prefix if s >= start else "") + n: a for n, a in state.items()} for s, state in states.items()}


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module.", "module._orig_mod.", "model.", "net.module."])
def test_a_series_that_changes_its_prefix_has_the_numbers_of_one_that_does_not(prefix: str, tmp_path: Path) -> None:
    states = clean("steady", 3)
    plain = observe(checkpoints.of_states(list(states.values()), list(states), config=CONFIG))
    mixed = observe(checkpoints.read(written(tmp_path / "run", renamed(states, 400, prefix))))
    assert mixed.integrity == plain.integrity
    assert len(mixed.matrices) == len(plain.matrices)
    for one, other in zip(mixed.matrices, plain.matrices, strict=True):
        assert (one.role, one.head, one.status) == (other.role, other.head, other.status)
        for measure, curve in one.curves.items():
            assert_allclose(curve.values, other.curves[measure].values, rtol=1e-6)
    assert len(mixed.changes) == len(plain.changes)


def test_a_copy_behind_another_prefix_is_a_copy(tmp_path: Path) -> None:
    states = clean("steady", 3)
    states[400] = states[100]
    found = observe(checkpoints.read(written(tmp_path / "run", renamed(states, 300, "_orig_mod."))))
    (error,) = found.integrity.findings
    assert (error.kind, error.severity, error.steps) == ("identical checkpoints", "error", (100, 400))
    assert any("without _orig_mod" in note for note in found.notes)


def experts(rng: np.random.Generator) -> tuple[dict, dict]:
    """The same Mixtral layer with its experts one by one and stacked."""
    first, second = rng.standard_normal((2, 3, 6, 8)).astype(np.float32)
    down = rng.standard_normal((3, 8, 6)).astype(np.float32)
    attention = {f"model.layers.0.self_attn.{p}_proj.weight": rng.standard_normal((8, 8)) for p in "qkvo"}
    single = {
        f"model.layers.0.block_sparse_moe.experts.{e}.{part}.weight": array[e]
        for e in range(3)
        for part, array in (("w1", first), ("w3", second), ("w2", down))
    }
    at = "model.layers.0.mlp.experts."
    stacked = {at + "gate_up_proj": np.concatenate([first, second], axis=1), at + "down_proj": down}
    return attention | single, attention | stacked


MIXTRAL = {"model_type": "mixtral", "num_attention_heads": 2, "hidden_size": 8, "num_local_experts": 3}


def test_stacked_experts_are_those_of_their_own_names() -> None:
    single, stacked = (checkpoints.of_states([state])[0].open() for state in experts(np.random.default_rng(0)))
    found = canonical(stacked, family="mixtral").tensors
    assert set(found) == set(single.tensors)
    for name, tensor in found.items():
        assert_array_equal(tensor.array(), single.tensors[name].array())


@pytest.mark.parametrize("first", ["single", "stacked"])
def test_a_series_that_stacks_its_experts_midway_is_one_series(first: str) -> None:
    rng = np.random.default_rng(1)
    pairs = [experts(rng) for _ in range(4)]
    pairs[2] = pairs[0]
    states = [pair[(index > 1) ^ (first == "stacked")] for index, pair in enumerate(pairs)]
    found = observe(checkpoints.of_states(states, [0, 100, 200, 300], config=MIXTRAL))
    (error,) = (
        one for one in found.integrity.findings if one.severity == "error" and one.kind.startswith("identical")
    )
    assert error.steps == (0, 200)
    whole = [one for one in found.matrices if one.role in ("mlp_in", "mlp_out")]
    assert len(whole) == 9
    assert {status for one in whole for status in one.status} == {"ok"}


def test_two_runs_are_compared_under_the_names_of_the_first(tmp_path: Path) -> None:
    states = clean("steady", 3)
    one, other = written(tmp_path / "one", states), written(tmp_path / "two", renamed(states, 0, "net."))
    assert main(["inspect", str(one), "--against", str(other), "--out", str(tmp_path / "out"), "--no-page"]) == 0
    table = json.loads((tmp_path / "out" / "results.json").read_text())["table"]
    assert len({row["run"] for row in table}) == 2
    assert not any("net" in f"{row['tower']} {row['matrix']}" for row in table)
