"""What type checkers see of the doors: names that exist, with their types, and no others."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import iclab
from iclab.studies import STUDIES

reveal_type(iclab.Regression())
reveal_type(iclab.theory.population.moments(iclab.Regression()))
reveal_type(STUDIES["x"].run())
reveal_type(iclab.studies.staircase)
reveal_type(iclab.spectra.read("x"))
iclab.Regresion
iclab.theory.dynamic
"""
SEEN = ("Regression", "Moments", "Result", "Study", "Series")


def checked(tmp_path: Path, *command: str) -> str:
    """What a type checker says of the program."""
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", *command, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_pyright_knows_the_doors(tmp_path: Path) -> None:
    said = checked(tmp_path, "pyright", "--pythonpath", sys.executable)
    assert re.findall(r'Type of ".*" is "(\w+)"', said) == list(SEEN), said
    assert '"Regresion" is not a known attribute' in said
    assert '"dynamic" is not a known attribute' in said
    assert "2 errors" in said


@pytest.mark.slow  # half a minute: mypy reads all of the library
def test_mypy_knows_the_doors(tmp_path: Path) -> None:
    said = checked(tmp_path, "mypy")
    assert re.findall(r'Revealed type is "[\w.]*\.(\w+)"', said) == list(SEEN), said
    assert 'Module has no attribute "Regresion"' in said
    assert 'Module has no attribute "dynamic"' in said
    assert "Found 2 errors" in said
