"""Cost of an observation, estimated before it starts: bytes to read, peak memory, seconds."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from iclab.spectra.checkpoints.tensors import Tensor
from iclab.spectra.layouts import TensorPlan
from iclab.spectra.layouts.rules import TowerLayer
from iclab.spectra.observation.measurements import SLICES
from iclab.spectra.observation.selection import BALANCE, DISTANCES, OVERLAPS, Selection

__all__ = ["OVERHEAD", "ObservationCost", "cost", "memory_bound"]

OVERHEAD = 2**26  # bytes of memory in addition to four times the largest tensor
_HASHED = 2.5e8  # bytes a second that are hashed and squared, roughly
_CALL = 6e-4  # seconds of a circuit or matrix in addition to its arithmetic
_LEVELS = 0.15  # seconds to draw the null levels of one shape
_VALUES, _VECTORS, _ROTATION = 12, 6, 110  # operations over the cube of a size: values, few vectors, a Procrustes fit


@dataclass(frozen=True)
class ObservationCost:
    """Estimated cost: `memory` is a bound in addition to the libraries, `seconds` are those of an idle core."""

    checkpoints: int
    layers: int
    circuits: int  # of each checkpoint
    matrices: int  # whole matrices of each checkpoint
    nbytes: int  # to read
    memory: float
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.checkpoints} checkpoints, each with {self.circuits} circuits in {self.layers} layers and "
            f"{self.matrices} whole matrices: {_bytes(self.nbytes)} to read, at most {_bytes(self.memory)} "
            f"of memory, about {_seconds(self.seconds)} on one core"
        )


def cost(
    plan: TensorPlan,
    tensors: Iterable[Tensor],
    selection: Selection,
    checkpoints: int,
    layers: Iterable[TowerLayer],
) -> ObservationCost:
    """Cost of a series whose last checkpoint has this plan and these tensors."""
    read = list(tensors)
    nbytes = sum({tensor.storage or tensor.name: tensor.nbytes for tensor in read}.values())
    selected = set(layers)
    geometry, dim = plan.layout.geometry, plan.head_dim
    heads = geometry.heads if selection.heads is None else len(selection.heads)
    rotated = geometry.rotaries[0] is not None
    circuits = sum(layer in plan.layers for layer in selected) * heads * (3 if rotated else 2)
    matrices = [one for one in plan.matrices if (one.tower, one.layer) in selected]
    chosen = [one for one in matrices if _size(one.shape) <= selection.max_elements]
    width = _width(plan)
    overlaps, distances = (selection.any_of(group) for group in (OVERLAPS, DISTANCES))
    passes = 1 + 2 * overlaps + 3 * distances + selection.any_of(BALANCE)  # over the factors of a circuit
    cube = _VALUES + _VECTORS * overlaps + _ROTATION * distances
    work = circuits * (4 * passes * width * dim**2 + (cube + _VALUES * (passes - 1)) * dim**3)
    work += sum(2 * max(one.shape) * min(one.shape) ** 2 + cube * min(one.shape) ** 3 for one in chosen)
    calls = (circuits * passes + len(chosen) * (1 + overlaps + distances)) * _CALL
    each = work / _speed() + nbytes / _HASHED + calls
    shapes = len({one.shape for one in chosen}) + 3 * (circuits > 0)
    return ObservationCost(
        checkpoints, len(selected), circuits, len(chosen),
        checkpoints * nbytes * (2 if selection.of_subspaces else 1),
        _memory(read, chosen, selection), (checkpoints + selection.of_subspaces) * each + _LEVELS * shapes,
    )  # fmt: skip


def memory_bound(tensors: Iterable[Tensor]) -> float:
    """Bound on the memory of an observation of values alone: four times the largest tensor and 64 MiB."""
    return 4.0 * max((tensor.nbytes for tensor in tensors), default=0) + OVERHEAD


def _memory(tensors: list[Tensor], chosen: list, selection: Selection) -> float:
    if not selection.of_subspaces:
        return memory_bound(tensors)
    largest = max((8 * _size(one.shape) for one in chosen), default=0)
    return memory_bound(tensors) + SLICES + 6.0 * largest


def _width(plan: TensorPlan) -> int:
    """Longest side of attention tensors."""
    shapes = [match.tensor.shape for matches in plan.layers.values() for match in matches]
    return max((max(shape) for shape in shapes), default=0)


def _size(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def _speed() -> float:
    """Operations a second of this core, from the time of a symmetric eigenproblem."""
    rows = np.random.default_rng(0).standard_normal((160, 160))
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        np.linalg.eigvalsh(rows @ rows.T)
        best = min(best, time.perf_counter() - start)
    return (2 + 12) * 160**3 / best


def _bytes(count: int | float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"


def _seconds(count: float) -> str:
    if count < 90:
        return f"{max(count, 1):.0f} s"
    return f"{count / 60:.0f} min" if count < 5400 else f"{count / 3600:.1f} h"
