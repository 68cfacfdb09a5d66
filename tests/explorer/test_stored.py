"""Stored results under theory: each study's runs, the product's own verdicts, and files that cannot be shown."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import iclab
from iclab.explorer import page
from iclab.explorer.stored import laid_over, stored
from iclab.studies import STUDIES
from iclab.study import Result
from tests.browser import Browser
from tests.explorer.pages import NEEDS_BROWSER, said, shown

pytestmark = pytest.mark.slow  # most run a simulation
SIMULATED = """return [...document.querySelectorAll('.chart:not([hidden]) :is(path.curve, circle.dot)')]
  .map(one => one.getAttribute('class'));"""


@pytest.fixture(scope="module")
def result() -> Result:
    study = STUDIES["abrupt-drop"]
    problem = iclab.Regression((0.4, 0.2), 8)
    return study.run(study.case(problem=problem, steps=3000, sequences=(200, 400)), seeds=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, result: Result) -> Path:
    place = tmp_path_factory.mktemp("results")
    result.save(place)
    return place


def file_of(folder: Path) -> Path:
    return next(folder.glob("abrupt-drop-*.nc"))


def test_runs_and_verdicts_of_a_stored_case_are_those_of_its_result(folder: Path, result: Result) -> None:
    found, left_out = stored(folder)
    assert left_out == []
    [one] = found["abrupt-drop"]
    assert one["seeds"] == [0, 1, 2]
    [case] = one["cases"]
    assert case["state"] == {
        "lambda": [0.4, 0.2],
        "N": 8,
        "rho": 0.0,
        "H": 8,
        "w": pytest.approx(result.case.initial),
    }
    drawn = result["simulation/sequences"].to_dataset().isel(sequences=-1)
    for line, losses in zip(case["lines"], drawn.loss.values, strict=True):
        assert line["x"][-1] == pytest.approx(float(drawn.time[-1]), rel=1e-4)
        assert line["y"][-1] == pytest.approx(losses[-1], rel=1e-4)
        records = [int(np.argmin(abs(drawn.time.values - x))) for x in line["x"]]
        assert np.allclose(line["y"], losses[records], rtol=1e-4)
    told = [(one.word, one.meaning, one.number, one.bound, one.noticed) for one in result.verdicts]
    assert [(v["word"], v["meaning"], v["number"], v["bound"], v["noticed"]) for v in one["verdicts"]] == told


def test_a_file_that_cannot_be_shown_is_left_out_with_its_reason(folder: Path, tmp_path: Path) -> None:
    good = file_of(folder)
    names = {"cut": b"", "foreign": b"no netCDF at all" * 100}
    for name, content in names.items():
        (tmp_path / f"{name}-{'0' * 16}.nc").write_bytes(content or good.read_bytes()[:5000])
    older = tmp_path / f"older-{'1' * 16}.nc"
    shutil.copy(good, older)
    with h5py.File(older, "r+") as file:
        file.attrs["schema"] = 0
    found, left_out = stored(tmp_path)
    assert found == {}
    assert len(left_out) == 3
    for sentence in left_out:
        assert sentence.endswith(".")
        assert ".nc is left out: " in sentence
    with pytest.warns(UserWarning, match="is left out"):
        page(results=tmp_path)


def test_a_result_of_another_version_is_left_out(result: Result) -> None:
    tree = result.tree.copy()
    tree.attrs = {**tree.attrs, "study_version": 1}
    with pytest.raises(ValueError, match="version 1 of abrupt-drop, and version 2 answers otherwise"):
        laid_over(tree)


def test_a_case_that_no_control_can_show_is_left_out(result: Result) -> None:
    for change in ({"task_eigenvalues": [2.0, 1.0]}, {"eigenvalues": [5.0, 0.2]}):
        tree = result.tree.copy()
        case = json.loads(tree.attrs["case"])
        case["problem"] |= change
        tree.attrs = {**tree.attrs, "case": json.dumps(case)}
        with pytest.raises(ValueError, match=r"no control for problem\.task_eigenvalues|beyond the range"):
            laid_over(tree)


@pytest.mark.parametrize("name", ["mode-staging", "finite-context", "fixed-points", "phase-portrait", "ridge",
                                  "double-descent", "context-length", "task-diversity", "staircase"])  # fmt: skip
def test_every_study_with_a_view_lays_its_quick_case_over_theory(name: str) -> None:
    study = STUDIES[name]
    found = laid_over(study.run(study.quick, seeds=2).tree)
    [one] = found[name]
    assert one["verdicts"]
    assert all(case["lines"] or case["dots"] for case in one["cases"])
    json.dumps(found, allow_nan=False)


@pytest.fixture(scope="module")
def laid(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("laid") / "page.html"
    file.write_text(str(page(results=folder)))
    return file.as_uri()


HERE: dict[str, Any] = {"lambda": [0.4, 0.2], "N": 8, "T": 186.0}


@NEEDS_BROWSER
def test_runs_of_the_very_case_stand_in_color_with_the_verdicts_of_the_product(
    browser: Browser, laid: str, result: Result
) -> None:
    browser.show("about:blank", width=1000)
    browser.show(laid, width=1000)
    shown(browser, "abrupt-drop", {**HERE, "w": result.case.initial, "seed": 1})
    classes = browser.ask(SIMULATED)
    assert classes.count("curve vermilion faint") == 2
    assert classes.count("curve vermilion") == 1  # of the seed that theory starts from
    words = said(browser, "verdicts")
    assert words.startswith("3 stored runs trained on 400 sequences, each from the start of its seed: ")
    for verdict in result.verdicts:
        assert f"{verdict.word} {verdict.meaning}" in words
        assert verdict.number in words


@NEEDS_BROWSER
def test_the_nearest_case_is_grey_and_named_and_no_verdict_is_claimed(
    browser: Browser, laid: str, result: Result
) -> None:
    browser.show("about:blank", width=1000)
    browser.show(laid, width=1000)
    shown(browser, "abrupt-drop", {**HERE, "N": 9, "w": result.case.initial})
    classes = browser.ask(SIMULATED)
    assert [one for one in classes if "vermilion" in one] == []
    assert classes.count("curve soft faint") == 3
    words = said(browser, "verdicts")
    assert words.startswith(
        "No run of this very case is stored. In grey the nearest one, 3 stored runs trained on 400"
    )
    assert words.endswith("Context length N: 8 where here 9.")


def test_a_result_explores_itself(result: Result) -> None:
    assert "lambda=0.4,0.2&N=8" in result.explore().address
    assert '"seeds":[0,1,2]' in str(result.explore())
    with pytest.raises(ValueError, match="N must be a whole number from 1 to 500"):
        STUDIES["abrupt-drop"].explore(replace(result.case, problem=iclab.Regression((0.4,), 1000)))
