"""Results on disk, found again by the content of their case. One netCDF file for each case.

A file is named by study and key; the key hashes study, version and the whole case. It is written under a
temporary name, synced and renamed, so that it is whole or not there. A digest of all arrays and of the case
stands in it: a file that does not match its digest is never trusted.
"""

import hashlib
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from iclab.files import written_whole
from iclab.study import SCHEMA, Study, case_json, joined

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Store", "case_key", "digest", "read", "write"]


@dataclass(frozen=True)
class Store:
    """A folder of results."""

    folder: Path

    def path(self, study: Study, case: Any) -> Path:
        """Path of the result of a case, whether it is there or not."""
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

        `track` wraps the missing seeds while they are computed, to show progress. Each seed is stored as soon
        as it is known. A stored file that cannot be trusted is replaced, with a UserWarning that says why.
        """
        numbers = study.asked(seeds)
        kept = self.load(study, case)
        if not numbers and study.simulation is not None:
            return study.run(case, ())  # theory alone is not kept: its file would answer for no seed
        if not numbers:
            return self.add(study, case, study.run(case, ())) if kept is None else kept
        for seed in track(_missing(kept, numbers)):
            kept = self.add(study, case, study.run(case, (seed,)))
        return _only(kept, numbers)

    def missing(self, study: Study, case: Any, seeds: int | Iterable[int]) -> list[int]:
        """The seeds of a case that are not stored yet."""
        return _missing(self.load(study, case), study.asked(seeds))

    def load(self, study: Study, case: Any) -> "xr.DataTree | None":
        """The stored result, or None where there is none that can be trusted (with a UserWarning)."""
        path = self.path(study, case)
        if not path.exists():
            return None
        try:
            result = read(path)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        else:
            if result.attrs["case"] == case_json(case) and result.attrs["study"] == study.name:
                return result
            reason = "it holds another case"
        warnings.warn(
            f"{path.name} is not a whole result of this case ({reason}); it is computed again", stacklevel=2
        )
        return None

    def add(self, study: Study, case: Any, result: "xr.DataTree") -> "xr.DataTree":
        """Store a result, joined with the seeds that are stored already."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # reported by fetch
            kept = self.load(study, case)
        fresh = _missing(kept, result.attrs["seeds"].tolist())
        whole = result if kept is None else joined([kept, _only(result, fresh)]) if fresh else kept
        write(whole, self.path(study, case))
        return whole


def case_key(study: Study, case: Any) -> str:
    """Sixteen hexadecimal digits that name (study, version, whole case)."""
    text = "\n".join([study.name, str(study.version), str(SCHEMA), case_json(case)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write(result: "xr.DataTree", path: Path) -> None:
    """Write a result whole or not at all. Raises OSError where the folder cannot be written."""
    stamped = result.copy()
    stamped.attrs = {**result.attrs, "digest": digest(result)}
    with written_whole(path) as temporary:
        stamped.to_netcdf(temporary, engine="h5netcdf")


def read(path: Path) -> "xr.DataTree":
    """A stored result, whole in memory. Raises OSError or ValueError for a truncated or foreign file."""
    import xarray as xr

    with xr.open_datatree(path, engine="h5netcdf") as opened:
        result = opened.load().copy(deep=True)
    attributes = dict(result.attrs)
    if attributes.get("schema") != SCHEMA or "digest" not in attributes:
        raise ValueError("it was not written by this version of iclab")
    kept = attributes.pop("digest")
    for name in ("seeds", "seconds"):
        attributes[name] = np.atleast_1d(attributes[name])
    result.attrs = attributes
    if digest(result) != kept:
        raise ValueError("its numbers do not match their digest")
    return result


def digest(result: "xr.DataTree") -> str:
    """SHA-256 over the case and every array, names and types included: equal results have equal digests."""
    total = hashlib.sha256(f"{result.attrs['study']} {result.attrs['study_version']} {result.attrs['case']}".encode())
    for node in result.subtree:
        for name, array in sorted(node.to_dataset(inherit=False).variables.items()):
            values = np.ascontiguousarray(array.values)
            total.update(f"{node.path} {name} {array.dims} {values.shape} {values.dtype.str}".encode())
            total.update(values.tobytes())
    return total.hexdigest()


def _missing(kept: "xr.DataTree | None", seeds: Iterable[int]) -> list[int]:
    known = set() if kept is None else set(kept.attrs["seeds"].tolist())
    return [seed for seed in seeds if seed not in known]


def _only(result: "xr.DataTree | None", seeds: Iterable[int]) -> "xr.DataTree":
    """The result for some of its seeds."""
    import xarray as xr

    assert result is not None
    chosen = list(seeds)
    places = [result.attrs["seeds"].tolist().index(seed) for seed in chosen]
    groups = {}
    for node in result.subtree:
        dataset = node.to_dataset(inherit=False)
        groups[node.path] = dataset.sel(seed=chosen) if "seed" in dataset.dims else dataset
    groups["/"].attrs.update({name: result.attrs[name][places] for name in ("seeds", "seconds")})
    return xr.DataTree.from_dict(groups)
