"""Whether a series of checkpoints is what its names say, before any curve is drawn from it."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from iclab.spectra.checkpoints.content import Content
from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.checkpoints.series import Checkpoint
from iclab.spectra.observation.trajectories import missing_steps, outliers

Severity = Literal["error", "warning", "note"]
_EARLY = 1e-3  # of the last step: until then nothing may have changed yet


@dataclass(frozen=True)
class Record:
    """One checkpoint in brief: its step, its name and the content of each of its tensors."""

    step: int
    label: str
    contents: Mapping[str, Content]
    missing: tuple[str, ...] = ()  # shards that are not there
    noted: int | None = None  # the step that its trainer noted in it

    @property
    def digest(self) -> str:
        """The hash of the whole checkpoint: of names and contents."""
        text = "\n".join(f"{name} {one.digest}" for name, one in sorted(self.contents.items()))
        return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Finding:
    """One thing to know before the curves are read. Errors make the series one that cannot be trusted."""

    kind: str
    severity: Severity
    message: str
    steps: tuple[int, ...] = ()
    tensors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Integrity:
    """All findings, the worst first."""

    findings: tuple[Finding, ...]

    @property
    def broken(self) -> bool:
        """Whether there is an error among them."""
        return any(finding.severity == "error" for finding in self.findings)


def record_of(checkpoint: Checkpoint, contents: Mapping[str, Content]) -> Record:
    """The record of a checkpoint whose contents are known."""
    return Record(checkpoint.step, checkpoint.label, contents, checkpoint.missing, checkpoint.noted)


def examine(records: Sequence[Record], unread: Sequence[int] = ()) -> Integrity:
    """What the contents of a series, in the order given, say of it; those `unread` are not missing."""
    distinct = list({record.digest: record for record in records}.values())
    findings = [
        *_order(records),
        *_identical(records),
        *_returns(distinct),
        *_swapped(distinct),
        *_shapes(records),
        *_numbers(records),
        *_shards(records),
        *_gaps([*(record.step for record in records), *unread]),
        *_outliers(distinct),
        *_tied(records),
    ]
    rank = {"error": 0, "warning": 1, "note": 2}
    return Integrity(tuple(sorted(findings, key=lambda finding: rank[finding.severity])))


def _order(records: Sequence[Record]) -> Iterable[Finding]:
    """Steps that come twice, and steps that go back."""
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
            text = f"{quoted(record.label)} holds step {record.noted}, says its trainer: runs may overlap"
            yield Finding("rewound steps", "error", text, (record.step,))


def _identical(records: Sequence[Record]) -> Iterable[Finding]:
    """Checkpoints that are copies of each other."""
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
                f"steps {listed} are identical: the first updates may have been rounded away or had the rate zero, "
                "or one checkpoint is a copy of another"
            )
            yield Finding("identical checkpoints", "note", text, steps)
        else:
            last = " (the last one among them)" if len(records) - 1 in indices else ""
            text = f"steps {listed} are copies of one checkpoint{last}; a flat curve over them is no lack of learning"
            yield Finding("identical checkpoints", "error", text, steps)


def _returns(records: Sequence[Record]) -> Iterable[Finding]:
    """Tensors that do not change while others do, and tensors that come back after they had changed."""
    groups: dict[tuple[tuple[int, ...], bool], list[str]] = defaultdict(list)
    for name in _names(records):
        by_digest = defaultdict(list)
        for index, record in enumerate(records):
            if name in record.contents and not record.contents[name].zero:
                by_digest[record.contents[name].digest].append(index)
        for indices in by_digest.values():
            if len(indices) > 1:
                apart = indices[-1] - indices[0] >= len(indices)
                groups[tuple(indices), apart].append(name)
    for (indices, apart), names in groups.items():
        steps = tuple(records[index].step for index in indices)
        listed, shown = ", ".join(map(str, steps)), _shown(names)
        if apart:
            text = f"{shown} had changed between steps {listed}, where they are identical again: a file was mixed up"
            yield Finding("identical tensors", "error", text, steps, tuple(names))
        elif len(indices) == len(records):
            yield Finding("frozen tensors", "note", f"{shown} never changed", steps, tuple(names))
        else:
            yield Finding(
                "identical tensors", "warning", f"{shown} did not change at steps {listed}", steps, tuple(names)
            )


def _swapped(records: Sequence[Record]) -> Iterable[Finding]:
    """Tensors that stand under each other's name at the next step."""
    for before, now in pairwise(records):
        owners = [_owners(record) for record in (before, now)]
        for name, one in now.contents.items():
            other = owners[0].get(one.digest)
            if other is None or other == name or owners[1].get(one.digest) != name:
                continue
            back = now.contents.get(other)
            if back is None or owners[0].get(back.digest) != name:
                text = f"{quoted(name)} of step {now.step} is {quoted(other)} of step {before.step}"
                yield Finding("swapped tensors", "error", text, (before.step, now.step), (name, other))
            elif name < other:
                text = f"{quoted(name)} and {quoted(other)} change places between steps {before.step} and {now.step}"
                yield Finding("swapped tensors", "error", text, (before.step, now.step), (name, other))


def _owners(record: Record) -> dict[str, str]:
    """The name of each content that has one name only."""
    names = defaultdict(list)
    for name, one in record.contents.items():
        names[one.digest].append(name)
    return {digest: owners[0] for digest, owners in names.items() if len(owners) == 1}


def _shapes(records: Sequence[Record]) -> Iterable[Finding]:
    """Tensors that change their shape or type, and tensors that come and go."""
    whole = [record for record in records if not record.missing]
    gone: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name in _names(records):
        kinds = {
            (record.contents[name].shape, record.contents[name].stored)
            for record in records
            if name in record.contents
        }
        shapes = sorted({shape for shape, _ in kinds})
        if len(shapes) > 1:
            yield Finding("shape changes", "error", f"{quoted(name)} has shapes {shapes}", tensors=(name,))
        elif len(kinds) > 1:
            types = ", ".join(sorted(stored for _, stored in kinds))
            yield Finding("type changes", "warning", f"{quoted(name)} is stored as {types}", tensors=(name,))
        absent = tuple(record.step for record in whole if name not in record.contents)
        if absent:
            gone[absent].append(name)
    for steps, names in gone.items():
        text = f"{_shown(names)} not there at steps {', '.join(map(str, steps))}"
        yield Finding("absent tensors", "warning", text, steps, tuple(names))


def _numbers(records: Sequence[Record]) -> Iterable[Finding]:
    """Numbers that are not finite, and tensors of zeros."""
    zeros: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name in _names(records):
        zero = tuple(record.step for record in records if name in record.contents and record.contents[name].zero)
        if zero and any(len(record.contents[name].shape) > 1 for record in records if name in record.contents):
            zeros[zero].append(name)
        broken = [record for record in records if name in record.contents and record.contents[name].nonfinite]
        if broken:
            one, steps = broken[0].contents[name], tuple(record.step for record in broken)
            text = f"{quoted(name)} holds {one.nonfinite} numbers that are not finite, first {one.first_nonfinite}"
            yield Finding("nonfinite", "error", f"{text} (step {steps[0]})", steps, (name,))
    for steps, names in zeros.items():
        text = f"{_shown(names)} zero at steps {', '.join(map(str, steps))}"
        yield Finding("zero tensors", "warning", text, steps, tuple(names))


def _shards(records: Sequence[Record]) -> Iterable[Finding]:
    for record in records:
        if record.missing:
            names = ", ".join(quoted(name) for name in record.missing)
            yield Finding("missing shards", "error", f"step {record.step} lacks {names}", (record.step,))


def _gaps(steps: Sequence[int]) -> Iterable[Finding]:
    absent = missing_steps(steps)
    if absent:
        shown = ", ".join(map(str, absent[:20])) + (f" and {len(absent) - 20} more" if len(absent) > 20 else "")
        text = f"steps {shown} would be expected from the others and are not there"
        yield Finding("missing steps", "warning", text, tuple(absent))


def _outliers(records: Sequence[Record]) -> Iterable[Finding]:
    """Steps at which norms leave the line between their neighbours."""
    by_step: dict[int, list[str]] = defaultdict(list)
    for name in _names(records):
        there = [record for record in records if name in record.contents]
        norms = [record.contents[name].norm for record in there]
        for index in outliers([record.step for record in there], norms):
            by_step[there[index].step].append(name)
    for step, names in by_step.items():
        text = f"{_shown(names)} at step {step} far off the line between the steps around it"
        yield Finding("outliers", "warning", text, (step,), tuple(names))


def _tied(records: Sequence[Record]) -> Iterable[Finding]:
    """Matrices that one checkpoint holds under several names."""
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


def _names(records: Sequence[Record]) -> list[str]:
    """Every tensor's name, in the order in which they come."""
    return list(dict.fromkeys(name for record in records for name in record.contents))


def _shown(names: Sequence[str]) -> str:
    listed = ", ".join(quoted(name) for name in names[:3])
    return listed if len(names) <= 3 else f"{listed} and {len(names) - 3} more tensors"
