"""The page in Chromium as it is read: keys, addresses, entries, pinned curves, frames, no scripts."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from iclab.explorer import joining, page
from iclab.explorer.reference import MIRRORS
from iclab.explorer.views import VIEWS
from tests.browser import Browser
from tests.explorer.pages import NEEDS_BROWSER, said, shown

pytestmark = NEEDS_BROWSER


def test_the_page_asks_for_nothing_and_says_nothing_to_the_console(reader: Browser) -> None:
    reader.log()
    for view in VIEWS:
        shown(reader, view)
    assert reader.ask("return performance.getEntriesByType('resource').map(one => one.name)") == []
    assert reader.log() == []


def test_heavy_views_are_drawn_by_a_worker(reader: Browser) -> None:
    shown(reader, "staircase")
    assert reader.ask("return window.explorer.app.asker.worker !== null")


CHECKED = """return new Promise(done => {
  const look = () => { const said = document.getElementById('checked').textContent; said ? done(said) : setTimeout(look, 50); };
  look(); });"""  # noqa: E501


def test_the_page_checks_its_functions_when_idle_and_says_so(reader: Browser) -> None:
    said = reader.ask(CHECKED)
    assert re.match(r"Checked in this browser against Python: \d+ calls of all functions, largest relative", said)


def test_a_function_that_answers_otherwise_is_named(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(path: str, right: Callable[[str], str] = joining.source) -> str:
        text = right(path)
        return text.replace("criticalKappa(tau, noise) {", "criticalKappa(tau, noise) { tau *= 1.02;")

    monkeypatch.setattr(joining, "source", wrong)
    (tmp_path / "wrong.html").write_text(str(page()))
    browser.show((tmp_path / "wrong.html").as_uri(), width=1000)
    said = browser.ask(CHECKED)
    assert said.startswith("Do not trust the curves of this browser: ")
    assert "criticalKappa" in said


def test_every_function_with_reference_points_is_checked(page_file: Path) -> None:
    text = page_file.read_text()
    listed = re.search(r"const CHECKED = \{(.*?)\};", text, flags=re.S)
    assert listed is not None
    assert set(re.findall(r"\w+", listed[1])) == set(MIRRORS)


def test_the_page_is_interactive_within_a_second(reader: Browser) -> None:
    assert reader.ask("return window.explorer.ready") < 1000


def test_keys_read_the_curves_aloud(reader: Browser) -> None:
    shown(reader, "double-descent")
    reader.ask("document.querySelector('.chart svg').focus()")
    reader.press("ArrowRight", "ArrowRight", "ArrowRight")
    assert re.match(r"pretraining sequences τ = n/D² 0\.1\d*: new tasks \(ICL\) 0\.\d+", said(reader, "reading"))


def test_keys_move_every_slider_the_curve_and_the_address(reader: Browser) -> None:
    before = shown(reader, "double-descent")["numbers"]["peak"]
    reader.ask("document.getElementById('c-kappa').focus()")
    reader.press(*["ArrowRight"] * 5)
    reader.ask("return new Promise(done => setTimeout(done, 700))")
    assert reader.ask("return window.explorer.probe().numbers.peak") != before
    assert "kappa=0.5&" not in reader.ask("return location.hash")
    assert "view=double-descent" in reader.ask("return location.hash")


def test_bars_of_a_spectrum_move_by_keys_and_stay_in_order(reader: Browser) -> None:
    shown(reader, "abrupt-drop")
    reader.ask("document.querySelectorAll('.bar')[3].focus()")
    reader.press(*["ArrowUp"] * 40)
    values = reader.ask("return window.explorer.app.state.lambda")
    assert values == sorted(values, reverse=True)
    assert values[0] > 0.5


def test_a_spectrum_is_typed_pasted_and_refused_in_a_sentence(reader: Browser) -> None:
    typing = """const field = document.querySelector('input[data-key=lambda]');
    field.value = arguments[0]; field.dispatchEvent(new Event('change'));
    return [window.explorer.app.state.lambda, document.getElementById('problem').textContent];"""
    shown(reader, "abrupt-drop")
    assert reader.ask(typing, "[0.2 0.5;\n0.3]") == [[0.5, 0.3, 0.2], ""]
    kept, problem = reader.ask(typing, " ".join(["0.1"] * 50))
    assert kept == [0.5, 0.3, 0.2]
    assert problem == "A spectrum must have 1 to 8 eigenvalues here; got 50. For more use the command line."
    assert "got NaN" in reader.ask(typing, "0.4, NaN")[1]
    assert "got 0" in reader.ask(typing, "0")[1]
    assert "got 0." in reader.ask(typing, "")[1]


def test_a_number_out_of_range_is_refused_with_the_range(reader: Browser) -> None:
    shown(reader, "staircase")
    typing = """const field = document.querySelector('input[data-key=N]');
    field.value = arguments[0]; field.dispatchEvent(new Event('change'));
    return [window.explorer.app.state.N, document.getElementById('problem').textContent,
            field.getAttribute('aria-invalid')];"""
    sentence = "Context length N must be a whole number from 1 to 500; got {}."
    for word in ("0", "1e9", "3.5", "<b>8</b>", "NaN", "1,000", "0x10"):
        assert reader.ask(typing, word) == [31, sentence.format(word), "true"]
    assert reader.ask(typing, "8") == [8, "", "false"]


HOSTILE = {
    "view=staircase&N=1e308&rho=-5&H=99&w=0&T=NaN": {"N": 500, "rho": 0, "H": 8, "w": 0.005, "T": 8000},
    "view=<script>alert(1)</script>&N=3": {"N": 3},
    "view=__proto__&constructor=1&toString=2": {"N": 31},
    "view=staircase&lambda=0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,9e99&N=Infinity": {"N": 31},
    "view=staircase&lambda=%3Cimg%20src=x%20onerror=alert(1)%3E&evil=1": {"lambda": [0.4, 0.3, 0.2, 0.1]},
    "x" * 100_000: {"N": 31},
    "view=staircase&lambda=,,,&N=": {"lambda": [0.4, 0.3, 0.2, 0.1], "N": 31},
    "view=staircase&N=1,000&H=0x3": {"N": 31, "H": 5},
    "view=staircase&N=8&N=9": {"N": 8},
}


@pytest.mark.parametrize("hash", HOSTILE)
def test_a_hostile_address_opens_what_is_sound_in_it(browser: Browser, page_file: Path, hash: str) -> None:
    browser.show("about:blank", width=1000)
    browser.log()
    browser.show(f"{page_file.as_uri()}#{hash}", width=1000)
    state = browser.ask("return window.explorer.app.draw().then(() => window.explorer.app.state)")
    for key, value in HOSTILE[hash].items():
        assert state[key] == value
    assert said(browser, "problem").startswith("The address asks for what this page has not")
    assert browser.ask("return Object.keys(window.explorer.app.state).includes('evil')") is False
    assert browser.ask("return document.querySelectorAll('main script, main img').length") == 0
    assert browser.log() == []


def test_the_address_of_a_state_opens_it_again(reader: Browser, browser: Browser, page_file: Path) -> None:
    shown(reader, "ridge", {"kappa": 0.7, "rho": 0.25})
    link = reader.ask("return new Promise(done => setTimeout(() => done(location.href), 400))")
    browser.show("about:blank", width=1000)
    browser.show(link, width=1000)
    assert browser.ask("return window.explorer.app.state") == {"alpha": 10, "kappa": 0.7, "tau": 1, "rho": 0.25}
    assert said(browser, "problem") == ""


@pytest.mark.slow
@pytest.mark.parametrize("view", [name for name in VIEWS if name != "inspect"])
def test_surprising_states_are_a_click_away(reader: Browser, view: str) -> None:
    shown(reader, view)
    before = said(reader, "answer")
    reader.ask("document.querySelector('#facts button').click()")
    after = reader.ask(
        "return new Promise(done => setTimeout(done, 600)).then(() => document.getElementById('answer').textContent)"
    )
    assert after
    assert after != before or view in ("context-length",)
    assert said(reader, "problem") == ""


def test_pinned_curves_stay_grey_while_the_state_moves(reader: Browser) -> None:
    shown(reader, "ridge")
    reader.ask("document.getElementById('pin').click()")
    shown(reader, "ridge", {"kappa": 0.3})
    assert reader.ask("return document.querySelectorAll('.chart path.curve.soft[stroke-dasharray]').length") == 2


def test_a_frame_without_rights_runs_the_page(browser: Browser, tmp_path: Path) -> None:
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><title>n</title>{page(view='ridge', state={'kappa': 0.7})._repr_html_()}")
    browser.show("about:blank", width=1000)
    browser.log()
    browser.show(notebook.as_uri(), width=1000)
    browser.enter_frame()
    state = browser.ask("return window.explorer.app.draw().then(() => window.explorer.app.state.kappa)")
    assert state == 0.7
    assert "λ =" in shown(browser, "ridge")["answer"]
    assert shown(browser, "staircase", {"T": 500})["answer"].startswith("From this start")
    assert browser.log() == []


def test_without_scripts_a_sentence_says_what_to_do(browser: Browser, page_file: Path) -> None:
    browser.allow_scripts(False)
    try:
        browser.show("about:blank", width=1000)
        browser.show(page_file.as_uri(), width=1000)
        text = browser.ask("return document.body.innerText")
        visible = browser.ask(
            "return [...document.querySelectorAll('button, input')].filter(one => one.getClientRects().length).length"
        )
    finally:
        browser.allow_scripts(True)
    assert "needs JavaScript" in text
    assert "iclab run staircase" in text
    assert visible == 0
