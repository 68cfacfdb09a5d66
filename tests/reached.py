"""Functions of the package that a study uses: names in its module, followed through the functions that they call."""

import ast
import importlib
import inspect
import textwrap
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

__all__ = ["reached"]


def reached(module: str) -> set[FunctionType]:
    """Functions of iclab that a module names, and those that they name in turn, in imports inside functions too."""
    home = importlib.import_module(module)
    waiting = list(_named(ast.parse(inspect.getsource(home)), home))
    found: set[Any] = set()
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += _of(one)
    return {one for one in found if inspect.isfunction(one)}


@cache
def _of(one: Any) -> tuple[Any, ...]:
    """What the source of a function or class names."""
    home = inspect.getmodule(one)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(one)))
    except (OSError, TypeError):
        return ()
    return tuple(_named(tree, home)) if home else ()


def _named(tree: ast.AST, home: ModuleType) -> set[Any]:
    """Functions and classes of iclab to which names in a tree lead, with the imports of tree and module."""
    names: dict[str, Any] = dict(vars(home))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("iclab"):
            for alias in node.names:
                names[alias.asname or alias.name] = _imported(node.module, alias.name)
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            value = _value(node, names)
            if (inspect.isfunction(value) or inspect.isclass(value)) and _ours(value):
                found.add(inspect.unwrap(value))
    return found


def _imported(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name)
    except AttributeError:
        return importlib.import_module(f"{module}.{name}")


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    """The object of a name, or of attributes of a module or class."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, names)
        return getattr(owner, node.attr, None) if isinstance(owner, ModuleType | type) else None
    return None


def _ours(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).startswith("iclab.")
