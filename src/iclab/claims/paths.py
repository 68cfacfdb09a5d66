"""Paths of claims: "group/variable" of a witness, or "witness/group/variable" where it is another one."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Pair", "group", "pair", "variable"]


class Pair(Protocol):
    """A claim that compares a variable of simulation with one of theory."""

    @property
    def variable(self) -> str: ...

    @property
    def theory(self) -> str | None: ...


def pair(result: "xr.DataTree", claim: Pair) -> "tuple[xr.DataArray, xr.DataArray]":
    """The variables of theory and of simulation that a claim compares."""
    simulated = variable(result, "simulation", claim.variable)
    return variable(result, "theory", claim.theory or claim.variable), simulated


def variable(result: "xr.DataTree", witness: str, path: str) -> "xr.DataArray":
    """The variable "group/variable" of a witness; "witness/group/variable" names another one.

    Raises KeyError, with the variables that there are, where the result has none of that name.
    """
    whole = path if path.count("/") > 1 else f"{witness}/{path}"
    known = {f"{node.path[1:]}/{name}": array for node in result.subtree for name, array in node.data_vars.items()}
    if whole not in known:
        raise KeyError(f"a claim must name a variable of the result; got {whole!r}. There are {', '.join(known)}.")
    return known[whole]


def group(result: "xr.DataTree", witness: str, path: str) -> "xr.Dataset":
    """The group of a witness, by its name or as "witness/group"."""
    found = result[path if "/" in path else f"{witness}/{path}"]
    return found.to_dataset()
