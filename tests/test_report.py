"""The page: self-contained, complete, and safe whatever a study calls itself."""

import base64
import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab import report
from iclab.claims import Verdict
from iclab.commands.main import main
from iclab.store import read
from iclab.studies import STUDIES
from tests.test_study import study

HEADLINES = [study for study in STUDIES.values() if study.headline]


class Parsed(HTMLParser):
    """Addresses and ids of a page, and whether every element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        for name, value in attrs:
            if name in ("href", "src", "xlink:href"):
                self.addresses.append(value)
            if name == "id":
                self.ids.append(value)
        if tag not in ("meta", "br", "img", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list) -> None:
        self.handle_starttag(tag, attrs)
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def entry(**changes: object) -> report.Entry:
    whole = {
        "name": "made-up",
        "question": "Is it so?\n\nWe ask.",
        "size": "quick",
        "case": '{"height": 1.0, "problem": {"noise": 0.5, "sizes": [1, 2]}}',
        "verdicts": [Verdict("exact", "It is so.", "deviation", 0.0101, 0.02, "holds", (("gap", "1e-3"),))],
        "figure": "<svg></svg>",
        "downloads": [report.Download("made-up.csv", b"a,b\n1,2\n")],
        "seconds": 1.5,
        "seeds": [0, 1],
        "origin": {"versions": "numpy 2", "commit": "abc"},
    }
    return report.Entry(**(whole | changes))  # type: ignore[arg-type]


def page_of(**changes: object) -> str:
    return report.page([entry(**changes)], date="today", version="0")


def test_the_page_shows_question_case_verdict_and_what_was_asked() -> None:
    page = page_of()
    for text in (
        "Is it so?",
        "We ask.",
        "--height",
        "--problem.sizes",
        "1, 2",
        "≤ 1 %",
        "≤ 2 %",
        "holds",
        "numpy 2",
    ):
        assert text in page


def test_a_claim_that_fails_or_stays_open_is_said() -> None:
    failed = page_of(verdicts=[Verdict("c", "s", "m", 0.1, 0.75, "does not hold")])
    assert '<td class="no">does not hold</td>' in failed
    unknown = page_of(verdicts=[Verdict("c", "s", "m", float("nan"), 0.75, "open", reason="one seed")])
    assert '<td class="soft">open: one seed</td>' in unknown
    assert "nan" not in unknown
    assert "theory alone" in page_of(verdicts=[])
    assert "size, theory alone<" in page_of(seeds=[])


def test_claims_are_listed_at_the_top_as_sentences() -> None:
    top, _ = page_of().split("<section")
    assert "<td>It is so.</td>" in top


def test_names_and_texts_are_shown_and_never_run() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    page = page_of(
        name=hostile, question=f"{hostile}?", case=json.dumps({"a": hostile}), origin={"versions": hostile}
    )
    assert hostile not in page
    assert "default-src 'none'" in page


def test_downloads_hold_what_they_say() -> None:
    address = next(a for a in Parsed(page_of()).addresses if a.startswith("data:"))
    assert base64.b64decode(address.split(",", 1)[1]) == b"a,b\n1,2\n"


def test_the_table_of_numbers_holds_every_value_of_the_result() -> None:
    result = study().run(seeds=2)
    table = list(csv.DictReader(io.StringIO(report.csv(result).decode())))
    simulated = [float(row["value"]) for row in table if row["group"] == "simulation/curve"]
    assert_allclose(
        np.reshape(simulated, (2, 5)), result["simulation/curve"].to_dataset().loss.values, rtol=1e-11
    )  # 12 digits are written
    assert {row["seed"] for row in table if row["group"] == "theory/curve"} == {""}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report that `make report` writes."""
    out = tmp_path_factory.mktemp("report")
    assert main(["report", "--out", str(out)]) == 0
    return out


def test_the_report_of_the_headline_studies_stands_alone(folder: Path) -> None:
    page = (folder / "index.html").read_text()
    parsed = Parsed(page)
    assert parsed.open == []
    assert all(address.startswith(("#", "data:")) for address in parsed.addresses)
    outside = set(re.findall(r"https?://[^\s\"'<)]+", page))
    assert all(re.search(r"w3\.org|purl\.org|creativecommons", address) for address in outside), outside
    assert len(parsed.ids) == len(set(parsed.ids)), "two figures share an id"
    assert page.count("<svg") == len(HEADLINES)


def test_every_claim_of_the_headline_studies_holds(folder: Path) -> None:
    page = (folder / "index.html").read_text()
    assert '<td class="no">' not in page
    assert '<td class="soft">open' not in page
    claims = sum(len(study.claims) for study in HEADLINES)
    assert page.count('class="yes"') == 2 * claims  # in the overview and beside the figure


def test_the_downloads_of_the_report_are_the_stored_results(folder: Path, tmp_path: Path) -> None:
    page = (folder / "index.html").read_text()
    stored = {path.read_bytes() for path in folder.glob("*.nc")}
    carried = re.findall(r'href="data:application/x-netcdf;base64,([^"]+)"', page)
    assert {base64.b64decode(text) for text in carried} == stored
    copy = tmp_path / "copy.nc"
    copy.write_bytes(base64.b64decode(carried[0]))
    assert len(read(copy).attrs["seeds"]) >= 4
