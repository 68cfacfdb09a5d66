"""The page in Chromium: at three widths, light and dark, nothing to scroll sideways, type that can be read.

Where AXE names the file axe.min.js of axe-core, it finds no serious fault.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from iclab import figures, report
from iclab.studies import STUDIES
from iclab.study import Result, View
from tests.browser import Browser
from tests.test_result import study

WIDTHS = (390, 800, 1400)
DRIVEN = all(map(shutil.which, ("chromedriver", "chromium")))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DRIVEN, reason="needs chromium and chromedriver, of the system"),
]

BEYOND = """const wide = document.documentElement.clientWidth;
const boxes = [...document.querySelectorAll('body *')].filter(one => !one.closest('svg, .skip'));
return [document.documentElement.scrollWidth - wide,
        boxes.filter(one => one.getBoundingClientRect().right > wide + 1).map(one => one.outerHTML.slice(0, 99))];"""
TYPE = """return [...document.querySelectorAll('figure svg')].filter(one => one.clientWidth).map(svg => {
  const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  const glyphs = [...svg.querySelectorAll('[id*="-text_"] g[transform*="scale("]')];
  return Math.min(...glyphs.map(one => 100 * scale * parseFloat(one.getAttribute('transform').split('scale(')[1])));
});"""


def banded(view: View, figure: Figure) -> None:
    """Loss against time, with a band of seeds."""
    curve = view.simulation.curve
    figures.seed_lines(figure.subplots(), curve.time, curve.loss.values, label="seeds")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page of two studies: one with verdicts, one of theory alone with several panels."""
    folder = tmp_path_factory.mktemp("page")
    results: list[Result] = [study(figure=banded).run(seeds=3), STUDIES["staircase"].run(seeds=0)]
    return report.write(folder, [one._entry() for one in results]).as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_of_the_page_is_wider_than_its_window(browser: Browser, page: str, width: int) -> None:
    browser.show(page, width=width)
    assert browser.ask(BEYOND) == [0, []]
    browser.ask("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert browser.ask(BEYOND) == [0, []]


@pytest.mark.parametrize("width", WIDTHS)
def test_type_in_figures_is_eleven_pixels_high_or_more(browser: Browser, page: str, width: int) -> None:
    browser.show(page, width=width)
    sizes = browser.ask(TYPE)
    assert len(sizes) == 2  # one form of each figure is shown
    assert min(sizes) >= 11


def test_single_runs_are_shown_on_demand(browser: Browser, page: str) -> None:
    count = (
        "return [...document.querySelectorAll('[id*=\"-runs-\"]')].filter(one => one.getClientRects().length).length"
    )
    browser.show(page, width=1400)
    assert browser.ask(count) == 0
    browser.ask("document.querySelectorAll('.runs input').forEach(one => one.click())")
    assert browser.ask(count) > 0


@pytest.mark.parametrize(("scheme", "paper"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(21, 24, 29)")])
def test_figures_are_drawn_on_the_paper_of_the_page(browser: Browser, page: str, scheme: str, paper: str) -> None:
    browser.show(page, width=1400, scheme=scheme)
    assert browser.ask("return getComputedStyle(document.body).backgroundColor") == paper
    patch = "document.querySelector('.wide svg [id*=\"-patch_1\"] path')"
    assert browser.ask(f"return getComputedStyle({patch}).fill") == paper


@pytest.mark.skipif("AXE" not in os.environ, reason="AXE must name axe.min.js of the npm package axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_no_fault(browser: Browser, page: str, width: int, scheme: str) -> None:
    browser.show(page, width=width, scheme=scheme)
    browser.ask("document.querySelectorAll('details').forEach(one => one.open = true)")
    browser.ask(Path(os.environ["AXE"]).read_text() + "\nwindow.axe = axe;")
    found = browser.ask(
        "return axe.run(document).then(all => [all.passes.length, all.violations.map(one => one.id)])"
    )
    assert found[0] > 10
    assert found[1] == []
