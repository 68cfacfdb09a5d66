"""Processes that are killed while they store results: nothing lost, nothing doubled, nothing wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def checked(folder: Path, *words: str) -> list[str]:
    """What tests/kills.py prints; it raises where something is lost, doubled or wrong."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.kills", str(folder), *words], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_kills_at_every_call_of_a_part_s_write_and_of_two_writers_lose_nothing(tmp_path: Path) -> None:
    counts = checked(tmp_path, "part", "together", "writers=6")
    assert counts[0] == "15 kills"  # around open, write, sync, link, open and sync of the folder, unlink; in a write


@pytest.mark.slow  # a hundred views are made
def test_kills_at_every_call_of_a_fetch_lose_nothing(tmp_path: Path) -> None:
    (count,) = checked(tmp_path, "view")
    assert int(count.split()[0]) > 35  # two parts and a view


@pytest.mark.slow  # two processes work for half a minute
def test_two_hundred_kills_of_two_writers_lose_nothing(tmp_path: Path) -> None:
    (count,) = checked(tmp_path, "writers=200")
    assert count.startswith("200 kills")
