"""The page at the ends of its controls, all at once: every view still draws numbers, and says so in words."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iclab.explorer.views import VIEWS
from tests.browser import Browser
from tests.explorer.pages import NEEDS_BROWSER, said, shown

pytestmark = [NEEDS_BROWSER, pytest.mark.slow]
STATES = 24
UNDRAWN = """return [...document.querySelectorAll('.chart:not([hidden]) svg *')]
  .filter(one => [...one.attributes].some(each => /NaN|undefined|Infinity/.test(each.value))).length;"""


def corner(view: str, rng: np.random.Generator) -> dict[str, Any]:
    """A state of which every control is at one of its ends."""
    state: dict[str, Any] = {}
    for control in VIEWS[view].controls:
        ends = [int(end) if control.whole else float(end) for end in (control.low, control.high)]
        if control.choices:
            state[control.key] = str(rng.choice(control.choices))
        elif control.spectrum:
            state[control.key] = sorted((ends[rng.integers(2)] for _ in range(rng.choice([1, 2, 8]))), reverse=True)
        else:
            state[control.key] = ends[rng.integers(2)]
    return state


@pytest.mark.parametrize("view", [name for name in VIEWS if name != "inspect"])
def test_a_view_says_numbers_at_the_ends_of_its_controls(browser: Browser, page_file: Path, view: str) -> None:
    browser.show("about:blank", width=1000)
    browser.show(page_file.as_uri(), width=1000)
    browser.log()
    rng = np.random.default_rng(len(view))
    for _ in range(STATES):
        state = corner(view, rng)
        answer = shown(browser, view, state)["answer"]
        problem = said(browser, "problem")
        assert problem == "" or "beyond what a page can integrate" in problem, state
        assert answer, state
        assert not any(word in answer for word in ("NaN", "undefined", "Infinity", "null")), (state, answer)
        assert browser.ask(UNDRAWN) == 0, state
    assert browser.log() == []


def test_views_that_follow_each_other_faster_than_they_are_drawn_end_with_the_last(
    browser: Browser, page_file: Path
) -> None:
    browser.show("about:blank", width=1000)
    browser.show(page_file.as_uri(), width=1000)
    names = [*itertools.islice(itertools.cycle(VIEWS), 40), "ridge"]
    browser.ask(
        """for (const name of arguments[0]) window.explorer.app.choose(name, {...window.explorer.usual(name)});
        return new Promise(done => setTimeout(done, 1500));""",
        names,
    )
    assert said(browser, "answer").startswith("The best ridge for new tasks")
    assert browser.ask("return window.explorer.app.view") == "ridge"
    assert browser.log() == []
