"""`iclab inspect`: its order of work and its exit codes."""

import hashlib
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from iclab.commands.summary import print_summary
from iclab.commands.terminal import fail, note, progress, writable
from iclab.files import written_whole
from iclab.inspection import behavior, tables
from iclab.inspection.document import document
from iclab.inspection.flags import Inspect
from iclab.inspection.page import page
from iclab.numerics import require
from iclab.spectra import checkpoints, layouts
from iclab.spectra.checkpoints import Contents
from iclab.spectra.checkpoints.ledger import Ledger
from iclab.spectra.checkpoints.names import quoted, terminal
from iclab.spectra.checkpoints.paths import json_file
from iclab.spectra.layouts import Layout
from iclab.spectra.observation.dynamics import SpectralDynamics
from iclab.spectra.observation.observing import observed
from iclab.spectra.observation.selection import LARGEST, Selection
from iclab.spectra.observation.surveying import Survey, survey

__all__ = ["inspect"]


def inspect(flags: Inspect) -> int:
    """Observe, write and print. Returns the exit code."""
    if flags.parquet:
        tables.require_parquet()
    joinable = None if flags.behavior is None else behavior.read(flags.behavior)
    paths = {"this": flags.path} | ({} if flags.against is None else {"against": flags.against})
    selection = _selection(flags)
    surveys: dict[str, Survey] = {}
    for name, path in paths.items():
        of_first = surveys["this"].names if surveys else frozenset()
        surveys[name] = _surveyed(path, flags, selection, of_first)
    samples = _samples(flags, surveys)
    out = writable(flags.out)
    for name, one in surveys.items():
        note(f"{'' if len(surveys) == 1 else f'{name}: '}{one.cost}")
    runs = {}
    for (name, one), count in zip(surveys.items(), samples, strict=True):
        dynamics = _observed(one, _ledger(out, paths[name]), flags.rehash, name)
        runs[name] = replace(dynamics, samples_per_step=count)
    joined = None if joinable is None else behavior.joined(joinable, runs["this"].steps.tolist())
    content = document(runs, surveys, joined, paths=paths if flags.with_paths else None)
    written = _write(out, content, runs, joined, flags)
    if flags.json:
        tables.stream_json(sys.stdout, content, runs)
    else:
        print_summary(runs, joined)
        for file in written:
            print(f"{file.suffix[1:]}: {file}")
    return _code(runs, flags)


def _surveyed(path: Path, flags: Inspect, selection: Selection, names: Collection[str]) -> Survey:
    series = checkpoints.read(path, every=flags.every, allow_partial=flags.allow_partial)
    base, layout = _base(flags), _layout(flags)
    if layout is None and base is not None and "model_type" in base.config:
        layout = layouts.from_config(base.config)
    return survey(series, layout, selection=selection, base=None if base is None else base.tensors, names=names)


def _selection(flags: Inspect) -> Selection:
    return Selection(
        layers=flags.layers or None, heads=flags.heads or None, measures=flags.measures, leading=flags.leading,
        fold=flags.fold, max_elements=LARGEST if flags.max_elements is None else flags.max_elements,
    )  # fmt: skip


def _base(flags: Inspect) -> Contents | None:
    """Base model of adapters. Raises ValueError unless its path holds one checkpoint that is no adapter itself."""
    if flags.base is None:
        return None
    found = checkpoints.read(flags.base)
    require(
        len(found) == 1,
        f"--base must be the one checkpoint that was adapted; {quoted(str(flags.base))} holds {len(found)}. Give "
        "the path of that checkpoint.",
    )
    opened = found[0].open()
    require(opened.adapter is None, f"--base must be a whole model; {quoted(str(flags.base))} is an adapter itself.")
    return opened


def _layout(flags: Inspect) -> Layout | None:
    require(flags.config is None or flags.map is None, "give either --config or --map; got both.")
    if flags.map is not None:
        require(flags.map.is_file(), f"--map must be a TOML file; got {quoted(str(flags.map))}.")
        return layouts.from_mapping(flags.map)
    if flags.config is None:
        return None
    require(flags.config.is_file(), f"--config must be a config.json; got {quoted(str(flags.config))}.")
    file = flags.config.resolve()
    return layouts.from_config(json_file(file, file.parent))


def _samples(flags: Inspect, surveys: dict[str, Survey]) -> Sequence[float | None]:
    """Samples per step of each run. Raises ValueError for runs that differ in them, unless forced."""
    given = flags.samples_per_step
    require(
        len(given) in (0, len(surveys)) and all(0 < one < float("inf") for one in given),
        f"--samples-per-step must be one positive number for each of {len(surveys)} runs; got {given}.",
    )
    samples = given or tuple(one.samples_per_step for one in surveys.values())
    if len(surveys) > 1 and not flags.force:
        first, last = samples[0], samples[-1]
        if first is not None and last is not None:
            require(
                first == last,
                f"runs must take as many samples per step to be compared on steps; got {first:g} and {last:g}. "
                "--force compares them all the same.",
            )
        else:
            note("samples per step are not known of both runs: steps are assumed to be comparable")
    return samples


def _ledger(out: Path, path: Path) -> Ledger:
    """Cache of the contents of this folder."""
    digest = hashlib.blake2b(str(path.resolve()).encode(errors="surrogatepass"), digest_size=8).hexdigest()
    return Ledger(out / "contents" / digest)


def _observed(one: Survey, ledger: Ledger, rehash: bool, name: str) -> SpectralDynamics:
    with progress() as bar:
        task = bar.add_task("inspect" if name == "this" else name, total=None)
        return observed(one, ledger=ledger, rehash=rehash, progress=lambda done, total: bar.update(
            task, completed=done, total=total
        ))  # fmt: skip


def _write(out: Path, content: dict, runs: tables.Runs, joined: behavior.Joined | None, flags: Inspect) -> list[Path]:
    """Write results.json, the page and the other requested formats, each atomically. Returns their paths."""
    forms: dict[str, Callable[[Path], None]] = {"json": lambda path: tables.write_json(path, content, runs)}
    if flags.csv:
        forms["csv"] = lambda path: tables.write_csv(path, runs)
    if flags.parquet:
        forms["parquet"] = lambda path: tables.write_parquet(path, runs)
    files = [out / f"results.{form}" for form in forms]
    for file, write in zip(files, forms.values(), strict=True):
        write(file)
    if flags.page:
        files.append(out / "index.html")
        with written_whole(files[-1]) as file:
            file.write_text(page(runs, joined), encoding="utf-8")
    return files


def _code(runs: tables.Runs, flags: Inspect) -> int:
    for name, dynamics in runs.items():
        if not dynamics.measured:
            reasons = dict.fromkeys([one.reason for one in dynamics.skipped] + _reasons(dynamics))
            listed = "; ".join(terminal(reason) for reason in list(reasons)[:5]) or "there is nothing with a spectrum"
            return fail(f"nothing of {quoted(str(flags.path if name == 'this' else flags.against))} could be "
                        f"analyzed: {listed}", 1)  # fmt: skip
    broken = [name for name, dynamics in runs.items() if dynamics.integrity.broken]
    if flags.strict and broken:
        first = next(one for one in runs[broken[0]].integrity.findings if one.severity == "error")
        return fail(f"the series is not sound: {first.message}", 1)
    return 0


def _reasons(dynamics: SpectralDynamics) -> list[str]:
    return [reason for series in dynamics.matrices for reason in series.reason if reason]
