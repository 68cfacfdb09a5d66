"""What enters and leaves the page: figures, numbers, commands; logs of one's own and documents of inspection."""

import base64
import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from iclab import Ratios
from iclab.commands.flags.cases import asked
from iclab.commands.flags.options import Options
from iclab.commands.main import main
from iclab.explorer.views import VIEWS, case_at, study_of
from iclab.overlay.conventions import Conventions
from iclab.published import merged_units, separate_units
from iclab.theory.generalization import errors
from tests.browser import Browser
from tests.explorer.pages import DROP, NEEDS_BROWSER, said, shown
from tests.explorer.states import drawn_state
from tests.test_inspect import written
from tests.test_observe import states

pytestmark = NEEDS_BROWSER


def test_figure_and_numbers_leave_as_files(reader: Browser) -> None:
    shown(reader, "ridge")
    svg = reader.ask("return window.explorer.svg()")
    assert svg.startswith("<svg")
    assert "currentColor" not in svg
    assert "rgb(0, 114, 178)" in svg
    png = reader.ask("""return window.explorer.png().then(blob => blob.arrayBuffer()).then(all =>
        btoa(String.fromCharCode(...new Uint8Array(all).slice(0, 24))))""")
    header = base64.b64decode(png)
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(header[16:20]) == 2100  # pixels across: 7 inches at 300 dots
    rows = reader.ask("return window.explorer.csv()").splitlines()
    assert rows[0] == "figure,curve,x,y"
    assert len(rows) == 1 + 2 * 161

    number, name, ridge, error = rows[50].split(",")
    assert (number, name) == ("1", '"new tasks (ICL)"')
    assert float(error) == pytest.approx(float(errors(Ratios(10, 2, 1, 0.01), ridge=float(ridge)).icl), rel=1e-9)


LOG = "step,train/loss,val_loss\n" + "\n".join(f"{10 * i},{1 / (1 + i):.6f},9" for i in range(50))


@pytest.mark.parametrize(("view", "units"), [("abrupt-drop", merged_units), ("staircase", separate_units)])
@pytest.mark.parametrize(("loss", "sequences"), [("mean", None), ("half", None), ("sum", 500)])
def test_a_run_of_ones_own_is_drawn_by_the_conventions_of_compare(
    reader: Browser, view: str, units: object, loss: str, sequences: int | None
) -> None:
    shown(reader, view, {"N": 16})
    assert reader.ask(DROP, "log.csv", LOG)[0] == ""
    own = """Object.assign(window.explorer.app.own.conventions, arguments[0]);
    const curve = window.explorer.app.pictures()[0].curves.find(one => one.key === 'own');
    return [Array.from(curve.x), Array.from(curve.y)];"""
    stated = Conventions(0.003, loss, sequences=sequences)
    clock, losses = 10.0 * np.arange(50), np.array([float(f"{1 / (1 + i):.6f}") for i in range(50)])
    x, y = reader.ask(own, {"rate": 0.003, "loss": loss, "normalization": "1/N", "drawn": sequences or 1})
    assert np.allclose(x, stated.rate * clock, rtol=1e-12)
    assert np.allclose(y, stated.errors(losses), rtol=1e-12)
    x, _ = reader.ask(own, {"rate": 0.003, "loss": "mean", "normalization": "none", "drawn": 1})
    assert np.allclose(x, units(0.003, context_length=16).rate * clock, rtol=1e-12)  # pyright: ignore


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", "step,accuracy\n1,2\n", "A log must have one clock and one loss"),
        ("a.csv", "", "A log must have one clock and one loss"),
        ("a.csv", "step,loss\n1,x\n2,3\n3,4\n", "each a number; got something else"),
        ("a.json", '{"schema": 9, "table": []}', "schema 1; got schema 9"),
        ("a.json", '{"step": 1,', "A log must be CSV, JSON lines"),
        ("a.json", "\x00\x01\x02", "A log must have one clock and one loss"),
        ("a.csv", "step,loss\n3,1\n2,1\n1,1\n", "A log must have a clock that increases"),
    ],
)
def test_a_file_that_is_neither_log_nor_document_is_refused_in_a_sentence(
    reader: Browser, name: str, text: str, words: str
) -> None:
    assert words in reader.ask(DROP, name, text)[0]


def test_names_in_files_are_text(reader: Browser) -> None:
    nasty = "<img src=x onerror=alert(1)>"
    shown(reader, "abrupt-drop")
    assert reader.ask(DROP, f"{nasty}.csv", LOG)[0] == ""
    assert reader.ask(
        "return [document.querySelectorAll('main img').length, document.querySelector('#own .help').textContent]"
    ) == [0, f"{nasty}.csv, 50 records; the conventions are those of iclab compare"]


@pytest.fixture(scope="module")
def inspection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The document of a folder of checkpoints."""
    folder = tmp_path_factory.mktemp("inspected")
    run = written(folder / "run", states())
    assert main(["inspect", str(run), "--out", str(folder / "out"), "--no-page"]) == 0
    return folder / "out" / "results.json"


@pytest.mark.slow
@pytest.mark.parametrize("sent", [False, True])
def test_a_document_shows_measures_singular_values_and_findings(
    reader: Browser, inspection: Path, tmp_path: Path, sent: bool
) -> None:
    text = inspection.read_text()
    if sent:
        out = tmp_path / "page.html"
        assert main(["explore", "--inspection", str(inspection), "--out", str(out)]) == 0
        assert out.stat().st_size < 2e6
        reader.show(out.as_uri(), width=1000)
        answer = reader.ask("return window.explorer.app.draw().then(() => window.explorer.probe().answer)")
    else:
        problem, answer = reader.ask(DROP, "results.json", text)
        assert problem == ""
    content = json.loads(text)
    first = content["table"][0]
    names = ("layer", "head", "matrix", "measure")
    mine = [row for row in content["table"] if all(row[name] == first[name] for name in names)]
    drawn = reader.ask("return window.explorer.probe().curves.measure")
    assert drawn["x"] == [row["step"] for row in mine]
    assert drawn["y"] == [row["value"] for row in mine]
    assert "goes from" in answer
    values = reader.ask("return window.explorer.probe().curves['singular.0'].y")
    assert values == [row[0] for row in content["fans"][0]["singular_values"]]
    assert "findings" in said(reader, "verdicts")
    assert "changes at step" in said(reader, "verdicts")


@pytest.mark.parametrize(
    ("content", "words"),
    [("", "not (Expecting value"), ("[1]", "is another JSON"), ('{"schema": 0, "table": [], "fans": []}', "has 0"),
     (" " * 1_500_000, "at most 1.4 MB to be sent with the page; got 1.5 MB")],
)  # fmt: skip
def test_a_file_that_is_no_document_is_not_sent_along(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, words: str
) -> None:
    (tmp_path / "results.json").write_text(content)
    out = tmp_path / "page.html"
    assert main(["explore", "--inspection", str(tmp_path / "results.json"), "--out", str(out)]) == 2
    assert words in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.slow
@pytest.mark.parametrize("view", [name for name in VIEWS if name not in ("plan", "inspect")])
def test_the_command_of_a_state_asks_for_its_case(reader: Browser, view: str) -> None:

    state = drawn_state(view, np.random.default_rng(3))
    shown(reader, view, state)
    words = shlex.split(said(reader, "command"))
    study = study_of(VIEWS[view])
    assert words[:3] == ["iclab", "run", study.name]
    case, _ = asked(study, study.quick, words[3:], Options, command="run")
    expected = case_at(VIEWS[view], state)
    assert {key: value for key, value in vars(case).items() if value == getattr(expected, key)} == vars(expected)


@pytest.mark.slow
def test_the_command_of_a_plan_answers_as_the_page(reader: Browser, capsys: pytest.CaptureFixture[str]) -> None:

    for question in ("tasks", "sequences", "context"):
        answer = shown(reader, "plan", {"question": question, "error": 0.3})["answer"]
        words = shlex.split(said(reader, "command"))
        assert main(words[1:]) == 0
        assert answer in " ".join(capsys.readouterr().out.split())


def test_the_address_line_opens_the_same_state(reader: Browser, tmp_path: Path) -> None:

    shown(reader, "fixed-points", {"lambda": [0.5, 0.25], "H": 2})
    words = shlex.split(said(reader, "address"))
    out = tmp_path / "again.html"
    assert main([*words[1:], "--out", str(out)]) == 0
    reader.show(out.as_uri(), width=1000)
    assert reader.ask("return window.explorer.app.state") == {"lambda": [0.5, 0.25], "N": 31, "rho": 0, "H": 2}
