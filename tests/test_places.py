"""Commands in the places where people run them: cells of notebooks, odd folders, old encodings, absent devices."""

import os
import subprocess
import sys
from pathlib import Path

RUN = ["run", "abrupt-drop", "--steps", "20", "--sequences", "20", "40", "80", "--seeds", "1", "--out"]


def iclab(*words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A command in a process and an environment of its own."""
    code = "import sys; from iclab.commands.main import main; sys.exit(main(sys.argv[1:]))"
    whole = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, env=whole)


def test_a_cell_of_a_notebook_an_old_encoding_and_an_odd_folder_change_nothing(tmp_path: Path) -> None:
    out, temporary = tmp_path / "mit Leerzeichen é", Path("/dev/shm")
    done = iclab(
        *RUN, str(out), MPLBACKEND="module://matplotlib_inline.backend_inline", FORCE_COLOR="1", HOME="/proc/none",
        PYTHONIOENCODING="latin-1", TMPDIR=str(temporary if temporary.is_dir() else tmp_path),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"\x1b[2K" not in done.stderr  # a progress bar, which only a terminal can wipe out
    assert "Leerzeichen é".encode("latin-1") in done.stdout
    assert [file.suffix for file in sorted(out.glob("*.*"))] == [".pdf", ".nc"]


def test_help_is_shown_in_every_encoding() -> None:
    for encoding in ("ascii", "cp1252"):
        done = iclab("run", "abrupt-drop", "--help", PYTHONIOENCODING=encoding)
        assert done.returncode == 0
        assert b"learning rate" in done.stdout


def test_a_device_that_is_not_there_is_said_in_one_line_before_the_work(tmp_path: Path) -> None:
    done = iclab(*RUN, str(tmp_path), JAX_PLATFORMS="cuda")
    assert done.returncode == 2
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("iclab: JAX_PLATFORMS must name devices of this machine; got 'cuda'")
