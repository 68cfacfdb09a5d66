"""Entries of a page: a result with its figure, in both widths, its verdicts, its command and its files."""

from typing import TYPE_CHECKING, Any

from iclab import figures
from iclab.report import tables
from iclab.report.document import Drawing, Entry, File
from iclab.report.sampling import bands, measured
from iclab.report.shell import command

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from iclab.study import Study

__all__ = ["drawing", "entry"]

ORIGIN = ("versions", "device", "precision", "iclab", "commit")


def drawing(wide: "Figure", narrow: "Figure", *, name: str, caption: str, svg: bytes | None = None) -> Drawing:
    """A figure for a page, as wide as it was designed and in one column; `svg` is the file of the former."""
    whole = figures.as_bytes(wide, "svg", name=name) if svg is None else svg
    column = figures.as_bytes(narrow, "svg", name=name)
    return Drawing(
        figures.inline(whole, name=name), figures.inline(column, name=f"{name}-narrow"), wide.get_figwidth(), caption
    )


def entry(study: "Study", case: Any, result: "xr.DataTree", netcdf: bytes, *, clock: str = "time") -> Entry:
    """The entry of a study for its result of a case, with the bytes of the file that holds the result."""
    verdicts, name = study.verdicts(result), study.name
    figure, narrow = (
        figures.drawn(study, case, result, clock=clock),
        figures.drawn_narrow(study, case, result, clock=clock),
    )
    images = {form: figures.as_bytes(figure, form, name=name) for form in ("svg", "pdf")}
    beside = {"csv": tables.csv(result), **images}
    seeds = [int(seed) for seed in result.attrs["seeds"]]
    return Entry(
        name=name,
        question=study.question,
        answer=study.answered(case, result, verdicts),
        command=command(study, case, seeds),
        case=result.attrs["case"],
        verdicts=verdicts,
        drawing=drawing(figure, narrow, name=name, caption=figures.caption(study, figure), svg=images["svg"]),
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
        bands=bands(study, case).words if measured(case) else (),
    )
