"""Workers of a sweep that are killed while they compute: nothing lost, nothing doubled, nothing wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def checked(folder: Path, *words: str) -> list[str]:
    """Lines of tests/sweep_kills.py, which raises where a cell is lost, doubled or wrong."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.sweep_kills", str(folder), *words], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_kills_at_set_points_of_a_sweep_and_of_eight_workers_lose_nothing(tmp_path: Path) -> None:
    counts = checked(tmp_path, "points=41", "writers=12")
    assert int(counts[0].split()[0]) >= 8
    assert int(counts[1].split()[0]) >= 12


@pytest.mark.slow  # some four hundred processes, one after another
def test_kills_at_every_call_of_a_sweep_lose_nothing(tmp_path: Path) -> None:
    (count,) = checked(tmp_path, "points=1")
    assert int(count.split()[0]) > 300


@pytest.mark.slow  # eight processes work for a minute
def test_two_hundred_kills_of_eight_workers_lose_nothing(tmp_path: Path) -> None:
    (count,) = checked(tmp_path, "writers=200")
    assert int(count.split()[0]) >= 200
