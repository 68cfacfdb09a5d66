"""Records of cells that failed: files of JSON lines that never change.

DIR/failed/STUDY-vV-HASH.jsonl           records of one worker
DIR/failed/STUDY-vV-HASH.jsonl.retried   the same after --retry-failed, and counted no more
"""

import contextlib
import hashlib
import json
import socket
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from iclab.files import content_of, link_whole
from iclab.provenance import environment
from iclab.study import Study

__all__ = ["Failure", "Failures", "failure_of"]


@dataclass(frozen=True)
class Failure:
    """A cell that failed, and why."""

    number: int
    """The key of the cell."""
    values: dict[str, Any]
    """Its values on the axes."""
    seed: int | None
    kind: str
    """Class of the error."""
    message: str
    traceback: str
    """A hash of the places of the error: equal ones failed alike."""
    host: str
    versions: str


@dataclass(frozen=True)
class Failures:
    """The failure records of one version of a study below a folder of results."""

    folder: Path
    study: Study

    def record(self, failures: list[Failure]) -> None:
        """Write records as one file. Raises OSError where the folder cannot be written."""
        if failures:
            text = "".join(json.dumps(asdict(one)) + "\n" for one in failures)
            name = f"{self._prefix}{hashlib.sha256(text.encode()).hexdigest()[:16]}.jsonl"
            link_whole(self.folder / "failed" / name, text.encode(), workspace=self.folder / "tmp")

    def read(self, known: dict[str, list[Failure]]) -> dict[str, list[Failure]]:
        """The records of each file by its name; files that are known are not read again."""
        found = {}
        for path in self._paths():
            with contextlib.suppress(FileNotFoundError):  # retried meanwhile
                lines = known.get(path.name) or [
                    Failure(**json.loads(line)) for line in content_of(path).splitlines()
                ]
                found[path.name] = lines
        return found

    def retry(self) -> None:
        """Count the failures no more, so that their cells are missing again."""
        for path in self._paths():
            with contextlib.suppress(FileNotFoundError):
                path.rename(path.with_name(f"{path.name}.retried"))

    @property
    def _prefix(self) -> str:
        return f"{self.study.name}-v{self.study.version}-"

    def _paths(self) -> list[Path]:
        return sorted((self.folder / "failed").glob(f"{self._prefix}*.jsonl"))


def failure_of(error: BaseException, number: int, values: dict[str, Any], seed: int | None) -> Failure:
    """The record of an error in a cell."""
    places = [(frame.name, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    where = hashlib.sha256(repr(places).encode()).hexdigest()[:12]
    message = " ".join(str(error).split()) or type(error).__name__
    return Failure(
        number, values, seed, type(error).__name__, message, where, socket.gethostname(), environment()["versions"]
    )
