"""CPU seconds of whole commands: the first time on a machine, with programs that are kept, and stored results."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import promised


def spent(*words: str, cache: Path, results: Path) -> float:
    """User and system time of a command and of the processes that it starts."""
    before = os.times()
    subprocess.run(
        [sys.executable, "-m", "iclab", *words, "--results", str(results), "--quiet"],
        env=os.environ | {"ICLAB_CACHE": str(cache)}, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def least(*words: str, cache: Path, keep: bool = False, repeats: int = 3) -> float:
    """The least time of several processes; with `keep` all show what the first has stored."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(repeats + keep):
            results = Path(folder) / ("kept" if keep else str(number))
            found.append(spent(*words, cache=cache, results=results))
    return min(found[keep:])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        cache, first = Path(folder), []
        for _ in range(2):
            shutil.rmtree(cache / "programs", ignore_errors=True)
            first.append(least("run", "abrupt-drop", cache=cache, repeats=1))
        promised("`iclab run abrupt-drop`, first time on a machine", min(first), 6.0)
        promised("`iclab run abrupt-drop`, new seeds, second process", least("run", "abrupt-drop", cache=cache), 3.5)
        off = least("run", "abrupt-drop", "--no-cache", cache=cache, repeats=2)
        print(f"without kept programs {off:.2f} s")
        promised("`iclab run abrupt-drop`, stored", least("run", "abrupt-drop", cache=cache, keep=True), 1.0)
        promised("`iclab run non-monotone-context`", least("run", "non-monotone-context", cache=cache), 1.5)
