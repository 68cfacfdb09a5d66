"""Forms of a model: geometry and other files of the same weights, which must say the same at all steps."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from iclab.spectra.checkpoints.content import Content, sampled
from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.layouts.geometry import Geometry
from iclab.spectra.observation.integrity.findings import Finding, Record, shown

__all__ = ["Beside", "beside", "geometries", "other_files"]

_ROUNDING = 2.0**-6  # relative to the root mean square, between formats of as few as 8 bits of precision


@dataclass(frozen=True)
class Beside:
    """A file of the same weights beside the one that is read, and what it holds in another way."""

    read: str
    file: str
    differing: tuple[str, ...] = ()
    shared: int = 0
    reason: str = ""  # for which it is not compared


def beside(read: str, file: str, held: Mapping[str, Content], other: Mapping[str, Content]) -> Beside:
    """Comparison of two files of weights, tensor by tensor; formats may differ by rounding."""
    shared = [name for name in held if name in other]
    differing = tuple(name for name in shared if not _alike(held[name], other[name]))
    return Beside(read, file, differing, len(shared))


def other_files(records: Sequence[Record]) -> Iterator[Finding]:
    """The file that is read where there are several, and the steps at which the others hold other numbers."""
    steps: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    names: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for record in records:
        for one in record.beside:
            which = "differs" if one.differing else one.reason or ("same" if one.shared else "other names")
            steps[one.read, one.file, which].append(record.step)
            names[one.read, one.file] |= dict.fromkeys(one.differing)
    for (read, file, which), at in steps.items():
        text, listed = f"{quoted(read)} is read; {quoted(file)} beside it", ", ".join(map(str, at))
        whose = tuple(names[read, file])
        if which == "differs":
            text += f" holds other numbers at steps {listed}, in {shown(whose)}: keep the right one of the two"
            yield Finding("other weights", "warning", text, tuple(at), whose)
        else:
            said = {"same": "holds the same numbers", "other names": "holds no tensor of these names"}
            text += f" {said.get(which, f'is not compared: {which}')} (steps {listed})"
            yield Finding("other weights", "note", text, tuple(at))


def geometries(records: Sequence[Record]) -> Iterator[Finding]:
    """Entries of configs that differ along the series, although they decide what a head is."""
    known = [record for record in records if record.geometry is not None]
    for field in fields(Geometry):
        values = [_told(getattr(record.geometry, field.name)) for record in known]
        if len(set(values)) > 1:
            usual = Counter(values).most_common(1)[0][0]
            odd = {record.step: value for record, value in zip(known, values, strict=True) if value != usual}
            other = ", ".join(sorted(set(odd.values())))
            text = (
                f"{field.name} of the config is {_short(other)} at steps {', '.join(map(str, odd))} and "
                f"{_short(usual)} at the others: heads there are not those of one model. Give the right one with "
                "--config"
            )
            yield Finding("config changes", "error", text, tuple(odd))


def _alike(one: Content, other: Content) -> bool:
    """True for the same numbers, up to rounding where the types differ."""
    if one.digest == other.digest:
        return True
    if one.stored == other.stored or one.shape != other.shape or one.nonfinite or other.nonfinite:
        return False
    sizes = max(one.norm, other.norm)
    if abs(one.norm - other.norm) > _ROUNDING * sizes:
        return False
    if not one.sample or not other.sample:
        return True
    first, second = sampled(one.sample), sampled(other.sample)
    return bool(np.sqrt(np.mean((first - second) ** 2)) <= _ROUNDING * np.sqrt(np.mean(first**2)))


def _told(value: object) -> str:
    """A value as text, arrays by all their numbers."""
    with np.printoptions(threshold=10**6, precision=17):
        return repr(value)


def _short(text: str) -> str:
    return text if len(text) <= 40 else "another table"
