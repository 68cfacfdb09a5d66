"""Programs in examples/ run, and keep to what they show."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from iclab.testing import check_study

EXAMPLES = Path(__file__).parents[1] / "examples"


def loaded(name: str) -> Any:
    """An example as a module, known by name as a case's class must be."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_a_study_of_ones_own_fits_sixty_lines_and_passes_the_battery() -> None:
    assert len((EXAMPLES / "own_study.py").read_text().splitlines()) <= 60
    own = loaded("own_study").STUDY
    check_study(own, replace(own.quick, contexts=200))
    (verdict,) = own.verdicts(own.run(replace(own.quick, contexts=8000), seeds=12))
    assert verdict.holds
