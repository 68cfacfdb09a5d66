"""Observation: a series of checkpoints → the spectra of its circuits and matrices, their levels and their changes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from iclab.spectra.checkpoints import Checkpoint, Contents, Series
from iclab.spectra.checkpoints.ledger import Ledger, contents
from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.checkpoints.tensors import Tensor
from iclab.spectra.layouts import Layout, TensorPlan
from iclab.spectra.layouts.rules import TowerLayer
from iclab.spectra.measures.changes import change
from iclab.spectra.observation.conserved import of_balance
from iclab.spectra.observation.dynamics import ChangePoint, MatrixSeries, SpectralDynamics
from iclab.spectra.observation.integrity import Finding, Integrity, Record, examine, record_of
from iclab.spectra.observation.measurements import Comparison, Measurement, of_heads, of_matrix
from iclab.spectra.observation.recording import Recorder
from iclab.spectra.observation.selection import BALANCE, DEFAULT, Selection, refuse_loose_keywords
from iclab.spectra.observation.surveying import Survey, survey

Progress = Callable[[int, int], None]
"""Is told how many parts of the work are done, and how many there are."""
_STEPS = 8  # that a note lists
_HEADERS = 20_000  # tensors whose headers are kept from the first pass, about a kilobyte each


def observe(
    series: Series,
    layout: Layout | None = None,
    *,
    selection: Selection = DEFAULT,
    base: Mapping[str, Tensor] | None = None,
    ledger: Ledger | None = None,
    rehash: bool = False,
    progress: Progress = lambda done, total: None,
    **loose: object,
) -> SpectralDynamics:
    """The spectra of a series: circuits head by head, whole matrices, integrity first, changes last.

    Circuits are QK at offset 0, QK averaged over offsets where positions turn queries and keys, and OV; the raw
    projections of attention are not measured alone, for they change under a gauge that changes nothing. Numbers
    that are not finite, zero matrices and checkpoints that cannot be read stop nothing: their rows say so. See
    `Selection` for what can be measured, and `observed` for the order of work.

    Raises ValueError and TypeError as `survey` does.
    """
    refuse_loose_keywords("observe", loose)
    settled = survey(series, layout, selection=selection, base=base)
    return observed(settled, ledger=ledger, rehash=rehash, progress=progress)


def observed(
    survey: Survey,
    *,
    ledger: Ledger | None = None,
    rehash: bool = False,
    progress: Progress = lambda done, total: None,
) -> SpectralDynamics:
    """The observation of a survey.

    Contents are hashed in the first pass, or taken from the ledger; values alone are found in the same pass. Where
    matrices are compared, layers come one after the other and the steps of each within, so that the bases of one
    layer of the final and of the previous checkpoint are all that is held.
    """
    checkpoints = survey.series.checkpoints
    recorder = Recorder(len(checkpoints), survey.selection)
    passes = _Passes(survey, recorder, progress)
    for index, checkpoint in enumerate(checkpoints):
        passes.first(index, checkpoint, ledger, rehash)
    if survey.selection.of_subspaces:
        for layer in survey.layers:
            passes.compare(layer)
    return passes.outcome()


class _Passes:
    """The state of an observation under way."""

    def __init__(self, survey: Survey, recorder: Recorder, progress: Progress) -> None:
        self.survey, self.recorder, self.progress = survey, recorder, progress
        self.records: list[Record] = []
        self.unread: list[Finding] = []
        self.skipped = list(survey.series.skipped)
        self.notes: dict[str, list[int]] = {}  # and the steps of which they were said
        self.plans: dict[tuple, TensorPlan] = {}  # one for each form that checkpoints have
        self.forms: dict[int, tuple] = {}  # of each checkpoint that could be read
        self.headers: dict[int, Contents] = {}
        self.done = 0

    def first(self, index: int, checkpoint: Checkpoint, ledger: Ledger | None, rehash: bool) -> None:
        """Hash and plan a checkpoint, and take its values where nothing is compared."""
        try:
            opened = checkpoint.open()
            known = contents(opened) if ledger is None else ledger.contents(checkpoint, opened, rehash=rehash)
            plan = self.survey.planned(opened, known)
        except (ValueError, OSError) as error:
            self._fail(index, checkpoint, error)
            return
        self.records.append(record_of(checkpoint, known))
        self.skipped += plan.skipped
        for note in (*plan.notes, *(f"{quoted(a)} and {quoted(b)} are one matrix" for a, b in plan.aliases)):
            self.notes.setdefault(note, []).append(checkpoint.step)
        form = _form(plan)
        self.forms[index] = next((one for one in self.plans if one == form), form)
        self.plans.setdefault(form, plan)
        self._keep(index, checkpoint, opened)
        if not self.survey.selection.of_subspaces:
            for layer in self.survey.layers:
                self._of_layer(index, plan, layer, Comparison(learning=False))
        self._tick()

    def _keep(self, index: int, checkpoint: Checkpoint, opened: Contents) -> None:
        """Headers of files that map each tensor alone, and so hold no numbers, while they are not too many."""
        mapped = all(file.suffix == ".safetensors" for file in checkpoint.files)
        if mapped and sum(len(one.tensors) for one in self.headers.values()) + len(opened.tensors) <= _HEADERS:
            self.headers[index] = opened

    def compare(self, layer: TowerLayer) -> None:
        """The measurements of one layer at all checkpoints, the final one first to be compared with."""
        comparison = Comparison()
        for index in [*list(self.forms)[-1:], *self.forms]:
            self._of_layer(index, None, layer, comparison)
            if not comparison.learning:
                self._tick()
            comparison.learning = False

    def _of_layer(self, index: int, plan: TensorPlan | None, layer: TowerLayer, comparison: Comparison) -> None:
        """The measurements of one layer of a checkpoint; without its plan it is opened anew."""
        try:
            for measurement in self._measurements(plan or self._bound(index, layer), layer, comparison):
                if not comparison.learning:
                    self.recorder.add(index, measurement)
        except (ValueError, OSError) as error:  # its files were changed since the first pass
            self._fail(index, self.survey.series[index], error)

    def outcome(self) -> SpectralDynamics:
        """What was seen."""
        found = examine(self.records, [finding.steps[0] for finding in self.unread])
        integrity = Integrity((*self.unread, *found.findings))
        steps = np.array(self.survey.series.steps)
        matrices = self.recorder.matrices()
        points, tested, said = _change_points(steps, matrices)
        return SpectralDynamics(
            steps, tuple(one.label for one in self.survey.series), matrices, integrity,
            tuple(dict.fromkeys(self.skipped)), (*self._notes(), *said), points, tested,
            family=self.survey.family, leading=self.survey.selection.leading,
            samples_per_step=self.survey.samples_per_step,
        )  # fmt: skip

    def _notes(self) -> Iterator[str]:
        """What there is to say, with the steps where it does not hold of all that could be read."""
        for note, steps in self.notes.items():
            shown = ", ".join(map(str, steps[:_STEPS])) + (
                f" and {len(steps) - _STEPS} more" if steps[_STEPS:] else ""
            )
            yield note if len(steps) >= len(self.records) else f"{note} (at step {shown})"
        last = self.records[-1].step if self.records else None
        if self.survey.selection.of_subspaces and self.forms and len(self.survey.series) - 1 not in self.forms:
            yield f"the last checkpoint cannot be read: the final one that others are compared with is step {last}"

    def _bound(self, index: int, layer: TowerLayer) -> TensorPlan:
        """The plan of one layer of a checkpoint, opened anew, by the plan of another one of its form."""
        opened = self.headers.get(index) or self.survey.series[index].open()
        form = self.plans[self.forms[index]]
        chosen = {layer: form.layers[layer]} if layer in form.layers else {}
        matrices = [one for one in form.matrices if (one.tower, one.layer) == layer]
        names = [m.tensor.name for m in chosen.get(layer, ())] + [one.tensor.name for one in matrices]
        if opened.adapter is not None or self.survey.base is not None or any(n not in opened.tensors for n in names):
            return self.survey.planned(opened)
        attention = (
            {layer: tuple(replace(m, tensor=opened.tensors[m.tensor.name]) for m in chosen[layer])} if chosen else {}
        )
        whole = tuple(replace(one, tensor=opened.tensors[one.tensor.name]) for one in matrices)
        return replace(form, layers=attention, matrices=whole)

    def _measurements(self, plan: TensorPlan, layer: TowerLayer, comparison: Comparison) -> Iterator[Measurement]:
        selection = self.survey.selection
        if layer in plan.layers:
            weights = plan.attention(*layer)
            if selection.of_circuits:
                yield from of_heads(weights, *layer, selection, comparison)
            if selection.any_of(BALANCE) and not comparison.learning:
                yield from of_balance(weights, *layer, selection, comparison)
        for matrix in plan.matrices if selection.of_circuits else ():
            embedding = matrix.role in ("embed", "unembed")
            if (matrix.tower, matrix.layer) == layer and not (embedding and selection.layers is not None):
                yield of_matrix(matrix, selection, comparison, budget=self.survey.budget)

    def _fail(self, index: int, checkpoint: Checkpoint, error: Exception) -> None:
        if index in self.recorder.unread:
            return
        self.recorder.unread[index] = f"the checkpoint cannot be read: {error}"
        text = f"{quoted(checkpoint.label)} (step {checkpoint.step}) cannot be read: {error}"
        self.unread.append(Finding("unread checkpoints", "error", text, (checkpoint.step,)))

    def _tick(self) -> None:
        self.done += 1
        total = len(self.survey.series) * (1 + len(self.survey.layers) * self.survey.selection.of_subspaces)
        self.progress(min(self.done, total), total)


def _form(plan: TensorPlan) -> tuple:
    """Names, shapes and types of all that is analysed: plans of one form differ only in their numbers."""
    tensors = [match.tensor for matches in plan.layers.values() for match in matches]
    whole = [(one.name, one.tensor.shape, one.tensor.stored) for one in plan.matrices]
    return (*((one.name, one.shape, one.stored) for one in tensors), *whole)


def _change_points(
    steps: np.ndarray, matrices: Sequence[MatrixSeries]
) -> tuple[tuple[ChangePoint, ...], int, list[str]]:
    """The changes that are called, how many curves were held against walks, and what there is to say."""
    if np.any(np.diff(steps) <= 0):
        return (), 0, ["no change points: steps do not increase"]
    found, tested = [], 0
    for series in matrices:
        kept = np.array([status == "ok" for status in series.status])
        for measure, curve in series.curves.items():
            one = change(steps, np.where(kept, curve.values, np.nan))
            tested += not one.reason
            if one.called:
                found.append(ChangePoint(series, measure, one))
    return tuple(found), tested, []
