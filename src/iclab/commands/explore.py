"""The command `iclab explore`: one page where controls move the theory, opened in the browser."""

import sys
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from iclab.commands.flags.options import RESULTS
from iclab.commands.flags.parsing import parsed
from iclab.commands.terminal import writable
from iclab.files import written_whole
from iclab.numerics import require

__all__ = ["ABOUT", "Explore", "explore"]

ABOUT = """Write one page that opens from disk, needs no installation and asks no network: controls move the theory,
and stored runs lie over it. Its address holds the settings: --state opens the page at one that somebody sent."""

EXAMPLES = (
    "iclab explore", "iclab explore --view double-descent", "iclab explore --results results --out page.html",
    "iclab explore --serve",
    "iclab explore --state 'view=staircase&lambda=.4,.3,.1&N=8'",
)  # fmt: skip


@dataclass(frozen=True)
class Explore:
    """The page, and what it opens with."""

    view: str | None = None  # view to open; default: that of --state, else staircase
    state: str = ""  # address of a state, what follows # in a link
    out: Path = Path("explorer.html")  # the file
    results: Path | None = None  # folder of stored answers to lay over theory; default: results, where it is there
    inspection: Path | None = None  # results.json of `iclab inspect`, to send along
    write_only: bool = False  # do not open the page in a browser
    serve: bool = False  # serve the page on this machine, where it can also simulate; needs the extra web
    port: int | None = None  # port of --serve; default: any that is free
    debug: bool = False  # show the traceback of an error


def explore(words: Sequence[str]) -> int:
    """Write the page or serve it, and open it where a terminal is there to see it. Returns the exit code."""
    options = parsed(Explore, words, prog="iclab explore", description=ABOUT, examples=EXAMPLES)
    from iclab.explorer import page

    require(
        options.serve or options.results is None or options.results.is_dir(),
        f"--results must be a folder of stored answers; got {options.results}. Leave it out for theory alone.",
    )
    require(not options.out.is_dir(), f"--out must be a file; got the folder {options.out}. Name a file in it.")
    require(options.out.suffix in (".html", ".htm"), f"--out must be a file .html; got {options.out}. Name it so.")
    require(options.serve or options.port is None, f"--port must come with --serve; got {options.port} alone.")
    if not options.serve:
        writable(options.out.parent)
    results = options.results or RESULTS
    view = options.view or ("inspect" if options.inspection and not options.state else None)
    stored = results if results.is_dir() else None
    made = page(results=stored, view=view, state=options.state, inspection=options.inspection)
    if options.serve:
        from iclab.commands.serving.serve import serve

        browse = not options.write_only and sys.stdout.isatty()
        return serve(str(made), made.address, results, port=options.port, browse=browse)
    with written_whole(options.out) as file:
        file.write_text(str(made), encoding="utf-8")
    print(f"page: {options.out}")
    if not options.write_only and sys.stdout.isatty():
        webbrowser.open(f"{options.out.resolve().as_uri()}#{made.address}")
    return 0
