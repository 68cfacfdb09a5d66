"""`iclab report DIR`: the page of a sweep."""

from collections.abc import Sequence
from pathlib import Path

from iclab.commands.flags.parsing import parsed
from iclab.commands.sweeps.collect import plans_of
from iclab.commands.sweeps.flags import SweepReport
from iclab.commands.terminal import print_table
from iclab.commands.verdicts import FAILED, OPEN
from iclab.files import written_whole
from iclab.studies import STUDIES
from iclab.sweeps.grids.plan import SweepPlan
from iclab.sweeps.joining.verdicts import GridVerdicts

__all__ = ["is_sweep", "report_sweep", "write_page"]


def is_sweep(words: Sequence[str]) -> bool:
    """True where the first word is the folder of a sweep; the name of a study wins, and `./NAME` is the folder."""
    return bool(words) and words[0] not in set(STUDIES) and (Path(words[0]) / "plans").is_dir()


def report_sweep(words: Sequence[str]) -> int:
    """Write the page of a sweep, and print its verdicts. Returns the exit code."""
    options = parsed(SweepReport, words, prog="iclab report", description=SweepReport.__doc__ or "")
    path, verdicts = write_page(options.folder, plans_of(options.folder, options.plan), options.out)
    outcomes = ("holds", "open", "does not hold")
    if verdicts:
        rows = [(claim.meaning, *(str(claim.count(one)) for one in outcomes)) for claim in verdicts]
        print_table(("claim, over the grid", *outcomes), rows)
    print(f"page: {path}")
    if not options.strict:
        return 0
    refuted, undecided = (sum(claim.count(one) for claim in verdicts) for one in ("does not hold", "open"))
    return FAILED if refuted else OPEN if undecided else 0


def write_page(
    folder: Path, plans: Sequence[SweepPlan], out: Path | None = None
) -> tuple[Path, Sequence[GridVerdicts]]:
    """Write the page of a sweep; its file, and the verdicts on it."""
    from iclab.sweeps.joining.page import page_of

    made, path = page_of(folder, plans), (out or folder) / "index.html"
    with written_whole(path) as file:
        file.write_text(made.text, encoding="utf-8")
    return path, made.verdicts
