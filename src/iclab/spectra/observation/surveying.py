"""What is to be observed, settled from names and shapes before any number is read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from iclab.numerics import require, whole_number
from iclab.spectra.checkpoints import Checkpoint, Contents, Series
from iclab.spectra.checkpoints.content import Content
from iclab.spectra.checkpoints.tensors import Tensor
from iclab.spectra.layouts import Layout, TensorPlan, planned
from iclab.spectra.layouts.rules import TowerLayer
from iclab.spectra.observation.cost import ObservationCost, cost, promised
from iclab.spectra.observation.selection import DEFAULT, Selection, refuse_loose_keywords


@dataclass(frozen=True)
class Survey:
    """What is to be observed: checkpoints, measures, layers, and what that costs. Nothing of it is read yet."""

    series: Series
    layout: Layout | None
    base: Mapping[str, Tensor] | None
    selection: Selection
    layers: tuple[TowerLayer, ...]
    cost: ObservationCost
    budget: float  # bytes that the values of one whole matrix may take; beyond it only leading ones are found
    family: str
    samples_per_step: float | None = None  # as the config of the last checkpoint says

    def planned(self, opened: Contents, known: Mapping[str, Content] | None = None) -> TensorPlan:
        """The plan of one checkpoint."""
        return planned(opened, self.layout, base=self.base, known=known)


def survey(
    series: Series,
    layout: Layout | None = None,
    *,
    selection: Selection = DEFAULT,
    base: Mapping[str, Tensor] | None = None,
    **loose: object,
) -> Survey:
    """The plan of an observation and its cost, from names and shapes of the last readable checkpoint.

    `base` has the tensors that adapters in the series change.

    Raises ValueError for a layer or head that is not there, for a family that is not known and for sizes that do not
    fit; TypeError for the loose keywords of version 0.1.0, with what to write instead.
    """
    refuse_loose_keywords("survey", loose)
    opened = _last_open(series.checkpoints)
    plan = planned(opened, layout, base=base)
    tensors = _read(opened, plan, base or {})
    layers = _layers(plan, selection)
    _check_heads(plan, selection)
    _check_fold(plan, selection, layers)
    expected = cost(plan, tensors, selection, len(series), layers)
    return Survey(
        series, layout, base, selection, layers, expected, promised(tensors), plan.layout.family, _samples(opened)
    )


def _last_open(checkpoints: Sequence[Checkpoint]) -> Contents:
    """The last checkpoint that can be opened. Raises what the last one raises where none can."""
    complaint: Exception | None = None
    for checkpoint in reversed(checkpoints):
        try:
            return checkpoint.open()
        except (ValueError, OSError) as error:
            complaint = complaint or error
    raise complaint or ValueError("series must not be empty.")


def _read(opened: Contents, plan: TensorPlan, base: Mapping[str, Tensor]) -> list[Tensor]:
    """All tensors that are read for one checkpoint, those that adapters change with what they change to."""
    matches = [match.tensor for layer in plan.layers.values() for match in layer]
    made = {one.name: one for one in (*matches, *(matrix.tensor for matrix in plan.matrices))}
    return [*opened.tensors.values(), *({**base, **made} if opened.adapter is not None else {}).values()]


def _layers(plan: TensorPlan, selection: Selection) -> tuple[TowerLayer, ...]:
    """The selected layers of all towers, in order."""
    every = sorted(set(plan.layers) | {(one.tower, one.layer) for one in plan.matrices})
    there = sorted({layer for _, layer in every})
    chosen = selection.layers
    absent = sorted(set(chosen or ()) - set(there))
    require(not absent, f"layers must be among {_listed(there)}; got {', '.join(map(str, absent))}.")
    return tuple(layer for layer in every if chosen is None or layer[1] in chosen)


def _check_heads(plan: TensorPlan, selection: Selection) -> None:
    count = plan.layout.geometry.heads
    for head in selection.heads or ():
        whole_number("heads", head, least=-1)
    wrong = [head for head in selection.heads or () if not 0 <= head < count]
    require(not wrong, f"heads must be from 0 to {count - 1}; got {', '.join(map(str, wrong))}.")


def _check_fold(plan: TensorPlan, selection: Selection, layers: Iterable[TowerLayer]) -> None:
    bare = [layer for layer in layers if layer in plan.layers and selection.fold and not _normed(plan, layer)]
    require(
        not bare,
        f"fold needs the norm in front of attention; layer {bare[0][1] if bare else ''} has none that is known. "
        "Leave fold out.",
    )


def _normed(plan: TensorPlan, layer: TowerLayer) -> bool:
    return any(match.rule.role == "norm" for match in plan.layers[layer])


def _samples(opened: Contents) -> float | None:
    """What the config says of the samples of one step."""
    said = opened.config.get("samples_per_step")
    return float(said) if isinstance(said, int | float) and not isinstance(said, bool) and said > 0 else None


def _listed(numbers: Sequence[int]) -> str:
    whole = list(numbers) == list(range(len(numbers))) and len(numbers) > 2
    return f"0 … {numbers[-1]}" if whole else ", ".join(map(str, numbers)) or "none"
