"""Notebooks in examples/ run from their first cell to their last, and show figures and few lines of text."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.ipynb"))


def test_notebooks_are_kept_without_outputs() -> None:
    assert len(EXAMPLES) == 3
    for path in EXAMPLES:
        cells = json.loads(path.read_text())["cells"]
        assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == [], path.name


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
@pytest.mark.filterwarnings("default")  # of the sockets and event loops of a kernel
def test_a_notebook_runs_to_its_end_and_shows_its_figures(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = pytest.importorskip("nbclient", reason="notebooks run where the extra test is installed")
    nbformat, _ = pytest.importorskip("nbformat"), pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    notebook = nbformat.read(path, as_version=4)
    client.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    shown = [output["data"] for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    drawn = [data for data in shown if "image/svg+xml" in data or "<svg" in data.get("text/html", "")]
    assert drawn
    texts = [data["text/plain"] for data in shown if data not in drawn and "text/html" not in data]
    assert max(len(text.splitlines()) for text in texts) <= 10
