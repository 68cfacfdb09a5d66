"""Words of the command line as an instance of a form, by way of tyro; errors in one line."""

import contextlib
import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from iclab.commands.flags.forgiving import forgiven
from iclab.commands.flags.helptext import helptext
from iclab.commands.flags.table import Flag, flags_of
from iclab.commands.terminal import note
from iclab.numerics import require

__all__ = ["parsed"]

Groups = Callable[[Sequence[Flag]], Mapping[str, Sequence[Flag]]]


def parsed(
    form: Any,
    words: Sequence[str],
    *,
    prog: str,
    description: str,
    groups: Groups = lambda flags: {"flags": flags},
    examples: Sequence[str] = (),
) -> Any:
    """The flags as an instance of `form`; where help is asked for it is shown, and SystemExit raised.

    Raises ValueError, in one line, for flags that do not fit the form.
    """
    flags = flags_of(form)
    if {"-h", "--help"} & set(words):
        print(helptext(prog, description, groups(flags), examples=examples))
        raise SystemExit(0)
    import tyro  # which takes a while to load

    given = forgiven(flags, words, prog=prog)
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            chosen, unknown = tyro.cli(form, args=given, prog=prog, return_unknown_args=True)
    except SystemExit:
        raise ValueError(_in_one_line(complaint.getvalue(), prog)) from None
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        note(text)
    require(not unknown, f"there must be a flag before each value; got {' '.join(unknown)}. See `{prog} --help`.")
    return chosen


def _in_one_line(box: str, prog: str) -> str:
    """The text of a boxed complaint, without its frame and its advice."""
    lines = [line.strip("│╭╮╰╯─ \t") for line in box.splitlines()]
    text = " ".join(line for line in lines if line.strip("-"))  # of dashes are frames where signs are few
    text = re.split(r"For full helptext|Argument helptext", text)[0].strip()
    text = re.sub(r"^(Value error|Parsing error|[A-Z][a-z ]+error)\s+", "", text)
    text = re.sub(r"^Error parsing (case|case\.\w+|options): ", "", text)
    text = _KIND.sub(_said_plainly, text)
    require(bool(text), f"the flags do not fit; see `{prog} --help`")
    return f"{text.rstrip('.')}. See `{prog} --help`."


_KIND = re.compile(
    r"^Error parsing (?P<flag>--\S+): (?:no type matching (?:\{None\}\|)?(?P<kind>\w+) could be instantiated from "
    r"|Could not find valid parse for arguments: )\[(?P<values>.*?)\](?:\. .*)?$"
)


def _said_plainly(found: re.Match[str]) -> str:
    """A complaint that says what must hold and what came, in place of how it was tried."""
    kind = {"INT": "a whole number", "FLOAT": "a number"}.get(found["kind"] or "", "values that fit it")
    return f"{found['flag']} must be {kind}; got {found['values'].replace(chr(39), '')}"
