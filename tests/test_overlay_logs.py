"""Logs of trainers and files of starts: what is read, what is said, what is refused."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from iclab.attention import MergedAttention, SeparateAttention, random_merged, random_separate
from iclab.overlay import log_of, read_log, read_start, start_of

STEPS, LOSSES = [0, 10, 20, 30], [1.0, 0.9, 0.5, 0.4]


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def rows(**names: str) -> list[dict[str, Any]]:
    clock, loss = names["clock"], names["loss"]
    return [{clock: step, loss: value} for step, value in zip(STEPS, LOSSES, strict=True)]


LOGS = {
    "plain.csv": "step,loss\n0,1.0\n10,0.9\n20,.5\n30,4e-1\n",
    "spaced.csv": "\ufeffIteration; train_loss; lr\n0; 1.0; 1\n10; 0.9; 1\n20; .5; 1\n30; .4; 1\n",
    "tabs.txt": "epoch\tmse\n0\t1.0\n10\t0.9\n20\t.5\n30\t.4\n",
    "tracker.csv": "_step,train/loss,val/loss\n0,1.0,3\n5,,3\n10,.9,3\n20,.5,3\n30,.4,3\n",
    "lines.jsonl": "\n".join(json.dumps(row) for row in rows(clock="step", loss="loss"))
    + '\n{"step": 30, "eval": 1}\n',
    "list.json": json.dumps(rows(clock="global_step", loss="training_loss")),
    "trainer_state.json": json.dumps({"global_step": 30, "log_history": rows(clock="step", loss="loss")}),
}


@pytest.mark.parametrize("name", LOGS)
def test_what_trainers_log_is_read(name: str, tmp_path: Path) -> None:
    log = read_log(written(tmp_path / name, LOGS[name]))
    assert_array_equal(log.clock, STEPS)
    assert_array_equal(log.loss, LOSSES)
    assert log.notes == ()


def test_event_files_are_read_where_their_reader_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        for step, loss in zip(STEPS, LOSSES, strict=True):
            writer.add_scalar("train/loss", loss, step)
            writer.add_scalar("lr", 0.1, step)
    log = read_log(tmp_path)
    assert_array_equal(log.clock, STEPS)
    np.testing.assert_allclose(log.loss, LOSSES, rtol=1e-7)
    with pytest.raises(ValueError, match="must have a scalar 'mse'; there are 'train/loss', 'lr'"):
        read_log(tmp_path, loss="mse")


def test_without_their_reader_event_files_are_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("tensorboard", "tensorboard.backend.event_processing.event_accumulator"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "events.out.tfevents.1.host").write_bytes(b"")
    with pytest.raises(ImportError, match=r"needs TensorBoard.*pip install tensorboard, or export the scalar as CSV"):
        read_log(tmp_path)


@pytest.mark.parametrize(
    ("text", "named", "message"),
    [
        ("step,value\n0,1\n", {}, "must have a loss column; there are 'step', 'value'. Name it with --loss-column"),
        ("step,epoch,loss\n0,0,1\n", {}, "must have one clock; got 'step', 'epoch'. Name one with --clock-column"),
        ("step,mse,train_loss\n0,0,1\n", {}, "must have one loss; got 'mse', 'train_loss'"),
        ("step,loss\n0,1\n", {"loss": "error"}, "loss must name a column of log; got 'error'. There are 'step'"),
        ("step,loss\n0,1\n1,high\n2,1\n", {}, "must hold numbers; got 'high' in line 3"),
        ("step,loss\n", {}, "must hold records of training; got none"),
        ("step,loss\n0,\n1,\n", {}, "must have records with both 'step' and 'loss'; got none"),
        ("step,loss\n0,1\n1,1\n", {}, r"3 or more; got shapes \(2,\) and \(2,\)"),
        ("step,loss\n-1,1\n1,1\n2,1\n", {}, "step must be >= 0; got -1"),
        ("step,loss\n0,1\n1,nan\n2,1\n3,1\n", {}, "losses must be finite in 3 records or more; record 1"),
        ('{"step": 0, "loss": 1}\n{"step": 1, "lo', {}, "must hold JSON in every line; line 2 is none"),
        ("[1, 2]", {}, "must hold an object in each record; record 1 is 1"),
    ],
)  # fmt: skip
def test_a_log_that_says_too_little_or_too_much_is_refused(
    text: str, named: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        read_log(written(tmp_path / "log", text), **named)


def test_two_clocks_are_read_where_one_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "log.csv", "step,epoch,loss\n0,0,1\n10,1,.9\n20,2,.5\n30,3,.4\n")
    assert_array_equal(read_log(path, clock="epoch").clock, [0, 1, 2, 3])


def test_a_gap_and_the_end_of_a_run_that_diverged_are_said() -> None:
    log = log_of([0, 1, 2, 3, 50, 51, 52, 53], [1, 1, 1, 1, 1, 1, np.inf, 1])
    assert log.notes == (
        "the loss is not finite from step 52 on: only the records before it count",
        "no records between step 3 and 50",
    )
    assert len(log.clock) == 6


def test_records_by_equal_ratios_have_no_gap() -> None:
    assert log_of(np.concatenate([[0], np.geomspace(1, 1e4, 9)]), np.ones(10)).notes == ()


def test_a_restart_takes_back_what_it_repeats() -> None:
    log = log_of([0, 1, 2, 3, 2, 3, 4, 4, 5], [9, 8, 7, 6, 5, 4, 3, 2, 1])
    assert_array_equal(log.clock, [0, 1, 2, 3, 4, 5])
    assert_array_equal(log.loss, [9, 8, 5, 4, 2, 1])
    assert [part[1].tolist() for part in log.apart] == [[7, 6], [3]]
    assert "step goes from 3 back to 2: a restart; 2 records" in log.notes[0]


RNG = np.random.default_rng(0)
MERGED, SEPARATE = random_merged(3, 2, scale=1.0, rng=RNG), random_separate(3, 2, 2, scale=1.0, rng=RNG)


def whole(layer: MergedAttention | SeparateAttention) -> dict[str, np.ndarray]:
    """All of each matrix, as a trainer has it: what is never read is 7."""
    parts = {name: np.array(part) for name, part in vars(layer.unrestricted()).items()}
    heads = len(parts["value"])
    parts["value"] = np.concatenate([np.full((heads, 3, 4), 7.0), parts["value"][:, None]], axis=1)
    last = "key_query" if isinstance(layer, MergedAttention) else "query"
    parts[last] = np.concatenate([parts[last], np.full((*parts[last].shape[:-1], 1), 7.0)], axis=-1)
    return parts


@pytest.mark.parametrize("layer", [MERGED, SEPARATE])
def test_starts_of_all_forms_predict_the_same(layer: MergedAttention | SeparateAttention, tmp_path: Path) -> None:
    np.savez(tmp_path / "start.npz", **vars(layer))
    assert_array_equal(read_start(tmp_path / "start.npz", 3).gamma(), layer.gamma())
    for form in (vars(layer.unrestricted()), whole(layer)):
        found = start_of(form, 3)
        assert type(found) is type(layer)
        assert not found.restricted
        for name, part in vars(layer.unrestricted()).items():
            assert_array_equal(getattr(found, name), part)


def test_a_start_keeps_its_entries_beyond_the_restricted_ones() -> None:
    parts = vars(SEPARATE.unrestricted()) | {"key": RNG.standard_normal((2, 2, 4)), "value": np.ones(2)}
    found = start_of(parts, 3)
    assert_array_equal(found.key, parts["key"])
    assert_array_equal(found.value, [[0, 0, 0, 1]] * 2)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"w": np.ones(2)}, "must hold value and key_query, or value, key and query; got 'w'. Rename them"),
        ({"value": np.ones(2), "key_query": np.ones((2, 4, 4))}, r"D = 2 as the problem; got value \(2,\), key"),
        ({"value": np.ones(2), "key_query": np.ones((3, 2, 2))}, r"key_query \(H, D, D\)"),
        ({"value": np.float64(1), "key_query": np.ones((3, 2, 2))}, r"got value \(\)"),
        ({"value": np.ones(2), "key": np.ones((2, 2)), "query": np.ones((2, 2))}, r"key and query \(H, R, D\)"),
    ],
)  # fmt: skip
def test_a_start_of_another_shape_is_refused(parts: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        start_of(parts, 2)
