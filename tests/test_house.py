"""The structure of the package: its groups, its folders, its doors, and the paths of 0.1.0."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import iclab
from iclab.moved import MOVED
from iclab.studies.registry import GROUPS, HOMES
from tests.house import SOURCE, modules, pairs, sizes

ROOT = Path(__file__).parents[1]
NAMES = [name for name, _ in modules() if not name.endswith("__main__")]


@pytest.mark.parametrize(("room", "most"), [("theory", 11), ("studies", 2), ("simulation", 12), ("spectra", 13)])
def test_few_groups_of_a_room_import_each_other(room: str, most: int) -> None:
    found = [pair for pair in pairs(f"iclab.{room}") if "registry" not in pair]
    assert len(found) <= most, found


def test_no_folder_holds_more_modules_than_a_reader_takes_in() -> None:
    assert {folder: count for folder, count in sizes().items() if count > 14} == {}
    top = [one for one in (SOURCE / "iclab").iterdir() if one.suffix == ".py" or (one / "__init__.py").exists()]
    assert len(top) <= 27


def test_doors_hold_no_logic() -> None:
    for _, path in modules():
        if path.name == "__init__.py":
            kinds = {type(node).__name__ for node in ast.parse(path.read_text()).body}
            assert not kinds & {"FunctionDef", "ClassDef", "For", "While", "With"}, path


def test_every_public_module_lists_what_others_may_use() -> None:
    for name in NAMES:
        module = importlib.import_module(name)
        assert hasattr(module, "__all__"), f"{name} has no __all__"
        assert [one for one in module.__all__ if one != "__version__" and one.startswith("_")] == [], name
        assert [one for one in module.__all__ if not hasattr(module, one)] == [], name


ONE_MEANING = {  # words that name one thing, and where it is
    "Law": None,
    "Moments": "theory/population.py",
    "Network": "simulation/networks/parts.py",
    "Plan": None,
    "Shift": "theory/pretraining/response.py",
    "head_flow": "theory/dynamics/heads.py",
    "key_of": "simulation/keys.py",
    "moments": "theory/population.py",
    "plan": "commands/plan.py",
    "pull": None,
    "room": None,
    "room_of": None,
}


@pytest.mark.parametrize("word", sorted(ONE_MEANING))
def test_a_word_names_one_thing(word: str) -> None:
    homes = [
        str(path.relative_to(SOURCE / "iclab"))
        for _, path in modules()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == word
    ]
    assert homes == ([ONE_MEANING[word]] if ONE_MEANING[word] else [])


def test_every_name_of_a_door_is_there_and_listed() -> None:
    for name in NAMES:
        module = importlib.import_module(name)
        if hasattr(module, "__path__"):
            for offered in getattr(module, "__all__", ()):
                assert getattr(module, offered) is not None, f"{name}.{offered}"
                assert offered in dir(module), f"{name}.{offered}"


def test_the_top_shows_what_is_for_users() -> None:
    assert len(dir(iclab)) <= 20
    assert set(dir(iclab)) == set(iclab.__all__)


def test_every_subpackage_and_study_is_an_attribute() -> None:
    code = f"""
import iclab
for path in {[name for name in NAMES if (SOURCE / name.replace(".", "/")).is_dir()]}:
    found = iclab
    for part in path.split(".")[1:]:
        found = getattr(found, part)
    assert found.__name__ == path, path
for name in {sorted(HOMES)}:
    assert type(getattr(iclab.studies, name)).__name__ == "Study", name
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_doors_and_the_registry_show_type_checkers_the_same_names() -> None:
    for name, path in modules():
        if path.name != "__init__.py" or "door(" not in (text := path.read_text()):
            continue
        tree = ast.parse(text)
        block = next(node for node in tree.body if isinstance(node, ast.If))
        shown = {alias.asname or alias.name for node in block.body for alias in node.names}
        assert set(importlib.import_module(name).__all__) - {"__version__", "STUDIES"} <= shown, name
    assert set(HOMES) | set(GROUPS) | {"STUDIES"} == set(iclab.studies.__all__)


@pytest.mark.parametrize("old", sorted(MOVED))
def test_a_path_of_the_last_version_names_its_successor(old: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=re.escape(f"iclab.{old} moved to iclab.{MOVED[old]}")):
        importlib.import_module(f"iclab.{old}")
    if re.fullmatch(r"[\w.]+", MOVED[old]):
        importlib.import_module(f"iclab.{MOVED[old]}")


@pytest.mark.parametrize(
    ("line", "successor"),
    [
        ("from iclab import conventions", "iclab.published"),
        ("from iclab.theory import softmax_window", "iclab.theory.softmax.window"),
        ("from iclab.spectra import integrity", "iclab.spectra.observation.integrity"),
        ("from iclab.simulation import snapshots", "iclab.simulation.networks.snapshots"),
        ("from iclab.studies import training", "iclab.studies.dynamics.training"),
        ("from iclab.agreement import Verdict", "iclab.claims"),
        ("from iclab.outcomes import Levels", "iclab.outcomes (labeled arrays)"),
        ("from iclab.claims import WithinErrors", "iclab.claims (Agrees)"),
        ("from iclab.theory.modes import head_flow", "iclab.theory.modes (single_head_flow)"),
    ],
)
def test_imports_written_for_the_last_version_name_the_successor(line: str, successor: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=re.escape(f"moved to {successor}")):
        exec(line)


def test_an_attribute_of_the_last_version_names_its_successor() -> None:
    with pytest.raises(AttributeError, match=r"iclab\.theory\.modes_exact moved to iclab\.theory\.modes\.exact"):
        _ = iclab.theory.modes_exact
    with pytest.raises(AttributeError, match=r"iclab\.conventions moved to iclab\.published"):
        _ = iclab.conventions
    with pytest.raises(AttributeError, match="module 'iclab' has no attribute 'Regresion'"):
        _ = iclab.Regresion


def test_the_changelog_names_every_path_that_moved() -> None:
    page = (ROOT / "CHANGELOG.md").read_text()
    assert [old for old in MOVED if f"`{old}`" not in page] == []


@pytest.mark.parametrize(
    "old", ["claims.Within", "outcomes.Table", "spectra.measures.balance", "simulation.pretraining.plan"]
)
def test_an_attribute_that_moved_names_its_successor(old: str) -> None:
    package, _, name = f"iclab.{old}".rpartition(".")
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'; iclab.{old} moved to iclab"):
        getattr(importlib.import_module(package), name)
