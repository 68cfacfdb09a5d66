"""What every member keeps to: studies, theory functions, sources, imports."""

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import iclab.theory
from iclab.studies import STUDIES
from iclab.study import Study
from iclab.testing import check_study
from tests.reached import reached

ROOT = Path(__file__).parents[1]
KEYS = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "references.bib").read_text(), flags=re.MULTILINE))
DERIVED = re.compile(r"docs/derivations/([\w_]+)")
THEORY = [
    module.name.removeprefix("iclab.theory.")
    for module in pkgutil.walk_packages(iclab.theory.__path__, "iclab.theory.")
    if not module.ispkg
]


def rows() -> list[dict[str, str]]:
    """The rows of docs/papers.md."""
    lines = [line for line in (ROOT / "docs/papers.md").read_text().splitlines() if line.startswith("|")]
    header = [cell.strip() for cell in lines[0].strip("|").split("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return [dict(zip(header, row, strict=True)) for row in cells]


def theory_functions() -> dict[str, object]:
    """The public functions that theory modules define, by module.function."""
    found = {}
    for name in THEORY:
        module = importlib.import_module(f"iclab.theory.{name}")
        for function, value in vars(module).items():
            if inspect.isfunction(value) and not function.startswith("_") and value.__module__ == module.__name__:
                found[f"{name}.{function}"] = value
    return found


def named(path: str) -> object:
    """What a row calls `room.module.name`; AttributeError where there is no such thing."""
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(f"iclab.{module}"), name)


def functions_of(row: dict[str, str]) -> list[str]:
    return re.findall(r"`((?:theory|spectra)\.[\w.]+)`", row["function"])


def named_study(study: Study) -> object:
    """The name of a study; those that simulate wait for the slow run, but for one of the headlines."""
    waits = study.simulation is not None and study.name != "abrupt-drop"
    return pytest.param(study.name, marks=pytest.mark.slow if waits else ())


@pytest.mark.parametrize("name", [named_study(study) for study in STUDIES.values()])
def test_every_study_keeps_the_contract(name: str) -> None:
    check_study(STUDIES[name])


def test_the_readme_names_every_study_and_asks_its_question() -> None:
    page = (ROOT / "README.md").read_text()
    assert set(STUDIES) <= set(re.findall(r"`([a-z-]+)`", page))
    asked = dict(re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", page, flags=re.MULTILINE))
    assert asked == {name: STUDIES[name].title for name in asked}


def test_imports_follow_the_arrows() -> None:
    command = Path(sys.executable).with_name("lint-imports")
    checked = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_every_theory_function_says_its_source_and_has_a_row() -> None:
    listed = [named(path) for row in rows() for path in functions_of(row)]
    for name, function in theory_functions().items():
        source = re.search(r"Source: (.*)", inspect.getdoc(function) or "", flags=re.DOTALL)
        assert source, f"{name} has no Source line"
        assert set(re.findall(r"\b[a-z]+\d{4}\w*", source[1])) & KEYS or DERIVED.search(source[1]), f"{name}: no key"
        assert function in listed, f"{name} has no row in docs/papers.md"


def test_every_derivation_that_is_cited_exists() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        for page in DERIVED.findall(path.read_text()):
            assert (ROOT / f"docs/derivations/{page}.md").exists(), f"{path.name} cites the page {page}"


def test_every_row_names_functions_tests_studies_and_papers_that_exist() -> None:
    for row in rows():
        assert functions_of(row), f"{row['result']} names no function"
        assert all(named(path) for path in functions_of(row))
        for test in re.findall(r"`([\w/]+\.py)`", row["test"]):
            assert (ROOT / "tests" / test).exists(), test
        for study in re.findall(r"`([\w-]+)`", row["study"]):
            assert study in set(STUDIES), study
        assert set(re.findall(r"\b[a-z]+\d{4}\w*", row["paper"])) <= KEYS, row["paper"]


def test_a_row_names_the_studies_that_compute_with_its_functions() -> None:
    used = {study.name: reached((study.theory or study.simulation).__module__) for study in STUDIES.values()}
    for row in rows():
        functions = {path: inspect.unwrap(named(path)) for path in functions_of(row)}
        studies = re.findall(r"`([\w-]+)`", row["study"])
        for study in studies:
            assert set(functions.values()) & used[study], f"{row['result']}: {study} uses none of its functions"
        for path, function in functions.items() if studies else ():
            assert any(function in used[study] for study in studies), f"{path} is used in none of {studies}"


def test_what_a_study_reaches_follows_imports_inside_functions() -> None:
    from iclab.theory import dynamics, population

    used = reached("iclab.studies.dynamics.staircase")
    named = map(inspect.unwrap, (population.modes, dynamics.separate_flow, dynamics.aligned_values))
    others = map(inspect.unwrap, (dynamics.conserved, dynamics.multi_output_loss, dynamics.reachable))
    assert set(named) <= used
    assert not set(others) & used


def test_no_theory_function_takes_a_key() -> None:
    for name in THEORY:
        tree = ast.parse((ROOT / f"src/iclab/theory/{name.replace('.', '/')}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                taken = {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
                assert not taken & {"key", "rng", "seed"}, f"{name}.{node.name} draws"
