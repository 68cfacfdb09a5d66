"""Flags that forgive: last names, commas, either dash, names that were nearly right; help; completion of words."""

import json
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from iclab.commands.flags.cases import case_flags, form_of
from iclab.commands.flags.forgiving import forgiven
from iclab.commands.flags.helptext import wrapped
from iclab.commands.flags.scripts import script
from iclab.commands.flags.table import Flag, flags_of
from iclab.commands.main import main
from iclab.commands.report import Report
from iclab.commands.run import RunOptions
from iclab.commands.studies import named
from iclab.inspection.flags import Inspect
from iclab.planning.questions import QUESTIONS
from iclab.studies import STUDIES
from tests.test_cli import SMALL


def of(study: str) -> list[Flag]:
    return flags_of(form_of(STUDIES[study].quick, RunOptions))


def whole(words: str, study: str = "abrupt-drop") -> list[str]:
    return forgiven(of(study), words.split(), prog="iclab run")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("--eigenvalues 1 .6 .3", "--problem.eigenvalues 1 .6 .3"),
        ("--eigenvalues 1,.6,.3", "--problem.eigenvalues 1 .6 .3"),
        ("--eigenvalues 1, .6, .3", "--problem.eigenvalues 1 .6 .3"),
        ("--eigenvalues=1,.6 .3", "--problem.eigenvalues 1 .6 .3"),
        ("--Problem.Eigenvalues 1", "--problem.eigenvalues 1"),
        ("--context_length 20", "--problem.context-length 20"),
        ("--steps 5 --noise .1", "--steps=5 --problem.noise=.1"),
        ("--noise -1e-3", "--problem.noise=-1e-3"),
        ("--out a,b --full", "--out=a,b --full"),
        ("--no-full --format png,svg", "--no-full --format png svg"),
    ],
)
def test_a_unique_last_name_is_enough_and_lists_take_commas(typed: str, meant: str) -> None:
    assert whole(typed) == meant.split()


def test_a_flag_of_its_own_goes_before_that_of_a_part() -> None:
    assert whole("--eigenvalues 1", "conservation") == ["--eigenvalues", "1"]
    assert whole("--problem.eigenvalues 1", "conservation") == ["--problem.eigenvalues", "1"]


def test_a_last_name_of_several_flags_is_refused_with_all_of_them() -> None:
    with pytest.raises(ValueError, match=r"got what is short for --tau\.\w+, --finite-tau\.\w+"):
        whole("--points 3" if any(flag.short == "--points" for flag in of("double-descent")) else "--first 3",
              "double-descent")  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rnu"], "Did you mean run?"),
        (["run", "stair"], "Did you mean staircase?"),
        (["report", "mode-stage"], "Did you mean mode-staging?"),
        (["plan", "task"], "Did you mean tasks?"),
        (["run", "staircase", "--eigenvalue", "1"], "Did you mean --eigenvalues?"),
        (["run", "staircase", "--clock", "step"], "Did you mean steps?"),
        (["run", "grokking", "--network", "transfomer"], "Did you mean transformer?"),
        (["run", "staircase", "--format", "pdf", "pgn"], "Did you mean png?"),
        (["report", "--eigenvalues", "1"], "need the name of one study: iclab report STUDY"),
        (["run", "staircase", "white-drop"], "a run must be of one study; got staircase, white-drop."),
        (["run", "staircase", "--seeds", "1", "3"], "there must be a flag before each value; got 3."),
    ],
)
def test_a_name_that_is_nearly_right_is_refused_with_the_nearest(
    words: list[str], said: str, capsys: pytest.CaptureFixture
) -> None:
    assert main(words) == 2
    complaint = capsys.readouterr().err
    assert said in complaint
    assert complaint.count("\n") == 1


@pytest.mark.parametrize("name", ["Staircase", "STAIRCASE", "stair_case", "stair-case"])
def test_studies_are_found_without_case_and_dashes(name: str) -> None:
    assert named(name) is STUDIES["staircase"]


def test_names_that_are_plain_differ_between_studies_and_between_commands() -> None:
    assert len({name.replace("-", "") for name in STUDIES}) == len(STUDIES)


def test_the_page_of_one_case_shows_that_case_and_computes_nothing_that_run_has_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = ["--eigenvalues", "1,.5", "--context-length", "9", *SMALL, "--seeds", "1"]
    kept = ["--results", str(tmp_path / "kept")]
    shown = ["--out", str(tmp_path / "run"), "--page", "--json", "--format", "png,svg", "--figure-size", "column"]
    assert main(["run", "AbruptDrop", *case, *kept, *shown]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [Path(figure).suffix for figure in answer["figures"]] == [".png", ".svg"]
    assert Path(answer["figures"][0]).read_bytes().startswith(b"\x89PNG")
    assert answer["case"]["problem"]["context_length"] == 9
    monkeypatch.setattr("iclab.study.Study.run", None)  # whoever computes anything fails
    assert main(["report", "abrupt_drop", *case, *kept, "--out", str(tmp_path / "page")]) == 0
    pages = [Path(answer["page"]), tmp_path / "page" / "index.html"]
    for page in pages:
        assert "1, 0.5" in page.read_text()
    assert list((tmp_path / "kept").glob("*.nc")) == [Path(answer["numbers"])]


def test_results_of_a_stated_folder_are_those_of_both_commands(tmp_path: Path) -> None:
    for options in (RunOptions(out=tmp_path), Report(out=tmp_path)):
        assert options.stored == tmp_path
    assert RunOptions().stored == Report().stored == Path("results")
    assert Report(out=tmp_path, results=Path("other")).stored == Path("other")


@pytest.mark.parametrize("study", list(STUDIES))
def test_each_flag_of_a_case_is_explained_and_belongs_to_the_problem_or_the_numerics(study: str) -> None:
    flags = of(study)
    groups = case_flags(STUDIES[study], flags)
    own = {entry.name for entry in fields(STUDIES[study].quick)}
    assert {flag.path[0] for group in groups.values() for flag in group} == own
    assert [flag.name for flag in flags if not flag.help] == []


@pytest.mark.parametrize("form", [Inspect, Report, *QUESTIONS.values()])
def test_each_flag_of_a_command_is_explained(form: type) -> None:
    assert [flag.name for flag in flags_of(form) if not flag.help] == []


def test_help_shows_defaults_as_they_are_typed_and_examples_one_a_line(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    with pytest.raises(SystemExit):
        main(["run", "abrupt-drop", "--help"])
    shown = capsys.readouterr().out
    assert "(default: 0.4 0.3 0.2 0.1)" in " ".join(shown.split())
    assert "default: 0.062)" in " ".join(shown.split())
    problem, numerics, rest = (shown.index(title) for title in ("the problem:", "the numerics:", "what is computed"))
    assert problem < shown.index("eigenvalues NUMBER ...") < numerics < shown.index("--rate NUMBER") < rest
    assert shown.split("examples:\n")[1].splitlines()[0] == "  iclab run abrupt-drop"
    assert max(map(len, shown.split("examples:")[0].splitlines())) <= 70


def test_paragraphs_are_wrapped_and_examples_are_not() -> None:
    text = "One.\n\n    Two words\n    more.\n\n    Start:   iclab inspect a\n    Or:      iclab inspect b\n"
    assert wrapped(text, 40) == [
        "One.",
        "",
        "Two words more.",
        "",
        "Start:   iclab inspect a",
        "Or:      iclab inspect b",
    ]


def test_the_version_is_told_with_those_of_what_computes(capsys: pytest.CaptureFixture) -> None:
    assert main(["--version"]) == 0
    first, python, numpy, jax = capsys.readouterr().out.splitlines()
    assert first.startswith("iclab 0.")
    assert (python.split()[0], numpy.split()[0], jax.split()[0]) == ("Python", "NumPy", "JAX")
    assert jax.endswith(" on cpu")


COMPLETED = [
    ("iclab re", ["report", "results"]),
    ("iclab run ab", ["abrupt-drop"]),
    ("iclab run abrupt-drop --eig", ["--eigenvalues"]),
    ("iclab run conservation --problem.eig", ["--problem.eigenvalues"]),
    ("iclab report staircase --st", ["--steps", "--strict"]),
    ("iclab run staircase --clock st", ["steps"]),
    ("iclab plan tasks --err", ["--error"]),
    ("iclab report --a", ["--all"]),
    ("iclab completion z", ["zsh"]),
    ("iclab sweep stat", ["status"]),
    ("iclab sweep work --pl", ["--place", "--plan"]),
    ("iclab compare --learn", ["--learning-rate"]),
    ("iclab run staircase --inp", ["--inputs"]),
]


ASKING = {
    "bash": 'COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _iclab; echo "${{COMPREPLY[*]}}"',
    "zsh": "words=({words}); CURRENT=$#words; PREFIX=$words[-1]; _iclab; print",
    "fish": 'complete --do-complete "{words}" | string join " "',
}
STUBS = {
    "zsh": """compdef() { :; }
_files() { :; }
compadd() { shift; print -rn -- "${(j: :)${(M)@:#$PREFIX*}}" }
"""
}


@pytest.mark.parametrize("shell", ASKING)
def test_shells_complete_commands_studies_flags_and_choices(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell}")
    asked = "\n".join(ASKING[shell].format(words=words) for words, _ in COMPLETED)
    (tmp_path / "asked").write_text(f"{STUBS.get(shell, '')}{script(shell)}\n{asked}\n")
    done = subprocess.run([program, str(tmp_path / "asked")], capture_output=True, text=True)
    assert not done.stderr
    assert [sorted(line.split()) for line in done.stdout.splitlines()] == [words for _, words in COMPLETED]


def test_every_command_is_completed() -> None:
    from iclab.commands.flags.scripts import commands
    from iclab.commands.main import COMMANDS

    assert list(commands()) == list(COMMANDS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--eigenvalues", "0,4", "0,3"],
            "a list must have commas or spaces between its values; got both",
        ),
        (["--eigenvalues", "0,4;0,3"], "--problem.eigenvalues must be values that fit it; got 0, 4;0, 3."),
        (["--seeds", "2.5"], "--seeds must be a whole number; got 2.5."),
        (["--seeds", "1,000"], "--seeds must be a whole number; got 1,000."),
        (["--eigenvalues", "1e-300", "1e300", "--seeds", "0"], "numbers must stay within double precision"),
    ],
)
def test_numbers_of_other_notations_are_refused_and_not_read_as_others(
    words: list[str], message: str, capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    assert main(["run", "staircase", *words, "--out", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
