"""The command line as a person meets it: what it prints, where it writes, how it refuses."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from iclab.claims import Resolution, Verdict
from iclab.commands.main import main
from iclab.commands.terminal import print_verdicts
from iclab.store import digest, read
from iclab.studies import STUDIES

SMALL = ["--heads", "2", "--steps", "60", "--rate", "0.5", "--sequences", "50", "100", "200", "--initial", "0.01"]


def run(*words: str) -> int:
    return main(list(words))


def test_one_command_answers_and_writes_numbers_and_figure(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("run", "abrupt-drop", *SMALL, "--seeds", "1", "--out", str(tmp_path), "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["study"] == "abrupt-drop"
    assert answer["case"]["heads"] == 2
    assert {verdict["verdict"] for verdict in answer["verdicts"]} <= {"holds", "does not hold", "open"}
    assert Path(answer["numbers"]).exists()
    assert Path(answer["figure"]).read_bytes().startswith(b"%PDF")


def test_seeds_side_by_side_give_the_numbers_that_they_give_one_by_one(tmp_path: Path) -> None:
    words = ("run", "abrupt-drop", *SMALL, "--seeds", "2", "--json")
    for processes in ("1", "2"):
        assert run(*words, "--out", str(tmp_path / processes), "--processes", processes) == 0
    one_by_one, side_by_side = (read(next((tmp_path / name).glob("*.nc"))) for name in ("1", "2"))
    assert side_by_side.attrs["seeds"].tolist() == [0, 1]
    assert digest(side_by_side) == digest(one_by_one)


def test_verdicts_are_sentences_with_their_answers_below_the_whole_name_of_their_study(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    name = "transformer-double-descent"
    judged = Verdict("bound", "It is small.", "mean of 3", 150.0, 300.0, "holds", relative=False)
    unknown = replace(judged, meaning="It is known.", value=float("nan"), outcome="open", reason="one seed")
    noticing = {"theory/x/y": Resolution(0.01, 0.02)}
    print_verdicts(name, [replace(judged, notices=noticing), unknown])
    assert capsys.readouterr().out.splitlines() == [
        name,
        "  It is small.",
        "    holds; mean of 3: ≤ 150 (95 %), asked ≤ 300; would notice x/y 2 %",
        "  It is known.",
        "    open: one seed",
    ]
    print_verdicts(name, [])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", STUDIES)
def test_help_shows_each_paragraph_of_a_study_whole(name: str, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        run("run", name, "--help")
    shown = capsys.readouterr().out
    assert max(map(len, shown.split("examples:")[0].splitlines())) <= 80
    paragraphs = [" ".join(paragraph.split()) for paragraph in shown.split("\n\n")]
    for paragraph in STUDIES[name].question.strip().split("\n\n"):
        assert " ".join(paragraph.split()) in paragraphs


def test_no_seeds_ask_theory_alone(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("run", "abrupt-drop", *SMALL, "--seeds", "0", "--out", str(tmp_path), "--json") == 0
    assert json.loads(capsys.readouterr().out)["verdicts"] == []


def test_fewer_seeds_leave_the_figure_of_more_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    figures = []
    for seeds in ("2", "1", "0"):
        assert run("run", "abrupt-drop", *SMALL, "--seeds", seeds, "--out", str(tmp_path), "--json") == 0
        path = Path(json.loads(capsys.readouterr().out)["figure"])
        figures.append((path, path.read_bytes()))
    assert len({path for path, _ in figures}) == 3
    assert all(path.read_bytes() == content for path, content in figures)


def test_studies_are_listed_with_their_questions(capsys: pytest.CaptureFixture) -> None:
    assert run("studies", "--json") == 0
    listed = {row["name"]: row["question"] for row in json.loads(capsys.readouterr().out)}
    assert listed["staircase"].endswith("?")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["walk"], "command must be one of run, report, compare, explore, studies, plan, inspect, sweep, collect"),
        (["run", "stairs"], "study must be one of abrupt-drop, staircase"),
        (["run"], "a study must be named; choose from abrupt-drop, staircase"),
        (["report", "--only", "stairs"], "study must be one of abrupt-drop, staircase"),
        (["run", "abrupt-drop", "--stepz", "3"], "--steps, --sequences"),
        (["run", "abrupt-drop", "--stepz", "3"], "got --stepz 3"),
        (["report", "--processes", "0"], "processes must be a whole number >= 1; got 0"),
        (["run", "abrupt-drop", "--processes", "0"], "processes must be a whole number >= 1; got 0"),
        (
            ["report", "--fulll"],
            "flags must be among -h, --help, --seeds, --full, --published, --results, --out, --clock, --quiet, "
            "--strict, --cache, --verbose, --debug, --all, --processes; got --fulll. Did you mean --full?",
        ),
        (["run", "abrupt-drop", "--steps", "many"], "--steps: invalid literal for int() with base 10: 'many'"),
        (
            ["run", "abrupt-drop", "--problem.eigenvalues", "0.5", "-1"],
            "eigenvalues must be finite and >= 0; got -1.0",
        ),
        (["run", "abrupt-drop", "--problem.eigenvalues", "nan"], "eigenvalues must be finite and >= 0; got nan"),
        (["run", "abrupt-drop", "--problem.eigenvalues", "0", "0"], "eigenvalues must hold a positive one"),
        (["run", "abrupt-drop", "--problem.eigenvalues"], "eigenvalues must hold at least one value; got none"),
        (["run", "abrupt-drop", "--problem.context-length", "0"], "context_length must be whole numbers >= 1; got 0"),
        (["run", "abrupt-drop", "--problem.context-length", "2.5"], "--problem.context-length"),
        (["run", "abrupt-drop", "--problem.noise", "-1"], "noise must be finite and >= 0; got -1.0"),
        (["run", "abrupt-drop", "--problem.task-eigenvalues", "1", "1"], "task_eigenvalues must be as many as eigen"),
        (["run", "abrupt-drop", "--seeds", "-1"], "seeds must be a whole number >= 0; got -1"),
        (["run", "abrupt-drop", "--heads", "0"], "heads must be a whole number >= 1; got 0"),
        (["run", "abrupt-drop", "--steps", "0"], "steps must be a whole number >= 1; got 0"),
        (["run", "abrupt-drop", "--rate", "0"], "rate must be finite and > 0; got 0.0"),
        (["run", "abrupt-drop", "--initial", "0"], "initial must be finite and > 0; got 0.0"),
        (["run", "abrupt-drop", "--sequences", "0"], "sequences must be whole numbers >= 1; got 0"),
        (
            ["run", "abrupt-drop", "--out", "/dev/null/x"],
            "--out must be a folder that can be written; got /dev/null/x",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture
) -> None:
    assert run(*words) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert "Traceback" not in said


def test_debug_shows_the_traceback() -> None:
    with pytest.raises(ValueError, match="steps must be"):
        run("run", "abrupt-drop", "--steps", "0", "--debug")


def test_unsorted_eigenvalues_are_sorted_and_said(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    words = ["--problem.eigenvalues", "0.1", "0.9", *SMALL, "--seeds", "0", "--out", str(tmp_path), "--json"]
    assert run("run", "abrupt-drop", *words) == 0
    said = capsys.readouterr()
    assert "note: eigenvalues came unsorted" in said.err
    assert json.loads(said.out)["case"]["problem"]["eigenvalues"] == [0.9, 0.1]


def test_a_folder_that_cannot_be_written_still_shows_what_it_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    words = ("run", "abrupt-drop", *SMALL, "--out", str(tmp_path))
    assert run(*words, "--seeds", "1") == 0
    before = sorted(tmp_path.rglob("*"))
    capsys.readouterr()
    monkeypatch.setattr("tempfile.TemporaryFile", refused)
    assert run(*words, "--seeds", "1", "--json") == 0
    said = capsys.readouterr()
    assert said.err.splitlines() == [
        f"iclab: note: {tmp_path} cannot be written: what is stored there is shown, and no figure is drawn"
    ]
    assert json.loads(said.out)["verdicts"]
    assert json.loads(said.out)["figure"] is None
    for seeds in ("2", "0"):  # what is not stored is refused before the work
        assert run(*words, "--seeds", seeds) == 2
        assert "must be a folder that can be written" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_an_interrupt_says_so_and_leaves_nothing_half_written(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from iclab.studies.dynamics import abrupt_drop

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("iclab.study.Study.outcomes", interrupted)
    assert run("run", abrupt_drop.STUDY.name, "--processes", "1", "--out", str(tmp_path)) == 130
    assert capsys.readouterr().err == "iclab: interrupted; finished seeds are kept, nothing half-written stays\n"
    assert list(tmp_path.iterdir()) == []


def fresh(code: str) -> str:
    """What a new Python process prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = "{'scipy', 'xarray', 'matplotlib', 'jax', 'pandas', 'h5py'} & set(sys.modules)"
    assert fresh(f"import sys, iclab; print(sorted({heavy}))") == "[]\n"
    assert fresh(f"import sys, iclab.commands.main; print(sorted({heavy}))") == "[]\n"


def test_everything_but_simulation_works_without_jax(tmp_path: Path) -> None:
    code = """
import sys
sys.modules["jax"] = None  # every import of it fails
import pkgutil, importlib, iclab
for module in pkgutil.walk_packages(iclab.__path__, "iclab."):
    if not module.name.startswith("iclab.simulation"):
        importlib.import_module(module.name)
print(iclab.studies.STUDIES["abrupt-drop"].run(seeds=0)["theory/levels"].loss.size)
from iclab.commands.main import main
print(main(["run", "abrupt-drop", "--seeds", "1", "--out", sys.argv[1]]))
print(main("plan forecast --dimension 4 --context-length 8 --sequences 40 --runs 32".split()))
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert done.stdout == "2\n2\n2\n", done.stderr
    for otherwise in ("ask theory alone with no seeds (--seeds 0)", "leave --runs out"):
        assert f"Install it with pip install -e '.[sim]' in its checkout, or {otherwise}." in done.stderr
