"""The field's words: docstrings open with the name of the thing, and retired words stay retired."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGES = [
    *sorted((ROOT / "src").rglob("*.html")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").glob("*.py")),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
]
RETIRED = {
    r"steps? of (gradient )?descent on half|step of AdamW|step of Adam\b|step of gradient descent": "learning rate",
    r"by their slopes alone|require_slopes|loss_and_slope": "gradients",
    r"\bmiddle (one|gap|\|)": "median",
    r"random matrices read|levels? on random numbers": "null level",
    r"(softmax|linear|attention)_shares|shares of attention|attention shares": "attention weights",
    r"\bBESIDE\b": "batch or chunk size",
    r"\broom(_of)?\b|\b_?ROOMS\b": "pad_to, budget, module",
    r"contexts without end|\bendless\b": "infinite context length",
    r"\bconspicuous": "visible plateaus",
    r"\bhalf drops?\b": "half-drop time",
    r"accounts? of (a |the )?(run|finite)": "approximations",
    r"\byardstick in words\b": "threshold",
    r"by somebody else|somebody else's": "untrusted",
    r"(model|models) of (one's|your) own\b": "custom model",
    r"\bturned (positions?|rows?)|positions that turn": "rotary embedding",
    r"norms? in front|norms? behind": "pre-norm, post-norm",
    r"\bfans?\b(?!\"|')": "singular-value trajectories",
    r"\bworth\b(?! of)|\bworthy\b": "contribution",
    r"exhaustion_said": "exhaustion_reported",
    r"\bpull(s|ed)?\b": "signal, right-hand side, gradient",
    r"\bdrag\b": "curvature",
    r"[a-z](normalis|minimis|penalis|coloured|behaviour|labelled)": "American spelling",
}
KEPT = {  # names in stored files, and Python names that the words do not mean
    "fans": ("src/iclab/inspection",),
}


def docstrings() -> list[tuple[str, str]]:
    """Place and text of every docstring."""
    found = []
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                question = isinstance(node, ast.Module) and text.split("\n")[0].endswith("?")
                if not question:
                    found.append((f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}", text))
    return found


def test_docstrings_open_with_the_name_of_the_thing() -> None:
    opening = re.compile(r"(What|How|Whether|Where|Which|When|Why)\b")
    assert [place for place, text in docstrings() if opening.match(text)] == []


@pytest.mark.parametrize("pattern", sorted(RETIRED))
def test_retired_words_stay_retired(pattern: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in (*SOURCES, *PAGES)
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if re.search(pattern, line)
    ]
    assert found == [], f"say {RETIRED[pattern]}"
