"""Grids of sweeps: text becomes values and text again, fields are found by name, bad input is one sentence."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iclab.study import case_json
from iclab.sweeps.grids.axes import Axis, axes_of, axis_of_text, read_grid, text_of
from iclab.sweeps.grids.fields import case_from, changed, found
from iclab.sweeps.grids.plan import cell_numbers, plan_of, read_plan
from iclab.sweeps.grids.sources import of_function, reference, source
from tests.sweep_studies import STUDY, Case, doubled, drawn

ODD = Case(route="odd", most=7, sizes=(3,), ridge=float("1e-300"))


def points(text: str) -> list:
    return [point[0] for point in axis_of_text(text).points]


def test_text_states_values_evenly_by_ratio_or_one_by_one() -> None:
    assert points("tau=.5:2:4") == [0.5, 1.0, 1.5, 2.0]
    assert points("tau=.2:5:3log") == [0.2, 1.0, 5.0]
    assert points("tau=1:1e4:5log") == [1.0, 10.0, 100.0, 1000.0, 10000.0]
    assert points("dimension=16,32") == [16, 32]
    assert points("route=kernel,plain") == ["kernel", "plain"]
    assert points("tasks=none,4") == [None, 4]
    assert points("kappa=.5,inf") == [0.5, float("inf")]


@given(st.floats(1e-6, 1e6), st.floats(1.5, 100), st.integers(2, 40), st.booleans())
def test_values_of_a_grid_are_rounded_once_and_survive_text(low: float, factor: float, count: int, log: bool) -> None:
    axis = axis_of_text(f"x={low!r}:{low * factor!r}:{count}{'log' if log else ''}")
    assert all(value == float(f"{value:.12g}") for (value,) in axis.points)
    exact = (np.geomspace if log else np.linspace)(low, low * factor, count)
    np.testing.assert_allclose([value for (value,) in axis.points], exact, rtol=6e-12)  # half of the twelfth digit
    assert axis_of_text(text_of(axis)) == axis


@pytest.mark.parametrize("values", [[1, 2], [0.1, 1e-300], ["a", "b"], [None, 3], [True, False]])
def test_values_of_every_kind_survive_text(values: list) -> None:
    (axis,) = axes_of({"x": values})
    assert axis_of_text(text_of(axis)) == axis


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tau", "an axis must be NAME=VALUES"),
        ("tau=", "axis tau must hold at least one value; got none"),
        ("tau=1,2,1", "axis tau must not repeat a value; got 1 again"),
        ("tau=1:2:1", "axis tau must have a count of 2 at least between two ends; got 1 from 1 to 2"),
        ("tau=0:2:3log", "axis tau must have positive ends for equal ratios; got 0 and 2"),
        ("tau=1:x:3", "axis tau must be from:to:count or from:to:countlog"),
        ("tau=1:2:3:4", "axis tau must be from:to:count or from:to:countlog"),
        ("tau=1:inf:3", "axis tau must go from one finite number to another"),
    ],
)
def test_text_that_states_no_axis_is_refused_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        axis_of_text(text)


def test_a_grid_file_holds_study_seeds_base_axes_and_axes_that_move_as_one(tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(
        'study = "forecast"\nseeds = 8\n[base]\nnoise = 0.1\n[grid]\ntau = {from = 0.5, to = 2, count = 4}\n'
        "[grid.inner]\ndepth = [1, 2]\n[[together]]\nkappa = [0.5, 1.0]\ndimension = [16, 32]\n"
    )
    grid = read_grid(file)
    assert (grid.study, grid.seeds, grid.base) == ("forecast", 8, {"noise": 0.1})
    assert [axis.title for axis in grid.axes] == ["tau", "inner.depth", "kappa & dimension"]
    assert [len(axis) for axis in grid.axes] == [4, 2, 2]
    assert grid.axes[2].points == ((0.5, 16), (1.0, 32))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[grid", "must be a TOML file that can be read"),
        ("grids = 3", "must hold base, grid, seeds, study, together; got grids"),
        ("[grid]\ntau = 3", "axis tau must hold a list of values; got 3"),
        ("[[together]]\na = [1]\nb = [1, 2]", "must hold lists of one length for two fields or more"),
        ("[grid]\ntau = {from = 1, to = 2}", "must be a list, or a table of from, to, count and scale"),
    ],
)
def test_a_grid_file_with_other_content_is_refused(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "grid.toml").write_text(content)
    with pytest.raises(ValueError, match=said):
        read_grid(tmp_path / "grid.toml")


def test_a_field_is_found_by_its_whole_name_or_by_its_last_one() -> None:
    assert found(Case(), "inner.height") == found(Case(), "height") == "inner.height"
    with pytest.raises(ValueError, match=r"got 'heigth'. Perhaps inner.height"):
        found(Case(), "heigth")
    with pytest.raises(ValueError, match=r"'inner' has several: inner.height, inner.depth"):
        found(Case(), "inner")


def test_values_take_the_type_of_their_field() -> None:
    case = changed(Case(), {"inner.height": 2, "size": 5.0, "sizes": 3, "most": None, "ridge": "inf"})
    assert case == Case(inner=type(case.inner)(2.0, 3), size=5, sizes=(3,), ridge=float("inf"))
    assert isinstance(case.inner.height, float)
    assert isinstance(case.size, int)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("size", 2.5, "size must be whole; got 2.5"),
        ("inner.height", "high", "inner.height must be a number; got 'high'"),
        ("route", 3, "route must be a word; got 3"),
        ("most", 1.5, "most must be"),
    ],
)
def test_a_value_of_another_kind_is_refused(name: str, value: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        changed(Case(), {name: value})


@pytest.mark.parametrize("case", [Case(), ODD, Case(ridge=float("inf"))])
def test_a_case_is_read_back_from_its_json(case: Case) -> None:
    import json

    assert case_from(Case(), json.loads(case_json(case))) == case


def test_an_axis_and_a_base_value_for_one_field_are_refused() -> None:
    with pytest.raises(ValueError, match=r"inner.height must be an axis or have one value; got both"):
        plan_of(STUDY, axes_of({"height": [1.0, 2.0]}), (0,), base={"inner.height": 3.0})
    with pytest.raises(ValueError, match=r"an axis must stand once; got height for inner.height"):
        plan_of(STUDY, axes_of({"height": [1.0], "inner.height": [2.0]}), (0,))
    with pytest.raises(ValueError, match="axis size must not repeat a value"):
        plan_of(STUDY, axes_of({"size": [2, 2.0]}), (0,))
    with pytest.raises(ValueError, match=r"size must be whole; got 25\.398"):
        plan_of(STUDY, axes_of(["size=16:64:4log"]), (0,))


def test_a_plan_is_read_as_it_was_written_and_its_name_tells_its_content(tmp_path: Path) -> None:
    axes = axes_of({"height": [0.1, 1.0], "sizes": [(1, 2), (3,)], ("size", "ridge"): [(2, 0.0), (3, 0.5)]})
    plan = plan_of(STUDY, axes, (4, 7), base={"route": "odd"})
    plan.write(tmp_path, plan.keys())
    again = read_plan(tmp_path)
    assert again == plan
    assert again.id == plan.id
    assert [again.case(point) for point in range(8)] == list(plan.cases())
    assert again.case(7) == changed(
        Case(), {"inner.height": 1.0, "sizes": (3,), "size": 3, "ridge": 0.5, "route": "odd"}
    )
    others = [
        plan_of(STUDY, axes[:2], (4, 7), base={"route": "odd"}), plan_of(STUDY, axes, (4, 8), base={"route": "odd"}),
        plan_of(STUDY, axes, (4, 7)),
    ]  # fmt: skip
    assert len({plan.id, *(other.id for other in others)}) == 4


def test_keys_of_cells_differ_for_cases_and_seeds() -> None:
    plan = plan_of(STUDY, axes_of(["height=1:50:100", "size=1:20:20"]), tuple(range(50)))
    assert len(np.unique(cell_numbers(plan.keys()[:, None], plan.numbers))) == 100 * 20 * 50


@dataclass(frozen=True)
class Own:
    width: float = 1.0


def test_a_lambda_an_inner_function_and_one_without_version_are_refused() -> None:
    def inner(case: Own) -> float:
        return case.width

    for function in (lambda case: 1.0, inner):
        with pytest.raises(ValueError, match="must have a name of its own in a module"):
            of_function(function, version=1)
    with pytest.raises(ValueError, match="must state a version; got none for doubled"):
        of_function(doubled, version=None)
    with pytest.raises(ValueError, match="study must be one of"):
        source("nonesuch")
    with pytest.raises(ValueError, match="must be a study or a function that can be imported here"):
        source("tests.sweep_studies:nonesuch")


def test_studies_and_functions_are_found_again_by_other_processes() -> None:
    assert reference(STUDY) == "tests.sweep_studies:STUDY"
    assert source(reference(STUDY)) is STUDY
    for function in (doubled, drawn):
        study = of_function(function, version=3)
        assert source(reference(study), version=3).name == study.name == f"tests.sweep_studies.{function.__name__}"
    assert reference(source("forecast")) == "forecast"


def test_axes_are_axes_whatever_states_them() -> None:
    assert axes_of({"a": [1, 2], "b": "3:4:2"}) == axes_of(["a=1,2", Axis(("b",), ((3.0,), (4.0,)))])
