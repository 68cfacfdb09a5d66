"""The page of the explorer in Chromium, for the tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from iclab.explorer import page
from tests.browser import Browser


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page without stored runs, on disk."""
    written = tmp_path_factory.mktemp("explorer") / "page.html"
    written.write_text(str(page()), encoding="utf-8")
    return written


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One window for all tests."""
    with Browser() as opened:
        yield opened


@pytest.fixture
def reader(browser: Browser, page_file: Path) -> Browser:
    """The window with the page freshly opened from disk."""
    browser.show("about:blank", width=1000)
    browser.show(page_file.as_uri(), width=1000)
    return browser
