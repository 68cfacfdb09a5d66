"""Simulated runs of each study as lines and dots beside the curves of its view."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["RUNS", "Laid"]

POINTS = 160  # of a line, at most


@dataclass(frozen=True)
class Laid:
    """The runs of one state: lines of single seeds and dots of means, each with the key of its curve."""

    state: Mapping[str, Any]
    words: str  # about the runs, after their number
    lines: list[dict[str, Any]] = field(default_factory=list)
    dots: list[dict[str, Any]] = field(default_factory=list)


Runs = Callable[[dict[str, Any], dict[str, Any], "xr.DataTree"], Iterator[Laid]]
"""The states that a result shows, from the controls of its case, the case, and the result."""


def training(state: dict[str, Any], case: dict[str, Any], tree: "xr.DataTree") -> Iterator[Laid]:
    """Losses of every seed on the largest training set."""
    drawn = tree["simulation/sequences"].to_dataset().isel(sequences=-1)
    yield Laid(
        state, f"trained on {int(drawn.sequences)} sequences, each from the start of its seed",
        [_line("loss", drawn.time, one.loss, seed=int(one.seed)) for one in _seeds(drawn)],
    )  # fmt: skip


def strengths(state: dict[str, Any], case: dict[str, Any], tree: "xr.DataTree") -> Iterator[Laid]:
    """Strengths of all modes of every seed, at each context length."""
    drawn = tree["simulation/trained"].to_dataset()
    for length in drawn.context_length.values:
        at = drawn.sel(context_length=length)
        lines = [
            _line(f"exact.{mode}", at.time, one.strength.isel(mode=mode), seed=int(one.seed))
            for one in _seeds(at)
            for mode in range(at.sizes["mode"])
        ]
        yield Laid({**state, "N": int(length)}, "of the whole transformer by one-pass SGD", lines)


def descent(state: dict[str, Any], case: dict[str, Any], tree: "xr.DataTree") -> Iterator[Laid]:
    """Errors of drawn runs against the number of sequences, in the largest dimension."""
    yield _errors({**state, "power": 0.0}, tree["simulation/runs"].to_dataset(), "tau")


def lengths(state: dict[str, Any], case: dict[str, Any], tree: "xr.DataTree") -> Iterator[Laid]:
    """Errors of drawn runs against the context length, of each panel and pool."""
    for name in ("known", "few", "many"):
        panel, drawn = case[name], tree[f"simulation/runs_{name}"].to_dataset()
        for kappa in drawn.kappa.values:
            sizes = {"kappa": float(kappa), "tau": panel["tau"], "rho": panel["noise"]}
            yield _errors(sizes, drawn.sel(kappa=kappa), "alpha")


def diversity(state: dict[str, Any], case: dict[str, Any], tree: "xr.DataTree") -> Iterator[Laid]:
    """Errors of drawn runs, and of dMMSE on drawn contexts, against the number of tasks."""
    runs = _errors(state, tree["simulation/runs"].to_dataset(), "kappa")
    bayes = tree["simulation/dmmse"].to_dataset().isel(dimension=0)
    more = [_means(key, bayes.kappa, bayes[name]) for key, name in (("new", "icl"), ("pool", "idg"))]
    yield Laid(runs.state, runs.words, dots=[*runs.dots, *more])


def ridges(state: dict[str, Any], case: dict[str, Any], tree: "xr.DataTree") -> Iterator[Laid]:
    """Errors of drawn runs against the ridge, at each number of sequences."""
    drawn = tree["simulation/runs"].to_dataset()
    for tau in drawn.tau.values:
        yield _errors({**state, "tau": float(tau)}, drawn.sel(tau=tau), "ridge")


def searches(state: dict[str, Any], case: dict[str, Any], tree: "xr.DataTree") -> Iterator[Laid]:
    """Losses of the fixed points that searches found, all seeds together."""
    found = np.unique(np.round(tree["simulation/points"].to_dataset().loss.values, 9))
    dots = {"key": "found", "x": [], "y": found[np.isfinite(found)]}
    yield Laid(state, f"of {case['searches']} searches each, which ended at these losses", dots=[dots])


def fitted(state: dict[str, Any], case: dict[str, Any], tree: "xr.DataTree") -> Iterator[Laid]:
    """Strengths fitted to the most drawn contexts, for each noise."""
    drawn = tree["simulation/fitted"].to_dataset().isel(sequences=-1)
    for noise in drawn.noise.values:
        at = drawn.sel(noise=noise)
        dots = [
            _means(f"exact.{mode}", at.context_length, at.strength.isel(mode=mode))
            for mode in range(at.sizes["mode"])
        ]
        words = f"of weights fitted to {int(drawn.sequences)} contexts"
        yield Laid({**state, "rho": float(noise)}, words, dots=dots)


def paths(state: dict[str, Any], case: dict[str, Any], tree: "xr.DataTree") -> Iterator[Laid]:
    """Paths of SGD on the largest batches, from each start of the fan and of the separatrix."""
    for name in ("fan", "separatrix"):
        drawn = tree[f"simulation/{name}"].to_dataset()
        for start in range(drawn.sizes["start"]):
            at = drawn.isel(start=start)
            p, q = (float(at[part].isel(seed=0, time=0)) for part in ("value", "key_query"))
            lines = [_line("q", one.value, one.key_query, seed=int(one.seed)) for one in _seeds(at)]
            words = f"by one-pass SGD on batches of {max(case['batches'])} contexts"
            yield Laid({**state, "p": round(p, 9), "q": round(q, 9)}, words, lines)


RUNS: Mapping[str, Runs] = {
    "staircase": training, "abrupt-drop": training, "mode-staging": strengths, "double-descent": descent,
    "context-length": lengths, "task-diversity": diversity, "ridge": ridges, "fixed-points": searches,
    "finite-context": fitted, "phase-portrait": paths,
}  # fmt: skip


def _errors(state: Mapping[str, Any], drawn: "xr.Dataset", along: str) -> Laid:
    """Means of both errors in the largest dimension."""
    at = drawn.isel(dimension=-1)
    dots = [_means(key, at[along], at[key]) for key in ("icl", "idg")]
    return Laid(state, f"of drawn runs in D = {int(at.dimension)}", dots=dots)


def _means(key: str, x: "xr.DataArray", values: "xr.DataArray") -> dict[str, Any]:
    """Means over seeds with their standard errors."""
    count = values.sizes["seed"]
    error = values.std("seed", ddof=1) / np.sqrt(count) if count > 1 else 0 * values.isel(seed=0)
    return {"key": key, "x": x.values, "y": values.mean("seed").values, "error": error.values}


def _line(key: str, x: "xr.DataArray", y: "xr.DataArray", *, seed: int) -> dict[str, Any]:
    """A curve of one seed, of its points so many that its shape is kept."""
    chosen = np.unique(np.round(np.linspace(0, len(x) - 1, min(len(x), POINTS))).astype(int))
    return {"key": key, "seed": seed, "x": x.values[chosen], "y": y.values[chosen]}


def _seeds(drawn: "xr.Dataset") -> "Iterator[xr.Dataset]":
    return (drawn.isel(seed=i) for i in range(drawn.sizes["seed"]))
