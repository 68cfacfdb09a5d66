"""Fresh environments: iclab installs for every Python that it names, answers there, and is no larger than stated."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSIONS = [word.rpartition(" ")[2] for word in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", word)]
LIMITS = {"": 480, "sim": 880}  # MB


def test_the_versions_that_are_named_begin_with_the_least_one_and_have_no_gap() -> None:
    minors = [int(version.split(".")[1]) for version in VERSIONS]
    assert minors == list(range(int(PROJECT["requires-python"].removeprefix(">=3.")), minors[-1] + 1))


def test_the_readme_states_sizes_within_the_limits() -> None:
    stated = [int(size) for size in re.findall(r"(\d{3}) MB with", (ROOT / "README.md").read_text())]
    assert len(stated) == len(LIMITS)
    assert all(size <= limit for size, limit in zip(stated, LIMITS.values(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("extra", LIMITS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_fresh_environment_answers_and_is_small(version: str, extra: str) -> None:
    python = shutil.which(f"python{version}")
    if python is None or subprocess.run([python, "--version"], capture_output=True).returncode:
        pytest.skip(f"there is no Python {version}")
    words = [str(ROOT / "tests/install/fresh.sh"), python, *([extra] if extra else []), str(LIMITS[extra])]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
