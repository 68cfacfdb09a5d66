"""The answers that a folder holds, of any study and version, and their removal."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from iclab.files import content_of, link_whole
from iclab.store.keys import named_case, named_part
from iclab.store.part import Broken, header_of, packed, unpacked

__all__ = ["Holding", "holdings", "removed"]


@dataclass
class Holding:
    """One case of one version of a study, with all that is stored for it."""

    study: str
    version: int
    case: str
    """The case as JSON."""
    key: str
    numbers: set[int] = field(default_factory=set)
    """Seeds."""
    parts: dict[Path, float] = field(default_factory=dict)
    """Files that hold some of it, each with its share of the bytes."""
    files: list[Path] = field(default_factory=list)
    """View, figures and pages of the case, which it has for itself."""

    @property
    def seeds(self) -> str:
        """The seeds in few words: `0-7`, or `theory alone`."""
        from iclab.provenance import ranges

        return ranges(sorted(self.numbers)) if self.numbers else "theory alone"

    @property
    def size(self) -> int:
        """Bytes of the case on disk, its share of common parts included."""
        return round(sum(self.parts.values()) + sum(file.stat().st_size for file in self.files if file.is_file()))

    @property
    def date(self) -> str:
        """Day and minute at which something of it was last written."""
        times = [file.stat().st_mtime for file in (*self.parts, *self.files) if file.exists()]
        return datetime.fromtimestamp(max(times)).strftime("%Y-%m-%d %H:%M") if times else ""

    @property
    def changes(self) -> str:
        """The case in words: what differs from the preset that is nearest, or its name alone."""
        from iclab.studies import STUDIES

        mine = dict(_flat(json.loads(self.case)))
        if self.study not in set(STUDIES):
            return _told(mine)
        study = STUDIES[self.study]
        if study.version != self.version:
            return f"of version {self.version}; {_told(mine)}"
        presets = {name: dict(_flat(json.loads(_case_json(one.case)))) for name, one in study.presets.items()}
        apart = {name: {key: mine[key] for key in mine if mine[key] != of.get(key)} for name, of in presets.items()}
        name, changed = min(apart.items(), key=lambda entry: len(entry[1]))
        return _told(changed) or name

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "study": self.study, "version": self.version, "key": self.key, "case": json.loads(self.case),
            "seeds": sorted(self.numbers), "date": self.date, "bytes": self.size,
        }  # fmt: skip


def holdings(folder: Path) -> list[Holding]:
    """The cases that a folder holds, by study; files that are no parts and no views are not looked at."""
    found: dict[tuple[str, int, str], Holding] = {}
    for path in sorted((folder / "parts").glob("*-v*/*.npz")):
        study, _, version = path.parent.name.rpartition("-v")
        for case, seed, share in _cells(path):
            held = _held(found, study, int(version), case)
            held.parts[path] = held.parts.get(path, 0.0) + share
            held.numbers |= set() if seed is None else {seed}
    for path in sorted(folder.glob("*-????????????????.nc")):
        for study, version, case, seeds in _view(path):
            _held(found, study, version, case).numbers |= set(seeds)
    for held in found.values():
        stem = f"{held.study}-{held.key}"
        own = [path for path in folder.glob(f"{stem}*") if path.suffix != ".broken"]
        held.files += sorted(path for one in own for path in (one.rglob("*") if one.is_dir() else [one]))
    return sorted(found.values(), key=lambda held: (held.study, held.date))


def removed(folder: Path, held: Sequence[Holding]) -> int:
    """Remove cases with all their files; what their parts hold of other cases is kept. Returns the bytes freed."""
    freed = sum(one.size for one in held)
    for path in {path for one in held for path in one.parts}:
        gone = {one.case for one in held if path in one.parts}
        study, _, version = path.parent.name.rpartition("-v")
        kept = [cell for cell in unpacked(content_of(path)) if cell.case not in gone]
        if kept:
            name = named_part(study, int(version), ((cell.case, cell.seed) for cell in kept))
            content = packed(kept, study=study, version=int(version))
            link_whole(path.with_name(name), content, workspace=folder / "tmp")
        path.unlink(missing_ok=True)
        if not any(path.parent.iterdir()):
            path.parent.rmdir()
    for file in reversed([file for one in held for file in one.files]):  # what a folder holds before the folder
        file.rmdir() if file.is_dir() else file.unlink(missing_ok=True)
    for one in held:
        for page in folder.glob(f"{one.study}-{one.key}*-page"):
            page.rmdir()
    return freed


def _held(found: dict[tuple[str, int, str], Holding], study: str, version: int, case: str) -> Holding:
    key = named_case(study, version, case)
    return found.setdefault((study, version, case), Holding(study, version, case, key))


def _cells(path: Path) -> Iterator[tuple[str, int | None, float]]:
    """Case, seed and share of the bytes of each cell of a part; none of a broken one."""
    try:
        with open(path, "rb") as file:
            cells = header_of(file)[1]
    except (Broken, OSError):
        return
    size = os.stat(path).st_size
    yield from ((cell.case, cell.seed, size / len(cells)) for cell in cells)


def _view(path: Path) -> Iterator[tuple[str, int, str, list[int]]]:
    from iclab.store.view import described

    try:
        yield described(path)
    except (ValueError, OSError):
        return


def _flat(case: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in case.items():
        yield from _flat(value, f"{key}.") if isinstance(value, dict) else [(key, value)]


def _told(values: dict[str, Any]) -> str:
    return ", ".join(f"{key.replace('_', '-')} {_word(value)}" for key, value in values.items())


def _word(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_word, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _case_json(case: Any) -> str:
    from iclab.study import case_json

    return case_json(case)
