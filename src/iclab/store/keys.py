"""Names of what is stored: hashes of study, version, whole case and seed, and of nothing else."""

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from iclab.study import SCHEMA, Study, case_json

if TYPE_CHECKING:
    from iclab.store.cells import Cell

__all__ = ["case_key", "cell_key", "named_case", "named_part", "part_name"]


def case_key(study: Study, case: Any, *, version: int | None = None) -> str:
    """Sixteen hexadecimal digits that name (study, version, whole case), by default in the study's own version."""
    return named_case(study.name, study.version if version is None else version, case_json(case))


def named_case(study: str, version: int, case: str) -> str:
    """Sixteen hexadecimal digits that name (study, version, whole case as JSON)."""
    return _hash(study, version, SCHEMA, case)[:16]


def cell_key(study: Study, case: str, seed: int | None) -> str:
    """Hexadecimal digits that name (study, version, whole case as JSON, seed)."""
    return _cell(study.name, study.version, case, seed)


def part_name(study: Study, cells: "Iterable[Cell]") -> str:
    """The file name of the part that holds these cells: the same cells have the same name, wherever they are made."""
    return named_part(study.name, study.version, ((cell.case, cell.seed) for cell in cells))


def named_part(study: str, version: int, cells: Iterable[tuple[str, int | None]]) -> str:
    """The file name of the part that holds the cells of these cases and seeds."""
    return _hash(*sorted(_cell(study, version, case, seed) for case, seed in cells))[:32] + ".npz"


def _cell(study: str, version: int, case: str, seed: int | None) -> str:
    return _hash(study, version, SCHEMA, case, "theory alone" if seed is None else seed)


def _hash(*content: object) -> str:
    return hashlib.sha256("\n".join(map(str, content)).encode()).hexdigest()
