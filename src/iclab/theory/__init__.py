"""Theory: pure functions from a problem to an outcome. They draw nothing and take no key.

Modules load when they are first used, so that the command line starts quickly.
"""

import importlib
import pkgutil
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    if name in _ROOMS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(_ROOMS)


_ROOMS = tuple(module.name for module in pkgutil.iter_modules(__path__))
