"""Random states of views, and the numbers of Python at them: the lines that the page shows, run with fine flows."""

import contextlib
import io
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np

from iclab.explorer.controls import Control
from iclab.explorer.views import VIEWS
from iclab.theory import integration

FINE = 1e-12  # tolerance of flows on both sides
NARROWER = {  # where flows of both sides end in time, and a spectrum of tasks is not asked for every time
    "staircase": {"w": (0.02, 0.5), "T": (10.0, 4000.0)},
    "mode-staging": {"T": (5.0, 100.0)},
    "abrupt-drop": {"T": (5.0, 2000.0)},
    "fixed-points": {"H": (1, 5)},
    "plan": {"error": (0.3, 2.0)},  # smaller ones are often out of reach, and what would lower them takes seconds
}


def drawn_state(name: str, rng: np.random.Generator) -> dict[str, Any]:
    """A state of a view with every control somewhere in its range."""
    state = {control.key: _drawn(control, NARROWER.get(name, {}).get(control.key), rng)
             for control in VIEWS[name].controls}  # fmt: skip
    if name == "double-descent" and rng.random() < 0.8:
        state["power"] = 0.0
    return state


def _drawn(control: Control, narrower: tuple[float, float] | None, rng: np.random.Generator) -> Any:
    low, high = narrower or (control.low, control.high)

    def number() -> Any:
        value = np.exp(rng.uniform(np.log(low), np.log(high))) if control.log else rng.uniform(low, high)
        return round(value) if control.whole else float(f"{value:.6g}")

    if control.choices:
        return str(rng.choice(control.choices))
    if control.spectrum:
        return sorted((number() for _ in range(rng.integers(1, 6))), reverse=True)
    return number()


@contextlib.contextmanager
def fine_flows() -> Iterator[None]:
    """Context in which flows of Python are integrated to a fine tolerance."""

    coarse = integration._states

    def fine(velocity: Any, start: Any, time: Any, _: float, floor: Any) -> Any:
        return coarse(velocity, start, time, FINE, floor)

    with mock.patch.object(integration, "_states", fine):
        yield


def answered(lines: str) -> dict[str, Any]:
    """The names that lines of Python leave behind."""
    names: dict[str, Any] = {}
    with fine_flows(), contextlib.redirect_stdout(io.StringIO()):
        exec(lines, names)
    return names


def value_of(names: dict[str, Any], key: str) -> np.ndarray:
    """The numbers of a curve: those of a name, or of one row of it, `exact.2`."""
    name, _, row = key.partition(".")
    found = np.asarray(names[name], dtype=float)
    return found[int(row)] if row else found
