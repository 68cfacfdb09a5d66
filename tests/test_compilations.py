"""Programs that studies compile: each once in a process, as few as are listed here, and none for other numbers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Of the quick case: draws of each size and length, loops of each shape of weights, and transfers of each shape.
HELD = {
    "abrupt-drop": 15, "staircase": 15, "white-drop": 15, "rank-staircase": 15, "initial-scale": 15,
    "context-lengths": 22, "drop-times": 15, "principal-components": 12, "in-weight": 28, "softmax-dynamics": 8,
    "fixed-points": 10, "conservation": 17,
}  # fmt: skip

PROCESS = """
import json, sys
from iclab.simulation import programs
programs.keep()
import jax
from iclab.studies import STUDIES

told = []
jax.monitoring.register_event_listener(lambda name, **_: told.append(name.rpartition("/")[2]))
study = STUDIES[sys.argv[1]]
counts = []
for changes in json.loads(sys.argv[2]):
    for seed in changes.pop("seeds"):
        study.run(study.case(**changes), (seed,))
        counts.append(told.count("cache_misses"))
print(json.dumps({"compiled": counts, "again": told.count("cache_hits")}))
"""


def compiled(name: str, runs: list[dict], cache: Path) -> dict:
    """How many programs a process has compiled after each seed of these cases, and how many of them twice."""
    own = {name: text for name, text in os.environ.items() if not name.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, name, json.dumps(runs)],
        env=own | {"ICLAB_CACHE": str(cache)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_other_seeds_steps_and_rates_compile_nothing_anew(tmp_path: Path) -> None:
    small = {"heads": 2, "sequences": (50, 100, 200), "rate": 0.5, "initial": 0.01}
    runs = [
        {**small, "steps": 600, "seeds": (0, 1)},
        {**small, "steps": 900, "seeds": (2,)},
        {**small, "steps": 600, "rate": 0.25, "initial": 0.02, "seeds": (0,)},
    ]
    found = compiled("abrupt-drop", runs, tmp_path)
    assert found["compiled"] == [HELD["abrupt-drop"]] * 4
    assert found["again"] == 0


@pytest.mark.slow  # a process for each study, which compiles all of its programs
@pytest.mark.parametrize("name", HELD)
def test_a_study_compiles_each_program_once_and_no_more_than_it_did(name: str, tmp_path: Path) -> None:
    found = compiled(name, [{"seeds": (0, 1)}], tmp_path)
    assert found["compiled"][0] == found["compiled"][1] <= HELD[name]
    assert found["again"] == 0
