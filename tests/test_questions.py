"""Questions ask: what runs showed stands in docs/studies, not in the text that every case shows."""

import re
from pathlib import Path

import pytest

from iclab.studies import STUDIES

PAGES = sorted((Path(__file__).parents[1] / "docs/studies").glob("*"))
NAMES = re.compile(
    r"\b\d{4}\.\d{4,5}\b"  # arXiv ids
    r"|\b(?:figure|equation|section|table)s?\s+[\d.]*\d(?:\s+and\s+[\d.]*\d)*",
)
MEASURED = re.compile(r"\d*\.\d+|\d+\s?%|±|\b\d{3,}\b")


def measured(question: str) -> list[str]:
    """Numbers of a question that runs may have shown: decimals, percentages, spreads and numbers of three digits."""
    return MEASURED.findall(NAMES.sub("", question))


@pytest.mark.parametrize("name", STUDIES)
def test_a_question_holds_no_measured_number(name: str) -> None:
    assert measured(STUDIES[name].question) == []


@pytest.mark.parametrize("number", [".97", "0.35", "1.43", "58 %", "90%", "±", "150", "2000"])
def test_measured_numbers_are_found(number: str) -> None:
    assert measured(f"Published as figure 3 of arXiv 2501.16265. It ends at {number}, as said.") == [number]


def test_what_is_published_where_is_no_measured_number() -> None:
    question = (
        "One peak at τ = 1, D(D + 1) weights, a gap of order 1/D? Published as equations 18 and 19,\n"
        "in section 2.2 and figure\n6 of arXiv 2501.16265."
    )
    assert measured(question) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_of_findings_names_a_study_and_its_question(page: Path) -> None:
    assert page.suffix == ".md"
    assert page.stem in STUDIES
    assert page.read_text().startswith(f"# {page.stem}\n\n{STUDIES[page.stem].title}\n")


@pytest.mark.parametrize("name", STUDIES)
def test_a_question_and_its_page_of_findings_know_each_other(name: str) -> None:
    assert re.findall(r"docs/studies/([\w-]+)", STUDIES[name].question) == [name] * (
        name in {page.stem for page in PAGES}
    )
