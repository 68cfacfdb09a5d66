"""`iclab plan` as a person meets it: questions in, tables, JSON and figures out, refusals in one line."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from iclab import Ratios
from iclab.commands.main import main
from iclab.outcomes import FittedErrors
from iclab.planning.questions import WhatWillARunShow
from iclab.theory.generalization import errors


def plan(words: str) -> int:
    return main(["plan", *words.split()])


def answer(capsys: pytest.CaptureFixture, words: str) -> dict:
    assert plan(f"{words} --json") == 0
    return json.loads(capsys.readouterr().out)["answer"]


def test_the_help_lists_questions(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as stop:
        plan("--help")
    assert not stop.value.code
    shown = re.sub(r"[│\s]+", " ", capsys.readouterr().out)
    for question in (
        "How many tasks must pretraining see for an error of at most this?",
        "How is a budget of labeled examples best split into sequences and contexts?",
        "What errors will a run of finite dimension show?",
    ):
        assert question in shown


def test_tasks_needed_are_counted_and_one_task_fewer_does_not_do(capsys: pytest.CaptureFixture) -> None:
    words = "--error 0.25 --alpha 20 --tau 10 --noise 0.1 --ridge 0 --dimension 40"
    found = answer(capsys, f"tasks {words}")
    ((count, last),) = found["tasks"]
    assert last == "inf"

    def error(tasks: float) -> float:
        return float(errors(Ratios(20, tasks / 40, 10, 0.1)).icl)

    assert error(count) <= 0.25 < error(count - 1)


def test_counts_and_ratios_ask_the_same(capsys: pytest.CaptureFixture) -> None:
    counts = "--error 0.5 --context-length 200 --sequences 4000 --dimension 20 --noise 0.1"
    ratios = "--error 0.5 --alpha 10 --tau 10 --noise 0.1"
    assert answer(capsys, f"tasks {counts}")["intervals"] == answer(capsys, f"tasks {ratios}")["intervals"]


def test_double_descent_gives_two_intervals_in_the_table(capsys: pytest.CaptureFixture) -> None:
    assert plan("sequences --error 0.9 --alpha 10 --kappa 0.5 --noise 0.01 --ridge 0") == 0
    header, first, second, sentence = capsys.readouterr().out.splitlines()
    assert header.split() == ["tau", "from", "to"]
    (few, some), (many, endless) = (map(float, row.split()) for row in (first, second))
    assert few < some < 1 < many < endless == float("inf")
    assert "outside the error is larger" in sentence


def test_an_interval_without_a_whole_number_has_no_count(capsys: pytest.CaptureFixture) -> None:
    words = "tasks --error 1.2269 --context-length 3 --sequences 309 --dimension 9 --noise 0.0754 --ridge 0.1"
    found = answer(capsys, words)
    (_, few), (many, _) = found["intervals"]
    assert 9 * few < 1
    assert 6 < 9 * many < 7
    assert found["tasks"] == [[7, "inf"]]
    plan(words)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:3]]
    assert [row[2:] for row in rows] == [["none", "none"], ["7", "inf"]]


def test_what_cannot_be_reached_is_answered_with_the_floor(capsys: pytest.CaptureFixture) -> None:
    assert plan("context --error 0.05 --kappa 2 --tau inf --noise 0.1") == 0
    assert capsys.readouterr().out.startswith("No alpha reaches 0.05: the least icl error is 0.1, at alpha = inf.")


def test_the_best_ridge_is_said_for_both_targets(capsys: pytest.CaptureFixture) -> None:
    found = answer(capsys, "ridge --alpha 10 --kappa 2 --tau 4 --noise 0.1")
    assert found["best_ridge"]["icl"] == pytest.approx(0.036, abs=5e-4)  # known to two digits
    assert found["best_ridge"]["idg"] == pytest.approx(0.075, abs=5e-4)
    assert all(found["error"][target] < found["error_without_ridge"][target] for target in ("icl", "idg"))


def test_the_split_spends_the_budget(capsys: pytest.CaptureFixture) -> None:
    found = answer(capsys, "split --tokens 100000 --dimension 20 --tasks 40 --noise 0.1")
    assert found["context_length"] * found["sequences"] == pytest.approx(100_000, rel=0.01)
    assert found["ratios"]["kappa"] == 2


@pytest.mark.parametrize(
    ("kappa", "regime", "fate"),
    [
        ("0.7", "memorizes its tasks", "some finite context length is best"),
        ("1.2", "learns in context", "some finite context length is best"),
        ("2", "learns in context", "longer contexts end up better"),
    ],
)
def test_the_regime_is_said_beside_the_critical_pool(
    kappa: str, regime: str, fate: str, capsys: pytest.CaptureFixture
) -> None:
    assert plan(f"regime --alpha 10 --kappa {kappa} --tau 20 --noise 0.5") == 0
    said = capsys.readouterr().out
    assert regime in said
    assert fate in said
    assert "1.376" in said  # κ_c at τ = 20, ρ = 0.5


def test_a_forecast_gives_three_approximations_of_a_run(capsys: pytest.CaptureFixture) -> None:
    words = "forecast --dimension 16 --context-length 160 --sequences 512 --tasks 8 --noise 0.01 --ridge 1e-5"
    found = answer(capsys, words)
    assert found["ratios"] == {"alpha": 10, "kappa": 0.5, "tau": 2, "noise": 0.01}
    assert found["limit"]["icl"] == pytest.approx(errors(Ratios(10, 0.5, 2, 0.01), ridge=1e-5).icl)
    assert found["limit"]["icl"] < found["pool"]["icl"] < found["leverage"]["icl"]


def test_a_forecast_shows_the_band_of_drawn_runs_where_it_is_asked_for(capsys: pytest.CaptureFixture) -> None:
    words = "forecast --dimension 12 --context-length 60 --sequences 288 --tasks 6 --noise 0.1 --ridge 0.01 --runs 40"
    found = answer(capsys, words)
    for kind in ("icl", "idg"):
        mean, deviation = (found["runs"][part][kind] for part in ("mean", "deviation"))
        # the approximation that is closest to the mean errs by a few percent at D = 12; 40 runs know it to σ/√40
        assert abs(mean - found["leverage"][kind]) < 4 * deviation / 40**0.5 + 0.05 * mean
        assert 0 < deviation < mean


def test_a_forecast_says_what_was_closest_by_its_numbers(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "forecast --dimension 16 --context-length 32 --sequences 81 --tasks 4 --noise 0.1"
    found = answer(capsys, words)
    assert plan(words) == 0
    assert "closest" not in capsys.readouterr().out.lower()  # nothing is known of runs that were not drawn
    mean = FittedErrors(1.001 * found["leverage"]["icl"], 0.99 * found["pool"]["idg"], 0.0)
    monkeypatch.setattr(WhatWillARunShow, "_band", lambda _: (mean, mean))
    assert plan(f"{words} --runs 32") == 0
    said = capsys.readouterr().out
    assert "on new tasks pool and leverage (-0.1 %), on the pool pool (+1 %), on its data limit" in said


FIGURES = [
    "tasks --error 1.4 --alpha 1 --tau 2 --noise 0.1 --ridge 0.001",
    "sequences --error 0.5 --alpha 10 --kappa 2",
    "context --error 0.5 --kappa 2 --tau 5",
    "split --tokens 10000 --dimension 10 --kappa inf",
    "ridge --alpha 10 --kappa 2 --tau 4 --noise 0.1",
    "regime --alpha 10 --kappa inf --tau 20",
    "forecast --dimension 8 --context-length 80 --sequences 300",
]


@pytest.mark.parametrize("words", FIGURES)
def test_every_answer_has_a_figure(words: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = tmp_path / "plan.pdf"
    assert plan(f"{words} --figure {path}") == 0
    assert path.read_bytes().startswith(b"%PDF")
    assert f"figure: {path}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("walk", "regime, diversity, forecast, depth, depth-or-context, spectrum, pool; got 'walk'"),
        ("tasks --error 0.3", "alpha must be given, or context_length with dimension"),
        ("tasks --error 0.3 --alpha 1 --context-length 4 --tau 1", "alpha and context_length are the same size"),
        ("tasks --error 0.3 --context-length 4 --tau 1", "dimension must be given with context_length"),
        ("tasks --error 0.3 --context-length 0 --tau 1 --dimension 2", "context_length must be a whole number >= 1"),
        ("tasks --error 0.3 --alpha 1 --tau 1 --dimension 0", "dimension must be a whole number >= 1; got 0"),
        ("tasks --error 0 --alpha 1 --tau 1", "error must be finite and > 0; got 0.0"),
        ("tasks --error 1 --alpha nan --tau 1", "alpha must be > 0; got nan"),
        ("tasks --error 1 --alpha 1 --tau 1 --noise -1", "noise must be finite and >= 0; got -1.0"),
        ("tasks --error 1 --alpha 1 --tau 1 --ridge -1", "ridge must be >= 0; got -1.0"),
        ("tasks --alpha 1 --tau 1", "--error"),
        ("tasks --error 1 --alpha 1 --tau 1 --target train", "--target"),
        ("ridge --alpha 10 --kappa 2 --tau 4 --stepz 3", "got --stepz 3"),
        ("split --tokens 0 --dimension 3 --kappa 2", "tokens must be a whole number >= 1; got 0"),
        (
            "forecast --dimension 8 --context-length 8 --sequences 40 --runs 3",
            "runs must be a whole number >= 32; got 3",
        ),
        ("forecast --dimension 8 --context-length 80 --sequences 0", "sequences must be a whole number >= 1; got 0"),
        ("forecast --dimension 5000 --context-length 8 --sequences 4", "dimension must be at most 512"),
        ("forecast --dimension 8 --context-length 8 --sequences 4 --tasks 100000000", "tasks must be at most 1e8/D"),
        ("forecast --dimension 8 --context-length 8 --sequences 4 --noise 1e300", "noise must be 0 or between 1e-40"),
        ("ridge --alpha 10 --kappa 2 --tau 4 --figure plan.png", "--figure must be a file that ends in .pdf"),
        (
            "ridge --alpha 10 --kappa 2 --tau 4 --figure /nowhere/plan.pdf",
            "--figure must be a file that can be written",
        ),
    ],
)
def test_what_cannot_be_answered_is_refused_in_one_line(
    words: str, message: str, capsys: pytest.CaptureFixture
) -> None:
    assert plan(words) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_figure_that_cannot_be_written_is_refused_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("iclab.planning.questions.WhichRidge.answer", lambda self: pytest.fail("asked"))
    for name in ("nowhere/plan.pdf", "plan.png", "folder.pdf"):
        (tmp_path / "folder.pdf").mkdir(exist_ok=True)
        assert plan(f"ridge --alpha 10 --kappa 2 --tau 4 --figure {tmp_path / name}") == 2


def test_a_forecast_in_few_dimensions_goes_without_leverage(capsys: pytest.CaptureFixture) -> None:
    words = "forecast --context-length 8 --sequences 40 --noise 0.1"
    assert plan(f"{words} --dimension 4") == 0
    said = capsys.readouterr().out
    assert "The correction for unequal leverage needs at least 5 dimensions." in said
    assert "pool" in said
    assert answer(capsys, f"{words} --dimension 4")["leverage"] is None
    assert answer(capsys, f"{words} --dimension 5")["leverage"]["icl"] > 0.1


@pytest.mark.parametrize(("kappa", "tau", "noise"), [("0.5", "inf", "0.1"), ("0.5", "2", "0")])
def test_where_the_critical_pool_is_a_limit_longer_contexts_are_better(
    kappa: str, tau: str, noise: str, capsys: pytest.CaptureFixture
) -> None:
    assert plan(f"regime --alpha 10 --kappa {kappa} --tau {tau} --noise {noise}") == 0
    assert "longer contexts end up better" in " ".join(capsys.readouterr().out.split())
    short, long = (errors(Ratios(alpha, float(kappa), float(tau), float(noise))).icl for alpha in (1e3, 1e5))
    assert long < short


def test_asking_loads_neither_jax_nor_xarray() -> None:
    code = (
        "import sys; from iclab.commands.main import main\n"
        "main('plan tasks --error 0.5 --alpha 10 --tau 5'.split())\n"
        "print(sorted({'jax', 'xarray', 'matplotlib', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n"), done.stdout


@pytest.mark.parametrize(
    ("words", "name"), [("report --only", "only"), ("run double-descent --alpha --kappa 2", "alpha")]
)
def test_a_flag_for_several_values_that_has_none_is_refused_by_name(
    words: str, name: str, capsys: pytest.CaptureFixture
) -> None:
    assert main(words.split()) == 2
    assert capsys.readouterr().err.startswith(f"iclab: {name} must hold at least one value; got none. ")
