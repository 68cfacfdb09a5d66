"""Files that are written whole: what ended processes leave is removed, what living ones write is not."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from iclab.files import UNFINISHED, folder_written_whole, link_whole, put_aside, written_whole


def left_by_an_ended_process(folder: Path) -> list[Path]:
    """A file and a folder that a killed process was writing, and a file in its workspace."""
    code = f"""
import os
from pathlib import Path
from iclab.files import folder_written_whole, link_whole, written_whole
os.link = os.replace = lambda *_: os._exit(0)
folder = Path({str(folder)!r})
with written_whole(folder / "page.html") as file, folder_written_whole(folder / "step") as step:
    file.write_text("half")
    (step / "model").write_text("half")
    link_whole(folder / "part.npz", b"whole", workspace=folder / "tmp")
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    return [*folder.glob(f"{UNFINISHED}*"), *(folder / "tmp").iterdir()]


def test_what_an_ended_process_left_is_removed_by_the_next_that_writes_there(tmp_path: Path) -> None:
    left = left_by_an_ended_process(tmp_path)
    assert len(left) == 3
    with written_whole(tmp_path / "page.html") as file:
        file.write_text("whole")
    assert link_whole(tmp_path / "part.npz", b"whole", workspace=tmp_path / "tmp")
    assert not [path for path in left if path.exists()]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["page.html", "part.npz", "tmp"]


@pytest.mark.parametrize("whose", ["living", "another machine's", "unnamed"])
def test_what_may_still_be_written_is_left_alone_for_a_day(tmp_path: Path, whose: str) -> None:
    with written_whole(tmp_path / "first") as other:
        if whose != "living":
            owner = "" if whose == "unnamed" else ".elsewhere-4026531836.4000001"
            other = tmp_path / f"{UNFINISHED}1a2b{owner}.nc"
            other.touch()
        with folder_written_whole(tmp_path / "second"):
            assert other.exists()
        before = time.time() - 90_000  # seconds; a day has 86,400
        os.utime(other, (before, before))
        with written_whole(tmp_path / "third"):
            assert not other.exists()
        other.touch()


def test_files_of_others_stay_however_old_they_are(tmp_path: Path) -> None:
    own = [tmp_path / "tmp" / name for name in ("notes", "half.host.4000001", ".hidden.host.4000001.nc")]
    own[0].parent.mkdir()
    for file in own:
        file.touch()
        os.utime(file, (0, 0))
    link_whole(tmp_path / "part.npz", b"whole", workspace=tmp_path / "tmp")
    with written_whole(tmp_path / "tmp" / "page"):
        pass
    assert all(file.exists() for file in own)


@pytest.mark.parametrize(("mask", "file_mode", "folder_mode"), [(0o077, 0o600, 0o700), (0o027, 0o640, 0o750)])
def test_files_and_folders_are_as_readable_as_the_user_s_mask_says(
    tmp_path: Path, mask: int, file_mode: int, folder_mode: int
) -> None:
    before = os.umask(mask)
    try:
        with written_whole(tmp_path / "a.nc") as file:
            file.write_text("a")
        with folder_written_whole(tmp_path / "step") as step:
            (step / "model").touch(mode=0o600)  # as some libraries make their files
        link_whole(tmp_path / "parts" / "b.npz", b"b", workspace=tmp_path / "tmp")
    finally:
        os.umask(before)
    modes = {path.relative_to(tmp_path).as_posix(): path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert modes == {
        "a.nc": file_mode, "step/model": file_mode, "parts/b.npz": file_mode,
        "step": folder_mode, "parts": folder_mode, "tmp": folder_mode,
    }  # fmt: skip


def test_a_file_that_never_changes_is_written_once(tmp_path: Path) -> None:
    path, workspace = tmp_path / "part.npz", tmp_path / "tmp"
    assert link_whole(path, b"first", workspace=workspace)
    assert not link_whole(path, b"second", workspace=workspace)
    assert path.read_bytes() == b"first"
    assert put_aside(path) == tmp_path / "part.npz.broken"
    assert put_aside(path) is None  # another process has moved it
    assert link_whole(path, b"third", workspace=workspace)
    assert put_aside(path) == tmp_path / "part.npz.broken-2"
