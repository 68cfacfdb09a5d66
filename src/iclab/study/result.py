"""The result of a study, which shows itself: question, answer, figure, verdicts; its numbers are a tree of arrays."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iclab.claims import Verdict
from iclab.numerics import require

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from iclab.explorer import Page
    from iclab.figures.sketches import Sketch
    from iclab.report import Entry
    from iclab.study.study import Study

__all__ = ["Result", "Verdicts"]

_LINES = 7  # claims in the text of a result; the table has all


class Verdicts(list[Verdict]):
    """Verdicts in the order of their claims, shown as a table."""

    def __repr__(self) -> str:
        lines = [repr(verdict) for verdict in self[:_LINES]]
        more = [f"… and {len(self) - _LINES} more"] if len(self) > _LINES else []
        return "\n".join([*lines, *more]) or "no verdicts: nothing was judged"

    def _repr_html_(self) -> str:
        from iclab.report import verdict_table

        return verdict_table(self)

    def to_dataframe(self) -> "pd.DataFrame":
        """The verdicts as a table: claim, sentence, measure, value, asked, outcome, reason, p."""
        import pandas as pd

        columns = ("claim", "meaning", "measure", "value", "yardstick", "outcome", "reason", "p")
        rows = [[getattr(verdict, name) for name in columns] for verdict in self]
        return pd.DataFrame(rows, columns=[*columns[:4], "asked", *columns[5:]])


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The answers of all witnesses to a case of a study.

    `tree` has the numbers, an xarray.DataTree with groups `theory/NAME` and `simulation/NAME`; `result[path]` is a
    group of it, and its attributes are those of the result: `result["simulation/sequences"].loss`. In a notebook the
    result shows question, answer, figure and verdicts; it needs no IPython for that.
    """

    study: "Study"
    case: Any
    tree: "xr.DataTree"

    def __getitem__(self, path: str) -> Any:
        return self.tree[path]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "tree":  # while a copy is being made there is no tree yet
            raise AttributeError(name)
        return getattr(self.tree, name)

    def __dir__(self) -> Iterable[str]:
        own = ("answer", "case", "draw", "explore", "page", "save", "study", "to_dataframe", "tree", "verdicts")
        return sorted({*own, *self.tree.children, "attrs", "children", "groups"})

    @cached_property
    def verdicts(self) -> Verdicts:
        """The verdict on each claim that the case allows: a list, shown as a table."""
        return self.study.verdicts(self.tree)

    @cached_property
    def answer(self) -> str:
        """The answer of this case, in its own numbers, and how many claims hold: one sentence or two."""
        return self.study.answered(self.case, self.tree, self.verdicts)

    def draw(self) -> "Sketch":
        """The figure, of Matplotlib. In a notebook it is shown once, as the value of its cell."""
        from iclab import figures

        return figures.drawn(self.study, self.case, self.tree)

    def explore(self) -> "Page":
        """The page of the explorer with this result over its theory; in a notebook controls move it.

        Raises ValueError for a study that no view shows, and for a case out of the range of its controls.
        """
        from iclab.explorer import page_of

        return page_of(self.study, self.case, self.tree)

    def to_dataframe(self) -> "pd.DataFrame":
        """All numbers as one long table: group, variable, a column for each axis, value."""
        from iclab.report import table

        return table(self.tree)

    def save(self, folder: str | Path = "results") -> Path:
        """Store all seeds in a folder of results, where commands and `iclab.Store` find them; the file of the case.

        Raises ValueError where theory answered alone, which is computed again in a moment, and OSError for a folder
        that cannot be written.
        """
        from iclab.store import Store

        require(
            len(self.tree.attrs["seeds"]) > 0 or self.study.simulation is None,
            "a result that is saved must hold seeds; got theory alone. Run the study with one seed or more.",
        )
        store = Store(Path(folder))
        store.add(self.study, self.case, self.tree)
        return store.path(self.study, self.case)

    def page(self, folder: str | Path = "report") -> Path:
        """Write a page of this result, index.html, with its tables and figures beside it; the path of the page.

        Raises OSError for a folder that cannot be written.
        """
        from iclab.explorer import moving
        from iclab.report import write

        return write(Path(folder), [self._entry()], moving([(self.study, self.case, self.tree)]))

    def _entry(self) -> "Entry":
        from iclab.report import entry
        from iclab.store import netcdf

        return entry(self.study, self.case, self.tree, netcdf(self.tree))

    def __repr__(self) -> str:
        seeds = len(self.tree.attrs["seeds"])
        title = f"{self.study.name}, {seeds} seed{'' if seeds == 1 else 's'}: {self.study.title}"
        return "\n".join([title, self.answer, *([repr(self.verdicts)] if self.verdicts else [])])

    def _repr_html_(self) -> str:
        from iclab.report import shown

        return shown(self._entry())
