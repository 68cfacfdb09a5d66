"""`iclab inspect` as a person meets it: what it prints and writes, how it refuses, what hostile names do."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from iclab.commands.main import main
from iclab.spectra.measures import null
from tests.test_observe import CONFIG, states
from tests.test_untrusted import NASTY

MAPPING = """heads = 1
[[tensor]]
match = '(?s:.+)'
role = "mlp_in"
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder with ten checkpoints of a small model."""
    return written(tmp_path / "run", states())


def written(folder: Path, given: list[dict[str, np.ndarray]], **config: object) -> Path:
    for index, one in enumerate(given):
        (folder / f"step{10 * index}").mkdir(parents=True)
        save_file(one, folder / f"step{10 * index}" / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({**CONFIG, **config}))
    return folder


def inspect(*words: object) -> int:
    return main(["inspect", *map(str, words), "--no-page"])  # test_inspect_page.py draws it


def results(out: Path) -> dict:
    return json.loads((out / "results.json").read_text(), parse_constant=pytest.fail)


def test_the_summary_starts_with_integrity_and_ends_with_the_files(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert inspect(run, "--out", tmp_path / "out") == 0
    said = capsys.readouterr()
    assert said.out.startswith("integrity: nothing found")
    assert "effective_rank" in said.out
    assert said.out.rstrip().endswith("results.json")
    assert "10 checkpoints, each with 18 circuits in 2 layers and 3 whole matrices" in said.err


def test_json_table_and_csv_hold_the_same_rows(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert inspect(run, "--out", tmp_path / "out", "--csv", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    table = results(tmp_path / "out")["table"]
    assert printed["table"] == table
    with open(tmp_path / "out" / "results.csv", newline="") as file:
        sheet = list(csv.DictReader(file))
    assert list(table[0]) == [
        "step", "tower", "layer", "head", "matrix", "measure", "value", "null", "spread", "gap", "norm", "status",
        "reason",
    ]  # fmt: skip
    assert len(sheet) == len(table) == 10 * (18 * 9 + 3 * 10 + 12)  # heads: 9 or 10 measures
    assert [row["value"] for row in sheet] == ["" if row["value"] is None else str(row["value"]) for row in table]


def test_parquet_holds_typed_columns_with_nulls(run: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert inspect(run, "--out", tmp_path / "out", "--parquet") == 0
    sheet = parquet.read_table(tmp_path / "out" / "results.parquet")
    assert str(sheet.schema.field("layer").type) == "int64"
    assert sheet.column("value").to_pylist() == [row["value"] for row in results(tmp_path / "out")["table"]]


def test_without_pyarrow_parquet_says_what_to_install(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert inspect(run, "--out", tmp_path / "out", "--parquet") == 2
    assert "pip install -e '.[parquet]'" in capsys.readouterr().err
    assert not list((tmp_path / "out").glob("results.*"))


def test_undefined_numbers_are_null_with_a_status(tmp_path: Path) -> None:
    given = states()
    given[3]["model.layers.0.self_attn.q_proj.weight"][0, 0] = np.nan
    assert inspect(written(tmp_path / "run", given), "--out", tmp_path / "out") == 0
    rows = [row for row in results(tmp_path / "out")["table"] if row["status"] == "nonfinite"]
    assert {row["step"] for row in rows} == {30}
    assert all(row["value"] is None and row["reason"] for row in rows)


def test_a_series_that_is_not_sound_fails_under_strict_alone(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    given = states()
    folder = written(tmp_path / "run", [given[-1], given[-1], given[-1], *given[3:]])
    assert inspect(folder, "--out", tmp_path / "out") == 0
    assert inspect(folder, "--out", tmp_path / "out", "--strict") == 1
    said = capsys.readouterr()
    assert "copies of one checkpoint" in said.out
    assert said.err.rstrip().splitlines()[-1].startswith("iclab: the series is not sound: ")


def test_nothing_analysed_exits_with_one_and_the_reasons(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    folder = written(tmp_path / "run", [{"scale": np.ones(3, np.float32), "w": np.ones((2, 2), np.float32)}])
    assert inspect(folder, "--out", tmp_path / "out") == 1
    said = capsys.readouterr()
    assert "no name of a llama layer" in said.err.splitlines()[-1]
    assert {one["name"] for one in results(tmp_path / "out")["runs"]["this"]["skipped"]} == {"scale", "w"}


def test_behavior_is_joined_on_the_exact_step_and_the_rest_is_listed(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    table = tmp_path / "skill.csv"
    table.write_text("step,accuracy\n" + "".join(f"{step},{step / 100}\n" for step in (0, 10, 20, 25, 90)))
    assert inspect(run, "--out", tmp_path / "out", "--behavior", table) == 0
    found = results(tmp_path / "out")["behavior"]
    assert found["columns"]["accuracy"] == [0.0, 0.1, 0.2, *[None] * 6, 0.9]
    assert found["steps_without_checkpoint"] == [25]
    assert found["checkpoints_without_row"] == [30, 40, 50, 60, 70, 80]
    assert "rows of the behavior without a checkpoint: step 25" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("accuracy\n1\n", "must name one column step"),
        ("step\n1\n", "must name one column step"),
        ("step,a\n", "must have a row of numbers"),
        ("step,a\n1,x\n", "row 2, column 'a' of 'skill.csv' must be a number; got 'x'"),
        ("step,a\n1.5,2\n", "must hold whole numbers >= 0"),
        ("step,a\n1,2\n1,3\n", "1 comes twice with a value of 'a', in rows 2 and 3"),
        ("step,a\n1,2,3\n", "row 2 of 'skill.csv' must have 2 cells"),
        ("", "must name one column step"),
    ],
)
def test_a_table_of_behavior_that_cannot_be_used_is_refused(
    text: str, message: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "skill.csv").write_text(text)
    assert inspect(run, "--out", tmp_path / "out", "--behavior", tmp_path / "skill.csv") == 2
    assert message in capsys.readouterr().err


def test_a_change_beside_one_of_behavior_coincides_with_it(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    rng, folder = np.random.default_rng(0), tmp_path / "run"
    folder.mkdir()
    for step in range(24):
        save_file({"w": rng.standard_normal((16, 16)) + 12.0 * (step >= 15)}, folder / f"step{step}.safetensors")
    (tmp_path / "map.toml").write_text(MAPPING)
    skill = [f"{step},{(step >= 15) + 0.01 * rng.standard_normal()}" for step in range(24)]
    (tmp_path / "skill.csv").write_text("\n".join(["step,skill", *skill]))
    words = (folder, "--map", tmp_path / "map.toml", "--out", tmp_path / "out", "--behavior", tmp_path / "skill.csv")
    assert inspect(*words, "--measures", "stable_rank") == 0
    said = capsys.readouterr().out
    assert "coincides with" in said
    assert "skill at 15" in said
    assert "explain" not in said
    assert inspect(*words[:-2], "--measures", "stable_rank") == 0
    alone = capsys.readouterr().out
    assert "from step" in alone
    assert "coincides with" not in alone, "there is no behavior"


def test_two_runs_on_different_clocks_are_not_compared_unless_forced(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    one = written(tmp_path / "one", states(), samples_per_step=1024)
    other = written(tmp_path / "other", states(), samples_per_step=2048)
    words = (one, "--against", other, "--out", tmp_path / "out", "--measures", "stable_rank")
    assert inspect(*words) == 2
    assert "as many samples per step to be compared on steps; got 1024 and 2048" in capsys.readouterr().err
    assert inspect(*words, "--force") == 0
    assert {row["run"] for row in results(tmp_path / "out")["table"]} == {"this", "against"}
    assert inspect(*words, "--samples-per-step", 5, 5) == 0


def test_behavior_is_that_of_the_first_of_two_runs(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    other = written(tmp_path / "other", states()[:9])
    (tmp_path / "skill.csv").write_text("step,skill\n" + "".join(f"{10 * k},{int(k > 4)}\n" for k in range(10)))
    words = (run, "--against", other, "--out", tmp_path / "out", "--behavior", tmp_path / "skill.csv")
    assert inspect(*words) == 0
    said = capsys.readouterr()
    assert "run: against" in said.out
    assert "samples per step are not known of both runs" in said.err
    assert results(tmp_path / "out")["behavior"]["columns"]["skill"] == [0.0] * 5 + [1.0] * 5


def test_contents_are_remembered_until_a_file_changes(run: Path, tmp_path: Path) -> None:
    assert inspect(run, "--out", tmp_path / "out") == 0
    pages = {page: page.stat().st_mtime_ns for page in (tmp_path / "out" / "contents").rglob("*.json")}
    assert len(pages) == 10
    assert inspect(run, "--out", tmp_path / "out") == 0
    assert {page: page.stat().st_mtime_ns for page in pages} == pages
    assert inspect(run, "--out", tmp_path / "out", "--rehash") == 0
    assert all(page.stat().st_mtime_ns > before for page, before in pages.items())


def test_results_tell_no_absolute_path_unless_asked(run: Path, tmp_path: Path) -> None:
    assert inspect(run, "--out", tmp_path / "out", "--csv") == 0
    for file in (tmp_path / "out").rglob("*.*"):
        assert str(tmp_path) not in file.read_text()
    assert inspect(run, "--out", tmp_path / "out", "--with-paths") == 0
    assert results(tmp_path / "out")["paths"] == {"this": str(run.resolve())}


def test_nothing_half_written_stays_when_writing_fails(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("iclab.inspection.tables.stream_json", full)
    assert inspect(run, "--out", tmp_path / "out") == 2
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == ["contents"]
    assert not list((tmp_path / "out").rglob(".unfinished*"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "the path must exist; got 'nowhere'"),
        (["RUN", "--layers", "9"], "layers must be among 0, 1; got 9"),
        (["RUN", "--heads", "3"], "heads must be from 0 to 2; got 3"),
        (["RUN", "--measures", "rank"], "measures must be among ranks, overlaps, distances"),
        (["RUN", "--every", "0"], "every must be a whole number >= 1; got 0"),
        (["RUN", "--leading", "0"], "leading must be a whole number >= 1; got 0"),
        (["RUN", "--fols"], "flags must be among"),
        (["RUN", "--config", "a", "--map", "b"], "give either --config or --map; got both"),
        (["RUN", "--config", "nowhere.json"], "--config must be a config.json; got 'nowhere.json'"),
        (["RUN", "--map", "nowhere.toml"], "--map must be a TOML file; got 'nowhere.toml'"),
        (["RUN", "--behavior", "nowhere.csv"], "--behavior must be a CSV file; got 'nowhere.csv'"),
        (["RUN", "--samples-per-step", "0"], "--samples-per-step must be one positive number"),
        (["RUN", "--out", "/dev/null/x"], "--out must be a folder that can be written"),
        ([], "PATH"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(
    words: list[str], message: str, run: Path, capsys: pytest.CaptureFixture
) -> None:
    assert inspect(*[str(run) if word == "RUN" else word for word in words]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_help_says_what_is_read_and_how_to_start(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["inspect", "--help"])
    assert stop.value.code == 0
    said = capsys.readouterr().out
    for words in ("safetensors", "--behavior", "iclab inspect runs/pythia --every 10", "Exit code"):
        assert words in said


@pytest.mark.parametrize("name", NASTY)
def test_hostile_names_do_no_harm_in_any_output(name: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    pytest.importorskip("pyarrow")
    folder = tmp_path / "run"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for step in range(10):
        tensors = {name: rng.standard_normal((6, 5)), f"{name}.other": np.zeros((3, 2)), "vector": np.ones(2)}
        save_file(tensors, folder / f"step{step}.safetensors")
    (tmp_path / "map.toml").write_text(MAPPING)
    (tmp_path / "skill.csv").write_text(f"step,{name}\n1,2\n", encoding="utf-8")
    words = (folder, "--map", tmp_path / "map.toml", "--out", tmp_path / "out", "--csv", "--parquet", "--behavior")
    assert inspect(*words, tmp_path / "skill.csv") == 0
    assert inspect(*words, tmp_path / "skill.csv", "--json") == 0
    said = capsys.readouterr()
    for text in (said.out, said.err, (tmp_path / "out" / "results.csv").read_text(encoding="utf-8")):
        assert not any(sign in text for sign in ("\x1b", "\x07", "\u202e"))
    with open(tmp_path / "out" / "results.csv", newline="", encoding="utf-8") as file:
        cells = [
            cell for row in csv.DictReader(file) for column, cell in row.items() if column in ("matrix", "reason")
        ]
    assert not any(cell.lstrip()[:1] in ("=", "+", "-", "@") for cell in cells if cell)
    assert {row["matrix"] for row in results(tmp_path / "out")["table"]} == {name, f"{name}.other"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "contents", "results.json", "results.csv", "results.parquet",
    }  # fmt: skip


def test_markup_in_a_name_is_shown_as_it_is(capsys: pytest.CaptureFixture) -> None:
    from iclab.commands.terminal import print_table

    print_table(("name",), [["a[/b]c"], ["[red]x[/red]"], [":smile:"]])
    assert capsys.readouterr().out.split() == ["name", "a[/b]c", "[red]x[/red]", ":smile:"]


def test_a_table_loses_no_letter_where_a_terminal_is_narrow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    from iclab.commands.terminal import print_table

    monkeypatch.setenv("COLUMNS", "20")
    print_table(("name", "measure"), [["layer", "marginal_effective_rank"]])
    assert "".join(capsys.readouterr().out.split()) == "namemeasurelayermarginal_effective_rank"


def test_bfloat16_is_inspected_with_torch_and_jax_blocked(tmp_path: Path) -> None:
    import ml_dtypes

    given = [{name: array.astype(ml_dtypes.bfloat16) for name, array in one.items()} for one in states(3)]
    folder = written(tmp_path / "run", given)
    program = f"""
import sys
class Blocked:
    def find_spec(self, name, *_):
        if name.split(".")[0] in ("torch", "jax", "pyarrow"):
            raise ImportError(f"{{name}} is blocked")
sys.meta_path.insert(0, Blocked())
from iclab.commands.main import main
sys.exit(main(["inspect", {str(folder)!r}, "--out", {str(tmp_path / "out")!r}]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    table = results(tmp_path / "out")["table"]
    assert {row["status"] for row in table if row["measure"] != "overlap_with_previous"} == {"ok"}


def adapters(folder: Path, count: int = 3, rank: int = 2) -> Path:
    """Adapters of queries and of one other matrix; those of step 0 are untrained."""
    rng = np.random.default_rng(0)
    for index in range(count):
        path = folder / f"checkpoint-{index}"
        path.mkdir(parents=True)
        given = {}
        for module, out in (("self_attn.q_proj", 12), ("mlp.up_proj", 20)):
            name = f"base_model.model.model.layers.0.{module}.lora_"
            given[f"{name}A.weight"] = rng.standard_normal((rank, 12)).astype(np.float32)
            given[f"{name}B.weight"] = (index * rng.standard_normal((out, rank))).astype(np.float32)
        save_file(given, path / "adapter_model.safetensors")
        (path / "adapter_config.json").write_text(json.dumps({"r": rank, "lora_alpha": 2 * rank}))
    return folder


def base_of(folder: Path) -> Path:
    folder.mkdir()
    save_file(states()[0], folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def test_adapters_are_read_on_their_base(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    below = base_of(tmp_path / "base")
    assert inspect(adapters(tmp_path / "run"), "--base", below, "--out", tmp_path / "out") == 0
    assert "2 adapters are read on their base" in capsys.readouterr().out
    table = results(tmp_path / "out")["table"]
    given = load_file(tmp_path / "run" / "checkpoint-2" / "adapter_model.safetensors")
    part = {side: given[f"base_model.model.model.layers.0.self_attn.q_proj.lora_{side}.weight"] for side in "AB"}
    weights = load_file(below / "model.safetensors")
    query = weights["model.layers.0.self_attn.q_proj.weight"] + 2 * part["B"] @ part["A"]
    key = weights["model.layers.0.self_attn.k_proj.weight"]
    values = np.linalg.svd(query[:4].T.astype(float) @ key[:4], compute_uv=False)[:4]
    read = {
        (row["step"], row["layer"], row["head"], row["matrix"]): row["value"]
        for row in table
        if row["measure"] == "stable_rank"
    }
    assert read[2, 0, 0, "QK"] == pytest.approx(np.sum(values**2) / values[0] ** 2, rel=1e-5)  # formed in float32
    plain = np.linalg.svd(weights["model.layers.1.mlp.up_proj.weight"].astype(float), compute_uv=False)
    assert read[2, 1, None, "model.layers.1.mlp.up_proj.weight"] == pytest.approx(
        np.sum(plain**2) / plain[0] ** 2, rel=1e-9
    )


def test_changes_alone_stand_beside_random_products_of_their_rank(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    words = ("--config", tmp_path / "config.json", "--out", tmp_path / "out")
    assert inspect(adapters(tmp_path / "run"), *words) == 0
    assert "2 of 2 adapters are zero (untrained B), 'model.layers.0.mlp.up_proj' the first (at step 0)" in (
        capsys.readouterr().out
    )
    row = next(
        row
        for row in results(tmp_path / "out")["table"]
        if (row["step"], row["measure"]) == (2, "effective_rank") and "up_proj" in row["matrix"]
    )
    assert row["null"] == pytest.approx(null.level((20, 2, 12), "effective_rank")[0])
    assert row["value"] <= 2 + 1e-4  # rank two, and the rounding of float32


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("run", "must be the one checkpoint that was adapted"),
        ("run/checkpoint-1", "is an adapter itself"),
        ("nowhere", "must exist"),
    ],
)
def test_a_base_that_is_none_is_refused(
    base: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert inspect(adapters(tmp_path / "run"), "--base", tmp_path / base, "--out", tmp_path / "out") == 2
    assert message in capsys.readouterr().err


def test_a_base_without_adapters_is_refused(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert inspect(run, "--base", base_of(tmp_path / "base"), "--out", tmp_path / "out") == 2
    assert "this checkpoint has none" in capsys.readouterr().err


def test_the_terminal_shows_the_measures_that_were_asked_for(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert inspect(run, "--measures", "stable_rank", "--out", tmp_path / "out") == 0
    assert "stable_rank" in capsys.readouterr().out


def test_a_checkpoint_that_cannot_be_read_is_not_called_missing_and_the_final_one_is_said(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    for step in (50, 90):
        (run / f"step{step}" / "model.safetensors").write_bytes(b"")
    assert inspect(run, "--out", tmp_path / "out") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "unread checkpoints" in said
    assert "missing steps" not in said
    assert "the final one that others are compared with is step 80" in said


def test_names_of_another_family_are_said_to_be_none_of_its_attention(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_head": 3, "n_embd": 12}))
    inspect(run, "--config", tmp_path / "config.json", "--out", tmp_path / "out")
    assert "no tensor has a name of the attention of a gpt2 model" in " ".join(capsys.readouterr().out.split())


def test_a_pipe_that_closes_early_is_no_error(run: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "iclab", "inspect", str(run), "--out", str(tmp_path / "out"), "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr is not None
        said = process.stderr.read().decode()
    assert "Traceback" not in said
