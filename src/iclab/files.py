"""Files and folders that are written whole or not at all, by many processes at once.

What is being written has a temporary name that tells host and process. Where the process has ended, or after a day,
whoever writes there next removes it.
"""

import contextlib
import errno
import os
import re
import secrets
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

__all__ = [
    "NO_LINKS", "UNFINISHED", "content_of", "ended", "folder_written_whole", "installing", "link_whole", "own_name",
    "put_aside", "reworded", "sweep", "unreadable", "written_whole",
]  # fmt: skip

UNFINISHED = ".unfinished-"  # begins the name of what is being written
_OWNER = re.compile(r"\.([^.]+)\.(\d+)(\.[^.]*)?$")  # host and process in a temporary name, and its suffix
_DAY = 86400.0
NO_LINKS = {errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A temporary file that becomes `path` when the block succeeds and is removed when it raises.

    Raises OSError where the folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _made(path.parent, "", path.suffix, b"")
    try:
        sweep(path.parent, temporary)
        yield temporary
        _sync(temporary)
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
    temporary = path.parent / _named()
    temporary.mkdir()
    try:
        sweep(path.parent, temporary)
        yield temporary
        for file in temporary.iterdir():
            _sync(file)
            if not file.is_dir():
                file.chmod(0o666 & temporary.stat().st_mode)  # some libraries make files for their owner alone
        temporary.rename(path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def link_whole(path: Path, content: bytes, *, workspace: Path) -> bool:
    """Write a file that never changes, whole or not at all; False where one of its name stands already.

    It is written and synced under a temporary name in `workspace`, of the same file system, and linked to its own.
    Where there are no links it is renamed: files of one name must hold the same. Raises OSError where this fails.
    """
    for folder in (path.parent, workspace):
        _make_folder(folder)
    while True:
        temporary = _made(workspace, f"{path.name}-", "", content)
        try:
            sweep(workspace, temporary)
            fresh = _linked(temporary, path)
            _sync(path.parent)
            return fresh
        except FileNotFoundError:
            if temporary.exists():
                raise
            continue  # removed by one who took its process for ended
        finally:
            temporary.unlink(missing_ok=True)


def content_of(path: Path) -> bytes:
    """The bytes of a file. No lock is taken or asked for: an open notebook, or no lock service, changes nothing.

    Raises FileNotFoundError where there is none, and OSError, with what to do, for one that cannot be read now.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unreadable(error, path) from error


def put_aside(path: Path) -> Path | None:
    """Rename a broken file to one beside it; None where another process has done so."""
    for number in range(1, 1000):
        aside = path.with_name(f"{path.name}.broken" + (f"-{number}" if number > 1 else ""))
        if not aside.exists():
            try:
                return path.rename(aside)
            except FileNotFoundError:
                return None
    raise OSError(f"{path.name} must be moved to a free name beside it; there are 999 broken ones. Remove some.")


def sweep(folder: Path, own: Path) -> None:
    """Remove what ended processes left unfinished in a folder; `own`, just made there, tells the time there."""
    now = own.stat().st_mtime
    for entry in folder.iterdir():
        if entry.name.startswith(UNFINISHED) and entry != own and _abandoned(entry, now):
            with contextlib.suppress(OSError):
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


def unreadable(error: OSError, path: Path) -> OSError:
    """The error for a file that cannot be read now, which says nothing of what stands in it."""
    return reworded(
        error,
        f"{path} must be readable; it cannot be opened now ({error.strerror or error}), and is left as it is. Close "
        "what holds it, and try again.",
    )


def reworded(error: OSError, text: str) -> OSError:
    """The same error in words of our own; its number stays."""
    told = OSError(text + (" Make space, or name another folder." if error.errno in _FULL else ""))
    told.errno = error.errno
    return told


def own_name() -> str:
    """Host and process in one word, as temporary names end."""
    return f"{_host()}.{os.getpid()}"


def ended(name: str) -> bool:
    """True for a name, by `own_name`, of a process of this host that has ended."""
    owner = _OWNER.search(f".{name}")
    if owner and owner[1] == _host() and os.name == "posix":
        try:
            os.kill(int(owner[2]), 0)
        except ProcessLookupError:
            return True
        except (OSError, OverflowError):
            pass  # alive, and of another user
    return False


def _abandoned(entry: Path, now: float) -> bool:
    """True for what a process of this host left when it ended, and for anything a day old."""
    owner = _OWNER.search(entry.name)
    if owner and ended(owner[0].lstrip(".")):
        return True
    try:
        return now - entry.stat().st_mtime > _DAY
    except OSError:
        return False


def _host() -> str:
    """Name of this machine and, where processes are numbered in separate spaces, of the space."""
    name = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())
    try:
        return f"{name}-{os.stat('/proc/self/ns/pid').st_ino:x}"
    except OSError:
        return name


def _named(name: str = "", suffix: str = "") -> str:
    return f"{UNFINISHED}{name}{secrets.token_hex(4)}.{own_name()}{suffix}"


def _made(folder: Path, name: str, suffix: str, content: bytes) -> Path:
    """A new file under a temporary name, synced where it has content, as readable as the user's mask says."""
    temporary = folder / _named(name, suffix)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(handle, rest) :]
        if content:
            os.fsync(handle)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)
    return temporary


def _linked(temporary: Path, path: Path) -> bool:
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        temporary.replace(path)
    return True


def _make_folder(folder: Path) -> None:
    """The folder and those above it, each synced into the one that holds it."""
    if not folder.is_dir():
        if folder.parent != folder:
            _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync(folder.parent)


def _sync(path: Path) -> None:
    if os.name != "posix" and path.is_dir():
        return  # folders cannot be opened there
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def installing(extra: str) -> str:
    """The command that adds an extra to this installation: to the checkout that it runs from, or to the package."""
    checkout = Path(__file__).resolve().parents[2] / "pyproject.toml"
    return f"pip install -e '.[{extra}]' in its checkout" if checkout.is_file() else f"pip install 'iclab[{extra}]'"
