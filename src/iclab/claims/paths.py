"""Paths of claims: "group/variable" of a witness, or "witness/group/variable" where it is another one."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Compared", "group", "variable"]


@dataclass(frozen=True)
class Compared:
    """A variable of simulation, and that of theory which a claim compares it with."""

    variable: str  # of simulation, "group/variable"
    meaning: str
    theory: str | None = field(default=None, kw_only=True)  # the variable of theory, where its name is another one

    def pair(self, result: "xr.DataTree") -> "tuple[xr.DataArray, xr.DataArray]":
        """The variables of theory and of simulation."""
        simulated = variable(result, "simulation", self.variable)
        return variable(result, "theory", self.theory or self.variable), simulated


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
    return result[path if "/" in path else f"{witness}/{path}"].to_dataset()
