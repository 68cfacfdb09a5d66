"""A sweep on a real Dask of two processes: worker, parent and scheduler killed, and moved from engine to engine."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iclab.sweeps import opened
from iclab.sweeps.grids.plan import read_plan
from tests.sweep_kills import require_right
from tests.test_sweeps import same
from tests.test_workers import alive, children, within

pytest.importorskip("distributed", reason="needs the extra cluster")
ROOT = Path(__file__).parents[2]
STUDY = "tests.sweep_studies:STUDY"
WORDS = ("--grid", "height=1:50:50", "--seeds", "4")
KNOWN = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}


def begun(*words: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", *words], env=KNOWN, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def sweep(folder: Path, *words: str) -> subprocess.Popen:
    return begun("iclab", "sweep", STUDY, *WORDS, "--out", str(folder), *words)


def status(folder: Path) -> dict:
    done = begun("iclab", "sweep", "status", str(folder), "--json")
    return json.loads(done.communicate(timeout=60)[0] or '{"done": 0, "working": []}')


def test_a_killed_worker_is_replaced_and_nothing_is_lost(tmp_path: Path) -> None:
    seen: list[dict] = []
    process = sweep(tmp_path, "--workers", "2", "--route", "sleep:0.1")
    assert within(150, lambda: status(tmp_path)["done"] > 20)
    assert within(30, lambda: bool(seen or seen.extend(status(tmp_path)["working"]) or seen))
    victim = seen[0]
    os.kill(victim["pid"], signal.SIGKILL)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    require_right(tmp_path, read_plan(tmp_path))


def test_a_killed_parent_leaves_no_process_and_its_sweep_is_finished(tmp_path: Path) -> None:
    process = sweep(tmp_path, "--workers", "2", "--route", "sleep:0.1")
    assert within(150, lambda: status(tmp_path)["done"] > 20)
    below = children(process.pid)
    assert len(below) >= 1
    process.kill()
    process.communicate()
    assert within(10, lambda: not any(map(alive, below)))
    again = begun("iclab", "sweep", "work", str(tmp_path))
    _, errors = again.communicate(timeout=200)
    assert again.returncode == 0, errors
    require_right(tmp_path, read_plan(tmp_path))


def _answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def cluster() -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """A scheduler of its own and two workers; its address, and its processes."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{one.getsockname()[1]}"
    port = address.rpartition(":")[2]
    alone = ["--no-dashboard", "--host", "127.0.0.1"]
    made = [begun("distributed.cli.dask_scheduler", "--port", port, *alone)]
    assert within(60, lambda: _answers(int(port)))
    made += [
        begun("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard", "--death-timeout", "60")
        for _ in range(2)
    ]
    yield address, made
    for process in made:
        process.kill()
        process.communicate()


def test_a_killed_scheduler_is_said_and_what_was_finished_is_kept(
    cluster: tuple[str, list[subprocess.Popen]], tmp_path: Path
) -> None:
    address, processes = cluster
    process = sweep(tmp_path, "--scheduler", address, "--route", "sleep:0.1")
    assert within(150, lambda: status(tmp_path)["done"] > 20)
    processes[0].kill()
    _, errors = process.communicate(timeout=120)
    assert process.returncode in (2, 4), errors
    assert "Traceback" not in errors
    assert status(tmp_path)["done"] > 20
    again = begun("iclab", "sweep", "work", str(tmp_path))
    _, errors = again.communicate(timeout=200)
    assert again.returncode == 0, errors
    require_right(tmp_path, read_plan(tmp_path))


def test_a_sweep_moves_from_this_process_to_dask_and_back_bitwise(tmp_path: Path) -> None:
    whole = sweep(tmp_path / "whole")
    whole.communicate(timeout=200)
    moved = tmp_path / "moved"
    for words in ((), ("--workers", "2"), (), ("--workers", "2")):
        process = sweep(moved, "--route", "sleep:0.02", *words)
        if words:
            before = status(moved)["done"]
            within(60, lambda before=before: status(moved)["done"] > before + 20)
        else:
            time.sleep(6.0)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        assert process.returncode in (0, 4, 143), errors  # the last while it loads
    last = sweep(moved, "--route", "sleep:0.02")
    assert last.wait(200) == 0
    last.communicate()
    assert same(opened(moved).collect(), opened(tmp_path / "whole").collect())


def test_two_processes_are_nearly_twice_as_quick_as_one(tmp_path: Path) -> None:
    """Cells that wait and need no processor, so that others on this machine count little."""
    words = ["--grid", "height=1:12:12", "--seeds", "2", "--route", "sleep:1"]
    spent = []
    for count in (1, 2):
        process = begun("iclab", "sweep", STUDY, *words, "--out", str(tmp_path / str(count)), "--workers", str(count))
        process.communicate(timeout=300)
        assert process.returncode == 0
        times = sorted(path.stat().st_mtime for path in (tmp_path / str(count) / "parts").rglob("*.npz"))
        spent.append((times[-1] - times[1]) / (len(times) - 2))
    assert spent[0] / spent[1] > 1.7, spent
