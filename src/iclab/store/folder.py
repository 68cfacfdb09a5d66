"""The folder of results: what is stored, what is missing, and the view of a case."""

import errno
import hashlib
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iclab.numerics import require
from iclab.store.buffer import Buffer
from iclab.store.cells import AGREEMENT, Cell, cells_of, gap, tree_of
from iclab.store.fresh import fresh
from iclab.store.keys import case_key
from iclab.store.parts import Parts, set_aside
from iclab.store.view import peek, read, write
from iclab.study import Study, case_json

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Store"]

_READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}


@dataclass(frozen=True)
class Store:
    """A folder of results, in which many processes may work at once."""

    folder: Path

    def path(self, study: Study, case: Any) -> Path:
        """Path of the view of a case, whether it is there or not."""
        return self.folder / f"{study.name}-{case_key(study, case)}.nc"

    def fetch(
        self,
        study: Study,
        case: Any,
        seeds: int | Iterable[int],
        *,
        track: Callable[[list[int]], Iterable[int]] = iter,
    ) -> "xr.DataTree":
        """The result of a case for these seeds: what is stored, and the missing seeds computed and added.

        `track` wraps the missing seeds while they are computed, to show progress. What is computed is stored after
        ten seconds, at the end and at an error. A file that was read and found broken is kept under another name,
        with a UserWarning that says why; OSError is raised for one that cannot be opened now.
        """
        numbers = study.asked(seeds)
        if not numbers and study.simulation is not None:
            return study.run(case, ()).tree  # theory alone is not kept: its cell would answer for no seed
        kept = self._kept(study, case)
        missing: list[Any] = [*_missing(kept.cells, numbers)] if numbers or kept.cells else [None]
        if missing:
            self._say_older(study, case)
            with self.buffer(study) as buffer:
                for seed in track(missing):
                    if seed not in Parts(self.folder, study).seeds(case_json(case)):  # of another process, meanwhile
                        buffer.keep([fresh(study, case, seed)])
        cells = self._shown(study, case, None if missing else kept)
        require(not _missing(cells, numbers), f"{self.folder} must be left as it is in use; stored seeds vanished.")
        return _tree(study, [cells[seed] for seed in numbers or cells])

    def missing(self, study: Study, case: Any, seeds: int | Iterable[int]) -> list[int]:
        """The seeds of a case that are not stored yet."""
        return _missing(self._kept(study, case).cells, study.asked(seeds))

    def load(self, study: Study, case: Any) -> "xr.DataTree | None":
        """The stored result of all seeds, or None where there is none."""
        cells = self._kept(study, case).cells
        return _tree(study, cells.values()) if cells else None

    def add(self, study: Study, case: Any, result: "xr.DataTree") -> "xr.DataTree":
        """Store a result of a case; the result of all seeds that are stored then.

        Raises ValueError for the result of another study, version or case.
        """
        expected = (study.name, study.version, case_json(case))
        got = tuple(result.attrs[name] for name in ("study", "study_version", "case"))
        require(got == expected, f"result must be of {expected}; got {got}. Name the case that it answers.")
        kept = self._kept(study, case)
        Parts(self.folder, study).publish([cell for cell in cells_of(result) if cell.seed not in kept.cells])
        return _tree(study, self._shown(study, case, None).values())

    def buffer(self, study: Study) -> Buffer:
        """A buffer for finished results of a study; `fetch` remakes the view of each case."""
        return Buffer(Parts(self.folder, study))

    def compact(self, study: Study) -> None:
        """Unite the parts of a study into few."""
        Parts(self.folder, study).compact()

    def _kept(self, study: Study, case: Any) -> "_Kept":
        """The cells of a case: of all parts, and of a file that holds more, by 0.1.0 or without its parts."""
        text = case_json(case)
        kept = _Kept(Parts(self.folder, study).cells(text))
        path = self.path(study, case)
        try:
            seeds, parts = peek(path)
            if not parts or not kept.cells or set(seeds) - kept.cells.keys():
                kept.take(read(path), study.name, text)
        except FileNotFoundError:
            pass
        except ValueError as error:
            set_aside(path, error)
        return kept

    def _shown(self, study: Study, case: Any, kept: "_Kept | None") -> dict[int | None, Cell]:
        """The cells of a case, once its view shows all of them; those handed in where they are known to be all.

        After a view is written parts are listed again: of several writers the last one leaves a whole view.
        """
        parts, path, text = Parts(self.folder, study), self.path(study, case), case_json(case)
        written = False
        while (names := parts.names(text)) and not _current(path, names, check=not written):
            kept = self._kept(study, case)
            try:
                if kept.loose:
                    parts.publish(kept.loose)
                    continue
                write(_tree(study, kept.cells.values()), path, parts=_stamp(names))
            except OSError as error:
                if error.errno not in _READ_ONLY:
                    raise
                warnings.warn(f"{path.name} does not show all that is stored: {error}", stacklevel=3)
                break
            written = True
        return (kept or self._kept(study, case)).cells

    def _say_older(self, study: Study, case: Any) -> None:
        """Warn of seeds of the case that an earlier version of the study answered."""
        for version in range(1, study.version):
            seeds = Parts(self.folder, replace(study, version=version)).seeds(case_json(case))
            with suppress(OSError, ValueError):
                seeds |= set(peek(self.folder / f"{study.name}-{case_key(study, case, version=version)}.nc")[0])
            if seeds:
                warnings.warn(
                    f"{study.name}: answers for {len(seeds)} seeds by version {version} of the study are kept, and "
                    f"not used; version {study.version} answers otherwise",
                    stacklevel=3,
                )


@dataclass(frozen=True)
class _Kept:
    """The cells of a case by seed, and which of them are loose: in a file of the case, and in no part."""

    cells: dict[int | None, Cell]
    loose: list[Cell] = field(default_factory=list)

    def take(self, result: "xr.DataTree", study: str, case: str) -> None:
        """Add what a file holds. Raises ValueError where it is of another case, or answers otherwise than a part."""
        require((result.attrs["study"], result.attrs["case"]) == (study, case), "it holds another case")
        for cell in cells_of(result):
            known = self.cells.setdefault(cell.seed, cell)
            if known is cell:
                self.loose.append(cell)
            require(gap(known, cell) <= AGREEMENT, f"its answer for seed {cell.seed} differs from that in a part")


def _current(path: Path, names: list[str], *, check: bool) -> bool:
    """True for a view that was made of these parts. A broken one is renamed, with a warning."""
    try:
        if peek(path)[1] != _stamp(names):
            return False
        if check:
            read(path)
    except FileNotFoundError:
        return False
    except ValueError as error:
        set_aside(path, error)
        return False
    return True


def _stamp(names: list[str]) -> str:
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def _missing(cells: dict[int | None, Cell], seeds: Iterable[int]) -> list[int]:
    return [seed for seed in seeds if seed not in cells]


def _tree(study: Study, cells: Iterable[Cell]) -> "xr.DataTree":
    """The labeled result of cells; theory alone where there is nothing else."""
    listed = list(cells)
    seeded = [cell for cell in listed if cell.seed is not None]
    return tree_of(seeded or listed, study=study.name, version=study.version)
