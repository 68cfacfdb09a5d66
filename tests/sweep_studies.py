"""Studies and functions that are swept in tests: found by name from other processes, and drawing nothing."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from iclab.claims import Agrees
from iclab.numerics import Checked, Count, Positive, Real, require
from iclab.outcomes import Labeled, labeled
from iclab.study import Preset, Study


@dataclass(frozen=True)
class Inner(Checked):
    height: Positive = 1.0  # h, height
    depth: Count = 3  # d, depth


@dataclass(frozen=True)
class Case(Checked):
    inner: Inner = Inner()
    size: Count = 4  # n, entries
    ridge: Annotated[float, Real(at_least=0.0, infinite=True)] = 0.0  # λ, ridge
    sizes: tuple[int, ...] = (1, 2)  # several
    route: str = "plain"  # a word
    most: int | None = None  # a number or none

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.inner.height < 100, f"height must be below 100; got {self.inner.height}.")


def value(case: Case, seed: int | None) -> np.ndarray:
    """The right answer: every number tells its case and its seed."""
    return case.inner.height * np.arange(1.0, case.size + 1) + 1000.0 * (seed or 0) + case.ridge


def theory(case: Case) -> dict[str, Labeled]:
    return {"curve": labeled({"time": np.arange(4.0)}, loss=case.inner.height * np.arange(1.0, 5.0))}


def simulation(case: Case, *, key: Any) -> dict[str, Labeled]:
    _act(case)
    return {"curve": labeled({"entry": None}, loss=value(case, key), mean=((), float(value(case, key).mean())))}


class Plain(Study):
    """A study whose simulation takes the seed itself, so that JAX is not loaded."""

    def _simulated(self, simulation: Any, case: Any, seed: int) -> Any:
        return simulation(case, key=seed)


STUDY = Plain(
    name="made-up", question="Is it so?", version=2, presets={"quick": Preset(Case(), seeds=3)}, theory=theory,
    simulation=simulation, figure=lambda view, figure: None, claims=(),
)  # fmt: skip


def judged(case: Case, *, key: Any) -> dict[str, Labeled]:
    """Agrees with theory where the height is below 2."""
    shift = 0.0 if case.inner.height < 2 else 0.5
    rng = np.random.default_rng(int(key))
    return {"curve": labeled({"time": np.arange(4.0)}, loss=case.inner.height * (
        np.arange(1.0, 5.0) * (1 + 0.001 * rng.standard_normal(4)) + shift))}  # fmt: skip


JUDGED = Plain(
    name="made-up-judged", question="Does it agree?", version=1, presets={"quick": Preset(Case(), seeds=4)},
    theory=theory, simulation=judged, figure=lambda view, figure: None,
    claims=(Agrees("curve/loss", "The curve is as theory says.", 0.05),),
)  # fmt: skip


def doubled(case: Case) -> dict[str, Any]:
    """Twice the height, without any seed."""
    return {"twice": 2 * case.inner.height, "entries": np.arange(float(case.size))}


def drawn(case: Case, seed: int) -> float:
    """A number for each seed."""
    return case.inner.height + seed


def _act(case: Case) -> None:
    """Misbehave as the route says: sleep, fail, die, or die for as long as a file is there."""
    kind, _, told = case.route.partition(":")
    if kind == "sleep":
        time.sleep(float(told))
    elif kind == "fail":
        raise ArithmeticError(f"no root was found at height {case.inner.height:g}")
    elif kind == "spin":
        while True:
            pass
    elif kind == "kill":
        os.kill(os.getpid(), 9)
    elif kind == "fail-while" and Path(told).exists():
        raise ArithmeticError("not yet")
