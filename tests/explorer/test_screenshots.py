"""Screenshots of every view for docs/explorer.md: drawn anew where SHOTS is set, and there for every view."""

import io
import os
from pathlib import Path

import pytest
from PIL import Image

from iclab.commands.main import main
from iclab.explorer.views import VIEWS
from tests.browser import Browser
from tests.explorer.pages import DROP, NEEDS_BROWSER, shown
from tests.test_inspect import written
from tests.test_observe import states

IMAGES = Path(__file__).parents[2] / "docs" / "images" / "explorer"
WIDTH, HEIGHT, TALL = 1200, 720, {"phase-portrait": 830, "context-length": 1140, "inspect": 1140}
COLORS = 96  # of an image, so that it is small


@NEEDS_BROWSER
@pytest.mark.slow
@pytest.mark.skipif("SHOTS" not in os.environ, reason="SHOTS must be set to draw the images of the docs anew")
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_drawn_for_the_docs(browser: Browser, page_file: Path, tmp_path: Path, view: str) -> None:
    browser.show("about:blank", width=WIDTH)
    browser.show(page_file.as_uri(), width=WIDTH)
    if view == "inspect":
        run = written(tmp_path / "run", states())
        assert main(["inspect", str(run), "--out", str(tmp_path / "out"), "--no-page"]) == 0
        assert browser.ask(DROP, "results.json", (tmp_path / "out" / "results.json").read_text())[0] == ""
    else:
        shown(browser, view)
    taken = browser.picture(width=WIDTH, height=TALL.get(view, HEIGHT))
    image = Image.open(io.BytesIO(taken)).convert("RGB").quantize(COLORS)
    IMAGES.mkdir(parents=True, exist_ok=True)
    image.save(IMAGES / f"{view}.png", optimize=True)


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_stands_in_the_docs_with_its_picture(view: str) -> None:
    page = (IMAGES.parents[1] / "explorer.md").read_text()
    assert f"images/explorer/{view}.png" in page
    with Image.open(IMAGES / f"{view}.png") as image:
        assert image.width == WIDTH
    assert (IMAGES / f"{view}.png").stat().st_size < 80_000
