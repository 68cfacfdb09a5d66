"""Compiled programs that outlive their process: each is compiled once, and loaded from the user's folder of caches.

Commands, their processes and those of sweeps switch this on; importing iclab never does. In Python:

from iclab.simulation import programs
programs.keep()

A program is found again by its code, the versions of JAX, device and flags, and the processor; it gives the same bits
as one that is compiled anew. `ICLAB_CACHE=off` compiles anew, `ICLAB_CACHE=FOLDER` keeps programs there; a folder set
for JAX itself (JAX_COMPILATION_CACHE_DIR) stands. A folder that others could write into is never read.
"""

import contextlib
import hashlib
import itertools
import os
import platform
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

__all__ = ["LIMIT", "hushed", "keep", "kept", "user_folder"]

LIMIT = 200e6  # bytes; a study has some .2 MB of programs

_DIRECTORY, _ENABLED = "jax_compilation_cache_dir", "jax_enable_compilation_cache"
_FROM = {"jax_persistent_cache_min_compile_time_secs": 0.0, "jax_persistent_cache_min_entry_size_bytes": -1}
_TROUBLE = re.compile(r"Error (?:reading|writing) persistent compilation cache entry for '([^']*)'")

Say = Callable[[str], object]


def keep(say: Say = lambda _: None) -> None:
    """Let JAX keep the programs of this process and of those that it starts, unless a folder is set for it already.

    Where the folder cannot be used, programs are compiled anew, and `say` is told why in one line.
    """
    jax = sys.modules.get("jax")
    for name, value in _settings(say).items():
        os.environ[name.upper()] = str(value)
        if jax is not None:
            jax.config.update(name, value)


@contextlib.contextmanager
def kept(*, off: bool = False, say: Say = lambda _: None) -> Iterator[None]:
    """Context of a command: where JAX is loaded in it, or in a process that it starts, JAX keeps programs, or none.

    A JAX that was loaded before is left as it is. Trouble with a program is told in one line, and is no failure.
    """
    settings: dict[str, object] = {_ENABLED: "false"} if off else _settings(say)
    before = {name.upper(): os.environ.get(name.upper()) for name in settings}
    os.environ.update({name.upper(): str(value) for name, value in settings.items()})
    try:
        with hushed(say):
            yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextlib.contextmanager
def hushed(say: Say = lambda _: None) -> Iterator[None]:
    """Context in which JAX does not warn of a program that it cannot read or keep: what is damaged is removed."""
    told: list[str] = []

    def show(message: Warning | str, *rest: object, **named: object) -> None:
        trouble = _TROUBLE.match(str(message))
        if trouble is None:
            return outer(message, *rest, **named)
        if str(message).startswith("Error reading"):
            _forget(trouble[1])
        if not told:
            told.append(trouble[1])
            say(f"a compiled program could not be kept or read, and is compiled anew: {_first_line(message)}")
        return None

    with warnings.catch_warnings():
        warnings.filterwarnings("always", _TROUBLE.pattern, UserWarning)
        outer: Callable[..., None] = warnings.showwarning
        warnings.showwarning = show
        yield


def user_folder() -> Path:
    """The folder of iclab below the user's caches, by the convention of the system."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "iclab" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "iclab"
    stated = Path(os.environ.get("XDG_CACHE_HOME") or "")
    return (stated if stated.is_absolute() else Path.home() / ".cache") / "iclab"


def _settings(say: Say) -> dict[str, object]:
    """Settings of JAX by name; none where a folder is set already, and where no program is to be kept, or can be."""
    asked = os.environ.get("ICLAB_CACHE", "")
    if asked.lower() in ("off", "0", "false", "no") or _DIRECTORY.upper() in os.environ:
        return {}
    try:
        root = Path(asked) if asked else user_folder()
        folder = root / "programs" / _machine()
        _make_own(folder)
        _trim(root / "programs")
    except (OSError, RuntimeError, metadata.PackageNotFoundError) as error:
        say(f"compiled programs are not kept: {_first_line(error)}")
        return {}
    return {_DIRECTORY: str(folder), **_FROM}


def _machine() -> str:
    """Versions and processor in a word: programs of one machine may not run, or round otherwise, on another."""
    known = [platform.machine(), platform.processor(), sys.byteorder, *_processor()]
    processor = hashlib.sha256("\n".join(known).encode()).hexdigest()[:12]
    return "-".join([*(metadata.version(name) for name in ("jax", "jaxlib")), sys.platform, processor])


def _processor() -> list[str]:
    """Model and features of the first processor; the name of this machine on systems that do not tell them."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = [line.partition(":") for line in itertools.takewhile(str.strip, file)]
    except OSError:
        return [platform.node()]
    known = {name.strip(): value.strip() for name, _, value in lines}
    changing = ("MHz", "bogomips", "BogoMIPS", "id", "processor")  # from one start, or one core, to the next
    return sorted(f"{name}: {value}" for name, value in known.items() if not name.endswith(changing))


def _make_own(folder: Path) -> None:
    """Make the folder, and raise PermissionError unless it and the one above are this user's alone."""
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    for one in (folder.parent, folder):
        one.mkdir(mode=0o700, exist_ok=True)
        if os.name != "posix":
            continue
        found = one.stat()
        if found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise PermissionError(f"{one} must be yours, with mode 700; got {found.st_mode & 0o777:o}")


def _trim(programs: Path) -> None:
    """Remove what was used least recently, once all programs of all versions take more than the limit."""
    files = [(max(found.st_atime, found.st_mtime), found.st_size, path)
             for path in programs.glob("*/*") for found in [path.stat()]]  # fmt: skip
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files) if total > LIMIT else []:
        if total <= 0.8 * LIMIT:
            break
        path.unlink(missing_ok=True)
        total -= size


def _forget(module: str) -> None:
    """Remove the files of a module, one of which is damaged, from a folder of ours: JAX replaces none."""
    folder = Path(os.environ.get(_DIRECTORY.upper(), ""))
    for path in folder.glob(f"{module}-*-cache") if folder.name == _machine() else ():
        with contextlib.suppress(OSError):
            path.unlink()


def _first_line(error: object) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
