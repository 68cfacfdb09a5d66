"""Processes that compute seeds end with their parent; their end is said in one line, and finished seeds are kept."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from iclab.commands import workers
from iclab.commands.report import MANY, entries_of
from iclab.store import Store
from iclab.studies import STUDIES
from iclab.study import Cost
from tests.kills import STUDY, Case

ROOT = Path(__file__).parents[1]

PARENT = """
import os, sys, time
from pathlib import Path
from iclab.commands import main, workers

def stay(job):
    Path(sys.argv[1], f"child-{os.getpid()}").touch()
    time.sleep(600)

def command(words):
    from iclab.store import Store
    from tests.kills import STUDY, Case
    with Store(Path(sys.argv[1])).buffer(STUDY) as buffer:
        buffer.add(STUDY.run(Case(), (3,)))
        for _ in workers.answers([("staircase", None, 0), ("staircase", None, 1)], processes=2):
            pass

if __name__ == "__main__":
    workers._answer = stay
    main.COMMANDS["run"] = (None, command)
    sys.exit(main.main(["run"]))
"""


def alive(number: int) -> bool:
    """True for a process that runs; one that has ended may wait for its new parent to notice."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children(number: int) -> list[int]:
    """The processes below one, at any depth."""
    threads = Path(f"/proc/{number}/task").glob("*/children")  # each thread has those that it began
    own = [int(word) for path in threads for word in path.read_text().split()]
    return [*own, *(below for child in own for below in children(child))]


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    return holds()


@pytest.fixture
def family(tmp_path: Path) -> Iterator[tuple[subprocess.Popen, list[int]]]:
    """A command that has stored nothing yet, with one finished seed, and its two processes at work."""
    (tmp_path / "parent.py").write_text(PARENT)
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    parent = subprocess.Popen(
        [sys.executable, str(tmp_path / "parent.py"), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert within(60, lambda: len([*tmp_path.glob("child-*")]) == 2 or parent.poll() is not None)
    children = [int(path.name.removeprefix("child-")) for path in tmp_path.glob("child-*")]
    yield parent, children
    for number in (parent.pid, *children):
        if alive(number):
            os.kill(number, signal.SIGKILL)
    parent.communicate()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see processes")
@pytest.mark.parametrize(
    ("whom", "number", "code", "said"),
    [
        ("parent", signal.SIGKILL, -9, None),
        ("parent", signal.SIGTERM, 143, "iclab: ended by SIGTERM; finished seeds are kept\n"),
        pytest.param(
            *("parent", signal.SIGHUP, 129, "iclab: ended by SIGHUP; finished seeds are kept\n"),
            marks=pytest.mark.slow,  # as SIGTERM
        ),
        ("child", signal.SIGKILL, 2, "iclab: each process must live until its seeds are done; one was ended from"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_no_process_outlives_its_parent_and_finished_seeds_are_kept(
    family: tuple[subprocess.Popen, list[int]], tmp_path: Path, whom: str, number: int, code: int, said: str | None
) -> None:
    parent, children = family
    assert len(children) == 2
    os.kill(parent.pid if whom == "parent" else children[0], number)
    _, errors = parent.communicate(timeout=20)
    assert parent.returncode == code
    assert within(2, lambda: not any(map(alive, children)))
    if said is not None:
        assert errors.startswith(said)
        assert errors.count("\n") == 1
        assert Store(tmp_path).missing(STUDY, Case(), (3,)) == []


def test_as_many_seeds_are_computed_at_once_as_cores_and_memory_go(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(workers, "cores", lambda: 4)
    monkeypatch.setattr(workers, "machine_memory", lambda: 8e9)
    small, large = Cost(1.0, 0.0), Cost(100.0, 2e9)
    at_once = workers._at_once
    assert at_once(None, [small] * 8) == 1  # processes would begin longer than they save
    assert at_once(None, [small] * 20) == at_once(None, [None] * 20) == 4
    assert at_once(None, [large] * 2) == 2
    assert at_once(None, [large] * 20) == 3  # of 2.4 GB each, with JAX
    assert at_once(3, [small] * 2) == 2
    assert at_once(1, [large] * 2) == 1
    assert at_once(None, []) == 1
    assert capsys.readouterr().err == ""
    assert at_once(9, [small] * 20) == 4
    assert "4 seeds at once, not 9: this machine has 4 cores, and memory for 20" in capsys.readouterr().err


@pytest.mark.slow  # sixteen figures, and two processes
def test_figures_drawn_side_by_side_are_those_drawn_one_by_one(tmp_path: Path) -> None:
    study, store = STUDIES["non-monotone-context"], Store(tmp_path)
    cases = [study.case(many=20.0 + place) for place in range(MANY)]
    shown = [(study, case, store.fetch(study, case, ())) for case in cases]
    alone, together = (entries_of(shown, store, clock="time", processes=count) for count in (1, 2))
    assert [one.case for one in together] == [one.case for one in alone]
    for one, other in zip(alone, together, strict=True):
        assert (one.drawing, one.files) == (other.drawing, other.files)
