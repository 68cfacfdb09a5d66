"""The page: complete without a script, the same numbers once, and safe whatever a study calls itself."""

import base64
import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab import figures, report
from iclab.claims import Verdict
from iclab.commands.main import main
from iclab.store import Store, read
from iclab.studies import STUDIES
from iclab.study import Formula
from tests.test_figures import overlapping
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
        if tag not in ("meta", "br", "img", "input", "link"):
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
        "question": "Is it so?\n\nWe ask `now`, as in arXiv 2501.16265 and docs/derivations/dynamics.",
        "answer": "It is so, to 1 %.",
        "command": "iclab run made-up --height 2",
        "case": '{"height": 1.0, "problem": {"noise": 0.5, "sizes": [1, 2]}}',
        "verdicts": [Verdict("exact", "It is so.", "deviation", 0.0101, 0.02, "holds", (("gap", "1e-3"),))],
        "drawing": report.Drawing("<svg></svg>", "<svg></svg>", 7.0, "Height against time."),
        "files": [report.File("made-up.nc", b"numbers", inside=True), report.File("made-up.csv", b"a,b\n1,2\n")],
        "seconds": 1.5,
        "seeds": [0, 1],
        "origin": {"versions": "numpy 2", "commit": "abc"},
        "formulas": (Formula("h^2", "The height squared.", {"h": "height"}),),
        "symbols": [("h", "height", "m")],
    }
    return report.Entry(**(whole | changes))  # type: ignore[arg-type]


def page_of(**changes: object) -> str:
    return report.page([entry(**changes)], date="today", version="0")


def test_the_page_shows_question_answer_case_verdict_and_what_was_asked() -> None:
    page = page_of()
    for text in (
        "Is it so?", "It is so, to 1\xa0%.", "Height against time.", "We ask", "--height", "--problem.sizes", "1, 2",
        "≤ 1<", "≤ 2<", "deviation, %", "holds", "numpy 2", "iclab run made-up --height 2", "<msup>", "height",
    ):  # fmt: skip
        assert text in page, text


def test_the_answer_stands_under_its_question_and_before_its_figure() -> None:
    page = page_of()
    places = [
        page.index(text) for text in ("<h2", "It is so, to 1\xa0%.", "<figure", "<caption>Verdicts", "<details")
    ]
    assert places == sorted(places)


def test_a_measure_and_its_unit_stand_once_for_all_verdicts_on_it() -> None:
    numbers = (0.0101, 0.015)
    several = [Verdict("c", f"Claim {number}.", "deviation", number, 0.02, "holds") for number in numbers]
    page = page_of(verdicts=[several[0], Verdict("c", "Other.", "share of the seeds", 0.7, 0.5, "holds"), several[1]])
    assert page.count("deviation, %") == page.count("share of the seeds, %") == 1
    assert page.count('<tr class="measure">') == 2


def test_a_claim_that_fails_or_stays_open_is_said() -> None:
    failed = page_of(verdicts=[Verdict("c", "s", "m", 0.1, 0.75, "does not hold")])
    assert '<td class="no">does not hold</td>' in failed
    unknown = page_of(verdicts=[Verdict("c", "s", "m", float("nan"), 0.75, "open", reason="one seed")])
    assert '<td class="open">open: one seed</td>' in unknown
    assert "nan" not in unknown
    assert "theory alone" in page_of(verdicts=[], seeds=[])


def test_papers_and_derivations_are_linked_and_the_derivations_lie_beside_the_page(tmp_path: Path) -> None:
    page = report.write(tmp_path, [entry()])
    addresses = Parsed(page.read_text()).addresses
    assert "https://arxiv.org/abs/2501.16265" in addresses
    assert "docs/derivations/dynamics.html" in addresses
    for address in addresses:
        if not address.startswith(("#", "data:", "https://arxiv.org/")):
            assert (tmp_path / address).is_file(), address


def test_several_studies_have_a_table_of_contents_and_every_section_a_permalink() -> None:
    page = report.page([entry(), entry(name="other")], date="today", version="0")
    parsed = Parsed(page)
    assert parsed.addresses.count("#made-up") == parsed.addresses.count("#other") == 2
    assert {"made-up", "other"} <= set(parsed.ids)
    assert "1 of 1 hold" in page


def test_names_and_texts_are_shown_and_never_run() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    page = page_of(
        name=hostile, question=f"{hostile}?\n\n{hostile}", case=json.dumps({"a": hostile}), answer=hostile,
        command=hostile, origin={"versions": hostile}, symbols=[(hostile, hostile, hostile)],
        drawing=report.Drawing("<svg></svg>", "<svg></svg>", 7.0, hostile),
    )  # fmt: skip
    assert hostile not in page
    assert "default-src 'none'" in page
    assert "<script" not in page


def test_files_hold_what_they_say_inside_the_page_or_beside_it(tmp_path: Path) -> None:
    page = report.write(tmp_path, [entry()])
    address = next(one for one in Parsed(page.read_text()).addresses if one.startswith("data:"))
    assert base64.b64decode(address.split(",", 1)[1]) == b"numbers"
    assert (tmp_path / "files" / "made-up.csv").read_bytes() == b"a,b\n1,2\n"


def test_figures_are_shown_in_one_column_where_a_page_is_too_narrow_for_them() -> None:
    page = page_of(drawing=report.Drawing("<svg></svg>", "<svg></svg>", 10.0))
    assert "@media (max-width: 1007px) { .w960 .wide { display: none; } .w960 .narrow { display: block; } }" in page


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


def test_the_report_of_the_headline_studies_is_complete_and_small(folder: Path) -> None:
    page = (folder / "index.html").read_text()
    parsed = Parsed(page)
    assert parsed.open == []
    for address in parsed.addresses:
        known = address.startswith(("#", "data:", "https://arxiv.org/abs/"))
        assert known or (folder / address).is_file(), address
    assert len(parsed.ids) == len(set(parsed.ids)), "two figures share an id"
    assert page.count("<svg") == 2 * len(HEADLINES)
    assert page.count("<math") >= len(HEADLINES)
    assert (folder / "index.html").stat().st_size <= 3e6  # the explorer, which its figures open, among them
    assert page.count("data-view=") == len(HEADLINES)


def test_every_claim_of_the_headline_studies_holds(folder: Path) -> None:
    page = (folder / "index.html").read_text()
    assert 'class="no"' not in page
    assert 'class="open"' not in page
    claims = sum(len(study.claims) for study in HEADLINES)
    assert page.count('class="yes"') == claims


def test_the_headline_studies_answer_in_numbers_of_their_own(folder: Path) -> None:
    page = (folder / "index.html").read_text()
    answers = re.findall(r'<p class="answer">([^<]+)</p>', page)
    assert len(answers) == len(HEADLINES)
    for one, words in zip(answers, ("from 1 to 0.136", "1, 0.641, 0.377, 0.21, 0.136", "At N = 8"), strict=True):
        assert words in one.replace("\xa0", " ")
        assert re.search(r"All \d claims hold; closest to its bound: ", one)


def test_the_numbers_in_the_report_are_the_stored_results(folder: Path, tmp_path: Path) -> None:
    page = (folder / "index.html").read_text()
    stored = {path.read_bytes() for path in folder.glob("*.nc")}
    carried = re.findall(r'href="data:application/x-netcdf;base64,([^"]+)"', page)
    assert {base64.b64decode(text) for text in carried} == stored
    copy = tmp_path / "copy.nc"
    copy.write_bytes(base64.b64decode(carried[0]))
    assert len(read(copy).attrs["seeds"]) >= 4


@pytest.mark.parametrize("form", [figures.drawn, figures.drawn_narrow])
def test_no_words_of_the_headline_figures_overlap_or_leave_the_figure(folder: Path, form: Any) -> None:
    for one in HEADLINES:
        result = Store(folder).load(one, one.quick)
        figure = form(one, one.quick, result)
        assert overlapping(figure) == [], one.name
        box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
        assert min(box.x0, box.y0, width - box.x1, height - box.y1) > -0.01
