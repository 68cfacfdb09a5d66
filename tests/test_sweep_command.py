"""`iclab sweep` and `iclab collect` as a user types them: exit codes, and one sentence for what cannot be."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import xarray as xr

from iclab import files
from iclab.commands import main
from tests.test_workers import within

STUDY = "tests.sweep_studies:STUDY"
GRID = ("--grid", "inner.height=1,2", "size=2,3", "--seeds", "2")


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main.main(list(words))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def begun(*words: str) -> subprocess.Popen:
    root = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    return subprocess.Popen(
        [sys.executable, "-m", "iclab", *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_sweep_is_begun_seen_and_collected(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "sweep", STUDY, *GRID, "--dry-run", "--out", "here")
    assert code == 0
    assert "made-up: 8 cells, 3 present, 0 failed, 5 missing" in out
    assert "disk: about" in out
    code, out, _ = said(capsys, "sweep", STUDY, *GRID, "--out", "here")
    assert code == 0
    view = Path(out.split("numbers: ")[1].strip())
    with xr.open_datatree(view, engine="h5netcdf") as tree:
        assert dict(tree["simulation/curve"].sizes) == {"height": 2, "size": 2, "seed": 2, "entry": 3}
    code, out, _ = said(capsys, "sweep", "status", "here", "--json")
    assert (code, json.loads(out)["done"]) == (0, 8)
    code, out, _ = said(capsys, "collect", "here", "-o", "all.csv")
    assert code == 0
    assert out == "cells: 8 done\nnumbers: all.csv\n"


def test_failed_cells_end_with_3_and_cancelled_work_with_4(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "sweep", STUDY, "--grid", "height=1,150", "--seeds", "1")
    assert code == 3
    assert "failed: 1 × ValueError: height must be below 100; got 150.0. (first: inner.height=150, seed 0)" in out
    assert said(capsys, "sweep", "status", "results")[0] == 3
    for path in Path("results/parts").rglob("*.npz"):
        path.unlink()
    code, out, _ = said(capsys, "sweep", "cancel", "results")
    assert code == 0
    assert out.startswith("cancelled: all who work on it stop after the cell under way")
    code, out, _ = said(capsys, "sweep", "work", "results")
    assert code == 4
    assert "cancelled; `iclab sweep` with the same grid" in out


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGTERM, 4),
        (signal.SIGKILL, -9),
        *(
            pytest.param(number, code, marks=pytest.mark.slow)
            for number, code in ((signal.SIGINT, 130), (signal.SIGUSR1, 4))
        ),
    ],
)
def test_a_sweep_that_is_ended_keeps_its_cells_and_is_finished_by_another(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, number: signal.Signals, code: int
) -> None:
    words = ["--grid", "inner.height=1:15:15", "--seeds", "2", "--route", "sleep:0.2"]
    process = begun("sweep", STUDY, *words)
    assert within(40, lambda: len([*tmp_path.rglob("*.npz")]) >= 3 or process.poll() is not None)
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == code, errors
    assert "Traceback" not in errors
    done = json.loads(said(capsys, "sweep", "status", "results", "--json")[1])["done"]
    assert 3 <= done < 30
    if number == signal.SIGKILL:
        assert said(capsys, "sweep", "work", "results")[0] == 0


def test_a_cell_that_one_call_holds_beyond_its_time_is_given_up(tmp_path: Path) -> None:
    words = ["--grid", "route=plain,sleep:60,sleep:0.001", "--seeds", "1", "--cell-timeout", "0.5"]
    (tmp_path / "results").mkdir()
    before = begun("sweep", STUDY, "--grid", "route=plain,sleep:0.002,sleep:0.001", "--seeds", "1")
    before.communicate(timeout=30)  # so that no pilot is made
    process = begun("sweep", STUDY, *words)
    out, errors = process.communicate(timeout=40)
    assert process.returncode == 3, errors
    assert "2 of 3 cells done" in out
    assert "failed: 1 × TimeoutError: a cell must end within 0.5 s (--cell-timeout)" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--grid", "heigth=1,2"), "an axis must be a field of the case; got 'heigth'. Perhaps inner.height."),
        (("--grid", "height="), "axis height must hold at least one value; got none."),
        (("--grid", "height=1,2,1.0"), "axis height must not repeat a value; got 1.0 again. Leave it out."),
        (("--grid", "size=2:5:3"), "size must be whole; got 3.5."),
        (("--grid", "height=1,2", "--inner.height", "3"), "inner.height must be an axis or have one value; got"),
        (("--grid", "height=150,200"), "no cell of this grid can be computed: height must be below 100; got 150.0."),
        ((), "a sweep must have an axis; got none. Add --grid NAME=VALUES"),
        (("--grid", "height=1", "--workers", "0"), "workers must be a whole number >= 1; got 0."),
        (("--grid", "height=1", "--workers", "2", "--slurm", "time=1"), "one engine must compute; got --slurm and"),
        (("--grid", "height=1", "--print-job-script"), "a job script must be of --slurm or --jobqueue; got neither."),
        (("--grid", "height=1", "--slurm", "50"), "--slurm must be options of sbatch as time=4:00:00,mem=2G"),
        (("--grid", "height=1", "--slurm", "array=5000"), "array must be a number of workers, 1 to 1000"),
        (("--grid", "height=1", "--jobqueue", "slrm"), "--jobqueue must begin with one of pbs, lsf, sge, slurm"),
        (("--grid", "height=1", "--cell-timeout", "0"), "cell_timeout must be > 0 seconds; got 0.0."),
        (("--grid-file", "none.toml"), "--grid-file must be a TOML file that can be read; got none.toml"),
    ],
)  # fmt: skip
def test_a_grid_that_cannot_be_is_refused_in_one_sentence_and_leaves_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    code, _, errors = said(capsys, "sweep", STUDY, *words)
    assert code == 2
    assert errors.startswith(f"iclab: {sentence}"), errors
    assert errors.count("\n") == 1
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_two_workers_without_dask_name_the_extra_and_the_second_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, _, errors = said(capsys, "sweep", STUDY, *GRID, "--workers", "2")
    assert code == 2
    assert "2 workers need Dask" in errors
    assert "[cluster]" in errors
    assert "begin `iclab sweep work DIR` in a second terminal, which needs nothing" in errors


def test_a_sweep_on_a_machine_without_slurm_says_where_to_begin_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    code, _, errors = said(capsys, "sweep", STUDY, *GRID, "--slurm", "time=1:00:00")
    assert code == 2
    assert "sbatch must be found where a job array is begun; it is not on this machine" in errors


def test_the_job_script_of_an_array_flushes_before_its_end_and_becomes_the_worker(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, _ = said(
        capsys,
        "sweep",
        STUDY,
        *GRID,
        "--slurm",
        "time=4:00:00,mem=2G,array=50%10,partition=long",
        "--print-job-script",
    )
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "#!/bin/bash"
    for option in ("time=4:00:00", "mem=2G", "array=0-49%10", "partition=long", "signal=B:TERM@180", "requeue",
                   "open-mode=append"):  # fmt: skip
        assert f"#SBATCH --{option}" in lines
    assert lines[-1].startswith(f"exec {sys.executable} -m iclab sweep work {tmp_path}/results --plan ")
    assert lines[-1].endswith('--requeue --place "$SLURM_ARRAY_TASK_ID/50"')
    assert not (tmp_path / "results").exists()


def test_a_full_disk_is_said_and_what_was_stored_is_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said(capsys, "sweep", STUDY, *GRID)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(files, "_linked", full)
        code, _, errors = said(capsys, "sweep", STUDY, "--grid", "inner.height=1,2,3", "size=2,3", "--seeds", "2")
    assert code == 2
    assert "No space left on device" in errors
    assert json.loads(said(capsys, "sweep", "status", "results", "--json")[1])["done"] == 8
    assert [*Path().rglob(".unfinished*")] == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    code, _, errors = said(capsys, "sweep", STUDY, *GRID)
    tmp_path.chmod(0o755)
    assert code == 2
    assert "--out must be a folder that can be written" in errors


def test_a_grid_file_states_a_whole_sweep(capsys: pytest.CaptureFixture[str]) -> None:
    Path("grid.toml").write_text(
        f'study = "{STUDY}"\nseeds = [3, 5]\n[base]\nsize = 2\n'
        '[grid]\nheight = {from = 1, to = 4, count = 3, scale = "log"}'
    )
    code, out, _ = said(capsys, "sweep", "--grid-file", "grid.toml")
    assert (code, out.splitlines()[0][:30]) == (0, "made-up: 6 of 6 cells done (10")


def test_the_status_of_ten_thousand_cells_is_quick(capsys: pytest.CaptureFixture[str]) -> None:
    from iclab.sweeps.grids.axes import axes_of
    from iclab.sweeps.grids.plan import read_plan
    from iclab.sweeps.grids.sources import source
    from iclab.sweeps.progress import progress_of
    from iclab.sweeps.state import State
    from iclab.sweeps.sweeping import planned

    plan = planned(source(STUDY), axes_of(["height=1:90:625", "size=2,3"]), 8)
    plan.write(Path(), plan.keys())
    begun = time.process_time()
    now = progress_of(State(Path(), read_plan(Path())))
    assert (now.cells, now.missing) == (10_000, 10_000)
    assert time.process_time() - begun < 0.5


def test_the_sweep_that_was_begun_last_is_the_one_that_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    for values in ("1,2", "1,2,3", "1,2"):
        assert said(capsys, "sweep", STUDY, "--grid", f"height={values}", "--seeds", "2")[0] == 0
    assert json.loads(said(capsys, "sweep", "status", "results", "--json")[1])["cells"] == 4
    said(capsys, "collect", "results", "-o", "all.nc")
    with xr.open_datatree("all.nc", engine="h5netcdf") as tree:
        assert tree.height.values.tolist() == [1.0, 2.0, 3.0], "and collects what differs in values alone"
