"""Public paths of version 0.1.0 that have moved: importing one says where its content is now."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED: dict[str, str] = {}


def advice(path: str) -> str:
    """Where a path of 0.1.0 is now, as the end of an error message; nothing for any other path."""
    return f"; {path} moved to {MOVED[path]}" if path in MOVED else ""


class MovedFinder(MetaPathFinder):
    """The last finder to be asked: it finds nothing, and names the successor of a module that moved."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """No module. Raises ModuleNotFoundError, with the successor, for a path of 0.1.0."""
        if fullname in MOVED:
            raise ModuleNotFoundError(f"no module named {fullname!r}{advice(fullname)}", name=fullname)
        return None


def install() -> None:
    """Ask for moved paths after all other finders, once in a process."""
    if not any(isinstance(finder, MovedFinder) for finder in sys.meta_path):
        sys.meta_path.append(MovedFinder())
