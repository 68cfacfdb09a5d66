"""Cells straight from the witnesses, without a labeled tree in between: for many small answers."""

import json
import time
from functools import lru_cache
from typing import Any

import numpy as np

from iclab.provenance import ORIGIN, device, environment, peak_memory
from iclab.store.cells import Cell
from iclab.study import Study, case_json, labeled_groups

__all__ = ["fresh"]


def fresh(study: Study, case: Any, seed: int | None) -> Cell:
    """The cell of one seed of a case, or of theory alone; equal to that of the labeled result.

    Other than in the result, theory alone has seconds and memory too. Raises the errors of the witnesses.
    """
    begun = time.perf_counter()
    groups = labeled_groups(study, study.outcomes(case, seed), seed=seed or 0)
    seconds = time.perf_counter() - begun
    own: list[np.ndarray] = []
    shared: list[np.ndarray] = []
    form = []
    for path, (kind, variables) in groups.items():
        for one in variables:
            seeded = "seed" in one.axes
            (own if seeded else shared).append(np.array(one.array[0] if seeded else one.array, order="C"))
        noted = tuple((one.name, one.axes, tuple(one.notes.items()), one.coordinate) for one in variables)
        form.append((f"/{path}", kind, noted))
    return Cell(
        case_json(case),
        seed,
        seconds,
        peak_memory(),
        _origin(device()),
        _text(tuple(form)),
        tuple(own),
        tuple(shared),
    )


def _origin(kind: str) -> dict[str, str]:
    known = {**environment(), "device": kind}
    return {name: known[name] for name in ORIGIN}


@lru_cache(maxsize=64)
def _text(form: tuple[Any, ...]) -> str:
    """Groups and their variables as JSON, as `cells_of` writes them."""
    return json.dumps(
        [
            [
                path,
                {"outcome": kind},
                [[name, axes, dict(notes), coordinate] for name, axes, notes, coordinate in noted],
            ]
            for path, kind, noted in form
        ]
    )
