"""`iclab report DIR`: the page of a sweep."""

from collections.abc import Sequence
from pathlib import Path

from iclab.commands.sweeps.collect import plans_of
from iclab.commands.sweeps.flags import SweepReport
from iclab.commands.terminal import parsed, print_table
from iclab.commands.verdicts import FAILED, OPEN
from iclab.files import written_whole
from iclab.studies import STUDIES

__all__ = ["is_sweep", "report_sweep"]


def is_sweep(words: Sequence[str]) -> bool:
    """True where the first word is the folder of a sweep; the name of a study wins, and `./NAME` is the folder."""
    return bool(words) and words[0] not in set(STUDIES) and (Path(words[0]) / "plans").is_dir()


def report_sweep(words: Sequence[str]) -> int:
    """Write the page of a sweep, and print its verdicts. Returns the exit code."""
    from iclab.sweeps.joining.page import page_of

    options = parsed(SweepReport, words, prog="iclab report", description=SweepReport.__doc__ or "")
    made = page_of(options.folder, plans_of(options.folder, options.plan))
    path = (options.out or options.folder) / "index.html"
    with written_whole(path) as file:
        file.write_text(made.text, encoding="utf-8")
    outcomes = ("holds", "open", "does not hold")
    if made.verdicts:
        rows = [(claim.meaning, *(str(claim.count(one)) for one in outcomes)) for claim in made.verdicts]
        print_table(("claim, over the grid", *outcomes), rows)
    print(f"page: {path}")
    if not options.strict:
        return 0
    refuted, undecided = (sum(claim.count(one) for claim in made.verdicts) for one in ("does not hold", "open"))
    return FAILED if refuted else OPEN if undecided else 0
