"""Verdicts on real cases: of disjoint groups of few seeds of right theory, none says that it does not hold."""

from collections import Counter
from typing import NamedTuple

import pytest
import xarray as xr

from iclab.studies import STUDIES
from iclab.study import dataset_at


class Row(NamedTuple):
    """A study whose quick case is run with enough seeds for all groups."""

    study: str
    groups: int = 12
    seeds: int = 3  # of a group


ROWS = (Row("sgd-noise"), Row("finite-context"), Row("mode-staging"), Row("conservation"), Row("abrupt-drop"))


def part(result: xr.DataTree, seeds: slice) -> xr.DataTree:
    """The result of some of its seeds."""
    groups = {node.path: dataset_at(result, node.path) for node in result.subtree}
    chosen = {path: data.isel(seed=seeds) if "seed" in data.dims else data for path, data in groups.items()}
    attributes = {name: result.attrs[name][seeds] for name in ("seeds", "seconds")}
    return xr.DataTree.from_dict({**chosen, "/": xr.Dataset(attrs=result.attrs | attributes)})


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.study)
def test_right_theory_is_never_said_not_to_hold(row: Row) -> None:
    study, size = STUDIES[row.study], row.seeds
    result = study.run(seeds=row.groups * size)
    parts = [part(result, slice(first * size, (first + 1) * size)) for first in range(row.groups)]
    outcomes = [[verdict.outcome for verdict in study.verdicts(one)] for one in parts]
    count = Counter(outcome for group in outcomes for outcome in group)
    assert count["does not hold"] == 0, outcomes
    assert count["holds"] > count["open"], outcomes
    assert {verdict.outcome for verdict in study.verdicts(result)} == {"holds"}
