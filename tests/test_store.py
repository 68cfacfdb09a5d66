"""Results on disk: found by content, whole or not at all, never trusted when damaged, never lost."""

import dataclasses
import errno
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from iclab.store import Store, case_key, digest, read, write
from iclab.store.parts import Parts
from iclab.study import Preset, case_json
from tests.test_study import Case, study


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def parts_of(store: Store) -> list[Path]:
    return sorted(store.folder.glob("parts/made-up-v1/*.npz"))


def test_a_result_survives_being_stored(store: Store) -> None:
    result = study().run(seeds=2)
    write(result, store.path(study(), Case()))
    again = read(store.path(study(), Case()))
    assert digest(again) == digest(result)
    for group in ("theory/curve", "simulation/curve"):
        xr.testing.assert_identical(again[group].to_dataset(), result[group].to_dataset())


def test_what_is_fetched_is_what_was_asked_for_and_what_the_view_shows(store: Store) -> None:
    result, fetched = study().run(seeds=3), store.fetch(study(), Case(), 3)
    view = read(store.path(study(), Case()))
    for stored in (fetched, view, store.load(study(), Case())):
        assert stored is not None
        for group in ("theory/curve", "simulation/curve"):
            xr.testing.assert_identical(stored[group].to_dataset(), result[group].to_dataset())
        assert stored.attrs.keys() == result.attrs.keys()
        for name in ("study", "study_version", "case", "schema", "versions", "commit", "kernel", "device"):
            assert stored.attrs[name] == result.attrs[name]
        assert np.all(stored.attrs["memory"] > 1e6)


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
    assert digest(found) == digest(result) == digest(read(store.path(alone, Case())))
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


def test_only_the_seeds_asked_for_come_back_and_the_view_shows_all(store: Store) -> None:
    whole = store.fetch(study(), Case(), 4)
    result = store.fetch(study(), Case(), (1, 3))
    assert digest(result) == digest(study().run(seeds=(1, 3)))
    assert digest(read(store.path(study(), Case()))) == digest(whole)


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


def test_an_interrupt_while_a_view_is_made_loses_no_seed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(xr.DataTree, "to_netcdf", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.fetch(study(), Case(), 2)
    assert store.missing(study(), Case(), 2) == []
    assert not store.path(study(), Case()).exists()
    assert [path for path in store.folder.rglob("*") if "unfinished" in path.name] == []
    store.fetch(study(), Case(), 2)
    assert read(store.path(study(), Case())).attrs["seeds"].tolist() == [0, 1]


def test_an_interrupt_between_seeds_keeps_the_finished_ones(store: Store) -> None:
    def stops(missing: list[int]) -> Iterator[int]:
        yield missing[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.fetch(study(), Case(), 3, track=stops)
    assert store.missing(study(), Case(), 3) == [1, 2]


def test_an_error_in_a_seed_keeps_those_before_it(store: Store) -> None:
    def fails(case: Case, *, key: object) -> dict:
        if asked.pop() == 2:
            raise ArithmeticError("diverged")
        return study().simulation(case, key=key)  # type: ignore[misc]

    asked = [2, 1, 0]
    with pytest.raises(ArithmeticError, match="diverged"):
        store.fetch(study(simulation=fails), Case(), 3)
    assert store.missing(study(), Case(), 3) == [2]


def test_a_seed_is_stored_once_ten_seconds_have_passed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("iclab.store.buffer.time.monotonic", lambda: now[0])
    stored = []
    with store.buffer(study()) as buffer:
        for seed, later in enumerate((4.0, 9.9, 10.0, 19.0, 20.5)):
            now[0] = later
            buffer.add(study().run(seeds=(seed,)))
            stored.append(len(Parts(store.folder, study()).seeds(case_json(Case()))))
    assert stored == [0, 0, 3, 3, 5]  # parts at 10.0 and 20.5, each with what waited
    assert len(parts_of(store)) == 2


def test_of_two_writers_of_a_view_the_last_one_shows_the_seeds_of_both(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = study().run(seeds=(7,))
    written = write

    def overtaken(result: xr.DataTree, path: Path, *, parts: str = "") -> None:
        monkeypatch.undo()
        Store(store.folder).add(study(), Case(), others)  # another process, between listing and writing
        written(result, path, parts=parts)

    monkeypatch.setattr("iclab.store.folder.write", overtaken)
    store.fetch(study(), Case(), 2)
    assert read(store.path(study(), Case())).attrs["seeds"].tolist() == [0, 1, 7]


def test_a_view_without_its_parts_is_read_as_one(store: Store, tmp_path: Path) -> None:
    good = store.fetch(study(), Case(), 2)
    other = Store(tmp_path / "elsewhere")
    other.folder.mkdir()
    store.path(study(), Case()).rename(other.path(study(), Case()))
    assert other.missing(study(), Case(), 3) == [2]
    assert digest(other.fetch(study(), Case(), 2)) == digest(good)
    assert not (other.folder / "parts").exists()
    whole = other.fetch(study(), Case(), 3)
    other.path(study(), Case()).unlink()
    assert other.missing(study(), Case(), 4) == [3]
    assert digest(other.fetch(study(), Case(), 3)) == digest(whole)


def test_a_folder_that_cannot_be_written_is_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    good = store.fetch(study(), Case(), 2)
    store.path(study(), Case()).unlink()

    def refused(*_: object, **__: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("os.open", refused)
    assert store.missing(study(), Case(), 3) == [2]
    with pytest.warns(UserWarning, match=r"\.nc does not show all that is stored: .* must be writable"):
        assert digest(store.fetch(study(), Case(), 2)) == digest(good)


def test_seeds_of_an_earlier_version_are_kept_and_said(store: Store) -> None:
    store.fetch(study(), Case(), 3)
    with pytest.warns(UserWarning, match="answers for 3 seeds by version 1 of the study are kept, and not used"):
        store.fetch(study(version=2), Case(), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.fetch(study(version=2), Case(), 1)
        store.fetch(study(), Case(), 3)


def test_a_result_of_another_case_or_version_is_refused(store: Store) -> None:
    for result in (study().run(Case(height=2.0), seeds=1), study(version=2).run(seeds=1)):
        with pytest.raises(ValueError, match=r"result must be of \('made-up', 1, .*Name the case that it answers"):
            store.add(study(), Case(), result)


def test_a_seed_names_the_environment_that_made_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first = study().run(seeds=(0, 1))
    monkeypatch.setattr(
        sys.modules["iclab.store.fresh"],
        "environment",
        lambda: {**elsewhere(first), "commit": "abc", "versions": "numpy 9"},
    )
    store.add(study(), Case(), first)
    store.fetch(study(), Case(), (4,))
    store.fetch(study(), Case(), (2, 3))
    for whole in (store.load(study(), Case()), read(store.path(study(), Case())), store.fetch(study(), Case(), 5)):
        assert whole is not None
        assert whole.attrs["commit"] == f"{first.attrs['commit']} (seeds 0-1); abc (seeds 2-4)"
        assert whole.attrs["versions"] == f"{first.attrs['versions']} (seeds 0-1); numpy 9 (seeds 2-4)"
        assert whole.attrs["kernel"] == first.attrs["kernel"]
    assert store.fetch(study(), Case(), 2).attrs["commit"] == first.attrs["commit"]
    assert store.fetch(study(), Case(), (3,)).attrs["versions"] == "numpy 9"
    whole = store.fetch(study(), Case(), 5)
    other = Store(store.folder / "copied")
    other.add(study(), Case(), whole)  # a joined result is taken apart again
    assert other.fetch(study(), Case(), (3,)).attrs["versions"] == "numpy 9"
    assert "origins" not in other.fetch(study(), Case(), (3,)).attrs


def elsewhere(result: xr.DataTree) -> dict[str, str]:
    return {name: result.attrs[name] for name in ("iclab", "commit", "versions", "precision", "kernel")}


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
