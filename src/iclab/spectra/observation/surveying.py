"""Survey of an observation: layers, measures and cost, from names and shapes alone."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from iclab.numerics import require, whole_number
from iclab.spectra.checkpoints import Checkpoint, Contents, Series
from iclab.spectra.checkpoints.content import Content
from iclab.spectra.checkpoints.tensors import Tensor
from iclab.spectra.layouts import Layout, TensorPlan, planned
from iclab.spectra.layouts.canonical import canonical
from iclab.spectra.layouts.families import layout_of
from iclab.spectra.layouts.rules import TowerLayer
from iclab.spectra.observation.cost import ObservationCost, cost, memory_bound
from iclab.spectra.observation.selection import DEFAULT, Selection, refuse_loose_keywords

__all__ = ["Survey", "survey"]


@dataclass(frozen=True)
class Survey:
    """A planned observation: checkpoints, selection, layers and cost. No numbers are read yet."""

    series: Series
    layout: Layout | None
    base: Mapping[str, Tensor] | None
    selection: Selection
    layers: tuple[TowerLayer, ...]
    cost: ObservationCost
    budget: float  # bytes for the spectrum of one whole matrix; above it only leading values are computed
    family: str
    samples_per_step: float | None = None  # of the config of the last checkpoint
    names: frozenset[str] = frozenset()  # of the tensors of the last readable checkpoint

    def opened(self, checkpoint: Checkpoint) -> Contents:
        """Contents of a checkpoint under the names of the series."""
        return canonical(checkpoint.open(), self.names, family=self.family)

    def planned(self, opened: Contents, known: Mapping[str, Content] | None = None) -> TensorPlan:
        """Tensor plan of one checkpoint."""
        return planned(opened, self.layout, base=self.base, known=known)


def survey(
    series: Series,
    layout: Layout | None = None,
    *,
    selection: Selection = DEFAULT,
    base: Mapping[str, Tensor] | None = None,
    names: Collection[str] = (),
    **loose: object,
) -> Survey:
    """Survey of a series, from names and shapes of its last readable checkpoint.

    `base` has the tensors that adapters in the series change, `names` those of another run that it is compared with.

    Raises ValueError for a layer or head that does not exist, an unknown family and sizes that do not fit; TypeError
    for the loose keywords of version 0.1.0, with what to write instead.
    """
    refuse_loose_keywords("survey", loose)
    found = _last_open(series.checkpoints)
    family = (layout or layout_of(found.config)).family
    opened = canonical(found, names, family=family)
    plan = planned(opened, layout, base=base)
    tensors = _read(opened, plan, base or {})
    layers = _layers(plan, selection)
    _check_heads(plan, selection)
    _check_fold(plan, selection, layers)
    return Survey(
        series,
        layout,
        base,
        selection,
        layers,
        cost(plan, tensors, selection, len(series), layers),
        memory_bound(tensors),
        plan.layout.family,
        _samples(opened),
        frozenset(opened.tensors),
    )


def _last_open(checkpoints: Sequence[Checkpoint]) -> Contents:
    """Contents of the last readable checkpoint. Raises the error of the last one where none is readable."""
    failure: Exception | None = None
    for checkpoint in reversed(checkpoints):
        try:
            return checkpoint.open()
        except (ValueError, OSError, ImportError) as error:
            failure = failure or error
    raise failure or ValueError("series must not be empty.")


def _read(opened: Contents, plan: TensorPlan, base: Mapping[str, Tensor]) -> list[Tensor]:
    """All tensors that are read for one checkpoint, those changed by adapters in both forms."""
    matches = [match.tensor for layer in plan.layers.values() for match in layer]
    made = {one.name: one for one in (*matches, *(matrix.tensor for matrix in plan.matrices))}
    return [*opened.tensors.values(), *({**base, **made} if opened.adapter is not None else {}).values()]


def _layers(plan: TensorPlan, selection: Selection) -> tuple[TowerLayer, ...]:
    """The selected layers of all towers, in order."""
    every = sorted(set(plan.layers) | {(one.tower, one.layer) for one in plan.matrices})
    numbers = sorted({layer for _, layer in every})
    chosen = selection.layers
    absent = sorted(set(chosen or ()) - set(numbers))
    require(not absent, f"layers must be among {_listed(numbers)}; got {', '.join(map(str, absent))}.")
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
        f"fold needs the input norm of attention; layer {bare[0][1] if bare else ''} has none that is known. "
        "Leave fold out.",
    )


def _normed(plan: TensorPlan, layer: TowerLayer) -> bool:
    return any(match.rule.role == "norm" for match in plan.layers[layer])


def _samples(opened: Contents) -> float | None:
    """Samples of one step, from the config."""
    samples = opened.config.get("samples_per_step")
    if isinstance(samples, int | float) and not isinstance(samples, bool) and samples > 0:
        return float(samples)
    return None


def _listed(numbers: Sequence[int]) -> str:
    whole = list(numbers) == list(range(len(numbers))) and len(numbers) > 2
    return f"0 … {numbers[-1]}" if whole else ", ".join(map(str, numbers)) or "none"
