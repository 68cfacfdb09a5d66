"""Labels: answers of witnesses as one tree of arrays that say what they are, of which case, and made by what."""

import dataclasses
import json
import math
import reprlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from iclab.numerics import require, whole_number
from iclab.outcomes import Variable, variables
from iclab.provenance import device, environment, origin_attributes, origins, peak_memory

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "PER_SEED", "SCHEMA", "Outcomes", "case_json", "dataset_at", "joined", "labeled_groups", "labeled_tree",
    "seed_numbers",
]  # fmt: skip

PER_SEED = ("seeds", "seconds", "memory")
"""Attributes of a result with an entry for each seed: memory is the most bytes that its process had held by then."""

SCHEMA = 1  # of the labeled result; raised when its groups or attributes change their meaning

Outcomes = Mapping[str, Any]
"""Outcomes by name, as a witness returns them. Each becomes a group of the labeled result."""


def labeled_tree(
    study: Any, case: Any, answers: Mapping[str, Outcomes], *, seed: int, seconds: float | None
) -> "xr.DataTree":
    """Labeled answers to one seed; no seconds say that theory answered alone, for the start of that seed."""
    import xarray as xr

    groups = {
        path: xr.Dataset(
            {one.name: (one.axes, one.array, one.notes) for one in several if not one.coordinate},
            {one.name: (one.axes, one.array, one.notes) for one in several if one.coordinate},
            attrs={"outcome": kind},
        )
        for path, (kind, several) in labeled_groups(study, answers, seed=seed).items()
    }
    attributes = {
        "study": study.name,
        "study_version": study.version,
        "case": case_json(case),
        "seeds": np.array([] if seconds is None else [seed], dtype=int),
        "seconds": np.array([] if seconds is None else [seconds], dtype=float),
        "memory": np.array([] if seconds is None else [peak_memory()], dtype=float),
        "schema": SCHEMA,
        "device": device(),
        **environment(),
    }
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=attributes), **groups})


def labeled_groups(
    study: Any, answers: Mapping[str, Outcomes], *, seed: int
) -> dict[str, tuple[str, list[Variable]]]:
    """Groups WITNESS/NAME of answers to one seed: the class of the outcome, and its variables."""
    found = {}
    for witness, outcomes in answers.items():
        require(
            isinstance(outcomes, Mapping) and all(map(dataclasses.is_dataclass, outcomes.values())),
            f"{witness} of the study {study.name!r} must return outcomes by name, as in "
            f'{{"curve": labeled(...)}}; got {reprlib.repr(outcomes)}.',
        )
        own = None if witness == "theory" and study.start is None else seed
        for name, outcome in outcomes.items():
            found[f"{witness}/{name}"] = type(outcome).__name__, variables(outcome, study.vocabulary, name, own)
    return found


def seed_numbers(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """The seeds meant by a count or by a list. Raises ValueError unless they are different whole numbers >= 0."""
    if isinstance(seeds, Iterable) and not isinstance(seeds, str):
        numbers = tuple(whole_number("seeds", seed, least=0) for seed in seeds)
    else:
        count: Any = seeds  # of any type, until it is checked
        numbers = tuple(range(whole_number("seeds", count, least=0)))
    require(len(set(numbers)) == len(numbers), f"seeds must differ; got {numbers}.")
    return numbers


def case_json(case: Any) -> str:
    """The whole case as JSON with sorted keys; infinities are written as the string "inf"."""
    return json.dumps(_plain(dataclasses.asdict(case)), sort_keys=True)


def joined(results: "list[xr.DataTree]") -> "xr.DataTree":
    """Results of one case with different seeds as one result, seeds in order, each with its own origin."""
    import xarray as xr

    first = results[0]
    seeds = np.concatenate([result.attrs["seeds"] for result in results])
    order = np.argsort(seeds, kind="stable")
    groups = {}
    for node in first.subtree:
        parts = [dataset_at(result, node.path) for result in results]
        if "seed" in parts[0].dims:
            groups[node.path] = xr.concat(
                parts, "seed", data_vars="minimal", coords="minimal", join="exact", compat="equals"
            ).isel(seed=order)
        elif parts[0].variables:
            groups[node.path] = parts[0]
    made = [origin for result in results for origin in origins(result.attrs, result.attrs["seeds"].tolist())]
    attributes = {name: value for name, value in first.attrs.items() if name != "origins"}
    attributes |= {name: np.concatenate([result.attrs[name] for result in results])[order] for name in PER_SEED}
    attributes |= origin_attributes([made[place] for place in order], seeds[order].tolist())
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=attributes), **groups})


def dataset_at(result: "xr.DataTree", path: str) -> "xr.Dataset":
    """One group of a result, without what stands above it."""
    import xarray as xr

    group = result[path]
    assert isinstance(group, xr.DataTree)
    return group.to_dataset(inherit=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value
