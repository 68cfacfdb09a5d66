"""Lazy packages: a name is loaded from the module that defines it when it is first used."""

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from iclab.moved import advice

__all__ = ["door"]


def door(
    package: str, names: Iterable[str], homes: Mapping[str, str] | None = None, *, unlisted: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package that offers these names.

    A name with a home is an attribute of that module, under another name if the home is "module:name"; any other is
    a module of the package itself. Modules that are `unlisted` can be imported but do not show in `dir`.
    """
    listed, homes = sorted(names), homes or {}
    modules = {*listed, *unlisted}

    def found(name: str) -> Any:
        if name in homes:
            home, _, there = homes[name].partition(":")
            return getattr(importlib.import_module(home), there or name)
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}{advice(f'{package}.{name}')}")

    return found, lambda: list(listed)
