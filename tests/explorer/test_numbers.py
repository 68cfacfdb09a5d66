"""The page in Chromium, from disk: every curve is that of Python, keys and addresses work, nothing is asked for."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iclab.explorer.views import VIEWS
from tests.browser import Browser
from tests.explorer.pages import NEEDS_BROWSER
from tests.explorer.states import FINE, answered, drawn_state, value_of

pytestmark = NEEDS_BROWSER

COMPUTED = [name for name in VIEWS if name != "inspect"]
FLOWING = {  # flows, to 1e-12 on both sides
    "staircase": 1e-8,
    "abrupt-drop": 1e-8,
    "mode-staging": 1e-7,  # both interpolate between steps, each off a solution of tiny steps by up to 6e-8
}

DRAWN = """const [view, state, tolerance] = arguments[0];
return window.explorer.set(view, state, tolerance).then(probe => {
  const paths = {};
  for (const chart of window.explorer.app.charts) if (!chart.box.hidden)
    for (const path of chart.svg.querySelectorAll('path[data-key]')) {
      const points = [...path.getAttribute('d').matchAll(/[ML]([-\\d.e]+),([-\\d.e]+)/g)];
      paths[path.dataset.key] = {chart: window.explorer.app.charts.indexOf(chart),
                                 points: points.map(one => [Number(one[1]), Number(one[2])])};
    }
  return {...probe, paths, lines: document.getElementById('python').textContent,
          command: document.getElementById('command').textContent,
          problem: document.getElementById('problem').textContent};
});"""
PLACED = """const [number, xs, ys] = arguments[0];
const chart = window.explorer.app.charts[number];
return xs.map((x, i) => [chart.X(x), chart.Y(ys[i])]);"""


def state_drawn(browser: Browser, name: str, state: dict[str, Any]) -> dict[str, Any]:
    """The page at a state, as it draws it."""
    return browser.ask(DRAWN, [name, state, FINE])


def compare(browser: Browser, name: str, seed: int) -> float:
    """The largest difference between page and Python at one state, of the height of a curve; paths lie on it."""
    state = drawn_state(name, np.random.default_rng((seed, len(name))))
    found = state_drawn(browser, name, state)
    if found["problem"]:  # stiffer than a page integrates: it says so, and the lines still answer
        assert "beyond what a page can integrate" in found["problem"], (name, state, found["problem"])
        return 0.0
    names = answered(found["lines"])
    worst = 0.0
    assert found["curves"], (name, state)
    for key, curve in found["curves"].items():
        pairs = [(curve["y"], key)] if key != "critical" else []
        pairs += [(curve["x"], curve["xKey"])] if curve.get("xKey") else []
        for drawn, called in pairs:
            theirs, ours = value_of(names, called), np.array([np.nan if v is None else v for v in drawn], dtype=float)
            finite = np.isfinite(theirs)
            assert np.array_equal(finite, np.isfinite(ours)), (name, state, called)
            together = np.asarray(names[called.partition(".")[0]], dtype=float)  # modes share an axis
            height = max(np.max(abs(together[np.isfinite(together)]), initial=0.0), 1e-12)
            worst = max(worst, float(np.max(abs(theirs - ours)[finite], initial=0.0)) / height)
        if key in found["paths"] and not curve.get("xKey"):
            on_path(browser, found["paths"][key], np.array(curve["x"]), value_of(names, key))
    for key, value in found["numbers"].items():
        if key in names and not isinstance(names[key], dict):
            theirs = np.asarray(names[key], dtype=float)
            ours = np.array([np.inf if v == "Infinity" else v for v in np.ravel(value)], dtype=float)
            assert np.allclose(ours, np.ravel(theirs), rtol=1e-7), (name, state, key)
    return worst


def on_path(browser: Browser, path: dict[str, Any], x: np.ndarray, y: np.ndarray) -> None:
    """Python's points lie on the path that is drawn, to a hundredth of a pixel."""
    finite = np.isfinite(y)
    places = np.array(browser.ask(PLACED, [path["chart"], x[finite].tolist(), y[finite].tolist()]), dtype=float)
    seen = np.array(path["points"], dtype=float)
    inside = abs(places[:, 1]) < 1e5
    assert len(seen) == len(places)
    assert np.max(abs(seen - places)[inside], initial=0.0) <= 0.011  # paths have two digits


@pytest.mark.parametrize("name", COMPUTED)
def test_curves_of_random_states_are_those_of_python(browser: Browser, page_file: Path, name: str) -> None:
    browser.show(page_file.as_uri(), width=1000)
    states = 2 if name == "plan" else 5  # Python takes a second for each
    worst = max(compare(browser, name, seed) for seed in range(states))
    assert worst <= FLOWING.get(name, 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPUTED)
def test_curves_of_many_random_states_are_those_of_python(browser: Browser, page_file: Path, name: str) -> None:
    browser.show(page_file.as_uri(), width=1000)
    states = 30 if name == "plan" else 120  # Python takes seconds for each
    worst = [compare(browser, name, seed) for seed in range(100, 100 + states)]
    print(name, f"{max(worst):.1e}")
    assert max(worst) <= FLOWING.get(name, 1e-9)
