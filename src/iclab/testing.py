"""The battery that every study passes. A study of your own proves itself with `check_study(study)`."""

import dataclasses
import inspect
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from iclab import figures, report
from iclab.claims import Verdict
from iclab.store import Store, digest
from iclab.study import Study, case_json, dataset_at

__all__ = ["check_description", "check_labels", "check_study", "compilations"]


def check_study(study: Study, case: Any = None) -> None:
    """Raise AssertionError with the reason where a study breaks the contract. Runs one seed twice.

    Checked: text and cases, signatures of the witnesses, complete labels, the same answer twice without
    compiling again, storing and reading back, verdicts, the figure, and the refusal of a foreign case. A study
    without a simulation is asked for theory alone.
    """
    case = study.quick if case is None else case
    check_description(study)
    first = study.run(case, seeds=1).tree
    with compilations() as compiled:
        again = study.run(case, seeds=1).tree
    assert digest(first) == digest(again), f"{study.name}: the same case and seed gave two different answers"
    assert not compiled, f"{study.name}: the second call compiled {len(compiled)} programs again"
    check_labels(study, first)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        stored = Store(Path(folder)).add(study, case, first)
        assert digest(Store(Path(folder)).fetch(study, case, 1)) == digest(stored), (
            f"{study.name}: changed by storing"
        )
    for verdict in study.verdicts(first):
        assert isinstance(verdict, Verdict), f"{study.name}: a claim must give a Verdict, got {type(verdict)}"
        for text in (verdict.claim, verdict.meaning, verdict.measure):
            assert text, f"{study.name}: a verdict must say what it claims and what it measures"
    svg = figures.as_bytes(figures.drawn(study, case, first), "svg", name=study.name)
    assert ElementTree.fromstring(svg).tag.endswith("svg"), f"{study.name}: the figure is no SVG"
    assert report.csv(first).count(b"\n") > 1, f"{study.name}: the result gives no table"


def check_description(study: Study) -> None:
    """A study says what it asks, its cases are plain frozen data, and only its simulation takes a key."""
    assert study.title.endswith("?"), f"{study.name}: the first line of the question must be a question"
    for case in (preset.case for preset in study.presets.values()):
        hash(case)
        json.loads(case_json(case))
        assert dataclasses.is_dataclass(case), f"{study.name}: a case must be a dataclass"
    assert type(study.quick) is type(study.full), f"{study.name}: quick and full must be of one class"
    assert "key" not in inspect.signature(study.theory).parameters, f"{study.name}: theory takes no key"
    if study.simulation is not None:
        key = inspect.signature(study.simulation).parameters.get("key")
        assert key is not None, f"{study.name}: simulation must take a key"
        assert key.kind is key.KEYWORD_ONLY, f"{study.name}: key must be keyword-only"
    try:
        study.run(object(), seeds=0)
    except ValueError:
        return
    raise AssertionError(f"{study.name}: a foreign case must be refused")


def check_labels(study: Study, result: Any) -> None:
    """Every array of a result says what it is, and is finite; theory may say that a limit is infinite."""
    for node in result.subtree:
        for name, array in dataset_at(result, node.path).variables.items():
            if name == "seed":
                continue
            for part in ("long_name", "symbol"):
                advice = f"name it in the vocabulary of the study: vocabulary({name}=(symbol, words, unit))"
                assert array.attrs.get(part), f"{study.name}: {node.path}/{name} has no {part}; {advice}"
            assert "units" in array.attrs, f"{study.name}: {node.path}/{name} has no unit"
            known = np.isfinite(array.values) | (node.path.startswith("/theory") & np.isinf(array.values))
            assert np.all(known), f"{study.name}: {node.path}/{name} is not finite"


class compilations:
    """The programs that JAX compiles inside a `with` block, as a list."""

    def __enter__(self) -> list[str]:
        import jax

        self._seen: list[str] = []
        self._open = True
        jax.monitoring.register_event_duration_secs_listener(self._note)
        return self._seen

    def __exit__(self, *_: object) -> None:
        self._open = False  # listeners cannot be taken back by a public function

    def _note(self, event: str, *_: object, **__: object) -> None:
        if self._open and event.endswith("backend_compile_duration"):
            self._seen.append(event)
