"""Long simulations: they tell how far they are, and go on from their last whole block; cost is said before."""

import io
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from iclab.attention import MergedAttention
from iclab.commands.main import main
from iclab.commands.terminal import progressing
from iclab.commands.terminal.progressing import Progress, span
from iclab.planning import pace
from iclab.problem import Regression
from iclab.simulation.linear import loop
from iclab.simulation.linear.descent import on_statistics
from iclab.simulation.waiting import keeping, kept, listening
from iclab.store import Store, digest
from iclab.studies import STUDIES
from iclab.studies.dynamics import following, training

PROBLEM = Regression((0.6, 0.4), context_length=10)
START = MergedAttention(np.array([0.1, 0.2]), 0.1 * np.arange(8.0).reshape(2, 2, 2))
STEPS = np.arange(0, 2001, 10)


def trained():
    return on_statistics(training.population_statistics(PROBLEM), START, rate=0.02, steps=STEPS)


class Stopped(BaseException):
    """Somebody's interrupt."""


def test_a_run_tells_its_steps_up_to_the_last() -> None:
    told: list[tuple[str, int, int]] = []
    with listening(lambda *words: told.append(words)):
        trained()
    done = [steps for _, steps, _ in told]
    assert done == sorted(set(done))
    assert told[-1] == ("step", 2000, 2000)
    assert len(told) == -(-len(STEPS) // loop.BLOCK)


def test_an_interrupted_run_goes_on_from_its_last_whole_block_and_ends_the_same(tmp_path: Path) -> None:
    whole, told = trained(), []

    def stop(_: str, done: int, total: int) -> None:
        told.append(done)
        if done > 600 and len(told) == 3:
            raise Stopped

    with keeping(tmp_path), listening(stop):
        with pytest.raises(Stopped):
            trained()
        assert len(list(tmp_path.glob("unfinished-*.npz"))) == 1
        again = trained()
    assert told[3] > told[2], "the first blocks are not computed again"
    assert_array_equal(again.loss, whole.loss)
    assert_array_equal(again.weights.key_query, whole.weights.key_query)
    assert list(tmp_path.iterdir()) == []


def test_the_state_of_another_run_and_a_damaged_one_are_not_taken(tmp_path: Path) -> None:
    with keeping(tmp_path):
        one, other = (kept("run", lambda value=value: [np.array(value)]) for value in (1.0, 2.0))
        one.save(lambda: [np.arange(3)], now=True)
        assert other.load() is None
        assert_array_equal(one.load()[0], np.arange(3))
        file = next(tmp_path.iterdir())
        file.write_bytes(file.read_bytes()[:50])
        assert one.load() is None
        one.done()
        assert list(tmp_path.iterdir()) == []
    assert kept("run", lambda: []).load() is None


def test_long_runs_are_split_between_records_and_short_ones_are_not() -> None:
    few = np.array([0, 10, 300])
    assert_array_equal(loop._ends(few), few)
    ends = loop._ends(np.array([0, 10, 1_000_000]))
    assert {0, 10, 1_000_000} <= set(ends.tolist())
    assert np.max(np.diff(ends)) <= 1_000_000 / loop.SPANS + 1


class Terminal(io.StringIO):
    """A stream that says that it is a terminal, or not."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_one_line_that_changes_in_a_terminal_and_lines_in_a_pipe(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Terminal(terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    for name, seconds in (("TICK", 0.02), ("LINE", 0.02), ("SILENT", 0.0)):
        monkeypatch.setattr(progressing, name, seconds)
    with Progress() as shown:
        for seed in shown.track([0, 1], description="abrupt-drop"):
            shown.inside("step", 500 * (seed + 1), 2000)
            time.sleep(0.2)
    said = stream.getvalue()
    assert "abrupt-drop 0/2, step 500 of 2,000" in said
    assert "abrupt-drop 1/2, step 1,000 of 2,000" in said
    assert "left" in said
    assert said.endswith("\r\x1b[K" if terminal else "\n")
    assert (said.count("\n") == 0) == terminal


def test_quiet_progress_and_what_is_soon_done_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal(True)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progressing, "TICK", 0.01)
    with Progress() as soon:
        list(soon.track([0], description="soon done"))
        time.sleep(0.05)
    monkeypatch.setattr(progressing, "SILENT", 0.0)
    with Progress(quiet=True) as quiet:
        quiet.add_task("quiet", total=2)
        time.sleep(0.05)
    assert stream.getvalue() == ""


def test_times_are_told_in_a_unit_that_suits_them() -> None:
    assert [span(seconds) for seconds in (3, 600, 7200, 30 * 86400)] == ["3 s", "10 min", "2.0 hours", "30 days"]


def test_cost_is_said_before_a_run_of_more_than_a_minute(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "fetch", lambda *_, **__: pytest.fail("said too late"))
    words = ["--eigenvalues", "1", "1", "1", "--rate", ".001", "--processes", "1", "--out", str(tmp_path)]
    with pytest.raises(BaseException, match="said too late"):
        main(["run", "abrupt-drop", *words, "--steps", "10000000"])
    assert "abrupt-drop: about 6 min on one core; Ctrl-C stops" in capsys.readouterr().err
    with pytest.raises(BaseException, match="said too late"):
        main(["run", "abrupt-drop", *words, "--steps", "1000"])
    assert "about" not in capsys.readouterr().err


def test_what_memory_cannot_hold_is_refused_and_theory_still_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    many = ["--eigenvalues", ",".join(["1"] * 784), "--rate", ".0001", "--steps", "50", "--out", str(tmp_path)]
    assert main(["run", "abrupt-drop", *many]) == 2
    said = capsys.readouterr().err
    assert "memory must hold the training of abrupt-drop, about " in said
    assert "or ask theory alone with --seeds 0." in said
    case = STUDIES["abrupt-drop"].case(
        problem=Regression((1.0,) * 40, context_length=9), steps=10, rate=1e-4, heads=1
    )
    assert STUDIES["abrupt-drop"].run(case, 0)["theory/levels"].loss.size == 2


def test_the_estimate_is_that_of_the_steps_and_of_the_square_of_the_features() -> None:
    case = STUDIES["abrupt-drop"].quick
    long = following.cost(replace(case, steps=100 * case.steps)).seconds - following.cost(case).seconds
    assert long == pytest.approx(
        99e-6 * case.steps * pace.step_time(case.problem.dimension, len(case.sequences)), rel=1e-6
    )
    wide = [following.cost(replace(case, problem=Regression((1.0,) * size))).memory for size in (20, 40)]
    assert wide[1] / wide[0] == pytest.approx(2**6, rel=0.2)  # features are about D³/2


@pytest.mark.slow
def test_a_killed_command_goes_on_in_the_middle_of_a_seed(tmp_path: Path) -> None:
    words = ["run", "abrupt-drop", "--heads", "2", "--eigenvalues", ".6", ".4", "--rate", ".05", "--steps", "2000000"]
    words += ["--sequences", "50", "100", "200", "--seeds", "1", "--out"]
    program = (
        "import sys; from iclab.commands.main import main; from iclab.simulation import waiting; "
        "waiting.EVERY = 0.5; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.Popen(
        [sys.executable, "-c", program, *words, str(tmp_path / "killed")], stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while not list((tmp_path / "killed").glob("tmp/unfinished-*")) and time.monotonic() < deadline:
        time.sleep(0.2)
    done.send_signal(signal.SIGTERM)
    assert done.wait(60) == 128 + signal.SIGTERM
    assert len(list((tmp_path / "killed").glob("tmp/unfinished-*"))) == 1
    for folder in ("killed", "whole"):
        assert main([*words, str(tmp_path / folder)]) == 0
        assert not list((tmp_path / folder).glob("tmp/unfinished-*"))
    study = STUDIES["abrupt-drop"]
    case = study.case(problem=Regression((0.6, 0.4)), heads=2, rate=0.05, steps=2_000_000, sequences=(50, 100, 200))
    killed, whole = (Store(tmp_path / folder).load(study, case) for folder in ("killed", "whole"))
    assert killed is not None
    assert whole is not None
    assert digest(killed) == digest(whole)
