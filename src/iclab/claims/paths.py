"""Paths of claims: "group/variable" of a witness, or "witness/group/variable" where it is another one."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["group", "present", "variable", "whole"]


def whole(witness: str, path: str) -> str:
    """The path with its witness: "witness/group/variable"."""
    return path if path.count("/") > 1 else f"{witness}/{path}"


def variable(result: "xr.DataTree", witness: str, path: str) -> "xr.DataArray":
    """The variable "group/variable" of a witness; "witness/group/variable" names another one.

    Raises KeyError, with the variables that there are, where the result has none of that name.
    """
    name, known = whole(witness, path), _variables(result)
    if name not in known:
        raise KeyError(f"a claim must name a variable of the result; got {name!r}. There are {', '.join(known)}.")
    return known[name]


def present(result: "xr.DataTree", witness: str, path: str) -> bool:
    """True where the result has the variable "group/variable" of a witness."""
    return whole(witness, path) in _variables(result)


def group(result: "xr.DataTree", witness: str, path: str) -> "xr.Dataset":
    """The group of a witness, by its name or as "witness/group"."""
    found = result[path if "/" in path else f"{witness}/{path}"]
    return found.to_dataset()


def _variables(result: "xr.DataTree") -> "dict[str, xr.DataArray]":
    return {f"{node.path[1:]}/{name}": array for node in result.subtree for name, array in node.data_vars.items()}
