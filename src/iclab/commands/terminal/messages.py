"""Messages in one line, and places that can be written."""

import sys
import tempfile
from pathlib import Path

from iclab.numerics import require

__all__ = ["fail", "note", "writable", "writable_pdf"]


def writable_pdf(path: Path) -> None:
    """Raise ValueError unless a PDF can be written there."""
    require(path.suffix == ".pdf", f"--figure must be a file that ends in .pdf; got {path}.")
    try:
        require(not path.is_dir(), f"--figure must be a file; got the folder {path}.")
        with tempfile.TemporaryFile(dir=path.parent):
            pass
        if path.exists():
            path.open("ab").close()
    except OSError as error:
        raise ValueError(f"--figure must be a file that can be written; got {path} ({error.strerror}).") from None


def writable(folder: Path) -> Path:
    """The folder, made if need be. Raises ValueError where nothing can be written into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(
            f"--out must be a folder that can be written; got {folder} ({error.strerror}). Name another one."
        ) from None
    return folder


def fail(message: str, code: int = 2) -> int:
    """Say in one line on stderr what went wrong."""
    print(f"iclab: {' '.join(message.split())}", file=sys.stderr)
    return code


def note(message: object) -> None:
    """Say something by the way on stderr."""
    print(f"iclab: note: {message}", file=sys.stderr)
