"""The looks of the page in Chromium: width, type, contrast, labels, what axe finds; and the types of its script."""

import os
import subprocess
from pathlib import Path

import pytest

from iclab.explorer.views import VIEWS
from tests.browser import Browser
from tests.explorer.pages import BEYOND, CONTRAST, NEEDS_BROWSER, OVERLAPS, TEXT, shown

pytestmark = [pytest.mark.slow, NEEDS_BROWSER]
WIDTHS = (390, 800, 1400)
FAULTS = """return axe.run(document).then(all => [all.passes.length,
  all.violations.map(one => one.id + ' ' + one.nodes[0].html.slice(0, 80))]);"""


def test_nothing_is_wider_than_a_phone_and_type_can_be_read(browser: Browser, page_file: Path) -> None:
    for width in WIDTHS:
        browser.show("about:blank", width=width)
        browser.show(page_file.as_uri(), width=width)
        for view in VIEWS:
            shown(browser, view)
            assert browser.ask(BEYOND) == [0, []], (view, width)
            small = [one for one in browser.ask(TEXT) if one[1] < 13]
            assert small == [], (view, width)
            assert browser.ask(OVERLAPS) == [], (view, width)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_type_and_curves_stand_out_from_the_paper(browser: Browser, page_file: Path, scheme: str) -> None:
    browser.show("about:blank", width=1000, scheme=scheme)
    browser.show(page_file.as_uri(), width=1000, scheme=scheme)
    for view in VIEWS:
        shown(browser, view)
        pale = [one for one in browser.ask(CONTRAST) if one[1] < 4.5]
        assert pale == [], view


@pytest.mark.skipif("AXE" not in os.environ, reason="AXE must name axe.min.js of the npm package axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_no_fault(browser: Browser, page_file: Path, width: int, scheme: str) -> None:
    browser.show("about:blank", width=width, scheme=scheme)
    browser.show(page_file.as_uri(), width=width, scheme=scheme)
    browser.ask(Path(os.environ["AXE"]).read_text() + "\nwindow.axe = axe;")
    for view in VIEWS:
        shown(browser, view)
        found = browser.ask(FAULTS)
        assert found[0] > 10
        assert found[1] == [], view


@pytest.mark.skipif("TSC" not in os.environ, reason="TSC must name tsc of the npm package typescript")
def test_types_of_the_page_hold() -> None:
    config = Path(__file__).with_name("page.tsconfig.json")
    done = subprocess.run([os.environ["TSC"], "-p", str(config)], capture_output=True, text=True)
    assert done.stdout == ""
