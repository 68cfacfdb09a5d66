"""The result of a study: it shows itself, in a notebook or a terminal, and its numbers stay a tree of arrays."""

import csv
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from numpy.testing import assert_array_equal

from iclab import spectra
from iclab.claims import Agrees, Verdict
from iclab.problem import Regression
from iclab.store import Store, digest
from iclab.studies import STUDIES
from iclab.study import Result, Study, View
from tests.test_study import Case
from tests.test_study import study as made_up

AGREES = Agrees("curve/loss", "The curve is the exponential.", 0.2)


def draw(view: View, figure: Figure) -> None:
    """Loss against time."""
    figure.subplots().plot(view.theory.curve.time, view.theory.curve.loss)


def study(**changes: Any) -> Study:
    return made_up(**({"figure": draw, "claims": (AGREES,)} | changes))


def test_numbers_are_found_as_in_the_tree_of_the_last_version() -> None:
    result = study().run(seeds=2)
    assert isinstance(result, Result)
    assert isinstance(result.tree, xr.DataTree)
    assert_array_equal(result["simulation/curve"].loss, result.tree["simulation/curve"].loss)
    assert_array_equal(result.attrs["seeds"], [0, 1])
    assert set(result.children) == {"theory", "simulation"}
    with pytest.raises(AttributeError):
        _ = result.no_such_thing


def test_a_result_shows_question_answer_figure_and_verdicts() -> None:
    shown = study().run(seeds=3)._repr_html_()
    for text in ("Is it so?", "The claim holds", "<svg", "Loss against time.", "The curve is the exponential."):
        assert text in shown
    assert "<script" not in shown


def test_a_result_without_seeds_says_that_nothing_is_judged() -> None:
    result = study().run(seeds=0)
    assert "nothing is judged" in repr(result)
    assert "<table" not in result._repr_html_()
    assert repr(result.verdicts) == "no verdicts: nothing was judged"


def test_verdicts_are_a_list_and_a_table() -> None:
    verdicts = study().run(seeds=3).verdicts
    assert [verdict.outcome for verdict in verdicts] == ["holds"]
    table = verdicts.to_dataframe()
    assert table.asked.tolist() == [0.2]
    assert table.meaning.tolist() == ["The curve is the exponential."]
    assert "<table" in verdicts._repr_html_()


def test_a_figure_is_matplotlibs_own_and_shows_itself_as_svg() -> None:
    figure = study().run(seeds=2).draw()
    assert isinstance(figure, Figure)
    assert "<svg" in figure._repr_svg_()


def test_the_table_of_a_result_is_that_of_the_csv_beside_its_page(tmp_path: Path) -> None:
    result = study().run(seeds=2)
    page = result.page(tmp_path / "shown")
    assert "Is it so?" in page.read_text()
    rows = list(csv.DictReader((tmp_path / "shown" / "files" / "made-up.csv").read_text().splitlines()))
    np.testing.assert_allclose([float(row["value"]) for row in rows], result.to_dataframe().value, rtol=1e-11)


def test_a_saved_result_is_found_by_the_store_and_joins_other_seeds(tmp_path: Path) -> None:
    asked, case = study(), Case()
    path = asked.run(case, seeds=(0, 1)).save(tmp_path)
    assert path.is_file()
    asked.run(case, seeds=(2,)).save(tmp_path)
    stored = Store(tmp_path).load(asked, case)
    assert stored is not None
    assert digest(stored) == digest(asked.run(case, seeds=3).tree)


def test_theory_alone_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must hold seeds; got theory alone\. Run the study with one seed or more"):
        study().run(seeds=0).save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_answer_begins_with_the_words_of_the_study() -> None:
    def answer(view: View) -> str:
        return f"The curve starts at {float(view.theory.curve.loss[0]):g}."

    asked = study(answer=answer)
    assert asked.run(seeds=3).answer.startswith("The curve starts at 1. The claim holds; closest")
    assert asked.run(seeds=0).answer.startswith("Theory alone")


def test_results_show_themselves_where_there_is_no_ipython() -> None:
    code = """
import sys
sys.modules["IPython"] = None
import iclab
result = iclab.studies.abrupt_drop.run(seeds=0)
assert "<svg" in result._repr_html_()
assert result.draw().axes
assert "IPython" not in [name for name, module in sys.modules.items() if module is not None]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_studies_cases_verdicts_and_series_are_shown_in_ten_lines_at_most() -> None:
    verdict = Verdict("c", "It is so.", "m", 0.01, 0.02, "holds")
    state = {"h.0.attn.c_attn.weight": np.zeros((4, 12), np.float32)}
    series = spectra.checkpoints.of_states([state] * 20, steps=range(20))
    shown = [*STUDIES.values(), STUDIES, verdict, series, *(one.quick for one in STUDIES.values())]
    for one in shown:
        assert 1 <= len(repr(one).splitlines()) <= 10, one
    assert repr(verdict) == "holds: It is so (≤ 1 %, asked ≤ 2 %)"
    assert repr(series) == "Series of 20 checkpoints: steps 0, 1, 2, 3, …, 19"
    assert "modes: mode-staging, finite-context" in repr(STUDIES)


def test_a_long_case_is_wrapped_in_a_notebook() -> None:
    class Printer:
        def text(self, shown: str) -> None:
            self.shown = shown

    printer = Printer()
    case = STUDIES["abrupt-drop"].quick
    long = replace(case, problem=Regression(tuple(1 / k for k in range(1, 400)), context_length=9))
    long._repr_pretty_(printer, False)
    lines = printer.shown.splitlines()
    assert len(lines) == 10
    assert max(map(len, lines)) <= 100
    case._repr_pretty_(printer, False)
    assert printer.shown.replace("\n    ", " ") == repr(case)
