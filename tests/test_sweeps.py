"""Sweeps from beginning to end in one process: computed once, resumed, joined, counted, and failures said."""

import dataclasses
import json
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import iclab
from iclab.provenance import environment
from iclab.store import Store, fresh
from iclab.store.cells import cells_of
from iclab.store.part import Row
from iclab.studies import STUDIES
from iclab.study import case_json
from iclab.sweeps import InProcess, Sweep, opened
from iclab.sweeps.body import Worker
from iclab.sweeps.claims import Claims
from iclab.sweeps.costs import Cost, blocks_of, fitted_seconds, free_memory, require_memory
from iclab.sweeps.grids.axes import axes_of
from iclab.sweeps.grids.plan import read_plan
from iclab.sweeps.joining import forms
from iclab.sweeps.joining.joined import STATUS, joined, united
from iclab.sweeps.limits import Stop, within
from iclab.sweeps.state import State
from iclab.sweeps.sweeping import forecast, planned
from tests import sweep_studies
from tests.sweep_studies import JUDGED, STUDY, Case, doubled, drawn, value

SLOW = ("staircase", "double-descent")  # with a start, and with many groups
GRID = {"height": [1.0, 2.0, 3.0], "size": [2, 5]}


def swept(folder: Path, grid: dict | None = None, seeds: int | None = 2, **given: object) -> Sweep:
    return iclab.sweep(STUDY, grid or GRID, seeds, out=folder, **given)  # type: ignore[arg-type]


def sized(height: float, size: int) -> Case:
    return dataclasses.replace(Case(size=size), inner=dataclasses.replace(Case().inner, height=height))


def statuses(tree: xr.DataTree) -> list[str]:
    return [STATUS[place] for place in tree["cells"].to_dataset().status.values.ravel()]


def same(one: xr.DataTree, other: xr.DataTree) -> bool:
    """True where the outcomes of two datasets are bitwise equal, names, types and shapes included."""
    found = [
        [
            (node.path, name, array.dims, array.dtype.str, array.shape, np.ascontiguousarray(array.values).tobytes())
            for node in tree.subtree
            if node.path not in ("/", "/cells")
            for name, array in sorted(node.to_dataset().variables.items())
        ]
        for tree in (one, other)
    ]
    return found[0] == found[1]


@pytest.mark.parametrize(
    "name", ["made-up", "non-monotone-context", *(pytest.param(one, marks=pytest.mark.slow) for one in SLOW)]
)
def test_a_cell_straight_from_the_witnesses_is_that_of_the_labeled_result(name: str) -> None:
    study = STUDY if name == "made-up" else STUDIES[name]
    for seed in (None, 3) if name == "made-up" else (None,):
        (tree,) = cells_of(study.run(seeds=() if seed is None else (seed,)))
        cell = fresh(study, study.quick, seed)
        assert (cell.case, cell.seed, cell.form, cell.origin) == (tree.case, tree.seed, tree.form, tree.origin)
        for one, other in zip((*cell.own, *cell.shared), (*tree.own, *tree.shared), strict=True):
            assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


def test_a_sweep_is_one_dataset_with_the_axes_of_its_grid_and_seeds(tmp_path: Path) -> None:
    made = swept(tmp_path)
    now = made.progress()
    assert (now.cells, now.done, now.failed, now.missing) == (12, 12, 0, 0)
    tree = made.collect()
    loss = tree["simulation/curve"].to_dataset().loss
    assert loss.dims == ("height", "size", "seed", "entry")
    for height in (1.0, 2.0, 3.0):
        np.testing.assert_array_equal(loss.sel(height=height, size=5, seed=1), value(sized(height, 5), 1))
        theory = tree["theory/curve"].to_dataset().loss.sel(height=height, size=2)
        np.testing.assert_array_equal(theory, height * np.arange(1.0, 5.0))
    assert np.isnan(loss.sel(size=2).values[..., 2:]).all(), "shorter arrays end in NaN"
    cells = tree["cells"].to_dataset()
    assert (cells.seconds > 0).all()
    assert json.loads(cells.origin.attrs["origins"][0])["versions"] == environment()["versions"]


def test_what_is_stored_is_not_computed_again_whoever_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store(tmp_path).fetch(STUDY, Case(), 2)
    swept(tmp_path, {"height": [1.0, 2.0]})
    monkeypatch.setattr(sweep_studies, "_act", lambda case: pytest.fail("a cell is computed again"))
    again = swept(tmp_path, {"height": [2.0, 1.0]})
    assert again.progress().done == 4
    assert Store(tmp_path).missing(STUDY, Case(), 3) == [2]


def test_an_added_value_is_computed_alone_and_joins_the_others(tmp_path: Path) -> None:
    swept(tmp_path, {"height": [1.0, 3.0]})
    swept(tmp_path, {"height": [2.0, 3.0]}, seeds=3)
    plans = united([read_plan(tmp_path, name) for name in (opened(tmp_path).plan.id, *others(tmp_path))])
    tree = joined(tmp_path, plans)
    assert tree.height.values.tolist() == [1.0, 2.0, 3.0]
    assert statuses(tree) == ["done"] * 2 + ["not asked"] + ["done"] * 6
    loss = tree["simulation/curve"].to_dataset().loss
    np.testing.assert_array_equal(loss.sel(height=2.0, seed=2, entry=0), 2002.0)


def others(folder: Path) -> list[str]:
    newest = opened(folder).plan.id
    return [path.stem for path in (folder / "plans").glob("*.json") if path.stem != newest]


def test_interrupted_at_ten_points_a_sweep_is_bitwise_the_uninterrupted_one(tmp_path: Path) -> None:
    whole = swept(tmp_path / "whole", seeds=4).collect()
    plan = planned(STUDY, axes_of({"height": [1.0, 2.0, 3.0], "size": [2, 5]}), 4)
    for place in range(10):
        stop = Stop()

        def watch(_: State, __: object, stop: Stop = stop) -> None:
            stop.asked = 15  # after one cell

        made = iclab.sweeps.sweeping.begun(plan, tmp_path / "broken", InProcess(), stop=stop, watch=watch)
        assert made.progress().done == 3 + place + 1, "the pilot's, and one more each time"
    made = swept(tmp_path / "broken", seeds=4)
    assert made.progress().missing == 0
    assert same(made.collect(), whole)


def test_theory_alone_and_named_functions_are_swept_too(tmp_path: Path) -> None:
    alone = swept(tmp_path, seeds=0).collect()
    assert "simulation" not in alone.children
    assert alone["theory/curve"].to_dataset().loss.dims == ("height", "size", "time")
    twice = iclab.sweep(doubled, {"height": [1.5, 2.5]}, out=tmp_path, version=1).collect()
    np.testing.assert_array_equal(twice["theory/answer"].to_dataset().twice, [3.0, 5.0])
    seeds = iclab.sweep(drawn, {"height": [1.5, 2.5]}, 3, out=tmp_path, version=1).collect()
    np.testing.assert_array_equal(seeds["simulation/answer"].to_dataset().value, [[1.5, 2.5, 3.5], [2.5, 3.5, 4.5]])


def test_a_cell_outside_the_domain_fails_alone_with_the_message_of_the_case(tmp_path: Path) -> None:
    made = swept(tmp_path, {"height": [1.0, 150.0], "size": [2, 3]})
    now = made.progress()
    assert (now.done, now.failed, now.missing) == (4, 4, 0)
    assert now.reasons[0][:2] == (4, "ValueError: height must be below 100; got 150.0.")
    assert "first: inner.height=150, size=2, seed 0" in str(now)
    tree = made.collect()
    assert statuses(tree) == ["done"] * 4 + ["failed"] * 4
    assert "height must be below 100" in str(
        tree["cells"].to_dataset().failure.sel(height=150, size=2, seed=0).item()
    )
    with pytest.raises(ValueError, match="no cell of this grid can be computed: height must be below 100"):
        swept(tmp_path, {"height": [150.0, 200.0]})


def test_failed_cells_are_left_out_until_they_are_retried_and_results_beat_failures(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    mark.touch()
    grid = {"route": ["plain", f"fail-while:{mark}"]}
    assert swept(tmp_path, grid).progress().failed == 2
    mark.unlink()
    assert swept(tmp_path, grid).progress().failed == 2
    failures = [*(tmp_path / "failed").glob("*.jsonl")]
    content = failures[0].read_text()
    now = swept(tmp_path, grid, retry_failed=True).progress()
    assert (now.failed, now.done) == (0, 4)
    failures[0].write_text(content)  # of another machine, and late
    assert swept(tmp_path, grid).progress().failed == 0


def test_a_cell_that_takes_too_long_fails_and_the_others_are_computed(tmp_path: Path) -> None:
    now = swept(tmp_path, {"route": ["plain", "spin", "sleep:0.001"]}, seeds=1, cell_timeout=0.3).progress()
    assert (now.done, now.failed) == (2, 1)
    assert now.reasons[0][1] == "TimeoutError: a cell must end within 0.3 s (--cell-timeout); this one did not"


def test_the_clock_of_a_cell_never_reaches_beyond_it() -> None:
    for _ in range(30):
        try:
            with within(0.01):
                time.sleep(0.0099)
        except TimeoutError:
            pass
        time.sleep(0.001)
    with pytest.raises(ZeroDivisionError), within(5):
        _ = 1 / 0


def test_two_sweeps_may_work_on_one_folder(tmp_path: Path) -> None:
    plan = planned(STUDY, axes_of(GRID), 4, base={"route": "sleep:0.005"})
    iclab.sweeps.sweeping.written(plan, tmp_path, InProcess())
    plan = read_plan(tmp_path, study=STUDY)
    workers = [Worker(State(tmp_path, plan), (place, 3)) for place in range(3)]
    threads = [threading.Thread(target=worker.work) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(worker.tally.done for worker in workers) == 24 - 3  # the pilot's
    assert State(tmp_path, plan).left == 0


def test_a_claim_is_anybody_s_once_its_lease_is_over_and_nobody_s_clock_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = swept(tmp_path).plan
    claims = Claims(tmp_path, plan, lease=100.0)
    first = claims.take(0)
    assert first is not None
    first.under_way(7)
    for day in (-86400.0, 86400.0):
        monkeypatch.setattr(time, "time", lambda day=day: 1.7e9 + day)
        assert claims.take(0) is None, "a live claim was taken"
    os.utime(first.path, (first.path.stat().st_mtime - 101,) * 2)
    second = claims.take(0)
    assert second is not None
    assert (second.attempt, second.deaths) == (2, {7: 1})
    assert [one.attempt for one in claims.held()] == [2]


def test_a_cell_that_ends_three_processes_is_recorded_and_passed_by(tmp_path: Path) -> None:
    plan = swept(tmp_path, {"size": [2, 3, 4, 5]}, seeds=1).plan
    for path in (tmp_path / "parts").rglob("*.npz"):
        path.unlink()
    claims = Claims(tmp_path, plan, lease=0.05)
    for attempt in range(1, 4):
        claim = claims.take(2)
        assert claim is not None
        assert claim.attempt == attempt
        claim.under_way(plan.blocks[2][0])
        time.sleep(0.1)  # dead
    worker = Worker(State(tmp_path, plan), lease=0.05)
    worker.work()
    now = Sweep(tmp_path, plan).progress()
    assert (now.done, now.failed) == (3, 1)
    assert now.reasons[0][1] == "MemoryError: process killed 3 times (memory?)"


def test_a_cancelled_sweep_stops_and_goes_on_when_it_is_begun_again(tmp_path: Path) -> None:
    made = swept(tmp_path)
    for path in (tmp_path / "parts").rglob("*.npz"):
        path.unlink()
    made.cancel()
    assert Worker(State(tmp_path, made.plan)).work().done == 0
    assert "cancelled" in str(made.progress())
    assert swept(tmp_path).progress().done == 12


def test_a_broken_part_is_set_aside_and_its_cells_are_computed_again(tmp_path: Path) -> None:
    made = swept(tmp_path)
    whole = made.collect()
    path = sorted((tmp_path / "parts").rglob("*.npz"))[0]
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.warns(UserWarning, match="is not whole"):
        assert made.progress().missing > 0
    assert swept(tmp_path).progress().missing == 0
    assert same(made.collect(), whole)


def test_blocks_hold_all_cells_once_the_dearest_first(tmp_path: Path) -> None:
    plan = planned(STUDY, axes_of({"height": "1:50:40", "size": [2, 3]}), 5)
    seconds = np.linspace(0.1, 40.0, 80)
    blocks = blocks_of(plan, seconds)
    assert sorted(cell for first, last in blocks for cell in range(first, last)) == list(range(400))
    each = np.repeat(seconds, 5)
    dearest = [each[first:last].max() for first, last in blocks]
    assert dearest == sorted(dearest, reverse=True)
    for first, last in blocks:
        assert each[first:last].sum() <= 30.0 or last - first == 1
    tiny = blocks_of(planned(STUDY, axes_of({"height": "1:50:5000"}), 8), np.full(5000, 1e-4))
    assert all((last - first) <= 1024 and first % 8 == 0 for first, last in tiny)


def test_cost_is_predicted_from_what_the_store_knows_and_too_little_memory_is_refused(tmp_path: Path) -> None:
    plan = planned(STUDY, axes_of({"height": "1:50:40", "size": [2, 3]}), 5, base={"route": "sleep:0.01"})
    told = forecast(plan, tmp_path)
    assert (told.cells, told.done, told.missing) == (400, 3, 397)  # the pilot is kept
    low, high = (3600 * hours for hours in told.hours)
    assert low < 397 * 0.0105 < high
    assert told.memory[0] > 1e7
    with pytest.raises(ValueError, match="2 processes must fit into memory; they need 2e\\+03 GB at least"):
        require_memory(Cost(np.ones(1), (1, 1), (1e12, 2e12), ""), processes=2, available=free_memory())


def test_seconds_follow_the_powers_of_the_values(tmp_path: Path) -> None:
    plan = planned(STUDY, axes_of({"height": [1.0, 2.0, 50.0], "size": [2, 64]}), 1)
    known = [(height, size) for size in (2, 4, 16) for height in (1.0, 4.0, 9.0)]
    rows = [Row(case_json(sized(*at)), 0, 1e-3 * at[1] ** 2 * at[0] ** 0.5, 1e8) for at in known]
    seconds, spread = fitted_seconds(plan, rows)
    right = [1e-3 * size**2 * height**0.5 for height in (1.0, 2.0, 50.0) for size in (2, 64)]
    np.testing.assert_allclose(seconds, right, rtol=1e-3)  # the fit is shrunk a little
    assert spread == 1.2


def test_an_axis_of_an_outcome_that_repeats_the_axis_of_the_grid_is_dropped(tmp_path: Path) -> None:
    tree = iclab.sweep(
        "forecast", {"tau": [0.5, 1.5], "kappa": [0.5]}, 0, out=tmp_path, base={"dimension": 6}
    ).collect()
    limit = tree["theory/limit"].to_dataset()
    assert limit.icl.dims == ("tau", "kappa")
    errors = iclab.theory.generalization.errors(iclab.Ratios(10.0, 0.5, 1.5, 0.01), ridge=1e-5)
    np.testing.assert_allclose(limit.icl.sel(tau=1.5, kappa=0.5), errors.icl, rtol=1e-12)


def test_a_name_that_an_outcome_has_too_is_that_of_the_case(tmp_path: Path) -> None:
    tree = iclab.sweep(doubled, {"height": [1.0], "sizes": [(1, 2), (3,)]}, out=tmp_path, version=1).collect()
    assert set(tree.coords) == {"height", "sizes"}
    assert tree.coords["sizes"].values.tolist() == ["[1, 2]", "3"]


@pytest.mark.parametrize("form", [".nc", ".zarr", ".csv", ".parquet"])
def test_every_form_holds_the_same_numbers(tmp_path: Path, form: str) -> None:
    import pandas as pd

    if form == ".zarr":
        pytest.importorskip("zarr", reason="needs the extra zarr")
    tree = swept(tmp_path).collect()
    path = tmp_path / f"all{form}"
    forms.write(tree, path)
    loss = tree["simulation/curve"].to_dataset().loss
    if form == ".zarr":
        assert all(inner.stat().st_mode & 0o100 for inner in path.rglob("*") if inner.is_dir()), "a closed folder"
    if form in (".nc", ".zarr"):
        engine = {"engine": "h5netcdf"} if form == ".nc" else {"engine": "zarr", "consolidated": False}
        with xr.open_datatree(path, **engine) as again:
            assert same(again.load(), tree)
            assert again.attrs["study"] == "made-up"
        return
    table = pd.read_csv(path) if form == ".csv" else pd.read_parquet(path)
    chosen = table[(table.group == "simulation/curve") & (table.variable == "loss")]
    assert len(chosen) == int(loss.notnull().sum())
    row = chosen[(chosen.height == 2) & (chosen["size"] == 5) & (chosen.seed == 1) & (chosen.entry == 4)]
    assert row.value.item() == loss.sel(height=2, size=5, seed=1, entry=4).item()


def test_a_whole_sweep_is_refused_in_a_form_that_cannot_hold_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = swept(tmp_path).collect()
    monkeypatch.setattr(forms, "LARGEST", 100)
    with pytest.raises(ValueError, match=r"a netCDF file must hold less than 2 GB; this sweep has .* Write .*\.zarr"):
        forms.write(tree, tmp_path / "all.nc")
    with pytest.raises(ValueError, match=r"-o must be a file that ends in \.nc, \.zarr, \.parquet, \.csv"):
        forms.write(tree, tmp_path / "all.txt")


def test_older_versions_are_kept_and_said_and_a_plan_of_another_version_is_refused(tmp_path: Path) -> None:
    older = dataclasses.replace(STUDY, version=1)
    iclab.sweep(older, {"size": [2, 3]}, 2, out=tmp_path)
    made = swept(tmp_path, {"size": [2, 3]})
    assert made.older() == "older: 4 cells of version 1 are kept, and not used"
    plan = made.plan.id
    text = (tmp_path / "plans" / f"{plan}.json").read_text().replace('"version": 2', '"version": 1')
    (tmp_path / "plans" / f"{plan}.json").write_text(text)
    with pytest.raises(ValueError, match="must be of version 2 of made-up, as installed here; got version 1"):
        opened(tmp_path, plan)


def test_a_folder_that_holds_no_sweep_is_said_to_hold_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must hold a sweep; there is no plan in it"):
        opened(tmp_path)


def test_a_notebook_sees_progress(tmp_path: Path) -> None:
    made = swept(tmp_path)
    assert 'value="12"' in made._repr_html_()
    assert str(made).startswith("made-up: 12 of 12 cells done (100.0 %), 0 failed, 0 missing")
    assert JUDGED.name == "made-up-judged"
