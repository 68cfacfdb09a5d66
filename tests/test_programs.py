"""Compiled programs: loaded by the next process, never from a folder of others; trouble with them is no failure."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from iclab.simulation import programs

PROCESS = """
import json, sys
from iclab.simulation import programs

said = []
if "full" in sys.argv:  # as a disk is on which no file grows beyond 100 bytes
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
with programs.kept(off="off" in sys.argv, say=said.append):
    import jax, jax.monitoring
    told = []
    jax.monitoring.register_event_listener(lambda name, **_: told.append(name.rpartition("/")[2]))
    answer = jax.jit(lambda x: (x @ x.T + jax.numpy.sin(x)).sum())(jax.numpy.arange(16.0).reshape(4, 4))
    print(json.dumps({"answer": float(answer).hex(), "said": said, "loaded": told.count("cache_hits"),
                      "kept": told.count("cache_misses"), "asked": told.count("compile_requests_use_cache")}))
"""


def process(cache: Path | str, *words: str, **environment: str) -> dict:
    """What a process says that compiles a few programs."""
    own = {name: text for name, text in os.environ.items() if not name.startswith("JAX_")}
    own |= {"ICLAB_CACHE": str(cache), "JAX_PLATFORMS": "cpu"} | environment
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", PROCESS, *words],
        env=own, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def entries(cache: Path) -> list[Path]:
    return sorted(cache.glob("programs/*/*-cache"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """A folder with the programs of one process, and what that said."""
    cache = tmp_path_factory.mktemp("cache")
    return cache, process(cache)


def test_a_second_process_loads_every_program_and_gives_the_same_bits(filled: tuple[Path, dict]) -> None:
    cache, first = filled
    second = process(cache)
    assert first["loaded"] == 0
    assert first["kept"] == first["asked"] == second["loaded"] == len(entries(cache)) > 0
    assert second["kept"] == 0
    assert second["answer"] == first["answer"]
    assert first["said"] == second["said"] == []


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
def test_the_folder_is_the_user_s_alone(filled: tuple[Path, dict]) -> None:
    folder = entries(filled[0])[0].parent
    assert [one.stat().st_mode & 0o777 for one in (folder, folder.parent)] == [0o700, 0o700]


@pytest.mark.parametrize("way", [("", "off"), ("off",)], ids=["--no-cache", "ICLAB_CACHE"])
def test_nothing_is_kept_where_that_is_asked(way: tuple[str, ...], tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    said = process(way[0] or tmp_path, *way[1:], **home)
    assert (said["loaded"], said["kept"], said["said"]) == (0, 0, [])
    assert not list(tmp_path.rglob("*-cache"))


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
def test_a_folder_that_others_could_fill_is_not_used(filled: tuple[Path, dict]) -> None:
    folder = entries(filled[0])[0].parent
    folder.chmod(0o770)
    try:
        found = process(filled[0])
    finally:
        folder.chmod(0o700)
    assert (found["loaded"], found["kept"]) == (0, 0)
    assert found["said"] == [f"compiled programs are not kept: {folder} must be yours, with mode 700; got 770"]


@pytest.mark.parametrize("damage", [lambda whole: whole[:-20], lambda whole: _flipped(whole)],
                         ids=["cut short", "a bit flipped"])  # fmt: skip
def test_a_damaged_program_is_compiled_anew_and_replaced(damage: Callable, filled: tuple[Path, dict]) -> None:
    cache, first = filled
    for path in entries(cache):
        path.write_bytes(damage(path.read_bytes()))
    second = process(cache)
    assert second["answer"] == first["answer"]
    assert len(second["said"]) == 1
    assert "compiled anew" in second["said"][0]
    third = process(cache)
    assert (third["loaded"], third["said"]) == (third["asked"], [])


def _flipped(whole: bytes) -> bytes:
    middle = len(whole) // 2
    return whole[:middle] + bytes([whole[middle] ^ 4]) + whole[middle + 1 :]


@pytest.mark.skipif(os.name != "posix", reason="limits of files are those of POSIX")
def test_a_full_disk_is_no_failure(tmp_path: Path, filled: tuple[Path, dict]) -> None:
    found = process(tmp_path, "full")
    assert found["answer"] == filled[1]["answer"]
    assert len(found["said"]) == 1
    whole = process(tmp_path)  # what was cut short is replaced once there is room
    assert whole["answer"] == filled[1]["answer"]


def test_a_folder_that_cannot_be_made_is_no_failure(tmp_path: Path, filled: tuple[Path, dict]) -> None:
    (tmp_path / "file").touch()
    found = process(tmp_path / "file")
    assert found["answer"] == filled[1]["answer"]
    assert len(found["said"]) == 1


def test_a_folder_set_for_jax_itself_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "theirs"))
    monkeypatch.setenv("ICLAB_CACHE", str(tmp_path / "ours"))
    with programs.kept():
        assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(tmp_path / "theirs")
    assert not list(tmp_path.iterdir())


def test_settings_end_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.setenv("ICLAB_CACHE", str(tmp_path))
    before = dict(os.environ)
    with programs.kept():
        assert Path(os.environ["JAX_COMPILATION_CACHE_DIR"]).parent.parent == tmp_path
    assert dict(os.environ) == before


def test_what_was_used_least_recently_goes_beyond_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.setenv("ICLAB_CACHE", str(tmp_path))
    monkeypatch.setattr(programs, "LIMIT", 1000.0)
    older = tmp_path / "programs" / "jax-of-last-year"
    with programs.kept():
        pass
    older.mkdir()
    now = time.time()
    for age in range(12):
        (older / f"jit_{age}-cache").write_bytes(bytes(100))
        os.utime(older / f"jit_{age}-cache", (now - age, now - age))
    with programs.kept():
        pass
    assert {path.name for path in older.iterdir()} == {f"jit_{age}-cache" for age in range(8)}


def test_other_versions_and_processors_have_other_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {programs._machine()}
    monkeypatch.setattr(programs, "_processor", lambda: ["another"])
    names.add(programs._machine())
    monkeypatch.setattr(programs.metadata, "version", lambda _: "0.0")
    names.add(programs._machine())
    assert len(names) == 3


def test_importing_iclab_sets_nothing() -> None:
    text = (
        "import os; import iclab.simulation.linear.descent, iclab.simulation.programs, jax; "
        "assert jax.config.jax_compilation_cache_dir is None and not [name for name in os.environ if 'CACHE' in name]"
    )
    own = {name: text for name, text in os.environ.items() if "CACHE" not in name}
    done = subprocess.run([sys.executable, "-c", text], env=own, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("system", "environment", "folder"),
    [
        ("linux", {"HOME": "/home/u"}, "/home/u/.cache/iclab"),
        ("linux", {"HOME": "/home/u", "XDG_CACHE_HOME": "/fast"}, "/fast/iclab"),
        ("linux", {"HOME": "/home/u", "XDG_CACHE_HOME": "not/whole"}, "/home/u/.cache/iclab"),
        ("darwin", {"HOME": "/Users/u"}, "/Users/u/Library/Caches/iclab"),
    ],
)
def test_the_folder_follows_the_convention_of_the_system(
    system: str, environment: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", system)
    assert programs.user_folder() == Path(folder)
