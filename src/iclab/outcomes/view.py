"""The view of a result: its case, and the groups of each witness as attributes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Groups", "View"]


@dataclass(frozen=True)
class Groups:
    """The labeled outcomes of one witness, `view.theory.flow` or `view.theory["flow"]`; false where it has none."""

    tree: "xr.DataTree | None"

    def __getattr__(self, name: str) -> "xr.Dataset":
        if self.tree is None or name not in self.tree.children:
            raise AttributeError(f"there is no group {name!r}; there are {', '.join(self) or 'none'}")
        return self.tree.children[name].to_dataset()

    def __getitem__(self, name: str) -> "xr.Dataset":
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(() if self.tree is None else self.tree.children)

    def __contains__(self, name: str) -> bool:
        return name in tuple(self)

    def __bool__(self) -> bool:
        return self.tree is not None


@dataclass(frozen=True)
class View:
    """A result beside the case that it answers. `simulation` is false where no seeds were asked for."""

    case: Any
    result: "xr.DataTree"

    @property
    def theory(self) -> Groups:
        """Outcomes of theory."""
        return Groups(self.result.children.get("theory"))

    @property
    def simulation(self) -> Groups:
        """Outcomes of simulation, with the axis `seed`."""
        return Groups(self.result.children.get("simulation"))

    def __getitem__(self, path: str) -> None:
        """Nothing. Raises TypeError: a view is read by attributes, where 0.1.0 read a tree by paths."""
        raise TypeError(f"a figure reads view.theory.NAME or view.simulation.NAME, a dataset; got view[{path!r}].")
