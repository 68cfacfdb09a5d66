"""Results on disk: found by content, whole or not at all, never trusted when damaged."""

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from iclab.store import Store, case_key, digest, read, write
from iclab.study import Preset
from tests.test_study import Case, study


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_a_result_survives_being_stored(store: Store) -> None:
    result = study().run(seeds=2)
    write(result, store.path(study(), Case()))
    again = read(store.path(study(), Case()))
    assert digest(again) == digest(result)
    for group in ("theory/curve", "simulation/curve"):
        xr.testing.assert_identical(again[group].to_dataset(), result[group].to_dataset())


def test_what_is_stored_is_not_computed_again(store: Store) -> None:
    store.fetch(study(), Case(), 2)

    def fails(case: Case, *, key: object) -> dict:
        raise AssertionError("computed again")

    store.fetch(study(simulation=fails), Case(), 2)


def test_theory_alone_is_stored_and_found_again(store: Store) -> None:
    alone = study(simulation=None)
    result = store.fetch(alone, Case(), 2)
    assert store.missing(alone, Case(), 2) == []

    def fails(case: Case) -> dict:
        raise AssertionError("computed again")

    found = store.fetch(study(simulation=None, theory=fails), Case(), 0)
    assert digest(found) == digest(result)
    assert len(found.attrs["seeds"]) == 0


def test_missing_seeds_are_added_to_those_stored(store: Store) -> None:
    store.fetch(study(), Case(), (0, 3))
    asked: list[int] = []

    def note(missing: list[int]) -> list[int]:
        asked.extend(missing)
        return missing

    result = store.fetch(study(), Case(), 4, track=note)
    assert asked == [1, 2]
    assert digest(result) == digest(study().run(seeds=4))


def test_only_the_seeds_asked_for_come_back(store: Store) -> None:
    store.fetch(study(), Case(), 4)
    result = store.fetch(study(), Case(), (1, 3))
    assert digest(result) == digest(study().run(seeds=(1, 3)))


def test_the_key_hashes_the_whole_case_and_the_version() -> None:
    keys = {
        case_key(study(), Case()),
        case_key(study(), Case(height=2.0)),
        case_key(study(), Case(sizes=(1,))),
        case_key(study(version=2), Case()),
        case_key(study(name="another"), Case()),
    }
    assert len(keys) == 5
    assert case_key(study(), Case()) == case_key(
        study(presets={"quick": Preset(Case(height=9.0))}), Case()
    )  # defaults do not enter


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
        curve = result["simulation/curve"].to_dataset()
        forged = result.copy(deep=True)
        forged.attrs = {**result.attrs, "digest": digest(result)}
        forged["simulation/curve"] = xr.DataTree(curve.assign(loss=curve.loss + 1e-9))
        forged.to_netcdf(path, engine="h5netcdf")
    elif how == "another case":
        write(study().run(Case(height=5.0), seeds=2), path)
    elif how == "foreign":
        os.unlink(path)
        xr.Dataset({"x": 1.0}).to_netcdf(path, engine="h5netcdf")


@pytest.mark.parametrize("how", ["truncated", "empty", "text", "changed", "another case", "foreign"])
def test_a_damaged_or_foreign_file_is_computed_again_and_said(store: Store, how: str) -> None:
    good = store.fetch(study(), Case(), 2)
    damaged(store.path(study(), Case()), how)
    with pytest.warns(UserWarning, match="is not a whole result of this case .* it is computed again"):
        again = store.fetch(study(), Case(), 2)
    assert digest(again) == digest(good)
    assert digest(read(store.path(study(), Case()))) == digest(good)


def test_an_interrupted_write_leaves_nothing_behind(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(xr.DataTree, "to_netcdf", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.fetch(study(), Case(), 1)
    assert list(store.folder.iterdir()) == []


def test_an_interrupt_between_seeds_keeps_the_finished_ones(store: Store) -> None:
    def stops(missing: list[int]) -> object:
        yield missing[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.fetch(study(), Case(), 3, track=stops)
    assert store.missing(study(), Case(), 3) == [1, 2]


def test_the_digest_sees_every_array_and_name() -> None:
    result = study().run(seeds=1)
    curve = result["theory/curve"].to_dataset()
    for changed in (curve.assign(loss=curve.loss + 1e-15), curve.rename(loss="other"), curve.astype(np.float32)):
        other = result.copy(deep=True)
        other["theory/curve"] = xr.DataTree(changed)
        assert digest(other) != digest(result)


def test_equal_results_of_other_dates_and_versions_have_equal_digests() -> None:
    result = study().run(seeds=1)
    other = result.copy(deep=True)
    other.attrs = {**result.attrs, "seconds": np.array([123.0]), "commit": "other"}
    assert digest(other) == digest(result)


def test_a_case_with_a_nested_problem_has_one_key_however_it_was_built() -> None:
    from iclab import Regression

    @dataclasses.dataclass(frozen=True)
    class Nested:
        problem: Regression = Regression()

    listed = Regression(eigenvalues=[0.4, 0.3, 0.2, 0.1], context_length=np.int64(31))  # type: ignore[arg-type]
    nested = study(presets={"quick": Preset(Nested())})
    assert case_key(nested, Nested()) == case_key(nested, Nested(listed))
