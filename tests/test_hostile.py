"""Series with planted faults, each of which is found, and sound ones of eight kinds, in which nothing is."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.commands.main import main
from iclab.spectra import checkpoints, observe
from iclab.spectra.observation import SpectralDynamics
from tests.faults import FAULTS, Planted, planted
from tests.series import AT, CONFIG, KINDS, clean, written

BASES = [*((kind, 0) for kind in KINDS), ("steady", 1), ("buffered", 1)]
SERIES = 200


def drawn(number: int) -> tuple[str, str, int]:
    """Fault, kind and seed of one of the hostile series: each fault in turn, on the series that it is one of."""
    names = list(FAULTS)
    fault = names[number % len(names)]
    bases = [base for base in BASES if base[0] in FAULTS[fault][1]]
    return fault, *bases[number // len(names) % len(bases)]


def ranks(dynamics: SpectralDynamics, name: str) -> np.ndarray:
    """Effective rank of one whole matrix at each step, nan where it is not ok."""
    (series,) = [one for one in dynamics.matrices if one.matrix.endswith(name)]
    sound = np.array([status == "ok" for status in series.status])
    return np.where(sound, series.curves["effective_rank"].values, np.nan)


def entropy_rank(array: np.ndarray) -> float:
    values = np.linalg.svd(array.astype(float), compute_uv=False)
    shares = values[values > 0] / np.sum(values)
    return float(np.exp(-np.sum(shares * np.log(shares))))


def assert_found(dynamics: SpectralDynamics, fault: Planted) -> None:
    """The fault is named with a step of its own, and the series is broken where it should be."""
    findings = dynamics.integrity.findings
    hits = [one for one in findings if fault.names == one.kind or fault.names in one.message]
    skipped = any(fault.names in one.reason for one in dynamics.skipped)
    assert skipped or any(set(one.steps) & set(fault.steps) for one in hits), findings
    assert dynamics.integrity.broken == fault.broken, findings


def assert_right_elsewhere(dynamics: SpectralDynamics, fault: Planted, kind: str, seed: int) -> None:
    """Numbers at the other steps are those of the clean series, by a decomposition of our own."""
    states, name = clean(kind, seed), "mlp.c_proj.weight"
    found = dict(zip(dynamics.steps.tolist(), ranks(dynamics, name), strict=True))
    for step in set(states) - set(fault.steps):
        assert_allclose(found[step], entropy_rank(states[step][AT + name]), rtol=1e-5)  # of float32 Grams


def assert_survived(root: Path, number: int) -> None:
    fault, kind, seed = drawn(number)
    made = planted(root, kind, seed, fault, draw=number)
    dynamics = observe(checkpoints.read(root))
    assert_found(dynamics, made)
    assert_right_elsewhere(dynamics, made, kind, seed)


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=list(FAULTS))
def test_a_planted_fault_is_found_and_no_number_beside_it_is_wrong(number: int, tmp_path: Path) -> None:
    assert_survived(tmp_path / "run", number)


@pytest.mark.slow
def test_all_planted_faults_of_two_hundred_series_are_found(tmp_path: Path) -> None:
    for number in range(SERIES):
        assert_survived(tmp_path / f"run{number}", number)


@pytest.mark.slow
def test_the_command_ends_with_a_code_on_every_kind_of_fault(tmp_path: Path) -> None:
    for number, fault in enumerate(FAULTS):
        kind = FAULTS[fault][1][0]
        made = planted(tmp_path / fault, kind, 0, fault, draw=number)
        words = ["inspect", str(tmp_path / fault), "--out", str(tmp_path / f"{fault}-out"), "--strict", "--no-page"]
        assert main(words) == (1 if made.broken else 0)


def assert_sound(kind: str, seed: int) -> None:
    states = clean(kind, seed)
    found = observe(checkpoints.of_states(list(states.values()), list(states), config=CONFIG))
    assert [one for one in found.integrity.findings if one.severity != "note"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_sound_series_has_neither_errors_nor_warnings(kind: str) -> None:
    assert_sound(kind, 0)


@pytest.mark.slow
def test_none_of_a_hundred_sound_series_has_errors_or_warnings() -> None:
    for number in range(104):  # thirteen of each kind
        assert_sound(list(KINDS)[number % len(KINDS)], 1000 + number)


def test_a_sound_series_is_sound_in_files_too(tmp_path: Path) -> None:
    found = observe(checkpoints.read(written(tmp_path / "run", clean("buffered", 0), sharded=True)))
    assert found.integrity.findings == ()
