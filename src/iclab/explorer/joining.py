"""The script of the page: its modules joined in one, in the order of their imports, and the policy that lets it run.

Opened from disk a browser loads no module, so that they are joined here, without a bundler: comments, `import` lines
and the word `export` fall away. Names at the top of a module are therefore names of the whole page.
"""

import json
import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from posixpath import dirname, join, normpath
from typing import Any

from iclab.numerics import require
from iclab.report.policy import hashed

__all__ = ["ENTRY", "joined", "literal", "policy", "script", "source"]

ENTRY = "page/app.js"
_IMPORT = re.compile(r'^import\b[^;]*?from "([^"]+)";\n', flags=re.MULTILINE)
_EXPORTED = re.compile(r"^export (?=(async |function|class|const|let))", flags=re.MULTILINE)
_LIST = re.compile(r"^export \{[^}]*\};\n", flags=re.MULTILINE)
_COMMENT = re.compile(r"^ */\*\*(?:(?!\*/).)*\*/\n", flags=re.MULTILINE | re.DOTALL)  # a fifth of the page
_NAME = re.compile(
    r"^(?:/\*\*.*?\*/ )?(?:export )?(?:async )?(?:function\*?|class|const|let) ([\w$]+)", flags=re.MULTILINE
)


def script(data: Any, entry: str = ENTRY) -> str:
    """The whole script: data that it reads under the name DATA, and all modules that the entry needs."""
    return f'(() => {{\n"use strict";\nconst DATA = {literal(data)};\n{joined(entry)}\n}})();\n'


def joined(entry: str = ENTRY) -> str:
    """The modules that an entry needs, each once, after those that it imports itself.

    Raises ValueError where two modules have a name in common, and for modules that import each other in a circle.
    """
    texts: dict[str, str] = {}
    _collect(entry, texts, ())
    homes: dict[str, str] = {}
    for path, text in texts.items():
        for name in _NAME.findall(text):
            require(
                homes.setdefault(name, path) == path,
                f"modules of the page must have different names at the top; {name!r} is in {homes[name]} and {path}. "
                "Rename one.",
            )
    return "\n".join(_bare(text) for text in texts.values())


def _bare(text: str) -> str:
    """A module without its comments, its imports and the word export."""
    return _LIST.sub("", _EXPORTED.sub("", _IMPORT.sub("", _COMMENT.sub("", text))))


def literal(data: Any) -> str:
    """Data as an expression of JavaScript that no text within can end; infinities and NaN are none of JSON."""
    return json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def policy(script: str, style: str) -> str:
    """The policy of the page: only this script and this style count, and nothing is loaded.

    A server that serves the page may be asked for runs; from disk there is none.
    """
    return "; ".join(
        [
            "default-src 'none'", f"script-src {hashed(script)}", f"style-src {hashed(style)}", "img-src data: blob:",
            "worker-src blob:", "connect-src 'self'", "base-uri 'none'", "form-action 'none'",
        ]
    )  # fmt: skip


def source(path: str) -> str:
    """The text of a file of the explorer."""
    place: Traversable = files("iclab.explorer")
    for part in path.split("/"):
        place = place / part
    return place.read_text(encoding="utf-8")


def _collect(path: str, texts: dict[str, str], above: tuple[str, ...]) -> None:
    require(path not in above, f"modules must not import each other in a circle; got {' → '.join([*above, path])}.")
    if path in texts:
        return
    text = source(path)
    for other in _IMPORT.findall(text):
        _collect(normpath(join(dirname(path), other)), texts, (*above, path))
    texts[path] = text
