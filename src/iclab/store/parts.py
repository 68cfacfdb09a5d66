"""The parts of one version of a study in a folder: immutable files, read as the union of their cells.

A part that was read and found broken is renamed and said, and its cells are missing again. One that cannot be opened
now is an error, and stays as it is. Cells that stand in two parts are compared.
"""

import errno
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from iclab.files import content_of, link_whole, put_aside, reworded, unreadable
from iclab.store.cells import AGREEMENT, Cell, gap
from iclab.store.keys import part_name
from iclab.store.part import Broken, Row, header_of, packed, unpacked
from iclab.study import SCHEMA, Study

__all__ = ["Parts", "set_aside"]

_Found = TypeVar("_Found")

_GONE = {errno.ENOENT, errno.ESTALE}
_MOST = 1024  # cells in a part that unites others


@dataclass(frozen=True)
class Parts:
    """The parts of one version of a study below a folder of results."""

    folder: Path
    study: Study

    @property
    def home(self) -> Path:
        """Folder of the parts, whether it is there or not."""
        return self.folder / "parts" / f"{self.study.name}-v{self.study.version}"

    def index(
        self, digest: Callable[[os.stat_result, list[Row]], _Found], known: Mapping[str, _Found]
    ) -> dict[str, _Found]:
        """A digest of the rows of each part, by its name; parts that are known are not read again."""
        found: dict[str, _Found] = {}

        def ask(path: Path) -> bool:
            if path.name not in known:
                found[path.name] = digest(path.stat(), _rows(path))
            else:
                found[path.name] = known[path.name]
            return True

        self._listed(ask, again=found.clear)
        return found

    def names(self, case: str) -> list[str]:
        """Names of the parts that hold cells of a case, in order."""
        return self._listed(lambda path: any(of == case for of, _ in _held(path)))

    def seeds(self, case: str) -> set[int | None]:
        """Seeds of a case that stand in a part, by the headers alone."""
        found: set[int | None] = set()
        self._listed(lambda path: found.update(seed for of, seed in _held(path) if of == case))
        return found

    def cells(self, case: str) -> dict[int | None, Cell]:
        """The cells of a case by seed, out of all parts, each part checked by its digest."""
        return {seed: cell for (_, seed), cell in self._union(lambda of, _: of == case, set()).items()}

    def chosen(self, wanted: Callable[[str, int | None], bool]) -> dict[tuple[str, int | None], Cell]:
        """Cells by case and seed, of all cases and seeds that are wanted, each part checked by its digest."""
        return self._union(wanted, set())

    def publish(self, cells: Sequence[Cell]) -> None:
        """Write cells as one part. Raises OSError, with what to do, where it cannot be written."""
        if not cells:
            return
        path = self.home / part_name(self.study, cells)
        content = packed(cells, study=self.study.name, version=self.study.version)
        try:
            while not link_whole(path, content, workspace=self.folder / "tmp"):
                try:
                    unpacked(content_of(path))  # the same cells, of another process
                    return
                except Broken:
                    put_aside(path)
                except FileNotFoundError:
                    pass  # united with others, or set aside, meanwhile
        except OSError as error:
            raise reworded(
                error,
                f"{self.folder} must take {len(content):,} bytes of results of {self.study.name}; writing failed "
                f"({error.strerror or error}). What was stored before is kept.",
            ) from error

    def compact(self) -> None:
        """Unite all parts into few, then remove those that were united. Whoever reads meanwhile lists them again.

        Where two parts differ in a cell, both stay.
        """
        differing: set[str] = set()
        before = self._listed(_held)
        cells = sorted(self._union(lambda *_: True, differing).values(), key=lambda cell: (cell.case, cell.seed or 0))
        pieces = [cells[place : place + _MOST] for place in range(0, len(cells), _MOST)]
        for piece in pieces:
            self.publish(piece)
        for name in set(before) - {part_name(self.study, piece) for piece in pieces} - differing:
            (self.home / name).unlink(missing_ok=True)

    def _union(
        self, wanted: Callable[[str, int | None], bool], differing: set[str]
    ) -> dict[tuple[str, int | None], Cell]:
        """Cells by case and seed, those that are wanted: the first of two that are the same cell.

        The names of parts whose cells differ from those of an earlier one are added to `differing`.
        """
        found: dict[tuple[str, int | None], Cell] = {}

        def take(path: Path) -> None:
            if any(wanted(case, seed) for case, seed in _held(path)):
                for cell in unpacked(content_of(path)):
                    at = cell.case, cell.seed
                    if wanted(*at) and _differs(found.setdefault(at, cell), cell):
                        _say_differing(self.study, cell, path)
                        differing.add(path.name)

        self._listed(take, again=found.clear)
        return found

    def _listed(self, ask: Callable[[Path], object], *, again: Callable[[], object] = lambda: None) -> list[str]:
        """Names of the parts for which the answer is true; what vanishes while it is asked is listed again."""
        for _ in range(100):
            try:
                return [path.name for path in self._paths() if self._asked(ask, path)]
            except OSError as error:
                if error.errno not in _GONE:
                    raise
            again()
        raise OSError(f"{self.home} must hold still while it is read; its parts vanished 100 times. Try again.")

    def _paths(self) -> list[Path]:
        try:
            return sorted(path for path in self.home.iterdir() if path.suffix == ".npz")
        except FileNotFoundError:
            return []

    def _asked(self, ask: Callable[[Path], object], path: Path) -> object:
        try:
            return ask(path)
        except Broken:
            try:
                return ask(path)  # another process may have put a whole one in its place
            except Broken as error:
                set_aside(path, error)
                return False


def set_aside(path: Path, reason: object) -> None:
    """Rename a file that was read and found broken, and warn that what no other file holds is missing again."""
    try:
        aside = put_aside(path)
    except OSError as error:
        kept = f"it stays there ({error.strerror or error})"
    else:
        kept = f"it is kept as {aside.name}" if aside else "another process has moved it"
    warnings.warn(
        f"{path.name} is not whole ({reason}); {kept}, and what it alone held is missing again", stacklevel=3
    )


def _held(path: Path) -> Sequence[tuple[str, int | None]]:
    """Case and seed of the cells of a part, none in another schema. Parts never change, and are read once."""
    stat = os.stat(path)
    schema, cells = _header(str(path), (stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return cells if schema == SCHEMA else ()


@lru_cache(maxsize=1 << 15)
def _header(path: str, _stamp: tuple[int, int, int]) -> tuple[int, list[tuple[str, int | None]]]:
    schema, rows = _opened(Path(path))
    return schema, [(row.case, row.seed) for row in rows]


def _rows(path: Path) -> list[Row]:
    """The cells of a part by its header, none in another schema."""
    schema, rows = _opened(path)
    return rows if schema == SCHEMA else []


def _opened(path: Path) -> tuple[int, list[Row]]:
    try:
        with open(path, "rb") as file:
            return header_of(file)
    except OSError as error:
        if error.errno in _GONE:
            raise
        raise unreadable(error, path) from error


def _differs(shown: Cell, other: Cell) -> bool:
    """True for two answers to one cell that differ by more than other processors and libraries explain."""
    return other is not shown and gap(shown, other) > AGREEMENT


def _say_differing(study: Study, cell: Cell, path: Path) -> None:
    warnings.warn(
        f"{study.name}: the answer for seed {cell.seed} in {path.name} differs from that in another part; the first "
        "in the order of names is shown",
        stacklevel=3,
    )
