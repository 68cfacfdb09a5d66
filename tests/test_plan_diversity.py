"""`iclab plan diversity`: where memory of the pool stops to pay, and the gap at a given pool."""

import json

import pytest
from numpy.testing import assert_allclose

from iclab.commands.main import main
from iclab.planning import TaskLaw, diversity, task_law

URNS = "plan diversity --context-length 16 --symbols 6 --concentration 0.5"


def answered(line: str, capsys: pytest.CaptureFixture) -> dict:
    assert main([*line.split(), "--json"]) == 0
    return json.loads(capsys.readouterr().out)["answer"]


def test_urns_are_remembered_up_to_45_tasks_and_fade_from_90(capsys: pytest.CaptureFixture) -> None:
    found = answered(f"{URNS} --tasks 512", capsys)
    assert_allclose([found["information"], found["chi_square"]], [3.8071262818072107, 89.193095603766], rtol=1e-9)
    assert_allclose([found["memory_pays"], found["memory_fades"]], [45.02, 90.19], rtol=1e-3)
    assert found["least"] <= found["drawn"] <= found["most"]
    assert_allclose(found["drawn"], 89.193 / 1024, rtol=0.15)  # 6 χ², eight pools
    assert_allclose(found["each_prediction"] * 16, found["drawn"])


def test_the_table_says_what_a_run_is_short_of(capsys: pytest.CaptureFixture) -> None:
    assert main([*URNS.split(), "--tasks", "2048"]) == 0
    said = capsys.readouterr().out
    assert "memory pays up to K = e^I" in said
    assert "On its pool of 2048 a run that learns in context is short of memory by" in said
    assert "below the 0.003 nats that training at a constant rate leaves" in said
    assert main(URNS.split()) == 0
    assert "On its pool" not in capsys.readouterr().out


def test_regression_pays_up_to_48_tasks_and_its_gap_is_within_bounds(capsys: pytest.CaptureFixture) -> None:
    line = "plan diversity --law regression --dimension 4 --context-length 8 --noise 0.25 --tasks 16"
    found = answered(line, capsys)
    assert_allclose([found["memory_pays"], found["memory_fades"]], [47.67, 3393], rtol=1e-3)
    assert_allclose(found["drawn"], 1.507, atol=3 * (found["error"] + 0.04))  # the known mean of many pools
    assert_allclose([found["least"], found["most"]], [1.0918, 3.8643], rtol=1e-3)


def test_chains_are_planned_too(capsys: pytest.CaptureFixture) -> None:
    found = answered("plan diversity --law markov --symbols 2 --context-length 32 --tasks 64", capsys)
    assert found["least"] <= found["drawn"] <= found["most"]
    assert_allclose(found["drawn"], found["chi_square"] / 128, rtol=0.4)
    wide = diversity(task_law("markov", context_length=20, symbols=3), tasks=10_000)
    assert wide.drawn is None
    assert wide.each_prediction == pytest.approx(wide.most / 20)


def test_the_figure_is_written(tmp_path, capsys: pytest.CaptureFixture) -> None:
    assert main([*URNS.split(), "--tasks", "64", "--figure", str(tmp_path / "gap.pdf")]) == 0
    assert (tmp_path / "gap.pdf").read_bytes().startswith(b"%PDF")
    assert "figure:" in capsys.readouterr().out


def test_both_questions_name_each_other(capsys: pytest.CaptureFixture) -> None:
    for question, other in (("diversity", "regime"), ("regime", "diversity")):
        with pytest.raises(SystemExit):
            main(["plan", question, "--help"])
        assert f"`iclab plan {other}`" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{URNS} --tasks 0", "tasks must be a whole number >= 1; got 0"),
        ("plan diversity --context-length 16", "symbols must be given for urns; got none"),
        ("plan diversity --law regression --context-length 16", "dimension must be given for regression; got none"),
        ("plan diversity --law regression --context-length 8 --dimension 4", "noise must be finite and > 0; got 0.0"),
        ("plan diversity --context-length 8 --symbols 3 --concentration 0", "concentration must be finite and > 0"),
        ("plan diversity --context-length 8 --symbols 1", "symbols must be a whole number >= 2; got 1"),
        ("plan diversity --law markov --context-length 8 --symbols 60", "length must be below"),
    ],
)
def test_impossible_plans_are_refused_in_a_sentence(line: str, message: str, capsys: pytest.CaptureFixture) -> None:
    assert main(line.split()) != 0
    assert message in capsys.readouterr().err


def test_a_law_of_tasks_knows_its_information() -> None:
    assert TaskLaw.regression(3, 5, 0.3).chi_square == pytest.approx(173.045267489712, rel=1e-9)
