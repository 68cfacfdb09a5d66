"""Broken files, files that cannot be opened now, and what 0.1.0 left: nothing is replaced unread, nothing is lost."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import pytest
import xarray as xr

from iclab.store import Store, digest, read, write
from tests.test_store import parts_of, store
from tests.test_study import Case, study

__all__ = ["store"]


def damaged(path: Path, how: str) -> None:
    whole = path.read_bytes()
    if how == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "text":
        path.write_text("not a result")
    elif how == "changed":
        result = read(path)
        with h5py.File(path, "r") as file:
            stamps = {name: file.attrs[name] for name in ("digest", "parts")}
        curve = result["simulation/curve"].to_dataset()
        forged = result.copy(deep=True)
        forged.attrs = {**result.attrs, **stamps}
        forged["simulation/curve"] = xr.DataTree(curve.assign(loss=curve.loss + 1e-9))
        forged.to_netcdf(path, engine="h5netcdf")
    elif how == "another case":
        write(study().run(Case(height=5.0), seeds=2), path)
    elif how == "foreign":
        os.unlink(path)
        xr.Dataset({"x": 1.0}).to_netcdf(path, engine="h5netcdf")


DAMAGES = ("truncated", "empty", "text", "changed", "another case", "foreign")


@pytest.mark.parametrize("how", DAMAGES)
def test_a_broken_view_is_kept_beside_and_remade_from_parts(store: Store, how: str) -> None:
    good = store.fetch(study(), Case(), 2)
    path = store.path(study(), Case())
    damaged(path, how)
    content = path.read_bytes()
    with pytest.warns(UserWarning, match=rf"{path.name} is not whole \(.*\); it is kept as {path.name}.broken,"):
        again = store.fetch(study(), Case(), 2)
    assert digest(again) == digest(read(path)) == digest(good)
    assert path.with_name(f"{path.name}.broken").read_bytes() == content
    assert len(parts_of(store)) == 1, "seeds were computed again"


@pytest.mark.parametrize("how", ["truncated", "empty", "text"])
def test_a_broken_part_is_kept_beside_and_its_seeds_are_computed_again(store: Store, how: str) -> None:
    store.fetch(study(), Case(), 1)
    good = store.fetch(study(), Case(), 2)
    store.path(study(), Case()).unlink()
    broken = parts_of(store)[0]
    damaged(broken, how)
    content = broken.read_bytes()
    with pytest.warns(
        UserWarning, match=rf"{broken.name} is not whole \(it is damaged or cut short\); it is kept as"
    ):
        missing = store.missing(study(), Case(), 2)
    assert len(missing) == 1
    assert digest(store.fetch(study(), Case(), 2)) == digest(good)
    assert broken.with_name(f"{broken.name}.broken").read_bytes() == content


def test_broken_files_of_one_name_are_all_kept(store: Store) -> None:
    store.fetch(study(), Case(), 1)
    path = store.path(study(), Case())
    for text in ("one", "two"):
        path.write_text(text)
        with pytest.warns(UserWarning, match="is not whole"):
            store.fetch(study(), Case(), 1)
    assert {file.read_text() for file in store.folder.glob("*.broken*")} == {"one", "two"}


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EACCES, errno.EIO, errno.EMFILE])
@pytest.mark.parametrize("which", ["view", "part"])
def test_a_file_that_cannot_be_opened_now_is_an_error_and_stays_as_it_is(
    store: Store, monkeypatch: pytest.MonkeyPatch, number: int, which: str
) -> None:
    store.fetch(study(), Case(), 3)
    path = store.path(study(), Case()) if which == "view" else parts_of(store)[0]
    content = path.read_bytes()
    opened = Path.read_bytes

    def refused(self: Path) -> bytes:
        if self == path:
            raise OSError(number, os.strerror(number), str(self))
        return opened(self)

    monkeypatch.setattr(Path, "read_bytes", refused)
    for ask in (store.fetch, store.missing):
        with pytest.raises(OSError, match=f"{path.name} must be readable; it cannot be opened now") as caught:
            ask(study(), Case(), (0,))
        assert caught.value.errno == number
    monkeypatch.undo()
    assert path.read_bytes() == content
    assert store.missing(study(), Case(), 3) == []


def test_a_view_that_a_notebook_holds_open_and_locks_is_read_and_replaced(store: Store) -> None:
    store.fetch(study(), Case(), 2)
    path = store.path(study(), Case())
    code = f"import h5py; file = h5py.File({str(path)!r}, 'r+'); print('held', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as notebook:
        assert notebook.stdout is not None
        assert notebook.stdout.readline() == b"held\n"
        assert store.missing(study(), Case(), 3) == [2]
        assert store.fetch(study(), Case(), (2,)).attrs["seeds"].tolist() == [2]
        notebook.communicate(b"\n")
    assert read(path).attrs["seeds"].tolist() == [0, 1, 2]


def test_no_lock_is_asked_for_and_hdf5_opens_no_file(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = h5py.File.__init__

    def bytes_alone(self: h5py.File, name: Any, *given: Any, **named: Any) -> None:
        assert not isinstance(name, str | bytes | Path), "HDF5 was handed a path"
        opened(self, name, *given, **named)

    monkeypatch.setattr(h5py.File, "__init__", bytes_alone)
    good = store.fetch(study(), Case(), 2)
    assert digest(read(store.path(study(), Case()))) == digest(good)
    assert store.missing(study(), Case(), 3) == [2]
