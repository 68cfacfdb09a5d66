"""Files and folders that are written whole or not at all."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["folder_written_whole", "written_whole"]


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A temporary file that becomes `path` when the block succeeds and is removed when it raises.

    Raises OSError where the folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".unfinished-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _sync(temporary)
        temporary.chmod(0o644)  # a temporary file is its owner's alone
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def folder_written_whole(path: Path) -> Iterator[Path]:
    """A temporary folder for files that becomes `path` when the block succeeds and is removed when it raises.

    Raises OSError where the folder around it cannot be written, and where `path` exists and is not empty.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=path.parent))
    try:
        yield temporary
        for file in temporary.iterdir():
            _sync(file)
            file.chmod(0o644)
        temporary.chmod(0o755)  # a temporary folder is its owner's alone
        temporary.rename(path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _sync(path: Path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())
