"""The report whose figures move: in place where scripts run, as they were without, and small enough to send."""

from pathlib import Path

import pytest

import iclab
from iclab.explorer import moving
from iclab.studies import STUDIES
from iclab.study import Result
from tests.browser import Browser
from tests.explorer.pages import NEEDS_BROWSER

pytestmark = [NEEDS_BROWSER, pytest.mark.slow]
OPENED = (
    """return new Promise(done => { document.querySelector('figure button').click(); setTimeout(done, 1500); });"""
)
VISIBLE = (
    "return [...document.querySelectorAll('figure .wide, figure .narrow')].some(one => one.getClientRects().length)"
)


@pytest.fixture(scope="module")
def result() -> Result:
    study = STUDIES["abrupt-drop"]
    return study.run(study.case(problem=iclab.Regression((0.4, 0.2), 8), steps=1000, sequences=(200, 400)), seeds=2)


@pytest.fixture(scope="module")
def report(result: Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return result.page(tmp_path_factory.mktemp("report"))


def test_a_figure_opens_its_view_in_place_at_its_case_with_its_runs(browser: Browser, report: Path) -> None:
    browser.show("about:blank", width=1200)
    browser.log()
    browser.show(report.as_uri(), width=1200)
    assert browser.ask(VISIBLE)
    browser.ask(OPENED)
    assert not browser.ask(VISIBLE)
    browser.enter_frame()
    state = browser.ask(
        "return [window.explorer.app.view, window.explorer.app.state.lambda, window.explorer.app.state.N]"
    )
    assert state == ["abrupt-drop", [0.4, 0.2], 8]
    assert browser.ask("return document.getElementById('verdicts').textContent").startswith("2 stored runs")
    assert browser.ask("return document.body.className") == "embedded"
    assert browser.log() == []


def test_closed_again_the_figure_is_as_it_was(browser: Browser, report: Path) -> None:
    browser.show("about:blank", width=1200)
    browser.show(report.as_uri(), width=1200)
    browser.ask(OPENED)
    browser.ask(OPENED)
    assert browser.ask(VISIBLE)
    assert browser.ask("return document.querySelectorAll('iframe').length") == 0


def test_without_scripts_the_figure_stands_and_no_button_is_dead(browser: Browser, report: Path) -> None:
    browser.allow_scripts(False)
    try:
        browser.show("about:blank", width=1200)
        browser.show(report.as_uri(), width=1200)
        assert browser.ask(VISIBLE)
        assert browser.ask("return document.querySelector('figure button').getClientRects().length") == 0
    finally:
        browser.allow_scripts(True)


def test_studies_without_a_view_bring_no_script(result: Result) -> None:
    other = STUDIES["white-drop"].run(seeds=0)
    assert moving([(other.study, other.case, other.tree)]) is None
