"""Entries of a page: a result with its figure, in both widths, its verdicts, its command and its files."""

from typing import TYPE_CHECKING, Any

from iclab import figures
from iclab.report import tables
from iclab.report.document import Drawing, Entry, File
from iclab.report.shell import command

if TYPE_CHECKING:
    import xarray as xr

    from iclab.study import Study

__all__ = ["entry"]

ORIGIN = ("versions", "device", "precision", "iclab", "commit")


def entry(study: "Study", case: Any, result: "xr.DataTree", netcdf: bytes) -> Entry:
    """The entry of a study for its result of a case, with the bytes of the file that holds the result."""
    verdicts, name = study.verdicts(result), study.name
    figure, narrow = figures.drawn(study, case, result), figures.drawn_narrow(study, case, result)
    images = {form: figures.as_bytes(figure, form, name=name) for form in ("svg", "pdf")}
    drawing = Drawing(
        wide=figures.inline(images["svg"], name=name),
        narrow=figures.inline(figures.as_bytes(narrow, "svg", name=name), name=f"{name}-narrow"),
        width=figure.get_figwidth(),
        caption=figures.caption(study, figure),
    )
    beside = {"csv": tables.csv(result), **images}
    seeds = [int(seed) for seed in result.attrs["seeds"]]
    return Entry(
        name=name,
        question=study.question,
        answer=study.answered(case, result, verdicts),
        command=command(study, case, seeds),
        case=result.attrs["case"],
        verdicts=verdicts,
        drawing=drawing,
        files=[
            File(f"{name}.nc", netcdf, inside=True),
            *(File(f"{name}.{form}", one) for form, one in beside.items()),
        ],
        seconds=float(sum(result.attrs["seconds"])),
        seeds=seeds,
        origin={key: str(result.attrs[key]) for key in ORIGIN},
        unjudged=study.unjudged,
        formulas=study.formulas,
        symbols=tables.symbols(result),
    )
