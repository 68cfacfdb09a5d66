"""The command `iclab collect`: one labeled dataset of a sweep, as netCDF, zarr, parquet or CSV."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from iclab.commands.flags.parsing import parsed
from iclab.commands.sweeps.flags import Collect
from iclab.commands.terminal import note
from iclab.sweeps.grids.plan import SweepPlan, plans_in, read_plan
from iclab.sweeps.joining import forms
from iclab.sweeps.joining.joined import STATUS, joined, united

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["collect", "plans_of", "view_path", "written_view"]


def collect(words: Sequence[str]) -> int:
    """Join the cells and write them. Returns the exit code."""
    whole = [word.replace("-o", "--output", 1) if re.match(r"-o(=|$)", word) else word for word in words]
    options = parsed(Collect, whole, prog="iclab collect", description=Collect.__doc__ or "")
    plans = plans_of(options.folder, options.plan)
    if options.compact:
        from iclab.store import Store

        Store(options.folder).compact(plans[0].study)
    dataset = joined(options.folder, plans)
    path = options.output or view_path(options.folder, plans[0], dataset)
    forms.write(dataset, path)
    status = dataset["cells"].to_dataset().status
    counts = {word: int((status == place).sum()) for place, word in enumerate(STATUS)}
    print(f"cells: {', '.join(f'{count:,} {word}' for word, count in counts.items() if count)}")
    print(f"numbers: {path}")
    return 0


def plans_of(folder: Path, name: str | None) -> list[SweepPlan]:
    """The plans of a folder that make one grid, newest first; those that do not are named in a note."""
    newest = read_plan(folder, name)
    if name is not None:
        return [newest]
    others = []
    for other in plans_in(folder)[1:]:
        try:
            others.append(read_plan(folder, other))
        except ValueError as error:
            note(error)
    plans = united([newest, *others])
    left = [plan.id for plan in others if plan not in plans]
    if left:
        note(f"{', '.join(left)} are of other grids, and not joined; name one with --plan")
    return plans


def view_path(folder: Path, plan: SweepPlan, dataset: "xr.DataTree") -> Path:
    """The file of the view of a sweep: netCDF, or zarr above 2 GB."""
    form = ".nc" if forms.bytes_of(dataset) < forms.LARGEST else ".zarr"
    return folder / f"{plan.study.name.replace('.', '-')}-sweep-{plan.id}{form}"


def written_view(folder: Path, plan: SweepPlan) -> Path | None:
    """The file of the view of a whole sweep, made anew; None where it is too large to be made unasked."""
    dataset = joined(folder, plans_of(folder, None))
    path = view_path(folder, plan, dataset)
    if path.suffix != ".nc":
        note("the dataset is above 2 GB; `iclab collect` writes it")
        return None
    forms.write(dataset, path)
    return path
