"""A sweep in arrays of a real SLURM: handed over, killed, told to end, refused, moved to another engine and back."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.engines import local_slurm
from tests.engines.local_slurm import asked, wait_for
from tests.sweep_kills import require_right

ROOT = Path(__file__).parents[2]
STUDY = "tests.sweep_studies:STUDY"
pytestmark = pytest.mark.skipif(bool(local_slurm.absent()), reason=local_slurm.absent())
CONTROL = "SLURM_ARRAY_TASK_ID"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with local_slurm.running(tmp_path_factory.mktemp("slurm")) as known:
        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        yield {**known, "PYTHONPATH": paths}


def iclab(known: dict[str, str], *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "iclab", *words], env=known, capture_output=True, text=True, timeout=300, check=False
    )


def status(known: dict[str, str], folder: Path) -> dict:
    return json.loads(iclab(known, "sweep", "status", str(folder), "--json").stdout)


def over(known: dict[str, str]) -> bool:
    return asked(known, "squeue", "-h") == ""


def plan_of(folder: Path):
    from iclab.sweeps.grids.plan import read_plan

    return read_plan(folder)


def handed_over(known: dict[str, str], folder: Path, *words: str, array: str = "2", minutes: int = 10) -> str:
    """The number of the job array that computes a sweep."""
    done = iclab(known, "sweep", STUDY, *words, "--out", str(folder), "--slurm", f"time=0:{minutes}:00,array={array}")
    assert done.returncode == 0, done.stderr
    found = re.search(r"job array (\d+) computes", done.stdout)
    assert found, done.stdout
    return found[1]


def test_an_array_computes_a_sweep_and_a_killed_task_loses_nothing(slurm: dict[str, str], tmp_path: Path) -> None:
    words = ["--grid", "height=1:50:50", "--seeds", "4", "--route", "sleep:0.2"]
    handed_over(slurm, tmp_path, *words)
    wait_for(lambda: status(slurm, tmp_path)["done"] > 20, 120)
    wait_for(lambda: status(slurm, tmp_path)["working"], 30)
    victim = status(slurm, tmp_path)["working"][0]
    os.kill(victim["pid"], signal.SIGKILL)
    wait_for(lambda: over(slurm), 200)
    now = status(slurm, tmp_path)
    assert (now["done"], now["failed"]) == (200, 0)
    require_right(tmp_path, plan_of(tmp_path))


def test_a_job_that_is_told_to_end_flushes_and_is_begun_again(slurm: dict[str, str], tmp_path: Path) -> None:
    job = handed_over(slurm, tmp_path, "--grid", "height=1:30:30", "--seeds", "4", "--route", "sleep:0.3", array="1")
    wait_for(lambda: status(slurm, tmp_path)["done"] > 6, 120)
    asked(slurm, "scancel", "--batch", "--signal=TERM", f"{job}_0")
    wait_for(lambda: not [one for one in status(slurm, tmp_path)["working"] if one["age"] < 5], 60)
    stopped = status(slurm, tmp_path)["done"]
    assert 6 < stopped < 120
    shown = asked(slurm, "scontrol", "show", "job", f"{job}_0")
    assert "Restarts=1" in shown, shown
    done = iclab(slurm, "sweep", "work", str(tmp_path))  # SLURM holds a requeued job back for two minutes
    assert done.returncode == 0, done.stderr
    asked(slurm, "scancel", job)
    require_right(tmp_path, plan_of(tmp_path))


def test_a_job_whose_walltime_ends_has_lost_no_finished_cell(slurm: dict[str, str], tmp_path: Path) -> None:
    job = handed_over(
        slurm, tmp_path, "--grid", "height=1:60:60", "--seeds", "6", "--route", "sleep:0.5", array="1", minutes=4
    )  # fmt: skip  # told 180 s before, so after one minute
    begun = time.monotonic()
    wait_for(lambda: "Restarts=1" in asked(slurm, "scontrol", "show", "job", f"{job}_0"), 150)
    assert time.monotonic() - begun > 20
    now = status(slurm, tmp_path)
    assert now["done"] > 20
    assert now["failed"] == 0
    assert iclab(slurm, "sweep", "cancel", str(tmp_path)).returncode == 0
    wait_for(lambda: over(slurm), 60)


def test_a_partition_that_is_not_there_is_refused_in_slurm_s_own_words(slurm: dict[str, str], tmp_path: Path) -> None:
    done = iclab(
        slurm, "sweep", STUDY, "--grid", "height=1:5:5", "--seeds", "2", "--out", str(tmp_path),
        "--slurm", "partition=nowhere,array=1",
    )  # fmt: skip
    assert done.returncode == 2
    assert "SLURM must accept the job; it says: sbatch: error: " in done.stderr
    assert "invalid partition specified: nowhere" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_cancelled_sweep_leaves_no_job_behind(slurm: dict[str, str], tmp_path: Path) -> None:
    job = handed_over(slurm, tmp_path, "--grid", "height=1:30:30", "--seeds", "4", "--route", "sleep:0.3")
    done = iclab(slurm, "sweep", "cancel", str(tmp_path))
    assert f"job {job} is ended" in done.stdout
    wait_for(lambda: over(slurm), 60)
    assert status(slurm, tmp_path)["cancelled"]


def test_a_job_that_its_user_cancels_is_not_begun_again(slurm: dict[str, str], tmp_path: Path) -> None:
    job = handed_over(slurm, tmp_path, "--grid", "height=1:30:30", "--seeds", "4", "--route", "sleep:0.3", array="1")
    wait_for(lambda: status(slurm, tmp_path)["done"] > 4, 120)
    asked(slurm, "scancel", job)
    wait_for(lambda: over(slurm), 60)
    assert status(slurm, tmp_path)["missing"] > 0


def test_a_sweep_stopped_ten_times_on_three_engines_is_bitwise_the_whole_one(
    slurm: dict[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("distributed", reason="needs the extra cluster")
    from iclab.sweeps import opened
    from tests.test_sweeps import same

    grid = ["--grid", "height=1:40:40", "size=2,3", "--seeds", "4"]
    assert iclab(slurm, "sweep", STUDY, *grid, "--out", str(tmp_path / "whole")).returncode == 0
    here = tmp_path / "moved"
    words = [*grid, "--route", "sleep:0.1"]
    engines = ([], ["--workers", "2"], None)  # None: a job array
    for turn in range(10):
        own = engines[turn % 3]
        before = status(slurm, here)["done"] if here.exists() else 0
        stop = begun(slurm, here, *words, *own) if own is not None else array(slurm, here, *words)
        wait_for(lambda before=before: here.exists() and status(slurm, here)["done"] > before + 5, 120)
        stop()
    assert 60 < status(slurm, here)["done"] < 320
    assert iclab(slurm, "sweep", STUDY, *grid, "--out", str(here)).returncode == 0
    assert same(opened(here).collect(), opened(tmp_path / "whole").collect())


def begun(known: dict[str, str], folder: Path, *words: str) -> Callable[[], None]:
    """A sweep in processes of this machine. Returns what ends it."""
    line = [sys.executable, "-m", "iclab", "sweep", STUDY, *words, "--out", str(folder)]
    process = subprocess.Popen(line, env=known, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop() -> None:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (4, 143)

    return stop


def array(known: dict[str, str], folder: Path, *words: str) -> Callable[[], None]:
    """A sweep in a job array. Returns what ends it."""
    job = handed_over(known, folder, *words)

    def stop() -> None:
        asked(known, "scancel", job)
        wait_for(lambda: over(known), 60)

    return stop


def test_jobs_of_dask_jobqueue_on_slurm_compute_a_sweep(slurm: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue", reason="needs the extra cluster")
    done = iclab(
        slurm, "sweep", STUDY, "--grid", "height=1:20:20", "--seeds", "2", "--out", str(tmp_path), "--jobqueue",
        "slurm,walltime=0:10:00,jobs=2,interface=lo,host=127.0.0.1,memory=500MB",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    require_right(tmp_path, plan_of(tmp_path))
    wait_for(lambda: over(slurm), 60)
