"""The page of a sweep, verdicts over its grid with false discoveries controlled, and plans that are drawn around."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import iclab
from iclab.commands import main
from iclab.planning.questions import QUESTIONS
from iclab.sweeps.around import RUN, Around, Case, around
from iclab.sweeps.grids.axes import Axis
from iclab.sweeps.joining.drawing import curves
from iclab.sweeps.joining.verdicts import controlled, judged
from tests.sweep_studies import JUDGED, STUDY


def yekutieli(p: np.ndarray, level: float) -> np.ndarray:
    """The rule in its own words: the largest k with p_(k) <= k level / (m (1 + 1/2 + ... + 1/m)), and all below."""
    order, m = np.argsort(p), len(p)
    weight = sum(1 / i for i in range(1, m + 1))
    passing = [k for k in range(1, m + 1) if p[order[k - 1]] <= k * level / (m * weight)]
    found = np.zeros(m, bool)
    found[order[: max(passing, default=0)]] = True
    return found


def test_false_discoveries_are_controlled_by_the_rule_of_benjamini_and_yekutieli() -> None:
    rng = np.random.default_rng(0)
    for strong in (0, 1, 5, 30):
        p = np.concatenate([rng.uniform(size=60), rng.uniform(0, 2e-5, size=strong)])
        np.testing.assert_array_equal(controlled([p.tolist()])[0], yekutieli(p, 1e-3))
    assert controlled([]).size == 0


def test_right_claims_at_ten_thousand_points_are_not_refuted() -> None:
    p = np.random.default_rng(1).uniform(size=10_000)
    assert (p < 1e-3).sum() > 0, "taken alone, some would be"
    assert not controlled([p.tolist()]).any()


def test_verdicts_over_the_grid_are_those_of_the_study_at_each_point(tmp_path: Path) -> None:
    heights = [1.0, 1.9, 2.5, 3.0]
    made = iclab.sweep(JUDGED, {"height": heights, "size": [2, 5]}, 6, out=tmp_path)
    (claim,) = judged(tmp_path, made.plan)
    assert claim.outcomes.tolist() == [["holds"] * 2] * 2 + [["does not hold"] * 2] * 2
    for place, height in enumerate(heights):
        inner = dataclasses.replace(JUDGED.quick.inner, height=height)
        (verdict,) = JUDGED.verdicts(JUDGED.run(dataclasses.replace(JUDGED.quick, inner=inner, size=2), 6))
        assert claim.verdicts[place, 0] == verdict


def test_a_point_whose_seeds_are_not_all_done_has_no_verdict(tmp_path: Path) -> None:
    made = iclab.sweep(JUDGED, {"height": [1.0, 150.0]}, 4, out=tmp_path)
    (claim,) = judged(tmp_path, made.plan)
    assert claim.outcomes.tolist() == ["holds", ""]


def test_numbers_that_stand_alone_in_a_cell_are_drawn(tmp_path: Path) -> None:
    tree = iclab.sweep(STUDY, {"height": [1.0, 2.0]}, 2, out=tmp_path).collect()
    assert curves(tree, ["height"]) == ["curve/mean"]


@pytest.mark.parametrize(
    "grid",
    [
        ("height=1,2,3",),
        pytest.param(("height=1,2,3", "size=2,3"), marks=pytest.mark.slow),
        pytest.param(("height=1,3", "size=2:8:7"), marks=pytest.mark.slow),
    ],
)
def test_a_sweep_has_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str], grid: tuple[str, ...]) -> None:
    words = ["sweep", "tests.sweep_studies:JUDGED", "--grid", *grid, "--seeds", "4", "--out", str(tmp_path)]
    assert main.main(words) == 0
    assert main.main(["report", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "The curve is as theory says." in out
    page = (tmp_path / "index.html").read_text()
    assert page.count("<svg") == 1
    assert "Verdicts over the grid" in page
    assert "src=" not in page
    assert main.main(["report", str(tmp_path), "--strict"]) == 1


def test_the_name_of_a_study_wins_over_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from iclab.commands.sweeps.page import is_sweep

    monkeypatch.chdir(tmp_path)
    Path("staircase/plans").mkdir(parents=True)
    assert not is_sweep(["staircase"])
    assert is_sweep(["./staircase"])
    assert not is_sweep(["--all"])


def split(**given: object) -> Around:
    flags = {"tokens": 4000, "dimension": 10, "noise": 0.2, "kappa": math.inf} | given
    return around("split", QUESTIONS["split"](**flags))  # type: ignore[arg-type]


def test_sizes_around_a_split_spend_its_tokens_and_hold_the_planned_one() -> None:
    found = split()
    best = iclab.planning.inverse.best_split(
        4000, dimension=10, kappa=math.inf, noise=0.2, ridge="best", target="icl"
    )
    length, sequences, ridge = found.axis.points[found.planned]
    assert (length, sequences) == (best.context_length, best.sequences)
    assert math.isclose(ridge, best.ridge, rel_tol=1e-6)
    assert all(3900 < n * count <= 4000 for n, count, _ in found.axis.points)


def test_the_least_size_that_reaches_an_error_is_the_planned_one() -> None:
    flags = {"dimension": 10, "alpha": 2.0, "kappa": math.inf, "error": 1.0, "noise": 0.2, "ridge": 1e-2}
    found = around("sequences", QUESTIONS["sequences"](**flags))  # type: ignore[arg-type]
    planned, before = (found.axis.points[found.planned][0] + shift for shift in (0, -1))
    errors = [
        float(iclab.theory.generalization.errors(iclab.Ratios(2.0, math.inf, n / 100, 0.2), ridge=1e-2).icl)
        for n in (before, planned)
    ]
    assert errors[1] <= 1.0 < errors[0]


def drawn(*rows: list[float]) -> xr.DataTree:
    return xr.DataTree.from_dict(
        {"simulation/run": xr.Dataset({"icl": (("context_length", "seed"), np.array(rows))})}
    )


def test_the_planned_optimum_is_the_drawn_one_unless_runs_tell_another_apart() -> None:
    found = Around(Axis(("context_length",), ((5,), (10,), (20,))), {}, 1, "icl", None)
    assert found.verdict(drawn([2, 2.1], [1, 1.1], [3, 3.1])).startswith("the planned optimum is the drawn one")
    close = found.verdict(drawn([0.99, 1.09], [1, 1.1], [3, 3.1]))
    assert close.endswith("1.04 ± 0.05 at 5 is not told apart from it")
    other = found.verdict(drawn([0.5, 0.51], [1, 1.1], [3, 3.1]))
    assert other.startswith("the planned optimum is not the drawn one: runs show 1.05 ± 0.05 at the planned context")
    asked = dataclasses.replace(found, error=0.8)
    assert asked.verdict(drawn([2, 2.1], [1, 1.1], [3, 3.1])).startswith("the error 0.8 is not reached")


def test_questions_without_size_or_dimension_are_not_drawn_around() -> None:
    with pytest.raises(ValueError, match="a plan must be split, ridge, tasks, sequences or context"):
        around("regime", None)
    with pytest.raises(ValueError, match="runs must have a dimension to be drawn"):
        around("ridge", QUESTIONS["ridge"](alpha=1.0, tau=1.0, kappa=1.0))  # type: ignore[call-arg]


def test_theory_of_a_planned_run_is_at_its_own_sizes() -> None:
    case = Case(dimension=10, context_length=20, sequences=150, noise=0.1, ridge=0.01)
    tree = RUN.run(case, 0)
    errors = iclab.theory.generalization.errors(iclab.Ratios(2.0, math.inf, 1.5, 0.1), ridge=0.01)
    np.testing.assert_allclose(tree["theory/limit"].to_dataset().icl, errors.icl, rtol=1e-12)


@pytest.mark.slow  # 112 runs are drawn
def test_a_planned_split_is_the_drawn_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "sweep",
        "--around",
        "plan",
        "split",
        "--tokens",
        "6000",
        "--dimension",
        "12",
        "--kappa",
        "inf",
        "--noise",
        ".2",
        "--out",
    ]
    assert main.main([*words, str(tmp_path)]) == 0
    assert "the planned optimum is the drawn one: context length 30" in capsys.readouterr().out
