"""Parts: what is packed comes back bit by bit, what is damaged is found out, and cells stand once in the union."""

import dataclasses
import errno
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from iclab.outcomes import labeled
from iclab.store import Store, digest, read
from iclab.store.cells import Cell, cells_of, tree_of
from iclab.store.part import Broken, packed, unpacked
from iclab.store.parts import Parts
from iclab.study import Study, case_json
from tests.test_study import Case, study

CASE = case_json(Case())


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(tmp_path, study())


def cells(*seeds: int, **changes: object) -> list[Cell]:
    return [dataclasses.replace(cell, **changes) for cell in cells_of(study().run(seeds=seeds))]  # type: ignore[arg-type]


def same(one: Cell, other: Cell) -> bool:
    plain = [{**vars(cell), "own": None, "shared": None} for cell in (one, other)]
    arrays = zip([*one.own, *one.shared], [*other.own, *other.shared], strict=True)
    return repr(plain[0]) == repr(plain[1]) and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in arrays
    )


def of_all_kinds() -> Study:
    """A study whose outcomes are of every type and shape, and whose theory has a start."""

    def start(case: Case, seed: int) -> float:
        return seed / 3

    def answers(case: Case, start: float, *, key: object = None) -> dict:
        odd = np.array([[np.nan, np.inf, -0.0], [1e-320, start, -np.inf]])
        size, is_so, none = (("name",), np.arange(2)), (("name",), np.array([True, False])), (("empty",), np.zeros(0))
        axes = {"name": np.array([0.5, 2.0]), "place": None, "empty": None}
        one = np.float32(start)
        return {"odd": labeled(axes, odd=(("name", "place"), odd), none=none, size=size, is_so=is_so, one=one)}

    return study(start=start, theory=answers, simulation=answers)


@pytest.mark.parametrize("whole", [study(), of_all_kinds(), study(simulation=None)], ids=["plain", "odd", "theory"])
def test_what_is_packed_comes_back_bit_by_bit(whole: Study) -> None:
    result = whole.run(seeds=(5, 2, 11))
    result.tree["theory/notes"] = xr.DataTree(
        xr.Dataset({"name": ("place", ["first", "second ✓"])})
    )  # as 0.1.0 could
    again = unpacked(packed(cells_of(result), study="made-up", version=1))
    assert all(map(same, cells_of(result), again))
    assert digest(tree_of(again, study="made-up", version=1)) == digest(result)


def test_cells_of_many_cases_and_shapes_share_a_part_and_theory_stands_once_for_each_case() -> None:
    many = [cell for height in (1.0, 2.0) for cell in cells_of(study().run(Case(height=height), seeds=50))]
    longer = labeled({"time": np.arange(900.0)}, loss=np.arange(900.0))
    many += cells_of(study(simulation=lambda case, key: {"curve": longer}).run(Case(height=3.0), seeds=2))
    content = packed(many, study="made-up", version=1)
    assert all(map(same, many, unpacked(content)))
    assert len(content) < 102 * 200 + 4 * 900 * 8 + 6000, "theory is not shared"  # bytes of seeds, of curves, of text


def test_no_damage_to_a_part_passes_for_numbers() -> None:
    good = cells(0, 1)
    content = packed(good, study="made-up", version=1)
    for length in range(0, len(content), 1 + len(content) // 225):
        with pytest.raises(Broken, match="it is damaged or cut short"):
            unpacked(content[:length])
    found = flipped(content, good, count=400, stream=0)
    assert found > 300  # the others change a date of the zip, and no number


def flipped(content: bytes, good: list[Cell], *, count: int, stream: int) -> int:
    """How many of so many flips of one bit are found; the others must leave all cells as they were."""
    draw, found = random.Random(stream), 0
    for _ in range(count):
        damaged = bytearray(content)
        damaged[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        try:
            assert all(map(same, good, unpacked(bytes(damaged)))), "damaged numbers passed"
        except Broken:
            found += 1
    return found


@pytest.mark.slow  # ten times as many as above
def test_no_damage_to_a_larger_part_passes_for_numbers() -> None:
    good = cells(*range(40))
    content = packed(good, study="made-up", version=1)
    assert flipped(content, good, count=4000, stream=1) > 3500


def test_objects_are_refused_by_their_type() -> None:
    result = study().run(seeds=0)
    result.tree["theory/notes"] = xr.DataTree(xr.Dataset({"name": ("place", np.array([{}, {}], dtype=object))}))
    with pytest.raises(ValueError, match="arrays must hold numbers or text; got dict"):
        cells_of(result)


def test_the_same_cells_have_one_name_and_are_written_once(parts: Parts) -> None:
    for order in ((0, 1, 2), (2, 0, 1)):
        parts.publish(cells(*order))
    (path,) = parts.home.iterdir()
    before = path.stat().st_mtime_ns
    parts.publish(cells(0, 1, 2))
    assert path.stat().st_mtime_ns == before
    assert parts.home.name == "made-up-v1"
    parts.publish(cells(0, 1, 3))
    parts.publish([dataclasses.replace(cell, case=case_json(Case(height=2.0))) for cell in cells(0, 1, 2)])
    assert len([*parts.home.iterdir()]) == 3


def test_a_broken_part_in_the_place_of_a_new_one_is_moved(parts: Parts) -> None:
    parts.publish(cells(0))
    (path,) = parts.home.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    parts.publish(cells(0))
    assert path.with_name(f"{path.name}.broken").read_bytes() == whole[:-9]
    assert parts.seeds(CASE) == {0}


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP, errno.EACCES])
def test_where_links_are_refused_a_part_is_renamed(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.link", refused)
    for _ in range(2):
        parts.publish(cells(0, 1))
    assert parts.seeds(CASE) == {0, 1}
    assert [*(parts.folder / "tmp").iterdir()] == []


def test_a_part_that_is_swept_away_while_it_is_written_is_written_again(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def too_late(source: Path, *given: Path) -> None:
        monkeypatch.undo()
        Path(source).unlink()
        link(source, *given)

    monkeypatch.setattr("os.link", too_late)
    parts.publish(cells(0))
    assert parts.seeds(CASE) == {0}


def test_doubles_are_one_cell_and_said_where_they_differ(parts: Parts) -> None:
    (one,) = cells(0)
    rounded = dataclasses.replace(one, own=tuple(array * (1 + 1e-11) for array in one.own))
    parts.publish([one])
    parts.publish([rounded, *cells(1)])
    assert parts.cells(CASE).keys() == {0, 1}  # and no warning, which is an error here
    other = dataclasses.replace(one, own=tuple(array * (1 + 2e-9) for array in one.own))
    parts.publish([other, *cells(2)])
    with pytest.warns(UserWarning, match=r"the answer for seed 0 in \w+\.npz differs from that in another part"):
        assert parts.cells(CASE).keys() == {0, 1, 2}


def test_theory_of_other_environments_is_compared(parts: Parts) -> None:
    first, second = cells(0, 1)
    shifted = tuple(array + 1e-6 for array in second.shared)
    with pytest.warns(UserWarning, match="theory made with seed 1 differs from that of seed 0, which is shown, by"):
        tree = tree_of([first, dataclasses.replace(second, shared=shifted)], study="made-up", version=1)
    assert tree["theory/curve"].to_dataset().loss.values.tolist() == np.exp(-np.linspace(0, 1, 5)).tolist()


def test_seeds_whose_arrays_do_not_fit_are_refused() -> None:
    first, second = cells(0, 1)
    with pytest.raises(ValueError, match="seeds of one case must give arrays of one shape; seeds 0 and 1 of made-up"):
        tree_of(
            [first, dataclasses.replace(second, own=tuple(a[..., None] for a in second.own))],
            study="made-up",
            version=1,
        )


def test_compaction_unites_parts_and_loses_none(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for case in (Case(), Case(height=2.0)):
        for seeds in ((0,), (1, 2), (2, 3)):
            store.add(study(), case, study().run(case, seeds=seeds))
    good = [store.fetch(study(), case, 4) for case in (Case(), Case(height=2.0))]
    store.compact(study())
    assert len([*Parts(tmp_path, study()).home.iterdir()]) == 1
    again = [store.fetch(study(), case, 4) for case in (Case(), Case(height=2.0))]
    assert [digest(one) for one in again] == [digest(one) for one in good]
    assert digest(read(store.path(study(), Case()))) == digest(good[0])
    store.compact(study())
    assert store.missing(study(), Case(), 5) == [4]


def test_compaction_keeps_both_of_two_answers_that_differ(parts: Parts) -> None:
    (one,) = cells(0)
    parts.publish([one, *cells(1)])
    parts.publish([dataclasses.replace(one, own=tuple(array + 1.0 for array in one.own)), *cells(2)])
    with pytest.warns(UserWarning, match="differs from that in another part"):
        parts.compact()
    kept = {
        tuple(cell.own[0]) for path in parts.home.iterdir() for cell in unpacked(path.read_bytes()) if not cell.seed
    }
    assert len(kept) == 2


def test_parts_that_vanish_while_they_are_read_are_listed_again(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(3):
        parts.publish(cells(seed))
    opened: Callable[[Path], bytes] = Path.read_bytes

    def united_meanwhile(self: Path) -> bytes:
        monkeypatch.undo()
        Parts(parts.folder, study()).compact()
        return opened(self)

    monkeypatch.setattr(Path, "read_bytes", united_meanwhile)
    assert parts.cells(CASE).keys() == {0, 1, 2}


def test_a_full_disk_is_said_in_one_line_and_keeps_what_was_stored(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts.publish(cells(0))

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("os.write", full)
        with pytest.raises(
            OSError, match=r"must take [\d,]+ bytes of results of made-up; writing failed \(No space"
        ) as e:
            parts.publish(cells(1))
    assert e.value.errno == errno.ENOSPC
    assert parts.seeds(CASE) == {0}
    assert [*(parts.folder / "tmp").iterdir()] == []


def test_a_command_that_meets_a_full_disk_says_one_line_and_keeps_earlier_seeds(tmp_path: Path) -> None:
    code = """
import resource, sys
from pathlib import Path
from iclab.commands.main import main
from iclab.commands import run
from iclab.store import Store
from tests.kills import STUDY, Case

def stores(words):
    Store(Path(sys.argv[1])).fetch(STUDY, Case(), 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))  # a part of one seed takes more
    Store(Path(sys.argv[1])).fetch(STUDY, Case(), 3)

import iclab.commands.main as commands
commands.COMMANDS["run"] = (None, stores)
sys.exit(main(["run"]))
"""
    root = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "must take" in done.stderr
    assert "What was stored before is kept. Make space, or name another folder." in done.stderr
    view = read(next(tmp_path.glob("*.nc")))
    assert view.attrs["seeds"].tolist() == [0, 1]
    assert [*(tmp_path / "tmp").iterdir()] == []
