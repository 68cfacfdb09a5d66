"""Spectra taken during training: what they say, how often they are taken, and what they cost."""

import csv
import io
import itertools
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

import iclab
from iclab.spectra import checkpoints, circuits, layouts, measures
from iclab.spectra.observation.watching import TimeBudget

HEADS, SIZE, WIDTH = 2, 4, 8
MAPPING = {
    "heads": HEADS,
    "head_dim": SIZE,
    "tensor": [
        {"match": rf"h\.(?P<layer>\d+)\.{role}", "role": role, "output_axis": 0} for role in ("q", "k", "v", "o")
    ],
}


@dataclass
class Clock:
    """A clock that is set by hand."""

    now: float = 0.0

    def __call__(self):
        return (self.now,)


def state(seed=0, layers=2):
    rng = np.random.default_rng(seed)
    return {f"h.{i}.{role}": rng.standard_normal((WIDTH, WIDTH)) for i in range(layers) for role in "qkvo"}


def rows_of(folder):
    return [row for file in sorted(folder.glob("*.csv")) for row in csv.DictReader(io.StringIO(file.read_text()))]


def watched(weights, steps, *, change=lambda weights, step: None):
    """A watcher whose every step is due: no time passes on its clock."""
    watcher = iclab.watch(weights, mapping=MAPPING, k=2, share=0.999, clock=Clock())
    for step in steps:
        change(weights, step)
        watcher(step)
    return watcher.rows


def value(rows, **where):
    found = [row.value for row in rows if all(getattr(row, name) == want for name, want in where.items())]
    assert len(found) == 1
    return found[0]


def test_ranks_are_those_of_the_measures_of_the_product():
    weights = state()
    rows = watched(weights, [0])
    head = slice(SIZE, 2 * SIZE)
    product = weights["h.1.q"][head].T @ weights["h.1.k"][head]
    where = {"step": 0, "layer": 1, "head": 1, "matrix": "QK"}
    values = np.linalg.svd(product, compute_uv=False)[:SIZE]
    assert_allclose(value(rows, measure="effective_rank", **where), measures.effective_rank(values))
    assert_allclose(value(rows, measure="stable_rank", **where), np.sum(values**2) / values[0] ** 2)
    assert value(rows, measure="numerical_rank", **where) == SIZE
    norms = {row.norm for row in rows if (row.layer, row.head, row.matrix) == (1, 1, "QK")}
    assert_allclose(list(norms), np.linalg.norm(product))


def test_consecutive_overlaps_compare_with_the_state_measured_before():
    def change(weights, step):
        weights["h.0.v"] += 0.3 * np.random.default_rng(step).standard_normal((WIDTH, WIDTH))

    weights = state()
    rows = watched(weights, [0, 1, 2], change=change)
    plans = []
    again = state()
    for step in (0, 1, 2):
        change(again, step)
        contents = checkpoints.of_states([{name: array.copy() for name, array in again.items()}])[0].open()
        plans.append(layouts.planned(contents, layouts.from_mapping(MAPPING)))
    before, now = (circuits.output_value([plan.attention("", 0)], 0, 1) for plan in plans[1:])
    found = value(rows, step=2, layer=0, head=1, matrix="OV", measure="overlap_with_previous")
    assert_allclose(found, measures.subspace_overlap(before, now, k=2, side="right"), rtol=1e-12)
    same = value(rows, step=2, layer=0, head=1, matrix="QK", measure="overlap_with_previous")
    assert_allclose(same, 1.0, rtol=1e-12)
    assert {row.reason for row in rows if row.step == 0 and row.measure == "overlap_with_previous"} == {
        "no state before it"
    }


def test_weights_that_are_not_finite_get_a_status_and_do_not_stop_the_others():
    weights = state()
    weights["h.0.q"][0, 0] = np.nan
    weights["h.1.o"][:] = 0.0
    rows = watched(weights, [0])
    broken = [row for row in rows if (row.layer, row.head, row.matrix) == (0, 0, "QK")]
    assert [row.status for row in broken] == ["nonfinite"]
    assert "1 NaN or infinite" in broken[0].reason
    zero = [row for row in rows if (row.layer, row.head, row.matrix) == (1, 0, "OV")]
    assert {row.status for row in zero if row.measure == "stable_rank"} == {"degenerate"}
    assert all(np.isfinite(row.value) for row in rows if row.status == "ok")
    assert {row.status for row in rows if (row.layer, row.head) == (0, 1) and "overlap" not in row.measure} == {"ok"}


def test_tensors_that_change_their_shape_in_training_get_a_reason():
    weights = state()

    def change(weights, step):
        if step == 1:
            weights["h.0.q"] = np.zeros((WIDTH + 1, WIDTH))

    rows = watched(weights, [0, 1, 2], change=change)
    skipped = [row for row in rows if row.step == 1]
    assert [row.status for row in skipped] == ["skipped"]
    assert "h.0.q" in skipped[0].reason


def test_all_measurements_together_stay_below_their_share_of_the_time():
    clock = Clock()
    budget, rng, work = TimeBudget(0.04, clock), np.random.default_rng(0), 0.0
    measured = 0
    for _ in range(5000):
        clock.now += 0.01
        work += 0.01
        if budget.due():
            with budget:
                clock.now += (cost := 0.02 * rng.uniform(0.5, 1.0))
            measured += 1
            assert budget.spent[0] <= 0.04 * clock.now + cost
    assert budget.spent[0] <= 0.04 * clock.now
    assert budget.spent[0] > 0.03 * clock.now  # and it makes use of what it has
    assert measured > 50


def test_measurements_are_two_percent_of_the_step_apart():
    weights = state(layers=1)
    steps = sorted({row.step for row in watched(weights, range(1, 300))})
    assert steps[:20] == list(range(1, 21))
    assert all(later / earlier >= 1.02 for earlier, later in itertools.pairwise(steps))
    assert max(np.diff(steps)) <= 7


def test_each_step_is_one_file_whole_or_not_there(tmp_path, monkeypatch):
    weights = state()
    out = tmp_path / "spectra"
    watcher = iclab.watch(weights, out, mapping=MAPPING, share=0.5)
    watcher(0)
    watcher.finish(7)
    watcher.finish(7)
    assert [file.name for file in sorted(out.iterdir())] == ["step-000000000000.csv", "step-000000000007.csv"]
    assert {row["step"] for row in rows_of(out)} == {"0", "7"}
    assert watcher.rows == []

    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.warns(UserWarning, match="step 9 could not be written: No space left"):
        watcher.finish(9)
    assert len(list(out.iterdir())) == 2


def test_a_run_that_goes_back_sets_later_steps_aside(tmp_path):
    weights = state()
    for steps in ((0, 50, 80), (50, 60)):
        watcher = iclab.watch(weights, tmp_path, mapping=MAPPING)
        for step in steps:
            watcher.finish(step)
    assert {int(row["step"]) for row in rows_of(tmp_path)} == {0, 50, 60}
    assert (tmp_path / "step-000000000080.csv.superseded").exists()


def test_hostile_names_are_written_as_text(tmp_path):
    names = ["<img src=x onerror=alert(1)>", "=cmd()", "a[/b]c", "$\\frac{1$", "\x1b]0;x\x07"]
    weights = {name: np.eye(3) for name in names}
    mapping = {"heads": 1, "tensor": [{"match": r".*", "role": "mlp_in"}]}
    iclab.watch(weights, tmp_path, mapping=mapping).finish(0)
    text = next(tmp_path.glob("*.csv")).read_text()
    assert "\x1b" not in text
    assert "'=cmd()" in text
    assert r"\x1b]0;x\x07" in text
    assert [file.name for file in tmp_path.iterdir()] == ["step-000000000000.csv"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": state()}, "family of the model must be known"),
        ({"model": 3, "mapping": MAPPING}, "model must have a state_dict"),
        ({"model": state(), "mapping": MAPPING, "share": 1.0}, "share must be above 0"),
        ({"model": state(), "mapping": MAPPING, "k": 0}, "k must be"),
        ({"model": {"h.0.q": np.eye(9)}, "mapping": MAPPING}, "h.0.q"),
    ],
)
def test_what_cannot_be_watched_is_refused_before_training(arguments, message):
    with pytest.raises(ValueError, match=message):
        iclab.watch(**arguments)


def test_arrays_are_watched_where_no_framework_is_installed():
    program = """
import sys
for name in ("torch", "transformers", "jax"):
    sys.modules[name] = None
import numpy as np
import iclab
watcher = iclab.watch({"w": np.eye(3)}, mapping={"heads": 1, "tensor": [{"match": "w", "role": "mlp_in"}]})
watcher(0)
assert [round(row.value, 9) for row in watcher.rows if row.measure == "stable_rank"] == [3.0]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_file_is_no_folder_for_spectra(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="out must be a folder"):
        iclab.watch(state(), tmp_path / "file", mapping=MAPPING)


def test_a_trainer_of_transformers_is_watched_from_start_to_end(tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_embd=WIDTH, n_head=HEADS, n_layer=2, n_positions=8, vocab_size=11)
    model = transformers.GPT2LMHeadModel(config)
    watcher = iclab.watch(model, tmp_path / "spectra")
    handler = watcher.callback()
    control, done = transformers.TrainerControl(), transformers.TrainerState()
    arguments = transformers.TrainingArguments(output_dir=str(tmp_path), report_to=[], use_cpu=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handler.on_train_begin(arguments, done, control, model=model)
    for step in range(1, 4):
        tokens = torch.randint(0, 11, (2, 8), generator=torch.Generator().manual_seed(step))
        model(tokens, labels=tokens).loss.backward()
        optimizer.step()
        done.global_step = step
        handler.on_step_end(arguments, done, control, model=model)
    handler.on_train_end(arguments, done, control, model=model)
    rows = rows_of(tmp_path / "spectra")
    steps = sorted({int(row["step"]) for row in rows})
    assert (steps[0], steps[-1]) == (0, 3)
    assert {row["matrix"] for row in rows} >= {"QK", "OV", "transformer.wte.weight"}
    assert any(row["measure"] == "overlap_with_previous" for row in rows)


@pytest.mark.slow
def test_five_hundred_watched_steps_cost_at_most_a_twentieth_more(tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_embd=128, n_head=4, n_layer=2, n_positions=64, vocab_size=256)
    torch.set_num_threads(1)

    class Run:
        """One model in training, and the CPU seconds it has taken, its watcher's among them."""

        def __init__(self, out=None):
            torch.manual_seed(0)
            self.model, self.seconds = transformers.GPT2LMHeadModel(config), 0.0
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
            self.began = time.process_time()
            self.watcher = None if out is None else iclab.watch(self.model, out, clock=self.clock)  # of its own run

        def clock(self):
            return (self.seconds + time.process_time() - self.began,)

        def step(self, number):
            tokens = torch.randint(0, 256, (8, 64), generator=torch.Generator().manual_seed(number))
            self.began = time.process_time()
            if self.watcher is not None:
                self.watcher(number)
            self.optimizer.zero_grad()
            self.model(tokens, labels=tokens).loss.backward()
            self.optimizer.step()
            (self.seconds,) = self.clock()

    for number in range(5):  # imports and first calls
        Run().step(number)
    alone, watched = Run(), Run(tmp_path)
    for number in range(500):  # in turns, so that what else the machine does falls on both
        for run in (alone, watched) if number % 2 else (watched, alone):
            run.step(number)
    ratio, measured = watched.seconds / alone.seconds, len(list(tmp_path.iterdir()))
    print(f"{watched.seconds:.2f} s / {alone.seconds:.2f} s = {ratio:.4f}, {measured} steps measured")
    assert measured > 5
    assert ratio <= 1.05
