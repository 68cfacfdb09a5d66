"""The page of the explorer as a file: what it holds, how it is written, what it refuses."""

import html
import json
import re
from pathlib import Path

import pytest

import iclab
from iclab.commands.main import main
from iclab.explorer import Page, joining, page
from iclab.explorer.controls import changed, described
from iclab.explorer.views import VIEWS, controls_of, study_of
from iclab.studies import STUDIES


@pytest.fixture(scope="module")
def whole() -> Page:
    return page()


def test_the_page_is_one_small_file_that_asks_nothing_of_a_network(whole: Page) -> None:
    assert len(str(whole).encode()) < 450_000
    addresses = set(re.findall(r"https?://[\w./-]+", str(whole)))
    assert {one for one in addresses if "www.w3.org" not in one} == set()  # namespaces are names
    assert not re.search(r"<(link|img|script)[^>]+(src|href)=", str(whole))


def test_only_what_the_page_was_built_with_may_run(whole: Page) -> None:
    script = re.search(r"<script>(.*)</script>", str(whole), flags=re.S)
    style = re.search(r"<style>(.*)</style>", str(whole), flags=re.S)
    assert script is not None
    assert style is not None
    policy = html.unescape(re.search(r'Policy" content="([^"]+)"', str(whole))[1])  # pyright: ignore
    assert policy == joining.policy(script[1], style[1])
    assert "unsafe" not in policy
    assert not re.search(r"\beval\(|new Function\(", str(whole))
    assert not re.search(r'\sstyle="', str(whole))


def test_no_text_of_data_ends_the_script() -> None:
    assert "</script" not in joining.literal({"name": "</script><script>alert(1)</script>"})
    assert json.loads(joining.literal({"name": "<b>"})) == {"name": "<b>"}


def test_modules_with_a_name_in_common_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {
        "page/a.js": 'import { f } from "./b.js";\nexport function g() {}\n/** @type {any} */ const f = 1;\n',
        "page/b.js": "export function f() {}\n",
    }
    monkeypatch.setattr(joining, "source", texts.__getitem__)
    with pytest.raises(ValueError, match=r"'f' is in page/b.js and page/a.js"):
        joining.joined("page/a.js")


def test_modules_that_import_each_other_in_a_circle_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"page/a.js": 'import { f } from "./b.js";\n', "page/b.js": 'import { g } from "./a.js";\n'}
    monkeypatch.setattr(joining, "source", texts.__getitem__)
    with pytest.raises(ValueError, match=r"page/a.js → page/b.js → page/a.js"):
        joining.joined("page/a.js")


@pytest.mark.parametrize("name", VIEWS)
def test_controls_set_fields_of_the_case_over_their_whole_range(name: str) -> None:
    view = VIEWS[name]
    for control, words in zip(view.controls, controls_of(name), strict=True):
        assert words["label"], control.key
        assert words["help"] or control.choices, control.key
        assert control.checked(words["start"]) == words["start"]
        if control.field and view.study:
            for end in (control.low, control.high):
                value = int(end) if words["whole"] else end
                fields = {control.field: [value] if control.spectrum else value}
                assert changed(study_of(view).quick, {**view.also, **fields} if control.key == "N" else fields)


@pytest.mark.parametrize("name", VIEWS)
def test_surprising_states_are_states_of_their_view(name: str) -> None:
    view = VIEWS[name]
    assert view.facts or name == "inspect"  # which knows nothing before a document is there
    for fact in view.facts:
        for key, value in fact.state.items():
            control = next(one for one in view.controls if one.key == key)
            assert control.checked(value) == value


def test_a_control_without_its_field_is_refused() -> None:
    from iclab.explorer.controls import Control

    with pytest.raises(ValueError, match=r"problem.context_lenght must be a field of the case; Regression has"):
        described(Control("N", 1, 9, "problem.context_lenght", whole=True), STUDIES["staircase"].quick)


@pytest.mark.parametrize(
    ("view", "state", "words"),
    [
        ("stairs", "", "view must be one of"),
        ("staircase", "n=3", "state must hold keys among"),
        ("staircase", "N=1e9", "N must be a whole number from 1 to 500; got '1e9'"),
        ("staircase", "N=nan", "N must be a whole number"),
        ("staircase", "lambda=" + ",".join(["0.1"] * 50), "lambda must hold 1 to 8 numbers; got 50"),
        ("staircase", "lambda=", "lambda must be a number"),
        ("staircase", "view=abrupt-drop", "state must be one of the view 'staircase'"),
        ("staircase", "N=" + "3" * 5000, "an address must have at most 4000 letters"),
    ],
)
def test_states_that_a_view_has_not_are_refused_in_a_sentence(view: str, state: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        page(view=view, state=state)


def test_the_command_writes_the_page_with_the_state_that_was_sent(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    assert main(["explore", "--out", str(out), "--state", "view=staircase&N=8&lambda=.4,.3"]) == 0
    assert "view=staircase&lambda=0.4,0.3&N=8" in out.read_text().replace("\\u0026", "&")


def test_a_state_out_of_range_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    assert main(["explore", "--out", str(out), "--state", "view=staircase&N=0"]) == 2
    assert "N must be a whole number from 1 to 500" in capsys.readouterr().err
    assert not out.exists()


def test_a_study_opens_at_a_case_of_its_own() -> None:
    study = STUDIES["staircase"]
    shown = study.explore(study.case(heads=3, problem=iclab.Regression((0.4, 0.2), 8)))
    assert "lambda=0.4,0.2&N=8&rho=0&H=3" in shown.address
    with pytest.raises(ValueError, match="a study must have a view to be explored"):
        STUDIES["grokking"].explore()


def test_a_notebook_shows_the_page_in_a_frame_that_reaches_nothing(whole: Page) -> None:
    frame = whole._repr_html_()
    inside = re.search(r'srcdoc="([^"]*)"', frame)
    assert inside is not None
    assert html.unescape(inside[1]) == str(whole)
    assert 'sandbox="allow-scripts allow-downloads"' in frame


def test_a_file_that_is_no_page_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("kept")
    assert main(["explore", "--out", str(mine)]) == 2
    assert "--out must be a file .html" in capsys.readouterr().err
    assert mine.read_text() == "kept"
    assert main(["explore", "--out", str(tmp_path / "page.html"), "--port", "1"]) == 2
    assert "--port must come with --serve" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [mine]
