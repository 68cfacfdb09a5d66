"""Mix-ups of files: tensors that take an earlier value again, and tensors under each other's name."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.observation.integrity.findings import Finding, Record, names_of, shown

__all__ = ["returns", "swapped"]


def returns(records: Sequence[Record]) -> Iterator[Finding]:
    """Tensors that do not change while others do, and tensors that return to an earlier value.

    A return is a mix-up only where a matrix of many numbers returns: scalars and vectors of few bits flicker.
    """
    for (indices, apart), names in _repeated(records).items():
        steps = tuple(records[index].step for index in indices)
        listed, whose = ", ".join(map(str, steps)), shown(names)
        many = any(records[indices[0]].contents[name].many for name in names)
        if len(indices) == len(records):
            yield Finding("frozen tensors", "note", f"{whose} never changed", steps, tuple(names))
        elif apart and many:
            text = f"{whose} are identical at steps {listed} {_between(records, indices)}: a file was mixed up"
            yield Finding("identical tensors", "error", text, steps, tuple(names))
        elif apart:
            text = f"{whose} take earlier values again at steps {listed}, as few or coarse numbers do"
            yield Finding("repeated values", "note", text, steps, tuple(names))
        else:
            text = f"{whose} did not change at steps {listed}{_after(records, indices)}"
            yield Finding("identical tensors", "warning" if many else "note", text, steps, tuple(names))


def _between(records: Sequence[Record], indices: Sequence[int]) -> str:
    """The steps at which such tensors are not the same, where they are fewer than the others."""
    apart = [records[index].step for index in range(indices[0], indices[-1] + 1) if index not in indices]
    few = len(apart) < len(indices)
    return f"and not at {', '.join(map(str, apart))} in between" if few else "but changed in between"


def _after(records: Sequence[Record], indices: Sequence[int]) -> str:
    """The steps at which such tensors are others, where they are fewer."""
    other = [record.step for index, record in enumerate(records) if index not in indices]
    return f"; they are others at {', '.join(map(str, other))}" if len(other) < len(indices) else ""


def _repeated(records: Sequence[Record]) -> Mapping[tuple[tuple[int, ...], bool], list[str]]:
    """Names of tensors by the records in which they are the same, apart where they changed in between.

    Tensors of few and of many numbers are groups of their own. A step that stores other types is no change: a cast
    gives other digests to the same weights.
    """
    groups: dict[tuple[tuple[int, ...], bool], list[str]] = defaultdict(list)
    for name in names_of(records):
        by_digest = defaultdict(list)
        for index, record in enumerate(records):
            if name in record.contents and not record.contents[name].zero:
                by_digest[record.contents[name].digest].append(index)
        for indices in by_digest.values():
            if len(indices) > 1:
                stored = records[indices[0]].contents[name].stored
                contents = ((index, record.contents.get(name)) for index, record in enumerate(records))
                held = [index for index, one in contents if one is not None and one.stored == stored]
                between = [index for index in held if indices[0] <= index <= indices[-1]]
                groups[tuple(indices), len(between) > len(indices)].append(name)
    return groups


def swapped(records: Sequence[Record]) -> Iterable[Finding]:
    """Tensors that have each other's name at the next step."""
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
                text = f"{quoted(name)} and {quoted(other)} are swapped between steps {before.step} and {now.step}"
                yield Finding("swapped tensors", "error", text, (before.step, now.step), (name, other))


def _owners(record: Record) -> dict[str, str]:
    """Name of each content of many numbers that has one name only."""
    names = defaultdict(list)
    for name, one in record.contents.items():
        if one.many:
            names[one.digest].append(name)
    return {digest: owners[0] for digest, owners in names.items() if len(owners) == 1}
