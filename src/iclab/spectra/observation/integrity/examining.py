"""Integrity of a series: checkpoints that are copied, mixed up, missing, out of order or not finite."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.observation.integrity.exchanges import exchanged
from iclab.spectra.observation.integrity.findings import Finding, Record, names_of, shown
from iclab.spectra.observation.integrity.forms import geometries, other_files
from iclab.spectra.observation.integrity.mixups import returns, swapped
from iclab.spectra.observation.integrity.resets import resets
from iclab.spectra.observation.integrity.samples import samples
from iclab.spectra.observation.trajectories import missing_steps, outliers

__all__ = ["Integrity", "examine"]

_EARLY = 1e-3  # fraction of the last step before which weights may be unchanged


@dataclass(frozen=True)
class Integrity:
    """Findings about a series, the worst first."""

    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> "Integrity":
        """Integrity with these findings in the order of their severity."""
        rank = {"error": 0, "warning": 1, "note": 2}
        return cls(tuple(sorted(findings, key=lambda finding: rank[finding.severity])))

    @property
    def broken(self) -> bool:
        """True where there is an error among them."""
        return any(finding.severity == "error" for finding in self.findings)


def examine(records: Sequence[Record], unread: Sequence[int] = ()) -> Integrity:
    """Integrity of a series of records in its order; `unread` steps do not count as missing."""
    distinct = list({record.digest: record for record in records}.values())
    matrices = list(samples(distinct))
    return Integrity.of(
        [
            *_order(records),
            *_misnamed(records),
            *_identical([record for record in records if record.contents]),
            *returns(distinct),
            *swapped(distinct),
            *exchanged(distinct, matrices),
            *resets(distinct, matrices),
            *_shapes(records),
            *_numbers(records),
            *_shards(records),
            *geometries(records),
            *other_files(records),
            *_gaps([*(record.step for record in records), *unread]),
            *_outliers(distinct),
            *_tied(records),
        ]
    )


def _order(records: Sequence[Record]) -> Iterable[Finding]:
    """Steps that occur twice, and steps that decrease."""
    by_step = defaultdict(list)
    for record in records:
        by_step[record.step].append(record.label)
    for step, labels in by_step.items():
        if len(labels) > 1:
            names = ", ".join(quoted(label) for label in labels)
            yield Finding("overlapping steps", "error", f"step {step} comes {len(labels)} times: {names}", (step,))
    back = [now.step for before, now in pairwise(records) if now.step < before.step]
    if back:
        listed = ", ".join(map(str, back))
        yield Finding("rewound steps", "error", f"the step goes back at {listed}: runs may overlap", tuple(back))
    for record in records:
        if record.noted not in (None, record.step):
            text = f"{quoted(record.label)} holds step {record.noted}, by its trainer: runs may overlap"
            yield Finding("rewound steps", "error", text, (record.step,))


def _misnamed(records: Sequence[Record]) -> Iterable[Finding]:
    """Names that state another step than their file; older trainers name a file by the step before."""
    for record in records:
        if record.named is not None and abs(record.named - record.step) > 1:
            text = f"{quoted(record.label)} is named for step {record.named}; it holds step {record.step}"
            yield Finding("misnamed checkpoints", "warning", text, (record.step,))


def _identical(records: Sequence[Record]) -> Iterable[Finding]:
    """Checkpoints that are copies of one another."""
    groups = defaultdict(list)
    for index, record in enumerate(records):
        groups[record.digest].append(index)
    final = max((record.step for record in records), default=0)
    for indices in groups.values():
        steps = tuple(records[index].step for index in indices)
        if len(indices) < 2:
            continue
        listed = ", ".join(map(str, steps))
        early = indices == list(range(len(indices))) and steps[-1] <= max(2, _EARLY * final) and len(groups) > 1
        if early:
            text = (
                f"steps {listed} are identical: the first updates may be rounded away or have learning rate zero, "
                "or one checkpoint is a copy of another"
            )
            yield Finding("identical checkpoints", "note", text, steps)
        else:
            last = " (the last one among them)" if len(records) - 1 in indices else ""
            text = f"steps {listed} are copies of one checkpoint{last}: flat curves there are no lack of learning"
            yield Finding("identical checkpoints", "error", text, steps)


def _shapes(records: Sequence[Record]) -> Iterable[Finding]:
    """Tensors that change their shape or type, and tensors that some checkpoints lack, with the steps that differ."""
    whole = [record for record in records if not record.missing]
    gone: dict[tuple[int, ...], list[str]] = defaultdict(list)
    retyped: dict[tuple[str, tuple[int, ...]], list[str]] = defaultdict(list)
    for name in names_of(records):
        held = [record for record in records if name in record.contents]
        shapes = sorted({record.contents[name].shape for record in held})
        types = sorted({record.contents[name].stored for record in held})
        if len(shapes) > 1:
            steps = _unusual([record.contents[name].shape for record in held], held)
            yield Finding("shape changes", "error", f"{quoted(name)} has shapes {shapes}", steps, (name,))
        elif len(types) > 1:
            steps = _unusual([record.contents[name].stored for record in held], held)
            retyped[", ".join(types), steps].append(name)
        absent = tuple(record.step for record in whole if name not in record.contents)
        if absent:
            gone[absent].append(name)
    for (types_shown, steps), names in retyped.items():
        text = f"{shown(names)} stored as {types_shown}; other than usual at steps {', '.join(map(str, steps))}"
        yield Finding("type changes", "warning", text, steps, tuple(names))
    for steps, names in gone.items():
        text = f"{shown(names)} absent at steps {', '.join(map(str, steps))}"
        yield Finding("absent tensors", "warning", text, steps, tuple(names))


def _unusual(values: Sequence[Hashable], records: Sequence[Record]) -> tuple[int, ...]:
    """Steps at which a value is not the most frequent one."""
    usual = Counter(values).most_common(1)[0][0]
    return tuple(record.step for record, value in zip(records, values, strict=True) if value != usual)


def _numbers(records: Sequence[Record]) -> Iterable[Finding]:
    """Entries that are not finite, and tensors of zeros."""
    zeros: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name in names_of(records):
        zero = tuple(record.step for record in records if name in record.contents and record.contents[name].zero)
        if zero and any(len(record.contents[name].shape) > 1 for record in records if name in record.contents):
            zeros[zero].append(name)
        broken = [record for record in records if name in record.contents and record.contents[name].nonfinite]
        if len(broken) > 1 and _constant(broken, records, name):
            text = f"{quoted(name)} holds infinities and never changes: it is read as a mask"
            yield Finding("constant infinities", "note", text, tensors=(name,))
        elif broken:
            one, steps = broken[0].contents[name], tuple(record.step for record in broken)
            text = f"{quoted(name)} holds {one.nonfinite} numbers that are not finite, first {one.first_nonfinite}"
            yield Finding("nonfinite", "error", f"{text} (step {steps[0]})", steps, (name,))
    for steps, names in zeros.items():
        text = f"{shown(names)} zero at steps {', '.join(map(str, steps))}"
        yield Finding("zero tensors", "warning", text, steps, tuple(names))


def _constant(broken: Sequence[Record], records: Sequence[Record], name: str) -> bool:
    """True where a tensor holds infinities alone beside finite numbers, the same in all of several other states."""
    same = {record.contents[name].digest for record in records if name in record.contents}
    states = {record.digest for record in records}
    return len(same) == 1 and len(states) > 1 and not any(record.contents[name].nans for record in broken)


def _shards(records: Sequence[Record]) -> Iterable[Finding]:
    """Shards that are missing, and tensors that an index promises and no shard holds."""
    for record in records:
        if record.absent:
            text = f"step {record.step} lacks what its index promises: {shown(record.absent)}"
            yield Finding("missing tensors", "error", text, (record.step,), record.absent)
        if record.misplaced:
            text = f"the index of step {record.step} points at shards that do not hold {shown(record.misplaced)}"
            yield Finding("misplaced tensors", "warning", text, (record.step,), record.misplaced)
        if record.missing:
            names = ", ".join(quoted(name) for name in record.missing)
            yield Finding("missing shards", "error", f"step {record.step} lacks {names}", (record.step,))


def _gaps(steps: Sequence[int]) -> Iterable[Finding]:
    absent = missing_steps(steps)
    if absent:
        shown = ", ".join(map(str, absent[:20])) + (f" and {len(absent) - 20} more" if len(absent) > 20 else "")
        text = f"steps {shown} would be expected from the others and are missing"
        yield Finding("missing steps", "warning", text, tuple(absent))


def _outliers(records: Sequence[Record]) -> Iterable[Finding]:
    """Steps at which norms of matrices are far outside the range of neighboring steps."""
    by_step: dict[int, list[str]] = defaultdict(list)
    for name in names_of(records):
        present = [record for record in records if name in record.contents and record.contents[name].many]
        norms = [record.contents[name].norm for record in present]
        for index in outliers([record.step for record in present], norms):
            by_step[present[index].step].append(name)
    for step, names in by_step.items():
        text = f"{shown(names)} at step {step} far outside the range of neighboring steps"
        yield Finding("outliers", "warning", text, (step,), tuple(names))


def _tied(records: Sequence[Record]) -> Iterable[Finding]:
    """Matrices that one checkpoint has under several names."""
    groups: set[tuple[str, ...]] = set()
    for record in records:
        names = defaultdict(list)
        for name, one in record.contents.items():
            if len(one.shape) > 1 and not one.zero:
                names[one.digest].append(name)
        groups |= {tuple(sorted(same)) for same in names.values() if len(same) > 1}
    for same in sorted(groups):
        text = f"{', '.join(quoted(name) for name in same)} are one matrix, counted once"
        yield Finding("tied tensors", "note", text, tensors=same)
