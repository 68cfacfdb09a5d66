"""Paths below a folder that somebody else filled: regular files alone, and none that leads out of it."""

import json
import os
import stat
from pathlib import Path
from typing import Any

from iclab.numerics import require
from iclab.spectra.checkpoints.names import path_below, quoted

JSON_BYTES = 100_000_000


def regular_file(path: Path, root: Path) -> Path:
    """The file, where it is a regular one inside `root` or the hub cache that holds `root`.

    Raises ValueError for a link that leads elsewhere or in a circle, a pipe, a device or a folder, and
    FileNotFoundError where there is nothing.
    """
    shown = quoted(path_below(path, root))
    try:
        target = path.resolve(strict=True)
    except (RuntimeError, OSError) as error:
        if isinstance(error, FileNotFoundError) and not path.is_symlink():
            raise FileNotFoundError(f"{shown} must be a file; there is none.") from None
        raise ValueError(f"{shown} must be a file; it is a link that leads nowhere.") from None
    require(
        inside(target, root),
        f"{shown} must lie inside the folder that is read; it is a link that leads out of it. Copy the file there.",
    )
    mode = os.stat(target).st_mode
    require(stat.S_ISREG(mode), f"{shown} must be a regular file; it is {_kind(mode)}.")
    return target


def inside(target: Path, root: Path) -> bool:
    """Whether a resolved path lies inside `root`, or inside the hub cache of one model that holds `root`."""
    home = root.resolve()
    base = home if home.is_dir() else home.parent
    cache = next((p for p in (base, *base.parents) if p.name.startswith("models--") and (p / "blobs").is_dir()), None)
    return target.is_relative_to(base) or (cache is not None and target.is_relative_to(cache / "blobs"))


def bare_name(name: Any, where: str) -> str:
    """The name of a file in the same folder. Raises ValueError for one with folders in it."""
    plain = isinstance(name, str) and name not in ("", ".", "..") and not set(name) & set("/\\:\0")
    require(
        plain,
        f"{quoted(where)} must name files of its own folder; got {quoted(str(name))}. Folders are refused.",
    )
    return name


def json_file(path: Path, root: Path) -> dict[str, Any]:
    """A JSON object from a regular file. Raises ValueError for anything else."""
    shown = quoted(path_below(path, root))
    size = regular_file(path, root).stat().st_size
    require(
        size <= JSON_BYTES,
        f"{shown} must have at most {JSON_BYTES:,} bytes; got {size:,}.",
    )
    try:
        found = json.loads(path.read_bytes())
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise ValueError(f"{shown} must be JSON; it is not. Is the download whole?") from None
    require(isinstance(found, dict), f"{shown} must hold a JSON object; it does not.")
    return found


def entries(folder: Path, root: Path) -> list[Path]:
    """What lies in a folder, by name; folders reached by a link out of `root` are left out."""
    require(
        inside(folder.resolve(), root),
        f"{quoted(path_below(folder, root))} must lie inside the folder that is read; it leads out of it.",
    )
    return sorted(folder.iterdir(), key=lambda path: path.name)


def _kind(mode: int) -> str:
    kinds = {stat.S_ISFIFO: "a pipe", stat.S_ISDIR: "a folder", stat.S_ISSOCK: "a socket"}
    return next((words for test, words in kinds.items() if test(mode)), "a device")
