"""The commands that take data of one's own: iclab compare, and iclab run with --inputs."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iclab.commands.main import main
from iclab.theory import dynamics
from tests.test_inputs import rows
from tests.trained import PROBLEM, RATE, started, trained

pytest.importorskip("torch")
SPECTRUM = ("--eigenvalues", "1", "0.5", "--problem.context-length", "7")  # with and without the name of the part


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in PyTorch as a trainer leaves it: a log, and the weights at its start."""
    place = tmp_path_factory.mktemp("run")
    start = started("merged", 0)
    clock, losses = trained(start, sequences=4000, steps=250, rate=RATE / 2, seed=3)
    np.savez(place / "start.npz", **vars(start))
    lines = [f"{step},{loss:.9g}" for step, loss in zip(clock, losses, strict=True)]
    (place / "losses.csv").write_text("\n".join(["step,loss", *lines]))
    return place


def flags(folder: Path, *words: str, out: Path) -> list[str]:
    learned = ("--learning-rate", str(RATE / 2), "--sequences", "4000", "--start", str(folder / "start.npz"))
    return ["compare", str(folder / "losses.csv"), "abrupt-drop", *SPECTRUM, *learned, *words, "--out", str(out)]


def test_a_run_becomes_a_page_with_theory_on_top(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(flags(folder, "--strict", out=tmp_path)) == 0
    shown = capsys.readouterr()
    assert shown.out.count("holds") == 3
    assert shown.err == ""
    page = (tmp_path / "index.html").read_text()
    assert "Does this run follow the theory of its problem?" in page
    assert "<svg" in page
    assert "Yes, as far as a run of this size can tell" in page
    assert re.search(r"<code>iclab compare \S+losses.csv abrupt-drop", page)
    assert 'href="files/compare.csv"' in page
    assert len((tmp_path / "files/compare.csv").read_text().splitlines()) == 52
    assert "http-equiv" in page
    assert "<script" not in page


def test_json_holds_case_verdicts_and_hints_and_strict_decides_the_code(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert main(flags(folder, "--loss", "half", "--json", "--strict", out=tmp_path)) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["schema"] == 2
    assert answer["case"]["loss"] == "half"
    assert answer["case"]["problem"]["eigenvalues"] == list(PROBLEM.eigenvalues)
    assert {one["verdict"] for one in answer["verdicts"]} == {"does not hold"}
    assert "--loss mean --normalization 1/N" in answer["hints"][0]
    assert Path(answer["page"]).exists()
    unknown = [word for word in flags(folder, "--strict", out=tmp_path) if word not in ("--sequences", "4000")]
    assert main(unknown) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--published", "2501.16265", "--loss", "mean"),
            "conventions must be stated once; got --published 2501.16265",
        ),
        (("--loss", "median"), "loss must be one of mean, half, sum; got 'median'"),
        (("--batch", "8"), "a set of sequences or on fresh batches"),
        (("--loss-column", "error"), "loss must name a column of losses.csv; got 'error'. There are 'step', 'loss'"),
        (("--problem.eigenvalues", "1"), "D = 1 as the problem; got value (2, 3), key_query (2, 3, 2)"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(
    words: tuple[str, ...], message: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert main(flags(folder, *words, out=tmp_path / "new")) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "new").exists()


def test_other_studies_and_other_weights_are_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    words = flags(folder, out=tmp_path)
    for name, message in {
        "double-descent": "whose runs can be compared, abrupt-drop, staircase; got 'double-descent'",
        "staircase": "start must hold the weights of staircase, a SeparateAttention; got a MergedAttention",
    }.items():
        assert main([name if word == "abrupt-drop" else word for word in words]) == 2
        assert message in capsys.readouterr().err


def test_a_run_on_data_is_compared_in_their_directions(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    start = started("merged", 0)
    whole = np.eye(3)
    whole[:2, :2] = turn
    turned = {"value": start.value @ whole.T, "key_query": whole @ start.key_query @ turn.T}
    np.savez(tmp_path / "turned.npz", **turned)
    np.save(tmp_path / "c.npy", turn @ np.diag(PROBLEM.eigenvalues) @ turn.T)
    words = flags(folder, "--covariance", str(tmp_path / "c.npy"), "--json", out=tmp_path)
    words = [word for word in words if word not in SPECTRUM[:3]]
    words[words.index("--start") + 1] = str(tmp_path / "turned.npz")
    assert main(words) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [one["verdict"] for one in answer["verdicts"]] == ["holds"] * 3
    np.testing.assert_allclose(answer["case"]["problem"]["eigenvalues"], PROBLEM.eigenvalues)


class TestInputs:
    """iclab run with data in the place of a spectrum."""

    def run(self, *words: str, out: Path) -> int:
        return main(["run", "abrupt-drop", *words, "--seeds", "0", "--out", str(out)])

    def test_levels_and_drops_come_with_their_bands(self, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
        x = rows(400)
        np.save(tmp_path / "x.npy", x)
        assert (
            self.run("--inputs", f"{tmp_path}/x.npy", "--problem.context-length", "20", "--json", out=tmp_path) == 0
        )
        answer = json.loads(capsys.readouterr().out)
        from iclab.problem import Regression

        problem = Regression.from_inputs(x, 20)
        band, found = dynamics.level_band(problem), answer["inputs"]["bands"]
        np.testing.assert_allclose(answer["case"]["problem"]["eigenvalues"], problem.eigenvalues)
        np.testing.assert_allclose([one["high"] for one in found[:5]], band.high)
        assert found[5]["name"] == "drop, time"
        assert found[5]["low"] < found[5]["value"] < found[5]["high"]

    def test_the_page_and_its_figure_show_the_bands(self, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
        np.save(tmp_path / "x.npy", rows(400))
        words = ["report", "abrupt-drop", "--inputs", f"{tmp_path}/x.npy", "--seeds", "0", "--strict"]
        assert main([*words, "--out", str(tmp_path)]) == 3  # nothing is judged
        page = (tmp_path / "index.html").read_text()
        assert "<caption>Theory of these inputs</caption>" in page
        assert page.count('<th scope="row">level ') == 5
        assert "Grey bands: 95 % of the spectrum's sampling." in page.replace("&#39;", "'").replace("\xa0", " ")

    def test_where_no_simulation_fits_theory_answers(self, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
        np.save(tmp_path / "x.npy", rows(60, variances=1 / np.arange(1.0, 785.0)))
        assert self.run("--inputs", f"{tmp_path}/x.npy", out=tmp_path) == 0
        shown = capsys.readouterr()
        assert "inputs of 784 dimensions: their covariance takes about" in shown.err
        assert "for 784 dimensions, with 2.4e+08 features. Theory answers alone" in shown.err
        assert "60 rows for 784 dimensions are few" in shown.err
        assert "level 784" in shown.out
        assert "drop, time" in shown.out

    def test_a_study_without_a_spectrum_takes_no_data(self, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
        np.save(tmp_path / "x.npy", rows(50))
        assert main(["run", "double-descent", "--inputs", f"{tmp_path}/x.npy"]) == 2
        assert "--inputs must go to a study whose case has a spectrum; got double-descent" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("--inputs", "x.npy", "--covariance", "c.npy"), "stated once; got --inputs, --covariance"),
            (("--inputs", "x.npy", "--problem.eigenvalues", "1"), "stated once; got --inputs, --problem.eigenvalues"),
            (("--inputs", "none.npy"), "inputs must be a file that exists"),
            (("--uncentered",), "--uncentered must come with --inputs"),
            (("--inputs", "x.npy", "--shrinkage", "ridge"), "--shrinkage must be one of none, linear; got ridge"),
            (("--covariance", "one.npy"), "covariance must be a square matrix; got shape (1, 4)"),
            (("--inputs", "one.npy"), "One row has no covariance"),
            (("--inputs",), "expected one argument"),
        ],
    )
    def test_data_that_are_none_are_refused_in_one_line(
        self, words: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        monkeypatch.chdir(tmp_path)
        np.save("x.npy", rows(50))
        np.save("one.npy", np.ones((1, 4)))
        assert self.run(*words, out=tmp_path) == 2
        said = capsys.readouterr().err
        assert message in said
        assert len(said.strip().splitlines()) == 1


def test_help_names_what_a_run_can_be_compared_with(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        main(["compare", "--help"])
    shown: Any = capsys.readouterr().out
    for word in ("--learning-rate", "--normalization", "--published", "--start", "abrupt-drop"):
        assert word in shown
