"""The theory of the page, in JavaScript, against the library: every function at seeded points, limits among them."""

import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iclab.explorer.reference import MIRRORS, plain, points
from iclab.problem import Ratios
from iclab.theory.generalization import errors
from tests.explorer.theory_mutants import mutants
from tests.explorer.theory_node import MODULES, NODE, called, copied, gap
from tests.explorer.theory_rows import AT_ONCE, CONSTANTS, ROWS, calls, drawn, library, stacked, wrong

node = pytest.mark.skipif(NODE is None, reason="Node is absent; the browser tests run the reference points")

MANY, DEAR = 1000, 1.5e-3  # points of a function, and seconds of an answer from which they take too long
COUNTS = ((DEAR, MANY), (2.5e-3, 300), (0.01, 100), (0.2, 10), (np.inf, 3))  # points of functions of less seconds
DECLARED = re.compile(r"^(?:export )?(?:async )?(?:function|class|const|let|var) (\w+)", re.MULTILINE)
EVERY = 13  # so many mutants are one that is tried


def counted(name: str) -> int:
    seconds = 0.0 if name in AT_ONCE else ROWS[name].seconds
    return next(count for most, count in COUNTS if seconds < most)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(tmp_path_factory.mktemp("theory") / "modules")


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Any]:
    return called([folder], calls({name: counted(name) for name in ROWS}, 0))[0]


@node
@pytest.mark.parametrize("name", ROWS)
def test_each_function_of_the_page_answers_as_the_library_does(name: str, found: dict[str, Any]) -> None:
    assert wrong(name, found["answers"][name], counted(name), 0) is None


@node
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ROWS if counted(name) < MANY])
def test_dear_functions_of_the_page_answer_so_at_a_thousand_other_points(name: str, folder: Path) -> None:
    count = MANY if ROWS[name].seconds < 0.5 else 100
    answers = called([folder], calls({name: count}, 1), seconds=600)[0]["answers"]
    assert wrong(name, answers[name], count, 1) is None


@node
@pytest.mark.slow
def test_a_change_of_any_term_by_two_percent_is_noticed(tmp_path: Path) -> None:
    seconds = {name: row.seconds for name, row in ROWS.items()}
    counts = {name: 100 if cost < DEAR else 12 if cost < 0.02 else 2 for name, cost in seconds.items()}
    asked, folder, kept = calls(counts, 2), copied(tmp_path / "modules"), []
    for mutant in list(mutants())[::EVERY]:
        (folder / mutant.module).write_text(mutant.text)
        answers = called([folder], asked)[0]["answers"]
        if all(wrong(name, answers[name], count, 2) is None for name, count in counts.items()):
            kept.append(mutant[:3])
        shutil.copy(MODULES / mutant.module, folder)
    assert kept == []


@node
def test_best_ridges_of_the_page_have_the_least_error(found: dict[str, Any]) -> None:
    given = drawn("bestRidge", MANY, 0)
    new = np.array([row[1] == "icl" for row in given])
    ours, best = (
        np.where(new, of.icl, of.idg)
        for of in (errors(stacked(given), ridge=np.array(each, dtype=float)) for each in pair(found, "bestRidge"))
    )
    np.testing.assert_allclose(ours, best, rtol=1e-13)


@node
def test_best_lengths_of_the_page_have_the_least_error(found: dict[str, Any]) -> None:
    given = drawn("bestAlpha", MANY, 0)
    kappa, tau, noise, ridge = np.array([row[:4] for row in given]).T
    some = np.array([float(length) > 0 for length in library("bestAlpha", MANY, 0)]) & (
        tau != 1
    )  # the limits are equal
    new = np.array([row[4] == "icl" for row in given])[some]
    ours, best = (
        np.where(new, of.icl, of.idg)
        for of in (
            errors(Ratios(length[some], kappa[some], tau[some], noise[some]), ridge=ridge[some])
            for length in (np.array(each, dtype=float) for each in pair(found, "bestAlpha"))
        )
    )
    np.testing.assert_allclose(ours, best, rtol=1e-13)


def pair(found: dict[str, Any], name: str) -> tuple[list[Any], list[Any]]:
    return found["answers"][name], library(name, MANY, 0)


@node
def test_every_export_of_the_modules_is_held_against_the_library(found: dict[str, Any]) -> None:
    exports = sorted(name for names in found["names"].values() for name in names)
    assert exports == sorted([*ROWS, *CONSTANTS])


@node
def test_constants_of_the_page_are_those_of_the_library(found: dict[str, Any]) -> None:
    assert found["constants"] == plain(CONSTANTS)


@pytest.fixture(scope="module")
def every() -> list[dict[str, Any]]:
    return points()


@node
def test_the_page_finds_its_reference_points_true(folder: Path, every: list[dict[str, Any]]) -> None:
    calls: dict[str, list[Any]] = {}
    for point in every:
        calls.setdefault(point["function"], []).append(point["arguments"])
    answers = called([folder], calls)[0]["answers"]
    gaps = [
        gap(answers[point["function"]].pop(0), point["value"], curve=True) / point["tolerance"] for point in every
    ]
    assert max(gaps) <= 1


def test_reference_points_are_few_of_every_function_and_always_the_same(every: list[dict[str, Any]]) -> None:
    assert len(json.dumps(every, separators=(",", ":"), allow_nan=False)) <= 60_000
    assert {point["function"] for point in every} == set(MIRRORS)
    begin = time.process_time()
    assert every == points()
    assert time.process_time() - begin < 3


@node
@pytest.mark.parametrize(
    ("name", "given", "answer"),
    [
        (
            "integrate",
            [{"$": "escape", "with": []}, [1.0], [0.5, 2.0]],
            "RangeError: the steps of the flow vanish at t",
        ),
        (
            "integrate",
            [{"$": "rotation", "with": [1, 1]}, [1, 0, 0.5], [1e6]],
            "RangeError: the flow takes more than ",
        ),
        ("increasingRoot", [{"$": "nowhere", "with": []}, 0.1, 10.0], "RangeError: no root to working precision"),
        ("whiteDropTime", [{"eigenvalues": [1.0], "contextLengths": [8], "noise": 0.0}, 3.0], "nan"),
        ("generalFormat", ["-inf"], "-inf"),
        ("generalFormat", ["nan"], "nan"),
    ],
)
def test_what_has_no_answer_gets_none(folder: Path, name: str, given: list[Any], answer: str) -> None:
    found = called([folder], {name: [given]})[0]["answers"][name][0]
    assert (found["error"] if isinstance(found, dict) else found).startswith(answer)


def test_modules_can_be_joined_into_one_script_in_any_order(tmp_path: Path) -> None:
    texts = {module.name: module.read_text() for module in sorted(MODULES.glob("*.js"))}
    names = [name for text in texts.values() for name in DECLARED.findall(text)]
    assert len(names) == len(set(names))
    for text in texts.values():
        assert all(re.fullmatch(r'import \{[^}]+\} from "\./\w+\.js";', line) for line in _starting("import", text))
        assert all(re.match(r"export (function|const) \w", line) for line in _starting("export", text))
    if NODE is None:
        return
    for order in (list(texts), list(texts)[::-1]):
        script = "\n".join(re.sub(r"^import .*\n|^export ", "", texts[name], flags=re.MULTILINE) for name in order)
        asked = "console.log(errors({ alpha: 10, kappa: 0.5, tau: 2, noise: 0.01 }, 0.1).icl);"
        whole = f'(() => {{"use strict";\n{script}\n{asked}}})();'
        run = subprocess.run([NODE, "-e", whole], capture_output=True, text=True, timeout=30, check=False)
        assert float(run.stdout) == pytest.approx(float(errors(Ratios(10, 0.5, 2, 0.01), ridge=0.1).icl), rel=1e-12)


def _starting(word: str, text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(word)]


def test_modules_know_neither_page_nor_clock_nor_chance() -> None:
    foreign = re.compile(
        r"\b(document|window|globalThis|self|fetch|Date|performance|Math\.random|console|eval|DATA)\b"
    )
    for module in MODULES.glob("*.js"):
        code = re.sub(r"/\*.*?\*/|//.*", "", module.read_text(), flags=re.DOTALL)
        assert foreign.findall(re.sub(r"//.*", "", code)) == [], module.name


def compiler() -> str | None:
    """The TypeScript compiler on the path, or where npm puts it in this folder."""
    here = Path(__file__).parent / "node_modules" / ".bin" / "tsc"
    return str(here) if here.exists() else shutil.which("tsc")


@pytest.mark.skipif(
    compiler() is None, reason="the TypeScript compiler is absent; `npm install -g typescript` has it"
)
def test_types_of_the_modules_hold() -> None:
    config = Path(__file__).parent / "theory.tsconfig.json"
    run = subprocess.run(
        [compiler() or "", "-p", str(config)], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stdout
