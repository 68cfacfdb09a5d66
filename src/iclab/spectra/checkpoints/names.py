"""Names out of a file, made safe for the place where a person meets them."""

import re
from pathlib import Path

_UNPRINTED = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]"
)
LONGEST = 512  # characters of a tensor's name


def terminal(name: str) -> str:
    r"""The name with control and direction characters as \xNN or \uNNNN, for a terminal or an error."""
    return _UNPRINTED.sub(lambda found: _code(ord(found[0])), name)


def quoted(name: str, *, longest: int = 120) -> str:
    """The name in quotes for an error, safe for a terminal, its middle left out when it is long."""
    shown = name if len(name) <= longest else f"{name[: longest // 2]}…{name[-longest // 2 :]}"
    return f"'{terminal(shown)}'"


def csv_cell(text: str) -> str:
    """The text as a cell that no spreadsheet takes for a formula: a leading = + - @ is quoted."""
    shown = terminal(text)
    return f"'{shown}" if shown.lstrip()[:1] in ("=", "+", "-", "@") else shown


def path_below(path: Path, root: Path) -> str:
    """The path below `root`, with forward slashes and safe to print; the bare name when it lies elsewhere."""
    try:
        inside = path.relative_to(root if root.is_dir() else root.parent)
    except ValueError:
        return terminal(path.name)
    return terminal(inside.as_posix()) if inside.parts else terminal(path.name)


def _code(point: int) -> str:
    return f"\\x{point:02x}" if point < 256 else f"\\u{point:04x}"
