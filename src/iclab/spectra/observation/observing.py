"""Observation of a series of checkpoints: spectra of circuits and matrices, their null levels and their changes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from iclab.spectra.checkpoints import Checkpoint, Contents, Series
from iclab.spectra.checkpoints.content import Content
from iclab.spectra.checkpoints.ledger import Ledger, contents
from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.checkpoints.tensors import Tensor
from iclab.spectra.layouts import Layout, TensorPlan
from iclab.spectra.layouts.rules import TowerLayer
from iclab.spectra.measures.changes import change
from iclab.spectra.observation.conserved import of_balance
from iclab.spectra.observation.dynamics import ChangePoint, MatrixSeries, SpectralDynamics
from iclab.spectra.observation.integrity import Beside, Finding, Integrity, Record, beside, examine, record_of
from iclab.spectra.observation.integrity.continuity import continuity
from iclab.spectra.observation.measurements import Comparison, Measurement, of_heads, of_matrix
from iclab.spectra.observation.recording import Recorder
from iclab.spectra.observation.selection import BALANCE, DEFAULT, Selection, refuse_loose_keywords
from iclab.spectra.observation.surveying import Survey, survey

__all__ = ["Progress", "observe", "observed"]

Progress = Callable[[int, int], None]
"""Function of the number of parts of the work that are done, and of all."""
_STEPS = 8  # listed in a note
_HEADERS = 20_000  # tensors whose headers are kept from the first pass, about 1 kB each


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
    """Spectra of a series: circuits head by head and whole matrices, with integrity and changes.

    Circuits are QK at offset 0, QK averaged over offsets for rotary embeddings, and OV; the raw projections of
    attention are not measured alone, because they depend on a gauge. Entries that are not finite, zero matrices and
    unreadable checkpoints do not stop it: their rows have a status and a reason. See `Selection` for the measures and
    `observed` for the order of work.

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
    """Observation of a survey.

    Contents are hashed in the first pass, or taken from the ledger; values alone are computed in the same pass. For
    comparisons, the outer loop is over layers and the inner one over steps, so that memory holds only the bases of
    one layer of the final and of the previous checkpoint.
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
        self.notes: dict[str, list[int]] = {}  # with the steps that they are about
        self.plans: dict[tuple, TensorPlan] = {}  # one for each form of checkpoints
        self.forms: dict[int, tuple] = {}  # of each readable checkpoint
        self.headers: dict[int, Contents] = {}
        self.done = 0

    def first(self, index: int, checkpoint: Checkpoint, ledger: Ledger | None, rehash: bool) -> None:
        """Hash and plan a checkpoint, and measure it where nothing is compared."""
        try:
            opened = self.survey.opened(checkpoint)
            hashed = contents(opened) if ledger is None else ledger.contents(checkpoint, opened, rehash=rehash)
            plan = self.survey.planned(opened, hashed)
        except (ValueError, OSError, ImportError) as error:
            self._fail(index, checkpoint, error)
            return
        self.records.append(
            record_of(
                checkpoint, hashed, absent=opened.absent, misplaced=opened.misplaced, geometry=plan.layout.geometry,
                beside=[self._beside(checkpoint, one, hashed, ledger, rehash) for one in checkpoint.beside],
            )
        )  # fmt: skip
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

    def _beside(
        self, read: Checkpoint, other: Checkpoint, hashed: Mapping[str, Content], ledger: Ledger | None, rehash: bool
    ) -> Beside:
        """Comparison with other files of the same weights, or the reason for which there is none."""
        file = Path(other.label).name
        name = read.files[0].name if len(read.files) == 1 else f"{len(read.files)} shards"
        try:
            opened = self.survey.opened(other)
            held = contents(opened) if ledger is None else ledger.contents(other, opened, rehash=rehash)
        except (ValueError, OSError, ImportError) as error:
            return Beside(name, file, reason=str(error))
        return beside(name, file, hashed, held)

    def _keep(self, index: int, checkpoint: Checkpoint, opened: Contents) -> None:
        """Keep headers of files that map each tensor alone, and so hold no numbers, up to a limit."""
        mapped = all(file.suffix == ".safetensors" for file in checkpoint.files)
        if mapped and sum(len(one.tensors) for one in self.headers.values()) + len(opened.tensors) <= _HEADERS:
            self.headers[index] = opened

    def compare(self, layer: TowerLayer) -> None:
        """Measure one layer at all checkpoints, the final one first as the reference."""
        comparison = Comparison()
        for index in [*list(self.forms)[-1:], *self.forms]:
            self._of_layer(index, None, layer, comparison)
            if not comparison.learning:
                self._tick()
            comparison.learning = False

    def _of_layer(self, index: int, plan: TensorPlan | None, layer: TowerLayer, comparison: Comparison) -> None:
        """Measure one layer of a checkpoint; without its plan the checkpoint is opened again."""
        try:
            for measurement in self._measurements(plan or self._bound(index, layer), layer, comparison):
                if not comparison.learning:
                    self.recorder.add(index, measurement)
        except (ValueError, OSError) as error:  # its files have changed since the first pass
            self._fail(index, self.survey.series[index], error)

    def outcome(self) -> SpectralDynamics:
        """Result of all passes."""
        found = examine(self.records, [finding.steps[0] for finding in self.unread])
        steps = np.array(self.survey.series.steps)
        matrices = self.recorder.matrices()
        copies = {step for one in found.findings if one.kind.startswith("identical") for step in one.steps}
        breaks = continuity(steps, matrices, copies)
        told = [one for one in found.findings if not self._foreign(one, breaks)]
        integrity = Integrity.of([*self.unread, *told, *breaks])
        points, tested, notes = _change_points(steps, matrices)
        return SpectralDynamics(
            steps, tuple(one.label for one in self.survey.series), matrices, integrity,
            tuple(dict.fromkeys(self.skipped)), (*self._notes(), *notes), points, tested,
            family=self.survey.family, leading=self.survey.selection.leading,
            samples_per_step=self.survey.samples_per_step,
        )  # fmt: skip

    def _foreign(self, finding: Finding, breaks: Sequence[Finding]) -> bool:
        """True for most of the matrices of a checkpoint that is known as one of another run."""
        matrices = {name for record in self.records for name, one in record.contents.items() if one.sample}
        most = finding.kind == "reset tensors" and 2 * len(finding.tensors) > len(matrices)
        return most and any(one.steps[-1] in finding.steps for one in breaks)

    def _notes(self) -> Iterator[str]:
        """Notes, with the steps where one does not hold for all readable checkpoints."""
        for note, steps in self.notes.items():
            listed = ", ".join(map(str, steps[:_STEPS])) + (
                f" and {len(steps) - _STEPS} more" if steps[_STEPS:] else ""
            )
            yield note if len(steps) >= len(self.records) else f"{note} (at step {listed})"
        last = self.records[-1].step if self.records else None
        if self.survey.selection.of_subspaces and self.forms and len(self.survey.series) - 1 not in self.forms:
            yield f"the last checkpoint cannot be read: the final one that others are compared with is step {last}"

    def _bound(self, index: int, layer: TowerLayer) -> TensorPlan:
        """Plan of one layer of a checkpoint that is opened again, from the plan of another one of its form."""
        opened = self.headers.get(index) or self.survey.opened(self.survey.series[index])
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
    """Names, shapes and types of all analyzed tensors: plans of one form differ only in their numbers."""
    tensors = [match.tensor for matches in plan.layers.values() for match in matches]
    whole = [(one.name, one.tensor.shape, one.tensor.stored) for one in plan.matrices]
    return (*((one.name, one.shape, one.stored) for one in tensors), *whole)


def _change_points(
    steps: np.ndarray, matrices: Sequence[MatrixSeries]
) -> tuple[tuple[ChangePoint, ...], int, list[str]]:
    """Called changes, the number of curves tested against random walks, and notes."""
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
