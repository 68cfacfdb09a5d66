"""`iclab inspect`: its order of work and its exit codes."""

import hashlib
import sys
from collections.abc import Callable, Sequence
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


def inspect(asked: Inspect) -> int:
    """Observe, write, print. Returns the exit code."""
    if asked.parquet:
        tables.require_parquet()
    joinable = None if asked.behavior is None else behavior.read(asked.behavior)
    paths = {"this": asked.path} | ({} if asked.against is None else {"against": asked.against})
    selection = _selection(asked)
    surveys = {name: _surveyed(path, asked, selection) for name, path in paths.items()}
    samples = _samples(asked, surveys)
    out = writable(asked.out)
    for name, one in surveys.items():
        note(f"{'' if len(surveys) == 1 else f'{name}: '}{one.cost}")
    runs = {}
    for (name, one), count in zip(surveys.items(), samples, strict=True):
        seen = _watched(one, _ledger(out, paths[name]), asked.rehash, name)
        runs[name] = replace(seen, samples_per_step=count)
    joined = None if joinable is None else behavior.joined(joinable, runs["this"].steps.tolist())
    said = document(runs, surveys, joined, paths=paths if asked.with_paths else None)
    written = _write(out, said, runs, joined, asked)
    if asked.json:
        tables.stream_json(sys.stdout, said, runs)
    else:
        print_summary(runs, joined)
        for file in written:
            print(f"{file.suffix[1:]}: {file}")
    return _code(runs, asked)


def _surveyed(path: Path, asked: Inspect, selection: Selection) -> Survey:
    series = checkpoints.read(path, every=asked.every, allow_partial=asked.allow_partial)
    base, layout = _base(asked), _layout(asked)
    if layout is None and base is not None and "model_type" in base.config:
        layout = layouts.from_config(base.config)
    return survey(series, layout, selection=selection, base=None if base is None else base.tensors)


def _selection(asked: Inspect) -> Selection:
    return Selection(
        layers=asked.layers or None, heads=asked.heads or None, measures=asked.measures, leading=asked.leading,
        fold=asked.fold, max_elements=LARGEST if asked.max_elements is None else asked.max_elements,
    )  # fmt: skip


def _base(asked: Inspect) -> Contents | None:
    """The model below adapters. Raises ValueError unless its path holds one checkpoint, and no adapter itself."""
    if asked.base is None:
        return None
    found = checkpoints.read(asked.base)
    require(
        len(found) == 1,
        f"--base must be the one checkpoint that was adapted; {quoted(str(asked.base))} holds {len(found)}. Give "
        "the path of that checkpoint.",
    )
    opened = found[0].open()
    require(opened.adapter is None, f"--base must be a whole model; {quoted(str(asked.base))} is an adapter itself.")
    return opened


def _layout(asked: Inspect) -> Layout | None:
    require(asked.config is None or asked.map is None, "give either --config or --map; got both.")
    if asked.map is not None:
        require(asked.map.is_file(), f"--map must be a TOML file; got {quoted(str(asked.map))}.")
        return layouts.from_mapping(asked.map)
    if asked.config is None:
        return None
    require(asked.config.is_file(), f"--config must be a config.json; got {quoted(str(asked.config))}.")
    file = asked.config.resolve()
    return layouts.from_config(json_file(file, file.parent))


def _samples(asked: Inspect, surveys: dict[str, Survey]) -> Sequence[float | None]:
    """Samples of one step of each run. Raises ValueError where runs on different clocks are to be compared."""
    given = asked.samples_per_step
    require(
        len(given) in (0, len(surveys)) and all(0 < one < float("inf") for one in given),
        f"--samples-per-step must be one positive number for each of {len(surveys)} runs; got {given}.",
    )
    samples = given or tuple(one.samples_per_step for one in surveys.values())
    if len(surveys) > 1 and not asked.force:
        require(
            None in samples or samples[0] == samples[-1],
            f"runs must take as many samples per step to be compared on steps; got {samples[0]:g} and "
            f"{samples[-1]:g}. --force compares them all the same." if None not in samples else "",
        )  # fmt: skip
        if None in samples:
            note("samples per step are not known of both runs: that steps can be compared is taken on trust")
    return samples


def _ledger(out: Path, path: Path) -> Ledger:
    """Where the contents of this very folder are remembered."""
    whose = hashlib.blake2b(str(path.resolve()).encode(errors="surrogatepass"), digest_size=8).hexdigest()
    return Ledger(out / "contents" / whose)


def _watched(one: Survey, ledger: Ledger, rehash: bool, name: str) -> SpectralDynamics:
    with progress() as bar:
        task = bar.add_task("inspect" if name == "this" else name, total=None)
        return observed(one, ledger=ledger, rehash=rehash, progress=lambda done, total: bar.update(
            task, completed=done, total=total
        ))  # fmt: skip


def _write(out: Path, said: dict, runs: tables.Runs, joined: behavior.Joined | None, asked: Inspect) -> list[Path]:
    """results.json, the page, and the other forms that are wanted, each whole or not at all."""
    forms: dict[str, Callable[[Path], None]] = {"json": lambda path: tables.write_json(path, said, runs)}
    if asked.csv:
        forms["csv"] = lambda path: tables.write_csv(path, runs)
    if asked.parquet:
        forms["parquet"] = lambda path: tables.write_parquet(path, runs)
    files = [out / f"results.{form}" for form in forms]
    for file, write in zip(files, forms.values(), strict=True):
        write(file)
    if asked.page:
        files.append(out / "index.html")
        with written_whole(files[-1]) as file:
            file.write_text(page(runs, joined), encoding="utf-8")
    return files


def _code(runs: tables.Runs, asked: Inspect) -> int:
    for name, dynamics in runs.items():
        if not dynamics.measured:
            reasons = dict.fromkeys([one.reason for one in dynamics.skipped] + _reasons(dynamics))
            listed = "; ".join(terminal(reason) for reason in list(reasons)[:5]) or "there is nothing with a spectrum"
            return fail(f"nothing of {quoted(str(asked.path if name == 'this' else asked.against))} could be "
                        f"analysed: {listed}", 1)  # fmt: skip
    broken = [name for name, dynamics in runs.items() if dynamics.integrity.broken]
    if asked.strict and broken:
        first = next(one for one in runs[broken[0]].integrity.findings if one.severity == "error")
        return fail(f"the series is not sound: {first.message}", 1)
    return 0


def _reasons(dynamics: SpectralDynamics) -> list[str]:
    return [reason for series in dynamics.matrices for reason in series.reason if reason]
