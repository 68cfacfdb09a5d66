"""The command `iclab results`: what a folder holds, and its removal."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from iclab.commands.main import main
from iclab.store import Store, case_key
from iclab.store.holdings import holdings
from iclab.studies import STUDIES
from iclab.study import case_json
from tests.test_study import Case, study

TALL = Case(height=3.0)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two cases of a study in one part, one of them with a figure."""
    store = Store(tmp_path)
    store.fetch(study(), Case(), 2)
    store.fetch(study(), TALL, 3)
    store.compact(study())
    store.path(study(), TALL).with_name(f"made-up-{case_key(study(), TALL)}-seeds-3.pdf").write_bytes(b"%PDF")
    return store


def listed(store: Store, capsys: pytest.CaptureFixture, *words: str) -> list[dict]:
    assert main(["results", str(store.folder), "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def test_each_case_is_listed_with_its_seeds_and_all_bytes(store: Store, capsys: pytest.CaptureFixture) -> None:
    found = listed(store, capsys)
    assert {one["case"]["height"]: one["seeds"] for one in found} == {1.0: [0, 1], 3.0: [0, 1, 2]}
    on_disk = sum(file.stat().st_size for file in store.folder.rglob("*") if file.is_file())
    assert sum(one["bytes"] for one in found) == pytest.approx(on_disk, abs=2)  # each rounded
    assert main(["results", str(store.folder)]) == 0
    shown = capsys.readouterr().out
    for words in ("made-up", "0-1", "0-2", "2 cases", case_key(study(), TALL)):
        assert words in shown


def test_a_case_is_removed_with_all_that_is_its_own_and_the_others_stay(
    store: Store, capsys: pytest.CaptureFixture
) -> None:
    key = case_key(study(), TALL)
    assert main(["results", str(store.folder), "--only", key[:8], "--remove"]) == 2
    assert "there is nobody to ask. Add --yes." in capsys.readouterr().err
    assert len(listed(store, capsys)) == 2
    listed(store, capsys, "--only", key[:8], "--remove", "--yes")
    assert not list(store.folder.glob(f"*{key}*"))
    assert store.missing(study(), TALL, 3) == [0, 1, 2]
    assert store.missing(study(), Case(), 2) == []
    assert main(["results", str(store.folder), "--only", "MadeUp", "made-up", "--remove", "--yes"]) == 0
    assert [file for file in store.folder.rglob("*") if file.is_file()] == []


def test_the_answer_no_leaves_everything(
    store: Store, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for answer, code in (("n", 2), ("", 2), ("yes", 0)):
        assert len(holdings(store.folder)) == 2
        monkeypatch.setattr("builtins.input", lambda _, answer=answer: answer)
        assert main(["results", str(store.folder), "--remove"]) == code
    assert holdings(store.folder) == []


def test_a_case_is_told_by_what_differs_from_a_preset(tmp_path: Path) -> None:
    known = STUDIES["ridge"]
    for case in (known.quick, replace(known.full, noise=0.75)):
        result = study().run(seeds=0).tree
        result.attrs |= {"study": known.name, "study_version": known.version, "case": case_json(case)}
        Store(tmp_path).add(known, case, result)
    assert {one.changes for one in holdings(tmp_path)} == {"quick", "noise 0.75"}
    assert {one.seeds for one in holdings(tmp_path)} == {"theory alone"}


def test_a_folder_that_is_not_there_and_an_empty_one_are_said(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["results", str(tmp_path / "nowhere")]) == 2
    assert "the folder of results must be there" in capsys.readouterr().err
    assert main(["results", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"nothing is stored in {tmp_path}\n"
