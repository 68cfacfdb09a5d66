"""The page of an inspection: whole in itself, safe with any name, and never too large."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from iclab.inspection.behavior import Joined
from iclab.inspection.page import LARGEST, page
from iclab.inspection.page.groups import groups, quantiles
from iclab.inspection.page.steps import StepAxis
from iclab.spectra.checkpoints.tensors import Skipped
from iclab.spectra.measures.changes import change
from iclab.spectra.observation.dynamics import ChangePoint, Curve, MatrixSeries, SpectralDynamics
from iclab.spectra.observation.integrity import Finding, Integrity
from iclab.spectra.observation.measurements import OVERLAPS, RANKS

HOSTILE = ["$\\frac{1$", "<img src=x onerror=alert(1)>", "\x1b]0;x\x07", "=cmd()", "a[/b]c", "</script><b>"]


def track(rng, steps, layer=0, head=0, *, role="QK", matrix=None, tower="", leading=16, measures=RANKS + OVERLAPS):
    count, share = len(steps), np.linspace(0, 1, len(steps))
    curves = {}
    for name in measures:
        if name.startswith("overlap"):
            values, level = 0.1 + 0.85 * share**2 + 0.02 * rng.standard_normal(count), (0.06, 0.01)
        else:
            drop = 12 * (1 + 0.03 * (layer or 0)) / (1 + np.exp(-12 * (share - 0.6)))
            values, level = 28 - drop + rng.normal() + 0.3 * rng.standard_normal(count), (27.3, 0.4)
        curves[name] = Curve(values, *level, of_subspace=name in OVERLAPS)
    fan = np.exp(-0.2 * np.arange(leading) * (1 + share[:, None]))
    return MatrixSeries(
        tower, layer, head, role if matrix is None else matrix, role, (64, 32, 64), "float32", curves,
        np.ones(count), np.full(count, 0.2), fan, ("ok",) * count, ("",) * count,
    )  # fmt: skip


def dynamics(steps, tracks, **fields):
    integrity = fields.pop("integrity", Integrity(()))
    return SpectralDynamics(np.asarray(steps), tuple(f"step{s}" for s in steps), tuple(tracks), integrity, **fields)


def small(names=(), *, roles=("QK",), measures=("effective_rank", "stable_rank", "overlap_with_final"), **fields):
    rng, steps = np.random.default_rng(0), [0, 1, 2, 4, 8, 16, 32, 64, 128, 256]
    tracks = [
        track(rng, steps, layer, head, role=role, measures=measures)
        for role in roles for layer in (0, 1) for head in (0, 1)
    ]  # fmt: skip
    tracks += [track(rng, steps, None, None, role="embed", matrix=name, measures=measures) for name in names]
    return dynamics(steps, tracks, **fields)


class Seen(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


def shifting(seen):
    """A curve with a clear shift in its middle, and the change that is found in it."""
    values = np.where(np.arange(10) < 5, 0.0, 9.0) + 1e-3 * np.random.default_rng(0).standard_normal(10)
    found = change(seen.steps.astype(float), values)
    assert found.called
    return values, found


@pytest.fixture(scope="module")
def hostile():
    """The page of two runs in which every name is hostile."""
    seen, rng = small(HOSTILE), np.random.default_rng(0)
    whose = track(rng, seen.steps, None, None, matrix=" ".join(HOSTILE))
    every = " ".join(HOSTILE)
    extra = [track(rng, seen.steps, 0, 0, tower=every, measures=("effective_rank",))]
    extra += [track(rng, seen.steps, 0, None, role=every, matrix=every, measures=("stable_rank",))]
    values, found = shifting(seen)
    first = replace(
        seen,
        matrices=(*seen.matrices, *extra),
        integrity=Integrity(tuple(Finding("swapped tensors", "error", name) for name in HOSTILE)),
        skipped=tuple(Skipped(name, name) for name in HOSTILE),
        notes=tuple(HOSTILE),
        changes=(ChangePoint(whose, "effective_rank", found),),
        tested=10,
        family=HOSTILE[1],
    )
    joined = Joined(dict.fromkeys(HOSTILE, values), (7,), (1,))
    return page({every: first, HOSTILE[5]: small()}, joined)


def test_hostile_names_are_text_on_the_page_and_in_its_figures(hostile):
    html, seen = hostile, Seen(hostile)
    assert "img" not in seen.tags
    assert seen.tags.count("b") == 0
    assert seen.tags.count("script") == 1
    assert not any(name.startswith("on") for name, _ in seen.attributes)
    assert "\x1b" not in html
    assert "\x07" not in html
    for name in ("<img src=x onerror=alert(1)>", "=cmd()", "a[/b]c", "$\\frac{1$", "\\x1b]0;x\\x07", "</script><b>"):
        assert name in seen.text
    assert "<!--" not in html


def test_nothing_on_the_page_comes_from_outside(hostile):
    html, seen = hostile, Seen(hostile)
    policy = dict(seen.attributes)["content"]
    assert "default-src 'none'" in html
    assert "http" not in policy
    links = [value for name, value in seen.attributes if name in ("src", "href", "xlink:href", "action", "srcset")]
    assert links
    assert all(value.startswith(("#", "data:image/png;base64,")) for value in links)
    addresses = set(re.findall(r"https?://[^\s\"'<)]*", html))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names, never fetched
    assert "url(" not in re.sub(r"url\(#", "", html)


def test_the_numbers_of_the_page_are_medians_over_heads():
    seen = small(["wte"], roles=("QK", "OV"))
    html = page({"this": seen})
    text = re.search(r'<script type="application/json" id="medians">(.*?)</script>', html, re.S)[1]
    numbers = json.loads(text)
    one = next(n for n in numbers if (n["matrix"], n["measure"]) == ("OV", "stable_rank"))
    heads = [t.curves["stable_rank"].values for t in seen.matrices if (t.role, t.layer) == ("OV", 1)]
    np.testing.assert_allclose(one["medians"][1], np.median(heads, axis=0), rtol=1e-4)  # five digits are written
    assert one["steps"] == seen.steps.tolist()


def test_quantiles_over_heads_leave_out_what_is_undefined():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((7, 5))
    rows[rng.random(rows.shape) < 0.4] = np.nan
    rows[:, 2], rows[:, 3] = np.nan, [3.0, *[np.nan] * 6]
    found = quantiles(rows, 0, 0.25, 0.5, 1)
    there = [0, 1, 3, 4]
    np.testing.assert_allclose(found[:, there], np.nanquantile(rows[:, there], (0, 0.25, 0.5, 1), axis=0))
    assert np.isnan(found[:, 2]).all()


def test_integrity_is_the_first_table_and_an_error_is_said_before_any_figure():
    broken = small(integrity=Integrity((Finding("identical checkpoints", "error", "steps 1, 2 are copies"),)))
    html = page({"this": broken})
    assert html.index("steps 1, 2 are copies") < html.index("cannot be trusted") < html.index("<figure>")
    assert html.index("<table>") < html.index("steps 1, 2 are copies")
    assert "Nothing found." in page({"this": small()})


def test_changes_coincide_and_never_explain():
    seen = small()
    whose = seen.matrices[0]
    values, found = shifting(seen)
    shifted = small(changes=(ChangePoint(whose, "effective_rank", found),), tested=40)
    joined = Joined({"accuracy": values}, (), ())
    html = page({"this": shifted}, joined)
    assert "coincides with" in html
    assert "accuracy at step 16" in html
    assert "explain" not in html
    assert "none from one run" in html
    assert "1 of 40 curves" in html


def test_columns_of_behavior_that_are_not_drawn_are_named():
    seen = small()
    values = np.linspace(0, 1, len(seen.steps))
    html = page({"this": seen}, Joined(dict.fromkeys(("first", "second", "third", "fourth"), values), (), ()))
    assert "that are not drawn: fourth" in html


def test_readings_that_are_not_in_order_are_counted_and_not_drawn():
    seen = small()
    first = seen.matrices[0]
    status = ("nonfinite",) * 3 + ("ok",) * 7
    bad = MatrixSeries(**{**vars(first), "status": status, "reason": ("3 NaN",) * 3 + ("",) * 7})
    changed = dynamics(seen.steps, (bad, *seen.matrices[1:]))
    assert np.isnan(groups(changed)[0].values("effective_rank")[0, :3]).all()
    text = Seen(page({"this": changed})).text
    assert "3 NaN" in text
    assert "layer 0, head 0, QK, step 0" in text


def test_what_is_nowhere_defined_still_makes_a_page():
    steps = [5]
    nothing = track(np.random.default_rng(0), steps)
    curves = {"effective_rank": Curve(np.array([np.nan]), np.nan, np.nan)}
    empty = MatrixSeries(**{**vars(nothing), "curves": curves, "status": ("skipped",), "reason": ("too large",)})
    text = Seen(page({"this": dynamics(steps, [empty])})).text
    assert "Nothing to draw." in text
    assert "too large" in text
    assert "No curve was long enough" in text
    assert "<figure>" in page({"this": dynamics(steps, [nothing])})


@pytest.mark.parametrize("steps", [[0, 1, 2, 4, 512, 1000, 143000], [1000, 2000, 3000], [0, 10**12], [7], [0]])
def test_ticks_are_steps_within_the_ends(steps):
    axis = StepAxis(np.array(steps, dtype=float))
    ticks = axis.ticks(8)
    assert 1 <= len(ticks) <= 9
    assert min(steps) <= min(ticks)
    assert max(ticks) <= max(steps)
    edges = axis.edges(np.array(steps, dtype=float))
    assert np.all(np.diff(edges) > 0)
    assert np.all((edges[:-1] < steps) & (steps < edges[1:]))


@pytest.mark.slow
def test_a_large_observation_makes_a_page_of_at_most_twenty_megabytes():
    rng = np.random.default_rng(0)
    steps = [0, *(2**k for k in range(10)), *range(1000, 140000, 1000)][:150]
    tracks = [
        track(rng, steps, layer, head, role=role)
        for role in ("QK", "QK averaged", "OV") for layer in range(24) for head in range(16)
    ]  # fmt: skip
    tracks += [
        track(rng, steps, layer, None, role=role, matrix=f"h.{layer}.{role}" + "x" * 500)
        for role in ("mlp_in", "mlp_out") for layer in range(24)
    ]  # fmt: skip
    skipped = tuple(Skipped(f"{i}" + "y" * 500, "a vector") for i in range(20000))
    html = page({"this": dynamics(steps, tracks, skipped=skipped)})
    print(f"{len(html.encode()) / 1e6:.2f} MB")
    assert len(html.encode()) <= LARGEST
    assert "19,800 more rows are left out" in html
    assert "Figures left out" not in html


def test_what_does_not_fit_is_left_out_and_named(monkeypatch):
    monkeypatch.setattr("iclab.inspection.page.sections._ONE_FIGURE", 1000)
    html = page({"this": small()})
    assert "<figure>" not in html
    assert "Figures left out to keep this page below 20 MB (" in html
    assert "Query-key circuits against step" in html


def test_the_command_writes_the_page_beside_its_tables(tmp_path, capsys):
    from safetensors.numpy import save_file

    from iclab.commands.main import main

    rng, series, out = np.random.default_rng(0), tmp_path / "run", tmp_path / "out"
    for step in (1, 2, 3):
        (series / f"step{step}").mkdir(parents=True)
        state = {f"h.0.{role}": rng.standard_normal((8, 8)) for role in "qkvo"}
        save_file(state | {HOSTILE[1]: np.ones((3, 3))}, series / f"step{step}" / "model.safetensors")
    rules = "".join(
        f"[[tensor]]\nmatch = 'h\\.(?P<layer>\\d+)\\.{role}'\nrole = '{role}'\noutput_axis = 0\n" for role in "qkvo"
    )
    (tmp_path / "map.toml").write_text("heads = 2\n" + rules)
    asked = ["inspect", str(series), "--map", str(tmp_path / "map.toml"), "--out", str(out)]
    assert main(asked) == 0
    html = (out / "index.html").read_text(encoding="utf-8")
    assert "<figure>" in html
    assert "img" not in Seen(html).tags
    assert HOSTILE[1] in Seen(html).text
    assert str(tmp_path) not in html
    assert "index.html" in capsys.readouterr().out
