"""Results that version 0.1.0 stored are found and read: names, keys and words of its files stay."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from numpy.testing import assert_array_equal

from iclab import __version__
from iclab.store import Store, digest, read
from iclab.studies import double_descent
from iclab.studies.pretraining.runs import Draws
from iclab.studies.pretraining.sizes import Span

FEW = Span(0.5, 2.0, 2)
CASE = replace(
    double_descent.quick,
    alpha=(10.0,),
    tau=FEW,
    finite_tau=FEW,
    dimension=(4,),
    leverage_tau=(0.5,),
    leverage_dimension=5,
    drawn_tau=(0.5,),
    draws=Draws((4,), (1,), route="plain"),
)


DATA = Path(__file__).parent / "data"  # a file written by 0.1.0, seeds 0 and 1


@pytest.fixture
def copied(tmp_path: Path) -> Store:
    """A folder of 0.1.0: that file alone."""
    store = Store(tmp_path)
    shutil.copy(DATA / store.path(double_descent, CASE).name, tmp_path)
    return store


def test_a_file_of_the_last_version_answers_for_its_case() -> None:
    store = Store(DATA)
    assert store.missing(double_descent, CASE, 2) == []
    found = store.load(double_descent, CASE)
    assert found is not None
    again = double_descent.run(CASE, seeds=0)
    assert set(again["theory"].children) == set(found["theory"].children)
    for node in again["theory"].subtree:
        old = found[node.path].to_dataset()
        assert dict(node.to_dataset().sizes) == dict(old.sizes)
        assert set(node.to_dataset().variables) == set(old.variables)
    assert_array_equal(found["simulation/runs"].tau, [0.5])
    assert found["simulation/runs"].icl.dims == ("seed", "dimension", "tau")


def test_what_the_last_version_stored_alone_stays_a_file_until_a_seed_is_added(copied: Store) -> None:
    path = copied.path(double_descent, CASE)
    before = path.read_bytes()
    assert digest(copied.fetch(double_descent, CASE, 2)) == digest(read(path))
    assert path.read_bytes() == before
    assert not (copied.folder / "parts").exists()


def test_seeds_of_the_last_version_are_kept_beside_new_ones_with_their_own_origin(copied: Store) -> None:
    path = copied.path(double_descent, CASE)
    old = read(path)
    whole = copied.fetch(double_descent, CASE, 3)
    for found in (whole, read(path)):
        runs = found["simulation/runs"].to_dataset()
        assert_array_equal(runs.icl[:2], old["simulation/runs"].icl)
        assert found.attrs["iclab"] == f"0.1.0 (seeds 0-1); {__version__} (seeds 2)"
        assert_array_equal(found.attrs["seconds"][:2], old.attrs["seconds"])
    path.unlink()
    assert copied.missing(double_descent, CASE, 4) == [3]
    assert digest(copied.fetch(double_descent, CASE, 3)) == digest(whole)


def test_a_broken_file_of_the_last_version_is_kept(copied: Store) -> None:
    path = copied.path(double_descent, CASE)
    broken = path.read_bytes()[:-100]
    path.write_bytes(broken)
    with pytest.warns(UserWarning, match=f"{path.name} is not whole .*; it is kept as {path.name}.broken"):
        copied.fetch(double_descent, CASE, 1)
    assert path.with_name(f"{path.name}.broken").read_bytes() == broken
    assert read(path).attrs["seeds"].tolist() == [0]


def test_a_file_of_the_last_version_that_answers_otherwise_than_a_part_is_kept(copied: Store, tmp_path: Path) -> None:
    path = copied.path(double_descent, CASE)
    result = read(path)
    result["simulation/runs/icl"] = result["simulation/runs/icl"] * 1.02
    other = Store(tmp_path / "other")
    other.add(double_descent, CASE, result)
    shutil.move(other.folder / "parts", copied.folder / "parts")
    content = path.read_bytes()
    with pytest.warns(UserWarning, match="its answer for seed 0 differs from that in a part"):
        copied.fetch(double_descent, CASE, 2)
    assert path.with_name(f"{path.name}.broken").read_bytes() == content
